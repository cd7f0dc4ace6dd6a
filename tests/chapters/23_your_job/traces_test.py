#!/usr/bin/env python3
"""read_traces.py says what the steps of all ranks wait for, and why it refuses what is damaged.

traces_test.py PROGRAM: the simulator's, cluster_predict, for its what-if. Traces are played here,
with known numbers, and three are real: PyTorch 2.15 has made them on Gloo, with a rank that sleeps
before each backward. `PYTHON traces_test.py make` makes them again, `gloo` makes and reads some.
"""
import gzip
import json
import os
import pathlib
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


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120)


def read(paths):
    result = run(sys.executable, "-B", CHAPTER / "read_dumps.py", *paths)
    return result.returncode, result.stdout, result.stderr


def expect(name, paths, words, status=0):
    code, output, errors = read(paths)
    text = output if status == 0 else errors
    for part in words:
        if code != status or not re.search(part, text):
            complain(f"{name}: '{part}' is not in this, with status {code}:\n{output}{errors}")
    if status != 0 and (len(errors.splitlines()) != 1 or "Traceback" in errors):
        complain(f"{name}: not one sentence: {errors}")


# ---- Played traces -------------------------------------------------------------------------------
def event(name, begin_ms, length_ms, kind="user_annotation", thread=1):
    return {"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": thread, "ts": begin_ms * 1e3,
            "dur": length_ms * 1e3, "args": {}}


def step(number, start, late=0, data=1, device=False, extra=()):
    """Returns the events of a step of 100 ms: data, 40 ms of backward that begins `late` too late,
    and a collective of two. The first is called at 20 ms + late; all that are there leave it at
    60 ms. The second lasts from 62 to 80 ms, behind nothing."""
    work, kind = ("kernel", "kernel") if device else ("cpu_op", "user_annotation")
    talk = ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)" if device
            else "gloo:all_reduce")
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    return [event(f"ProfilerStep#{number}", start, 100), event(loader, start, data),
            event("aten::mm", start + 10 + late, 20, work),
            event("aten::mm", start + 30 + late, 20, work),
            event("c10d::allreduce_", start + 20 + late, 60, "cpu_op"),  # it only enqueues
            event(talk, start + 20 + late, 40 - late, kind, 2),
            event(talk, start + 62, 18, kind, 3), *extra]


def write(folder, rank, events, world_size=3, ahead_ms=0.0, **more):
    path = pathlib.Path(folder) / f"rank{rank}.json"
    for each in events:
        each["ts"] += ahead_ms * 1e3
    about = {"backend": "gloo", "rank": rank, "world_size": world_size}
    path.write_text(json.dumps({"schemaVersion": 1, "distributedInfo": about, "traceEvents": events,
                                "baseTimeNanoseconds": 1700000000000000000, **more}))
    return path


def steps(late=0, count=4, **more):
    return [each for number in range(count)
            for each in step(number, 1000 + 100 * number, late, **more)]


