#!/usr/bin/env python3
"""Reads the profiler's traces of all ranks, and says what the steps wait for: `./book read FILE...`

    rank 0   | data | forward | backward ============ |..waits..| optimizer |
                                    [--- all-reduce ---------------]          ====  is hidden
    rank 1   | data ......... | forward | backward ====== |.| optimizer |     ....  is not
                                              [--- all-reduce --]      begins last: came last

PyTorch writes such a trace by torch.profiler.profile(...).export_chrome_trace("rank0.json"). The
clocks of the ranks differ. But no rank leaves a collective before the last one has come, and all
leave it within a moment: so the ends of the collectives are laid over one another. Needs Python
alone.

`./book read --what-if FILE...`: what_if.py plays it with another cap, link or number of ranks.
"""
import bisect
import collections
import gzip
import json
import math
import os
import pathlib
import re
import resource
import statistics
import sys
import zlib

MOST_BYTES = 1 << 29
COLLECTIVE = re.compile(r"^(gloo|mpi|ddp_by_hand):(?!send|recv)|^nccl(Dev)?Kernel")
BACKWARD = re.compile(r"^autograd::engine::evaluate_function|^torch::autograd::AccumulateGrad$"
                      r"|^c10d::allreduce_$")
DATA = re.compile(r"^enumerate\(DataLoader\)")
TYPES = {"float": ("float32", 4), "double": ("float64", 8), "c10::Half": ("float16", 2),
         "c10::BFloat16": ("bfloat16", 2)}
NOT_WORK = re.compile(r"^c10d::|^ProfilerStep|^enumerate\(DataLoader\)|^PyTorch Profiler")


class Refused(Exception):
    """Why a file is not read, as the end of a sentence."""


# ---- Files ---------------------------------------------------------------------------------------
def content_of(path, most=None):
    """Returns the first bytes of a file, which may be compressed, or all of it."""
    try:
        with open(path, "rb") as file:
            is_compressed = file.read(2) == b"\x1f\x8b"
        with (gzip.open if is_compressed else open)(path, "rb") as file:
            content = file.read(most or MOST_BYTES + 1)
    except (EOFError, zlib.error):
        raise Refused("is damaged: it ends too early") from None
    except OSError as error:
        raise Refused(f"cannot be read: {error.strerror or 'it is damaged'}") from None
    if len(content) > MOST_BYTES:
        raise Refused("is larger than 512 MiB")
    return content


def is_trace(path):
    """Returns whether a file is one of the profiler's. What cannot be read is none."""
    try:
        return re.search(rb'"(schemaVersion|traceEvents)"', content_of(path, 1 << 12)) is not None
    except Refused:
        return False


def files_of(arguments):
    """Returns the files that are named, and those of the folders that are."""
    paths = []
    for path in map(pathlib.Path, arguments):
        if path.is_dir():
            paths += sorted(file for file in path.iterdir() if file.is_file())
        else:
            paths.append(path)
    return paths or sys.exit(f"There is no file in {', '.join(arguments)}.")


def printable(text):
    """Returns it without what a terminal would obey."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def say(work):
    """Prints the lines that `work` returns. What goes wrong meanwhile is a sentence, too."""
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    limit = 4 << 30 if most == resource.RLIM_INFINITY else min(4 << 30, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))
    try:
        print("\n".join(work()), flush=True)
    except MemoryError:
        sys.exit("To read this takes more memory than there is, or than 4 GiB: record a shorter "
                 "time.")
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to print
        sys.exit(1 if isinstance(error, BrokenPipeError) else
                 f"The output could not be written: {error.strerror}.")


# ---- One trace -----------------------------------------------------------------------------------


class Span:
    """What took from begin to end, in seconds of this rank's clock."""

    def __init__(self, name, begin, end, shape=None):
        self.name, self.begin, self.end, self.shape = name, begin, end, shape


class Shape:
    """How many elements of which type a call's first argument had: recorded by record_shapes."""

    @staticmethod
    def of(arguments):
        arguments = arguments if isinstance(arguments, dict) else {}
        dims, types = arguments.get("Input Dims"), arguments.get("Input type")
        if not (isinstance(dims, list) and dims and isinstance(dims[0], list)
                and isinstance(types, list) and types and types[0] in TYPES):
            return None
        if not all(isinstance(dim, int) and dim > 0 for dim in dims[0]):
            return None
        shape = Shape()
        shape.elements, (shape.type, size) = math.prod(dims[0]), TYPES[types[0]]
        if shape.elements >= 1 << 40:
            return None
        shape.bytes = shape.elements * size
        return shape


