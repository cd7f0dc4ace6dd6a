#!/usr/bin/env python3
"""read_traces.py says what the steps of all ranks wait for, and refuses in a sentence what is damaged.

Traces are played here, with known numbers, and three are real: PyTorch 2.15 has made them on Gloo, with a rank that sleeps before
each backward. `PYTHON traces_test.py make` makes them again, and `gloo` makes some and reads them.
"""
import gzip
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
CHAPTER = ROOT / "chapters" / "23_your_job"
RECORDED = CHAPTER / "traces"
sys.path.insert(0, str(CHAPTER))
failures = []


def complain(words):
    failures.append(words)
    print(f"FAILED: {words}", flush=True)


def read(paths):
    result = subprocess.run([sys.executable, "-B", str(CHAPTER / "read_dumps.py"), *map(str, paths)], capture_output=True, text=True, timeout=60)
    return result.returncode, result.stdout, result.stderr


def expect(name, paths, words, status=0):
    code, output, errors = read(paths)
    text = output if status == 0 else errors
    for part in words:
        if code != status or not re.search(part, text):
            complain(f"{name}: '{part}' is not in this, with status {code}:\n{output}{errors}")
    if status != 0 and (len(errors.splitlines()) != 1 or "Traceback" in errors):
        complain(f"{name}: not one sentence: {errors}")


# ---- Played traces ---------------------------------------------------------------------------------


def event(name, begin_ms, length_ms, kind="user_annotation", thread=1):
    return {"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": thread, "ts": begin_ms * 1e3, "dur": length_ms * 1e3, "args": {}}


def step(number, start, late=0, data=1, device=False, extra=()):
    """Returns the events of a step of 100 ms: data, 40 ms of backward that begins `late` too late, and a collective of two. The first is
    called at 20 ms + late; all that are there leave it at 60 ms. The second lasts from 62 to 80 ms, behind nothing."""
    work, talk = ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)") if device else ("cpu_op", "gloo:all_reduce")
    kind = "kernel" if device else "user_annotation"
    return [event(f"ProfilerStep#{number}", start, 100), event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start, data),
            event("aten::mm", start + 10 + late, 20, work), event("aten::mm", start + 30 + late, 20, work),
            event("c10d::allreduce_", start + 20 + late, 60, "cpu_op"),  # it only enqueues, whatever its length
            event(talk, start + 20 + late, 40 - late, kind, 2), event(talk, start + 62, 18, kind, 3), *extra]


def write(folder, rank, events, world_size=3, ahead_ms=0.0, **more):
    path = pathlib.Path(folder) / f"rank{rank}.json"
    for each in events:
        each["ts"] += ahead_ms * 1e3
    path.write_text(json.dumps({"schemaVersion": 1, "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": world_size},
                                "baseTimeNanoseconds": 1700000000000000000, "traceEvents": events, **more}))
    return path


def steps(late=0, count=4, **more):
    return [each for number in range(count) for each in step(number, 1000 + 100 * number, late, **more)]


def look_at_played_traces(folder):
    for device in (False, True):
        paths = [write(folder, rank, steps(late, device=device), ahead_ms=ahead) for rank, late, ahead in ((0, 0, 0), (1, 8, 5000), (2, 2, -3.5))]
        # Rank 0 talks for 40 + 18 ms, and works for 30 of the first 40. Rank 1 comes 6 ms after rank 2.
        expect(f"played, on a {'device' if device else 'CPU'}", paths,
               [r"^3 traces: 4 steps, 8 collectives of all ranks\.", r"rank 1 5000\.0 ms, rank 2 -3\.50 ms ahead of rank 0", r"agree within 0\.00 ms",
                r"\n +0 +100\.0 ms +1\.00 ms +58\.0 ms +28\.0 ms +0 of 8\n", r"\n +1 +100\.0 ms +1\.00 ms +50\.0 ms +20\.0 ms +[48] of 8\n"])
    one = [[each for each in steps(late) if each["ts"] % 100000 != 62000] for late in (0, 8, 2)]
    paths = [write(folder, rank, events, ahead_ms=10 * rank) for rank, events in enumerate(one)]
    expect("one collective a step", paths, [r"Rank 1 came last in 4 of 4 collectives, 6\.00 ms after", r"Communication that nothing hides: 7 % of a step"])
    expect("two of three", paths[:2], [r"The job has 3 ranks: who came last is known of these 2 only\."])
    paths[2] = write(folder, 2, steps(2, data=30))
    paths[:2] = [write(folder, rank, steps()) for rank in (0, 1)]
    expect("a rank that waits for its data", paths, [r"Rank 2 waits for its data in 30 % of a step"])
    expect("equal ranks", [write(folder, rank, steps()) for rank in (0, 1)], [r"No rank comes last much more often"])
    odd = [write(folder, 0, steps()), write(folder, 1, steps() + [event("gloo:all_reduce", 1190, 5)])]
    expect("a step that differs", odd, [r"3 steps, 6 collectives", r"Left out, since the ranks do not make the same collectives in them: ProfilerStep#1\."])
    nameless = [write(folder, rank, [each for each in steps(2 * rank) if not each["name"].startswith("Profiler")]) for rank in (0, 1)]
    expect("no steps", nameless, [r"1 step, 8 collectives"])