def look_at_played_traces(folder):
    for device in (False, True):
        paths = [write(folder, rank, steps(late, device=device), ahead_ms=ahead)
                 for rank, late, ahead in ((0, 0, 0), (1, 8, 5000), (2, 2, -3.5))]
        # Rank 0 talks for 40 + 18 ms, and works for 30 of the first 40. Rank 1 comes 6 ms after 2.
        expect(f"played, on a {'device' if device else 'CPU'}", paths,
               [r"^3 traces: 4 steps, 8 collectives of all ranks\.",
                r"rank 1 5000\.0 ms, rank 2 -3\.50 ms ahead of rank 0", r"agree within 0\.00 ms",
                r"\n +0 +100\.0 ms +1\.00 ms +58\.0 ms +28\.0 ms +0 of 8\n",
                r"\n +1 +100\.0 ms +1\.00 ms +50\.0 ms +20\.0 ms +[48] of 8\n"])
    one = [[each for each in steps(late) if each["ts"] % 100000 != 62000] for late in (0, 8, 2)]
    paths = [write(folder, rank, events, ahead_ms=10 * rank) for rank, events in enumerate(one)]
    expect("one collective a step", paths,
           [r"Rank 1 came last in 4 of 4 collectives, 6\.00 ms after",
            r"Communication that nothing hides: 7 % of a step"])
    expect("two of three", paths[:2],
           [r"The job has 3 ranks: who came last is known of these 2 only\."])
    paths = [write(folder, rank, steps(late, data=data))
             for rank, late, data in ((0, 0, 1), (1, 0, 1), (2, 2, 30))]
    expect("hungry", paths, [r"Rank 2 waits for its data in 30 % of a step"])
    expect("equal ranks", paths[:2], [r"No rank comes last much more often"])
    odd = [paths[0], write(folder, 1, steps() + [event("gloo:all_reduce", 1190, 5)])]
    expect("a step that differs", odd, [r"3 steps, 6 collectives", r"Left out, since the ranks do "
                                        r"not make the same collectives in them: ProfilerStep#1\."])
    nameless = [write(folder, rank, [each for each in steps(2 * rank)
                                     if not each["name"].startswith("Profiler")])
                for rank in (0, 1)]
    expect("no steps", nameless, [r"1 step, 8 collectives"])


# ---- What if -------------------------------------------------------------------------------------
MIB = 1 << 20
GRADIENTS = (4, 4, 4, 4, 2)  # MiB, in the order in which backward makes them, each in 10 ms
FORWARD_MS, LATE_MS = 50, 5             # rank 1 of 3 is late
ALPHA_MS, MS_PER_BYTE = 0.1, 1e-6       # the link has 100 us and 1 GB/s


def played_step(buckets, late_ms=LATE_MS):
    """Returns when each bucket is ready on the last rank, begins and is reduced, for buckets of so
    many gradients. A ring of three sends four messages in turn, each of a third of the bytes."""
    ready, done, played, made = FORWARD_MS - LATE_MS + late_ms, 0.0, [], 0
    for gradients in buckets:
        ready += 10 * gradients
        begin = max(ready, done)
        size = sum(GRADIENTS[made:made + gradients]) * MIB
        done = begin + 4 * (ALPHA_MS + size / 3 * MS_PER_BYTE)
        made += gradients
        played.append((ready, begin, done))
    return played


def job(rank, buckets=(2, 2, 1), count=4, wrong=lambda events: events):
    events, played = [], played_step(buckets)
    early, length = (0 if rank == 1 else LATE_MS), played[-1][2]
    for number in range(count):
        start, made, done = 1000 + number * length, 0, 0.0
        mine = [event(f"ProfilerStep#{number}", start, length)]
        for (ready, _, end), gradients in zip(played, buckets):
            for i in range(made, made + gradients):
                at = start + FORWARD_MS - early + 10 * i
                shape = {"Input Dims": [[GRADIENTS[i] << 8, 1 << 10]], "Input type": ["float"]}
                engine = "autograd::engine::evaluate_function: "
                mine += [event(engine + "AddmmBackward0", at, 9, "cpu_op"),
                         event(engine + "torch::autograd::AccumulateGrad", at + 9, 1, "cpu_op"),
                         {**event("torch::autograd::AccumulateGrad", at + 9, 0.1, "cpu_op"),
                          "args": shape}]
            size = sum(GRADIENTS[made:made + gradients]) << 18
            made += gradients
            own = start + max(ready - early, done)
            mine.append({**event("gloo:all_reduce", own, start + end - own, thread=2),
                         "args": {"Input Dims": [[size]], "Input type": ["float"]}})
            done = end
        events += wrong(mine)
    return events