class Trace:
    """What one rank has done: its steps, its collectives, its work and its waits for data."""

    def __init__(self, content, name):
        try:
            plain = json.loads(content)
        except RecursionError:
            raise Refused("is nested too deeply") from None
        except ValueError:
            raise Refused("is damaged: it is no JSON") from None
        if not isinstance(plain, dict) or not isinstance(plain.get("traceEvents"), list):
            raise Refused("is no trace of PyTorch's profiler: it has no list of traceEvents")
        about = plain.get("distributedInfo")
        about = about if isinstance(about, dict) else {}
        numbers = re.findall(r"\d+", name)
        self.rank = about.get("rank", int(numbers[-1]) if numbers else None)
        self.world_size = about.get("world_size", 0)
        if not (isinstance(self.rank, int) and isinstance(self.world_size, int)
                and self.world_size < 1 << 24):
            raise Refused("does not say of which rank it is; its name may: rank3.json")
        base = plain.get("baseTimeNanoseconds", 0)
        base = base * 1e-9 if isinstance(base, (int, float)) and math.isfinite(base) else 0.0
        spans = [span for event in plain["traceEvents"] if (span := self.span_of(event, base))]
        on_device = self.on_device = any(is_kernel for _, is_kernel in spans)
        self.steps, self.collectives, self.data, work = [], [], [], []
        for span, is_kernel in spans:
            if span.name.startswith("ProfilerStep"):
                self.steps.append(span)
            elif COLLECTIVE.match(span.name):
                self.collectives.append(span)
            elif DATA.match(span.name):
                self.data.append(span)
            elif not NOT_WORK.match(span.name) and (is_kernel or not on_device):
                work.append((span.begin, span.end))
        self.steps = sorted({step.name: step for step in self.steps}.values(),
                            key=lambda step: step.begin)
        self.backward = sorted((span for span, _ in spans if BACKWARD.match(span.name)),
                               key=lambda span: span.begin)
        self.collectives.sort(key=lambda span: span.begin)
        self.work = union(work)
        if not self.collectives:
            raise Refused("has no collective of gloo or NCCL: the profiler must begin when the "
                          "process group is there")
        if not self.steps:  # without profiler.step() the whole trace is one
            begin, end = min(span.begin for span, _ in spans), max(span.end for span, _ in spans)
            self.steps = [Span("the whole trace", begin, end, 0)]

    @staticmethod
    def span_of(event, base):
        """Returns a span and whether a device has worked in it; None for what has no duration."""
        if (not isinstance(event, dict) or event.get("ph") != "X"
                or not isinstance(event.get("name"), str)):
            return None
        kind, begin, duration = event.get("cat"), event.get("ts"), event.get("dur")
        if kind not in ("cpu_op", "user_annotation", "kernel", "gpu_memcpy", "gpu_memset"):
            return None
        if not all(isinstance(number, (int, float)) and math.isfinite(number)
                   for number in (begin, duration)) or duration < 0:
            raise Refused(f"is damaged: '{event['name'][:60]}' has no time")
        is_kernel = kind in ("kernel", "gpu_memcpy", "gpu_memset")
        begin, end = base + begin * 1e-6, base + (begin + duration) * 1e-6
        return Span(printable(event["name"]), begin, end, Shape.of(event.get("args"))), is_kernel

    def in_step(self, step, spans):
        return [span for span in spans if step.begin <= span.begin < step.end]


def union(intervals):
    """Returns the same points of time as intervals that do not meet, in order."""
    joined = []
    for begin, end in sorted(intervals):
        if joined and begin <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([begin, end])
    return joined


def length(intervals):
    return sum(end - begin for begin, end in intervals)


def common(first, second):
    """Returns how much time both have. Each is a union."""
    begins = [begin for begin, _ in second]
    total = 0.0
    for begin, end in first:
        at = max(0, bisect.bisect_right(begins, begin) - 1)
        for other_begin, other_end in second[at:bisect.bisect_left(begins, end)]:
            total += max(0.0, min(end, other_end) - max(begin, other_begin))
    return total


def load(paths):
    traces = {}
    for path in paths:
        try:
            trace = Trace(content_of(path), path.name)
        except (OverflowError, TypeError):
            sys.exit(f"{path} is damaged: a number in it is too large.")
        except Refused as why:
            sys.exit(f"{path} {why}.")
        if trace.rank in traces:
            sys.exit(f"{path}: rank {trace.rank} has another trace already.")
        traces[trace.rank] = trace
    if len(traces) < 2:
        sys.exit("read compares the traces of all ranks: give it one file for each of them.")
    return traces


# ---- All traces ----------------------------------------------------------------------------------
def matched(traces):
    """Returns the collectives that all ranks have made, for each {rank: span}, of those steps in
    which all ranks have equally many."""
    names = [name for name in (step.name for step in next(iter(traces.values())).steps)
             if all(any(step.name == name for step in trace.steps) for trace in traces.values())]
    found, left_out = [], []
    for name in names:
        rows = {}
        for rank, trace in traces.items():
            step = next(step for step in trace.steps if step.name == name)
            rows[rank] = trace.in_step(step, trace.collectives)
        kinds = {tuple(span.name for span in row) for row in rows.values()}
        if len(kinds) > 1:
            left_out.append(name)
        else:
            found += [dict(zip(rows, spans)) for spans in zip(*rows.values())]
    return names, found, left_out