# ---- What is refused -------------------------------------------------------------------------------


def look_at_refusals(folder):
    other = write(folder, 1, steps())
    path = pathlib.Path(folder) / "rank0.json"
    good = write(folder, 0, steps()).read_bytes()
    for content, words in ((good[:-40], "is damaged: it is no JSON"), (b'{"traceEvents": 3}', "is no trace of PyTorch's profiler"),
                           (b'{"traceEvents": ' + b"[" * 100000 + b"]" * 100000 + b"}", "is nested too deeply"),
                           (b'{"traceEvents": []}', "has no collective of gloo or NCCL"), (gzip.compress(good)[:-40], "is damaged: it ends too early"),
                           (good.replace(b'"ts": 1010000.0', b'"ts": NaN'), "is damaged: 'aten::mm' has no time"),
                           (good.replace(b'"dur": 20000.0', b'"dur": -1.0'), "is damaged: 'aten::mm' has no time"),
                           (good.replace(b'"rank": 0', b'"rank": "none"'), "does not say of which rank it is"),
                           (good.replace(b'"rank": 0', b'"rank": 1'), "rank 1 has another trace already"),
                           (good.replace(b"gloo:all_reduce", b"gloo:broadcast"), "no step in which all ranks make the same collectives")):
        path.write_bytes(content)
        expect("refused", [path, other], [words], 1)
    path.write_bytes(gzip.compress(good))
    expect("compressed", [path, other], ["2 traces"])
    expect("alone", [other], ["give it one file for each of them"], 1)
    expect("none", [other, pathlib.Path(folder) / "none"], ["cannot be read: No such file"], 1)


def look_at_mutations(folder, count=300):
    """Changes bytes of a trace. Whatever comes is read, or refused as a sentence; in this process, for speed."""
    import read_traces
    draw = random.Random(1)
    good = write(folder, 0, steps()).read_bytes()
    other = read_traces.Trace(write(folder, 1, steps(2)).read_bytes(), "rank1.json")
    refused = 0
    for _ in range(count):
        content = bytearray(good)
        for _ in range(draw.randrange(1, 4)):
            at = draw.randrange(len(content))
            content[at:at + draw.randrange(3)] = bytes(draw.choices(b'0123456789-e.:,"{}[]ntXgl\x00\xff', k=draw.randrange(3)))
        try:
            trace = read_traces.Trace(bytes(content), "rank0.json")
            read_traces.report({trace.rank: trace, trace.rank + 1: other})
        except (read_traces.Refused, SystemExit) as why:
            refused += 1
            if len(str(why).splitlines()) != 1:
                complain(f"a mutation was not refused in a sentence: {why}")
        except Exception as error:
            complain(f"a mutation ended by {type(error).__name__}: {error}")
    if not count / 10 < refused < count:
        complain(f"{refused} of {count} mutations were refused")


# ---- Real traces -----------------------------------------------------------------------------------


def record(rank, folder, delay):
    """Trains as one of three ranks on Gloo, of which rank 1 sleeps before its backward, and writes the trace of four steps."""
    import time

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule
    dist.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    samples = [(torch.full((64,), float(i % 7)), i % 10) for i in range(8 * 7)]
    raw = pathlib.Path(folder) / f"raw{rank}.json"
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=2, warmup=1, active=4, repeat=1),
                 on_trace_ready=lambda each: each.export_chrome_trace(str(raw))) as profiler:
        for inputs, labels in torch.utils.data.DataLoader(samples, batch_size=8):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            time.sleep(delay if rank == 1 else 0)
            loss.backward()
            optimizer.step()
            profiler.step()
    dist.destroy_process_group()
    return raw.exists()


def make(folder, delay):
    """Returns the paths of three traces, as PyTorch has written them."""
    from support import ranks
    ranks.load()
    if ranks.run(lambda rank: record(rank, folder, delay), 3) != [True] * 3:
        sys.exit("the traces were not made: is this machine busy?")
    return [pathlib.Path(folder) / f"raw{rank}.json" for rank in range(3)]


def keep(paths):
    """Keeps the traces, without what speaks of the machine."""
    RECORDED.mkdir(exist_ok=True)
    for rank, path in enumerate(paths):
        trace = json.loads(path.read_bytes())
        kept = {name: trace[name] for name in ("schemaVersion", "distributedInfo", "displayTimeUnit", "baseTimeNanoseconds")}
        kept["traceEvents"] = [each for each in trace["traceEvents"] if each.get("ph") == "X"]
        for each in kept["traceEvents"]:
            each.pop("args", None)
        (RECORDED / f"rank{rank}.json.gz").write_bytes(gzip.compress(json.dumps(kept).encode(), 9, mtime=0))


SLEEPER = [r"^3 traces: 4 steps, 4 collectives", r"Rank 1 came last in [34] of 4 collectives"]


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        if what == "make":
            keep(make(folder, 0.05))
        elif what == "gloo":
            expect("fresh traces of Gloo", make(folder, 0.5), SLEEPER)  # so long that no other load hides it
        else:
            look_at_played_traces(folder)
            look_at_refusals(folder)
            look_at_mutations(folder)
            expect("recorded traces of Gloo", sorted(RECORDED.glob("*.json.gz")), SLEEPER)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