def look_at_what_if(folder, program):
    """Plays a job with three buckets. What the simulator says of it with other buckets, another
    link and no late rank is what these would do."""
    paths = [write(folder, rank, job(rank), ahead_ms=3000 * rank) for rank in range(3)]
    code, output, errors = read(["--what-if", folder, *paths])
    if code != 0:
        complain(f"what-if ends with {code}: {output}{errors}")
        return
    options = (pathlib.Path(folder) / "options").read_text().splitlines()
    found = dict(zip(options[::2], options[1::2]))
    recorded = played_step((2, 2, 1))[-1][2]
    for name, wanted in (("--link", "100.000us,1.000000GB/s"), ("--forward", "50000.000us"),
                         ("--ranks", "3"), ("--late", "5000.000us"),
                         ("--recorded", f"{recorded * 1e3:.3f}us,3")):
        # The clocks are known to a microsecond: their times are doubles of 1.7e9 seconds.
        are, right = ([float(number) for number in re.findall(r"[\d.]+", text)]
                      for text in (found.get(name, ""), wanted))
        if len(are) != len(right) or any(abs(a - b) > 0.02 * b for a, b in zip(are, right)):
            complain(f"what-if takes {name} {found.get(name)} from a job with {wanted}")
    lines = (pathlib.Path(folder) / "gradients").read_text().splitlines()
    sizes = [line.split()[1:3] for line in lines]
    if sizes != [[str(size << 18), "float32"] for size in reversed(GRADIENTS)]:
        complain(f"what-if lists {sizes}")
    result = run(program, *options)
    alone = FORWARD_MS + 10 * len(GRADIENTS)
    for row, wanted in (
            (r"\n1 +5 ", played_step((1, 1, 1, 1, 1))), (r"\n10 +2 ", played_step((3, 2))),
            (r"\n25 +1 ", played_step((5,))), (r"\nno time at all ", [(alone,)]),
            (r"\nas it is, and no rank late ", played_step((1, 1, 1, 1, 1), 0))):
        time = re.search(row + r" *([\d.]+) ms", result.stdout)
        if not time or abs(float(time[1]) - wanted[-1][-1]) > 0.01 * wanted[-1][-1]:
            complain(f"'{row}' has {time and time[1]}, and such a job takes {wanted[-1][-1]:.1f} "
                     f"ms, in:\n{result.stdout}{result.stderr}")
    if not re.search(r"Recorded: [\d.]+ ms, with 3 buckets; simulated with as many: [\d.]+ ms, "
                     r"0\.\d % (more|less)\.", result.stdout):
        complain(f"what was recorded is not put beside it: {result.stdout}{result.stderr}")


def look_at_recorded_what_if(folder, program):
    """What the chapter quotes of its own traces."""
    code, _, errors = read(["--what-if", folder, *sorted(RECORDED.glob("*.json.gz"))])
    if code != 0:
        complain(f"what-if of the recorded traces ends with {code}: {errors}")
        return
    options = (pathlib.Path(folder) / "options").read_text().splitlines()
    output = run(program, *options).stdout
    for quoted in (r"Recorded: 57\.3 ms, with 2 buckets; simulated with as many: 57\.2 ms",
                   r"\nno time at all +54\.9 ms", r"no rank late +7\.98 ms"):
        if not re.search(quoted, output):
            complain(f"the chapter quotes '{quoted}', which is not in:\n{output}")


def look_at_what_if_refusals(folder):
    def without(name):
        return lambda events: [each for each in events if name not in each["name"]]

    def blind(events):
        return [{**each, "args": {}} if "AccumulateGrad" in each["name"] else each
                for each in events]

    for words, events_of in (
            (r"does not say how large the gradients are: .*record_shapes=True",
             lambda rank: job(rank, wrong=blind)),
            ("has no backward in ProfilerStep#0", lambda rank: job(rank, wrong=without("engine"))),
            ("sends in ProfilerStep#0 other numbers of elements than it has gradients",
             lambda rank: job(rank, wrong=lambda events: events[:-1])),
            ("has no two steps, one after the other", lambda rank: job(rank, count=1)),
            ("is a GPU's", lambda _: steps(device=True))):
        paths = [write(folder, rank, events_of(rank)) for rank in range(3)]
        expect("what-if", ["--what-if", folder, *paths], [words], 1)