def offsets(collectives, ranks):
    """Returns how far each clock is ahead of the first one, and how exactly that is known."""
    first = min(ranks)
    ahead, doubt = {}, 0.0
    for rank in ranks:
        differences = [spans[rank].end - spans[first].end for spans in collectives]
        ahead[rank] = statistics.median(differences)
        doubt = max(doubt, statistics.median(abs(each - ahead[rank]) for each in differences))
    return ahead, doubt


def lateness(collectives, ahead):
    """Returns, for each collective, which rank came last, and how long after the one before it."""
    late = []
    for spans in collectives:
        begins = sorted((span.begin - ahead[rank], rank) for rank, span in spans.items())
        late.append((begins[-1][1], begins[-1][0] - begins[-2][0]))
    return late


class Means:
    """A rank's mean step, in seconds."""

    def __init__(self, trace, names):
        steps = [step for step in trace.steps if step.name in names]
        parts = collections.Counter()
        for step in steps:
            talk = union((span.begin, span.end) for span in trace.in_step(step, trace.collectives))
            parts["step"] += step.end - step.begin
            data = union((span.begin, span.end) for span in trace.in_step(step, trace.data))
            parts["data"] += length(data)
            parts["communication"] += length(talk)
            parts["not_hidden"] += length(talk) - common(talk, trace.work)
        self.step, self.data, self.communication, self.not_hidden = (
            parts[name] / len(steps) for name in ("step", "data", "communication", "not_hidden"))


def count(things, name):
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")


def milliseconds(seconds):
    return f"{seconds * 1e3:.2f} ms" if abs(seconds) < 0.01 else f"{seconds * 1e3:.1f} ms"


def percent(part, whole):
    return f"{100 * part / whole:.0f} %" if whole > 0 else "-"


def conclusions(means, late, doubt):
    lines = []
    mean = {name: statistics.mean(getattr(each, name) for each in means.values())
            for name in ("step", "not_hidden", "communication")}
    lines.append("Communication that nothing hides: "
                 f"{percent(mean['not_hidden'], mean['step'])} of a step, and "
                 f"{percent(mean['not_hidden'], mean['communication'])} of all communication.")
    counts = collections.Counter(rank for rank, _ in late)
    most, times = counts.most_common(1)[0]
    by = statistics.median(seconds for rank, seconds in late if rank == most)
    if by > 2 * doubt and times > 0.6 * len(late):
        lines.append(f"Rank {most} came last in {times} of {len(late)} collectives, "
                     f"{milliseconds(by)} after the one before it (median): the others waited. "
                     "Look at what it does before them.")
    else:
        lines.append("No rank comes last much more often than the others: they wait for the link, "
                     "or for each other in turn.")
    hungry = max(means, key=lambda rank: means[rank].data / means[rank].step)
    if means[hungry].data > 0.1 * means[hungry].step:
        lines.append(f"Rank {hungry} waits for its data in "
                     f"{percent(means[hungry].data, means[hungry].step)} of a step: more workers, "
                     "or less to do for each sample.")
    return lines


def report(traces):
    ranks = sorted(traces)
    names, collectives, left_out = matched(traces)
    if not collectives:
        sys.exit("The traces have no step in which all ranks make the same collectives: were they "
                 "profiled in the same steps?")
    ahead, doubt = offsets(collectives, ranks)
    late = lateness(collectives, ahead)
    names = [name for name in names if name not in left_out]
    means = {rank: Means(traces[rank], names) for rank in ranks}
    world_size = max(trace.world_size for trace in traces.values())
    lines = [f"{len(ranks)} traces: {count(names, 'step')}, {count(collectives, 'collective')} of "
             "all ranks."]
    if world_size > len(ranks):
        lines.append(f"The job has {world_size} ranks: who came last is known of these "
                     f"{len(ranks)} only.")
    if left_out:
        lines.append("Left out, since the ranks do not make the same collectives in them: "
                     f"{', '.join(left_out)}.")
    lines.append("Clocks, laid over one another at the ends of the collectives, which agree within "
                 f"{milliseconds(doubt)}: "
                 + ", ".join(f"rank {rank} {milliseconds(ahead[rank])}" for rank in ranks[1:])
                 + f" ahead of rank {ranks[0]}.")
    lines += ["", f"{'rank':>4} {'step':>10} {'for data':>10} {'communication':>14} "
              f"{'not hidden':>11} {'came last':>14}"]
    for rank in ranks:
        mine = means[rank]
        times = sum(1 for last, _ in late if last == rank)
        lines.append(f"{rank:>4} {milliseconds(mine.step):>10} {milliseconds(mine.data):>10} "
                     f"{milliseconds(mine.communication):>14} "
                     f"{milliseconds(mine.not_hidden):>11} {f'{times} of {len(late)}':>14}")
    return lines + [""] + conclusions(means, late, doubt)


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--what-if"]:
        import what_if
        return what_if.main(pathlib.Path(arguments[1]), load(files_of(arguments[2:])))
    traces = load(files_of(arguments))
    lines = report(traces)
    if any(span.shape for trace in traces.values() for span in trace.collectives):
        lines.append("With another cap, another link or more ranks? `./book read --what-if` and "
                     "the same files.")
    return lines


if __name__ == "__main__":
    say(main)
