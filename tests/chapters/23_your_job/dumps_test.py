#!/usr/bin/env python3
"""read_dumps.py names the culprit of each hang, and refuses in a sentence what is damaged or would run code.

Without arguments: dumps in NCCL's form, which are made here, mutations and hostile pickles; Python is enough. With `gloo`: dumps of
eight hangs, which PyTorch makes, and PyTorch's own analyser beside.
"""
import json
import os
import pathlib
import pickle
import random
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


def read(folder, dumps):
    """Writes the dumps, bytes by rank, and returns the reader's exit status, output and errors."""
    paths = []
    for rank, content in dumps.items():
        path = pathlib.Path(folder) / f"trace_rank_{rank}"
        path.write_bytes(content)
        paths.append(str(path))
    result = subprocess.run([sys.executable, "-B", str(READER), *paths], capture_output=True, text=True, timeout=60)
    return result.returncode, result.stdout, result.stderr


# ---- Dumps as NCCL's recorder writes them ----------------------------------------------------------


def entry(number, name="all_reduce", shape=(4,), state="completed", kind="Float", group=("0", "default_pg"), message=False, line=7):
    return {"frames": [{"name": name, "filename": "/x/torch/distributed/distributed_c10d.py", "line": 1},
                       {"name": "train", "filename": "/home/me/train.py", "line": line}],
            "record_id": number, "pg_id": 0, "process_group": group, "collective_seq_id": 0 if message else number,
            "p2p_seq_id": number if message else 0, "op_id": number, "profiling_name": f"nccl:{name}", "time_created_ns": 10 * number,
            "input_sizes": [list(shape)], "input_dtypes": [kind], "output_sizes": [list(shape)], "output_dtypes": [kind], "state": state,
            "time_discovered_started_ns": None, "time_discovered_completed_ns": None, "retired": state == "completed", "timeout_ms": 600000,
            "is_p2p": message}


def dump(entries, ranks=(0, 1, 2)):
    return {"version": "2.10", "entries": entries, "pg_status": {}, "nccl_comm_state": {},
            "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(ranks))}}}


def done(count):
    return [entry(number) for number in range(1, count + 1)]


HANGS = {
    "a rank never comes": ({0: done(3) + [entry(4, state="started")], 1: done(3), 2: done(3) + [entry(4, state="started")]}, "Look at rank 1 first"),
    "another operation": ({0: done(3) + [entry(4, state="started")], 1: done(3) + [entry(4, state="started")],
                           2: done(3) + [entry(4, "broadcast", state="started")]}, "Look at rank 2 first"),
    "another size": ({0: done(3) + [entry(4, shape=(8,), state="started")], 1: done(3) + [entry(4, state="started")],
                      2: done(3) + [entry(4, state="started")]}, "Look at rank 0 first"),
    "another type": ({0: done(1) + [entry(2, state="started")], 1: done(1) + [entry(2, state="started", kind="Half")],
                      2: done(1) + [entry(2, state="started")]}, "Look at rank 1 first"),
    "an old recorder": ({0: done(30)[20:] + [entry(31, state="started")], 1: done(30), 2: done(30)[5:] + [entry(31, state="started")]},
                        "Look at rank 1 first"),
    "a rank without a dump": ({0: done(3) + [entry(4, state="started")], 1: done(3) + [entry(4, state="started")]}, "Look at rank 2 first: there is no dump"),
    "a message": ({0: [entry(1, "send 0->1", state="started", message=True)], 1: [], 2: []}, "Look at rank 1 first"),
    "nothing called": ({0: [entry(1, state="started")], 1: [], 2: [entry(1, state="started")]}, "Look at rank 1 first"),
    "nobody waits": ({rank: done(3) for rank in range(3)}, "nobody waits in a collective"),
    "all wait": ({rank: done(3) + [entry(4, state="started")] for rank in range(3)}, "All have called the same, and not all of it is done"),
}


def look_at_nccl_form(folder):
    for name, (ranks, words) in HANGS.items():
        for form in (lambda value: pickle.dumps(value, protocol=2), lambda value: json.dumps(value).encode()):
            status, output, errors = read(folder, {rank: form(dump(entries)) for rank, entries in ranks.items()})
            if status != 0 or words not in output:
                complain(f"{name}: '{words}' is not in: {output}{errors}")
    status, output, _ = read(folder, {rank: pickle.dumps(dump(HANGS["a rank never comes"][0][rank])) for rank in range(3)})
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
        for content in (Nodeile(trap), {"entries": [Nodeile(trap)]}, dump([dict(entry(1), frames=Nodeile(trap))])):
            status, output, errors = read(folder, {0: pickle.dumps(content, protocol=protocol)})
            if status == 0 or output or len(errors.splitlines()) != 1 or "it could run code" not in errors:
                complain(f"a hostile pickle of protocol {protocol}: {status} {output}{errors}")
        if trap.exists():
            complain(f"a pickle of protocol {protocol} has run its code")
    own = []
    own.append(own)
    odd = {"empty": b"", "zeros": bytes(100), "text": b"hello", "a list": pickle.dumps([1]), "a number": b"7", "entries": b'{"entries": 3}',
           "deep": b"[" * 100000, "deep pickle": b"\x80\x02" + b"(" * 100000 + b"l" * 1000 + b".", "itself": pickle.dumps({"entries": own}),
           "no number": pickle.dumps(dump([dict(entry(1), collective_seq_id="x")])), "odd sizes": pickle.dumps(dump([dict(entry(1), input_sizes="x")]))}
    for name, content in odd.items():
        status, output, errors = read(folder, {0: content})
        if status == 0 or output or len(errors.splitlines()) != 1 or not errors.endswith(".\n"):
            complain(f"'{name}' is not refused in a sentence: {status} {output}{errors[-300:]}")
    for names in (["dump"], ["a_1", "b_1"]):
        paths = [pathlib.Path(folder) / name for name in names]
        for path in paths:
            path.write_bytes(pickle.dumps(dump([])))
        result = subprocess.run([sys.executable, "-B", str(READER), *map(str, paths)], capture_output=True, text=True)
        if result.returncode == 0 or len(result.stderr.splitlines()) != 1:
            complain(f"files named {names}: {result.stderr}")


def look_at_mutations():
    """Three hundred dumps with bytes changed, cut off or added: read, or refused by Refused and nothing else."""
    import read_dumps
    chance, refused = random.Random(23), 0
    for number in range(300):
        value = dump(HANGS["another size"][0][0])
        content = bytearray(json.dumps(value).encode() if number % 3 == 0 else pickle.dumps(value, protocol=2))
        for _ in range(chance.randint(1, 8)):
            what, at = chance.randint(0, 2), chance.randrange(len(content))
            if what == 0:
                content[at] = chance.randrange(256)
            elif what == 1:
                del content[at:at + chance.randint(1, 40)]
            else:
                content[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 4)))
        try:
            read_dumps.report({0: read_dumps.Dump(bytes(content))})
        except read_dumps.Refused:
            refused += 1
        except Exception as error:
            complain(f"mutation {number} ends with {type(error).__name__}: {error}")
    print(f"{refused} of 300 mutations were refused, the others read")
    if refused < 100:
        complain("so few mutations cannot be refused")