# ---- What is refused -----------------------------------------------------------------------------
def look_at_refusals(folder):
    other = write(folder, 1, steps())
    path = pathlib.Path(folder) / "rank0.json"
    good = write(folder, 0, steps()).read_bytes()
    for content, words in (
            (good[:-40], "is damaged: it is no JSON"),
            (b'{"traceEvents": 3}', "is no trace of PyTorch's profiler"),
            (b'{"traceEvents": []}', "has no collective of gloo or NCCL"),
            (gzip.compress(good)[:-40], "is damaged: it ends too early"),
            (good.replace(b'"ts": 1010000.0', b'"ts": NaN'), "is damaged: 'aten::mm' has no time"),
            (good.replace(b'"dur": 20000.0', b'"dur": -1.0'), "is damaged: 'aten::mm' has no time"),
            (good.replace(b'"rank": 0', b'"rank": "none"'), "does not say of which rank it is"),
            (good.replace(b'"rank": 0', b'"rank": 1'), "rank 1 has another trace already"),
            (good.replace(b"gloo:all_reduce", b"gloo:broadcast"),
             "no step in which all ranks make the same collectives")):
        path.write_bytes(content)
        expect("refused", [path, other], [words], 1)
    path.write_bytes(gzip.compress(good))
    expect("compressed", [path, other], ["2 traces"])
    expect("alone", [other], ["give it one file for each of them"], 1)
    expect("none", [other, pathlib.Path(folder) / "none"], ["cannot be read: No such file"], 1)


# ---- Real traces ---------------------------------------------------------------------------------
def record(rank, folder, delay):
    """Trains as one of three ranks, of which 1 sleeps before backward; writes its trace."""
    import time

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule
    dist.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(nn.Sequential(
        nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    samples = [(torch.full((64,), float(i % 7)), i % 10) for i in range(8 * 7)]
    raw = pathlib.Path(folder) / f"raw{rank}.json"
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True,
                 schedule=schedule(wait=2, warmup=1, active=4, repeat=1),
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
        kept = {name: trace[name] for name in (
            "schemaVersion", "distributedInfo", "displayTimeUnit", "baseTimeNanoseconds")}
        kept["traceEvents"] = [each for each in trace["traceEvents"] if each.get("ph") == "X"]
        for each in kept["traceEvents"]:
            arguments = each.pop("args", {})
            if each["name"].startswith(("gloo:", "torch::autograd::AccumulateGrad")):
                each["args"] = {name: arguments[name] for name in ("Input Dims", "Input type")}
        compressed = gzip.compress(json.dumps(kept).encode(), 9, mtime=0)
        (RECORDED / f"rank{rank}.json.gz").write_bytes(compressed)


SLEEPER = [r"^3 traces: 4 steps, 8 collectives", r"Rank 1 came last in [678] of 8 collectives",
           r"\n.* `\./book read --what-if` and the same files\."]


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        if what == "make":
            keep(make(folder, 0.05))
        elif what == "gloo":
            fresh = make(folder, 0.5)  # so long that no other load hides it
            expect("fresh traces of Gloo", fresh, SLEEPER)
            expect("what-if of fresh traces", ["--what-if", folder, *fresh],
                   [r"\nWhat if\? From 3 steps: ", r"and 1\.20 MB in 2 all-reduces"])
        else:
            look_at_played_traces(folder)
            look_at_what_if(folder, what)
            look_at_recorded_what_if(folder, what)
            look_at_what_if_refusals(folder)
            look_at_refusals(folder)
            expect("recorded traces of Gloo", sorted(RECORDED.glob("*.json.gz")), SLEEPER)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
