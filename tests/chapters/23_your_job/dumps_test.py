#!/usr/bin/env python3
"""read_dumps.py names the culprit of each hang, and refuses what is damaged or would run code.

Without arguments: dumps in NCCL's form, which are made here, mutations and hostile pickles; Python
is enough. With `gloo`: dumps of eight hangs, made by PyTorch, and PyTorch's own analyser beside.
"""
import gzip
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "chapters" / "23_your_job"))
READER = ROOT / "chapters" / "23_your_job" / "read_dumps.py"
failures = []


def complain(words):
    failures.append(words)
    print(f"FAILED: {words}", flush=True)


def run(*arguments):
    result = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True,
                            timeout=120)
    return result.returncode, result.stdout, result.stderr


def read(folder, dumps):
    """Writes the dumps, bytes by rank, and returns the reader's exit status, output and errors."""
    paths = []
    for rank, content in dumps.items():
        path = pathlib.Path(folder) / f"trace_rank_{rank}"
        path.write_bytes(content)
        paths.append(path)
    return run("-B", READER, *paths)


# ---- Dumps as NCCL's recorder writes them --------------------------------------------------------


def entry(number, name="all_reduce", shape=(4,), state="completed", kind="Float", message=False):
    files = {name: "/x/torch/distributed/distributed_c10d.py", "train": "/home/me/train.py"}
    return {"frames": [{"name": function, "filename": file, "line": 7}
                       for function, file in files.items()],
            "record_id": number, "pg_id": 0, "process_group": ("0", "default_pg"),
            "collective_seq_id": 0 if message else number, "p2p_seq_id": number if message else 0,
            "op_id": number, "profiling_name": f"nccl:{name}", "time_created_ns": 10 * number,
            "input_sizes": [list(shape)], "input_dtypes": [kind], "output_sizes": [list(shape)],
            "output_dtypes": [kind], "state": state, "time_discovered_started_ns": None,
            "time_discovered_completed_ns": None, "retired": state == "completed",
            "timeout_ms": 600000, "is_p2p": message}


def dump(entries):
    return {"version": "2.10", "entries": entries, "pg_status": {}, "nccl_comm_state": {},
            "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}}}


def done(count):
    return [entry(number) for number in range(1, count + 1)]


def waits(number=4, *arguments, since=0, **options):
    return done(number - 1)[since:] + [entry(number, *arguments, state="started", **options)]


HANGS = {
    "a rank never comes": ({0: waits(), 1: done(3), 2: waits()}, "Look at rank 1 first"),
    "another operation": ({0: waits(), 1: waits(), 2: waits(4, "broadcast")},
                          "Look at rank 2 first"),
    "another size": ({0: waits(shape=(8,)), 1: waits(), 2: waits()}, "Look at rank 0 first"),
    "another type": ({0: waits(2), 1: waits(2, kind="Half"), 2: waits(2)}, "Look at rank 1 first"),
    "an old recorder": ({0: waits(31, since=20), 1: done(30), 2: waits(31, since=5)},
                        "Look at rank 1 first"),
    "a rank without a dump": ({0: waits(), 1: waits()}, "Look at rank 2 first: there is no dump"),
    "a message": ({0: waits(1, "send 0->1", message=True), 1: [], 2: []}, "Look at rank 1 first"),
    "nothing called": ({0: waits(1), 1: [], 2: waits(1)}, "Look at rank 1 first"),
    "nobody waits": ({rank: done(3) for rank in range(3)}, "nobody waits in a collective"),
    "all wait": ({rank: waits() for rank in range(3)},
                 "All have called the same, and not all of it is done"),
}


def look_at_nccl_form(folder):
    for name, (ranks, words) in HANGS.items():
        for form in (lambda value: pickle.dumps(value, protocol=2),
                     lambda value: json.dumps(value).encode()):
            dumps = {rank: form(dump(entries)) for rank, entries in ranks.items()}
            status, output, errors = read(folder, dumps)
            if status != 0 or words not in output:
                complain(f"{name}: '{words}' is not in: {output}{errors}")
    ranks, _ = HANGS["a rank never comes"]
    _, output, _ = read(folder, {rank: pickle.dumps(dump(ranks[rank])) for rank in ranks})
    if "train.py:7 in train" not in output or "/torch/" in output:
        complain(f"where a rank stood is not told: {output}")


class Nodeile:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.system, (f"touch {self.path}",))


def look_at_hostile_dumps(folder):
    for protocol in range(6):
        trap = pathlib.Path(folder) / f"trap{protocol}"
        for content in (Nodeile(trap), {"entries": [Nodeile(trap)]},
                        dump([dict(entry(1), frames=Nodeile(trap))])):
            status, output, errors = read(folder, {0: pickle.dumps(content, protocol=protocol)})
            if (status == 0 or output or len(errors.splitlines()) != 1
                    or "it could run code" not in errors):
                complain(f"a hostile pickle of protocol {protocol}: {status} {output}{errors}")
        if trap.exists():
            complain(f"a pickle of protocol {protocol} has run its code")
    odd = {"empty": b"", "zeros": bytes(100), "text": b"hello", "a list": pickle.dumps([1]),
           "a number": b"7", "entries": b'{"entries": 3}', "deep": b"[" * 100000,
           "no number": pickle.dumps(dump([dict(entry(1), collective_seq_id="x")])),
           "odd sizes": pickle.dumps(dump([dict(entry(1), input_sizes="x")])),
           "huge number": pickle.dumps(dump([dict(entry(1), collective_seq_id=10**5000)])),
           "cut gzip": gzip.compress(pickle.dumps(dump([])))[:-9]}
    for name, content in odd.items():
        status, output, errors = read(folder, {0: content})
        if status == 0 or output or len(errors.splitlines()) != 1 or not errors.endswith(".\n"):
            complain(f"'{name}' is not refused in a sentence: {status} {output}{errors[-300:]}")
    for names in (["dump"], ["a_1", "b_1"], ["a_0", "dump_0_202611241400"]):
        paths = [pathlib.Path(folder) / name for name in names]
        for path in paths:
            path.write_bytes(pickle.dumps(dump([])))
        status, _, errors = run("-B", READER, *paths)
        if status == 0 or len(errors.splitlines()) != 1:
            complain(f"files named {names}: {errors}")