# ---- Hangs of PyTorch on Gloo ----------------------------------------------------------------------


def hang(kind, rank):
    """Hangs as this rank, and returns its dump as hexadecimal text, or '' of a rank that is gone."""
    import time

    import torch
    import torch.distributed as dist
    from torch._C._distributed_c10d import _dump_fr_trace
    dist.init_process_group("gloo")
    pair = dist.new_group([0, 1])
    tensor = torch.ones(4)
    for _ in range(3):
        dist.all_reduce(tensor)
    if kind == "a rank is gone" and rank == 1:
        return ""
    if kind == "never comes":
        if rank != 1:
            dist.all_reduce(tensor, async_op=True)
    elif kind == "another operation":
        dist.broadcast(tensor, 0, async_op=True) if rank == 2 else dist.all_reduce(tensor, async_op=True)
    elif kind == "another size":
        dist.all_reduce(torch.ones(9) if rank == 0 else tensor, async_op=True)
    elif kind == "another type":
        dist.all_reduce(torch.ones(4, dtype=torch.float64) if rank == 1 else tensor, async_op=True)
    elif kind == "one too many":
        if rank == 2:
            dist.all_reduce(tensor, async_op=True)
    elif kind == "another group":  # rank 1 waits for rank 0 in the pair, and rank 0 for both in the whole
        dist.all_reduce(tensor, group=pair, async_op=True) if rank == 1 else dist.all_reduce(tensor, async_op=True)
    elif kind == "a smaller group":
        if rank == 1:
            dist.all_reduce(tensor, group=pair, async_op=True)
    elif kind == "a rank is gone":
        dist.all_reduce(tensor, async_op=True)
    if kind in ("another size", "another type"):
        return _dump_fr_trace().hex()  # at once: Gloo soon ends a rank that gets other bytes than it wants
    time.sleep(1.5)
    return _dump_fr_trace().hex()


CULPRITS = {"never comes": "Look at rank 1 first", "another operation": "Look at rank 2 first", "another size": "Look at rank 0 first",
            "another type": "Look at rank 1 first", "one too many": "Look at ranks 0, 1 first", "another group": "Look at rank 1 first",
            "a smaller group": "Look at rank 0 first", "a rank is gone": "Look at rank 1 first: there is no dump"}


def look_at_gloo(folder):
    from support import ranks
    ranks.load()
    for kind, words in CULPRITS.items():
        answers = ranks.run(lambda rank: hang(kind, rank), world_size=3)
        if None in answers:
            complain(f"{kind}: a rank has not ended")
            continue
        status, output, errors = read(folder, {rank: bytes.fromhex(answer) for rank, answer in enumerate(answers) if answer})
        if status != 0 or words not in output:
            complain(f"{kind}: '{words}' is not in: {output}{errors}")


def look_at_pytorchs_analyser(folder):
    """Of the dumps in NCCL's form PyTorch's own analyser says the same, so the form is right."""
    for kind, words in (("a rank never comes", "missing ranks: {1}"), ("another operation", "Culprit rank 2"), ("another size", "Culprit rank 0")):
        for rank, entries in HANGS[kind][0].items():
            (pathlib.Path(folder) / f"nccl_{rank}").write_bytes(pickle.dumps(dump(entries)))
        result = subprocess.run([sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", folder, "--prefix", "nccl_"],
                                capture_output=True, text=True, timeout=120)
        if words not in result.stdout + result.stderr:
            complain(f"PyTorch's analyser does not say '{words}' of '{kind}': {result.stdout[-800:]}{result.stderr[-800:]}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1:] == ["gloo"]:
            look_at_gloo(folder)
            look_at_pytorchs_analyser(folder)
        else:
            look_at_nccl_form(folder)
            look_at_hostile_dumps(folder)
            look_at_mutations()
    print("all as expected" if not failures else f"{len(failures)} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