def look_at_odd_dumps(folder):
    """What is printed of a dump is short, and no terminal obeys it. Compressed and in a folder."""
    ranks = {0: waits(), 1: done(3), 2: waits()}
    frame = {"filename": "a.py", "name": "me", "line": "\x1b[2J\nLook at rank 7 first"}
    ranks[0][-1].update(profiling_name="nccl:\ud800\x1b]0;me\x07", input_sizes=[[10**5000]],
                        frames=[frame])
    own = pathlib.Path(folder) / "own"
    own.mkdir()
    for rank, entries in ranks.items():
        (own / f"rank_{rank}.gz").write_bytes(gzip.compress(pickle.dumps(dump(entries))))
    _, output, errors = run("-B", READER, own)
    if "Look at ranks 0, 2 first" not in output or "\x1b" in output or "\nLook at rank 7" in output:
        complain(f"odd dumps in a folder: {output}{errors}")
    alone = dump(done(1))
    alone["pg_config"] = {}
    _, output, _ = read(folder, {0: pickle.dumps(alone)})
    if "One dump alone compares nothing" not in output:
        complain(f"of one dump is said: {output}")
    if run("-B", READER, own / "none")[2].count("\n") != 1:
        complain("a file that is not there is not one sentence")
    reads = f"{sys.executable} -B {READER} {own}"
    for command, sentence in ((f"{reads} >/dev/full", "The output could not be"),
                              (f"{reads} | true", "")):
        errors = subprocess.run(command, shell=True, check=False, capture_output=True,
                                text=True).stderr
        if not errors.startswith(sentence) or errors.count("\n") != bool(sentence):
            complain(f"`{command}` says: {errors}")


# ---- Hangs of PyTorch on Gloo --------------------------------------------------------------------
def hang(kind, rank):
    """Hangs as this rank, and returns its dump as hexadecimal text, or '' of one that is gone."""
    import time

    import torch
    import torch.distributed as dist
    from torch._C._distributed_c10d import _dump_fr_trace
    dist.init_process_group("gloo")
    pair = dist.new_group([0, 1])
    tensor = torch.ones(4)

    def reduce(data=tensor, group=None):
        dist.all_reduce(data, group=group, async_op=True)

    for _ in range(3):
        dist.all_reduce(tensor)
    if kind == "a rank is gone" and rank == 1:
        return ""
    idle = {"never comes": [1], "one too many": [0, 1], "a smaller group": [0, 2]}
    if kind == "another operation" and rank == 2:
        dist.broadcast(tensor, 0, async_op=True)
    elif kind == "another size" and rank == 0:
        reduce(torch.ones(9))
    elif kind == "another type" and rank == 1:
        reduce(torch.ones(4, dtype=torch.float64))
    elif kind in ("another group", "a smaller group") and rank == 1:
        reduce(group=pair)  # in another group rank 0 waits for both in the whole
    elif rank not in idle.get(kind, []):
        reduce()
    if kind not in ("another size", "another type"):  # Gloo soon ends a rank that gets other bytes
        time.sleep(1.5)
    return _dump_fr_trace().hex()


CULPRITS = {"never comes": "Look at rank 1 first", "another operation": "Look at rank 2 first",
            "another size": "Look at rank 0 first", "another type": "Look at rank 1 first",
            "one too many": "Look at ranks 0, 1 first", "another group": "Look at rank 1 first",
            "a smaller group": "Look at rank 0 first",
            "a rank is gone": "Look at rank 1 first: there is no dump"}


def look_at_gloo(folder):
    from support import ranks
    ranks.load()
    for kind, words in CULPRITS.items():
        answers = ranks.run(lambda rank, kind=kind: hang(kind, rank), world_size=3)
        if None in answers:
            complain(f"{kind}: a rank has not ended")
            continue
        status, output, errors = read(folder, {
            rank: bytes.fromhex(answer) for rank, answer in enumerate(answers) if answer})
        if status != 0 or words not in output:
            complain(f"{kind}: '{words}' is not in: {output}{errors}")


def look_at_pytorchs_analyser(folder):
    """Of the dumps in NCCL's form PyTorch's own analyser says the same, so the form is right."""
    for kind, words in (("another operation", "Culprit rank 2"), ("another size", "Culprit rank 0"),
                        ("a rank never comes", "missing ranks: {1}")):
        for rank, entries in HANGS[kind][0].items():
            (pathlib.Path(folder) / f"nccl_{rank}").write_bytes(pickle.dumps(dump(entries)))
        _, output, errors = run("-m", "torch.distributed.flight_recorder.fr_trace", folder,
                                "--prefix", "nccl_")
        if words not in output + errors:
            complain(f"PyTorch's analyser does not say '{words}' of '{kind}': {output[-800:]}"
                     f"{errors[-800:]}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1:] == ["gloo"]:
            look_at_gloo(folder)
            look_at_pytorchs_analyser(folder)
        else:
            look_at_nccl_form(folder)
            look_at_hostile_dumps(folder)
            look_at_odd_dumps(folder)
    print("all as expected" if not failures else f"{len(failures)} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
