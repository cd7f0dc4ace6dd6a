"""What would a job do with another cap, link or number of ranks? `./book read --what-if FILE...`

    rank 0   ...|  data, forward   | backward: g3 g2 | g1 g0 |            |  data, ...
                                              [--- all-reduce 0 ---][- 1 -]
    rank 1   ...|  data, forward        | backward: g3 g2 | g1 g0 |       |  data, ...
                                                   [-- all-reduce 0 -][- 1 -]
                ^ a step begins where all have left the last all-reduce   ^ and ends at the next's

The last rank that is ready decides when an all-reduce can begin. So the step of all ranks is made
of the latest times: when backward begins, and when each gradient is ready. What an all-reduce takes
from then on is the link's. This writes both down, and the simulator of chapter 21 plays them with
other buckets, links and ranks (../../tools/cluster/cluster_predict.cpp).
"""
import re
import statistics
import sys

import read_traces
from read_traces import Refused, milliseconds

ENGINE = "autograd::engine::evaluate_function"


class Backward:
    """A rank's backward in one step, by one clock for all ranks."""

    def __init__(self, trace, step, ahead):
        spans = trace.in_step(step, trace.backward)
        engine = [span for span in spans if span.name.startswith(ENGINE)]
        around = [span for span in engine if span.name.endswith("AccumulateGrad")]
        calls = [span.begin for span in spans if span.name == "c10d::allreduce_"]
        gradients = [span for span in spans if span.name == "torch::autograd::AccumulateGrad"]
        self.shapes = [span.shape for span in gradients]
        if not around or len(around) != len(self.shapes):
            raise Refused(f"has no backward in {step.name}")
        if None in self.shapes:
            raise Refused("does not say how large the gradients are: give torch.profiler.profile "
                          "record_shapes=True")
        self.begin = engine[0].begin - ahead
        # A gradient is ready when it is copied into its bucket, or when the call to send it begins.
        self.ready = [min([call for call in calls if span.begin <= call < span.end] + [span.end])
                      - ahead for span in around]
        self.all_reduces = self.senders([span for span in trace.in_step(step, trace.collectives)
                                         if span.begin >= engine[0].begin], step.name)

    def senders(self, collectives, name):
        """Returns those that have sent the gradients: the first with as many elements together."""
        left, taken = sum(shape.elements for shape in self.shapes), []
        for span in collectives:
            if left > 0 and span.shape:
                taken.append(span)
                left -= span.shape.elements
        if left != 0:
            raise Refused(f"sends in {name} other numbers of elements than it has gradients, as a "
                          "job that accumulates them")
        return taken


class Step:
    """A backward of all ranks: the latest times, and how late the last rank has been ready."""

    def __init__(self, backwards, ahead):
        self.begin = max(each.begin for each in backwards.values())
        self.ready = [max(times) for times in zip(*(each.ready for each in backwards.values()))]
        last, before = sorted((each.ready[-1] for each in backwards.values()), reverse=True)[:2]
        self.late = last - before
        rows = zip(*([(span, ahead[rank]) for span in each.all_reduces]
                     for rank, each in backwards.items()))
        # For each all-reduce its bytes, when the last rank called it, and when all have left it.
        self.all_reduces = [(row[0][0].shape.bytes, max(span.begin - clock for span, clock in row),
                             statistics.mean(span.end - clock for span, clock in row))
                            for row in rows]
        self.end = max(end for _, _, end in self.all_reduces)


def steps_of(traces):
    """Returns the steps that all ranks have made alike, by number, and their gradients' shapes."""
    names, collectives, left_out = read_traces.matched(traces)
    if not collectives:
        sys.exit("The traces have no step in which all ranks make the same collectives: were they "
                 "profiled in the same steps?")
    ahead, _ = read_traces.offsets(collectives, sorted(traces))
    steps, shapes = {}, set()
    for name in (name for name in names if name not in left_out):
        backwards = {}
        for rank, trace in traces.items():
            step = next(step for step in trace.steps if step.name == name)
            backwards[rank] = Backward(trace, step, ahead[rank])
        shapes |= {tuple((shape.elements, shape.type) for shape in each.shapes)
                   for each in backwards.values()}
        number = re.search(r"\d{1,9}$", name)
        steps[int(number[0]) if number else 0] = Step(backwards, ahead)
    if len(shapes) != 1:
        raise Refused("and another one, or another step, have other gradients: the ranks' models "
                      "differ")
    return steps, shapes.pop()


def union_length(intervals):
    return read_traces.length(read_traces.union(intervals))


def link_of(all_reduces, steps, ranks):
    """Returns alpha in seconds and bytes per second of a message, of which a ring sends 2 (N - 1),
    each of an Nth of the bytes. A line through the all-reduces of several sizes that were alone on
    the link tells both. Else alpha is 0, and all of them together tell the other."""
    alone = []
    for size, begin, end in all_reduces:
        others = [(max(begin, other), min(end, until)) for _, other, until in all_reduces
                  if (other, until) != (begin, end) and max(begin, other) < min(end, until)]
        if end > begin and union_length(others) < 0.05 * (end - begin):
            alone.append((size, end - begin))
    sizes = [size for size, _ in alone]
    intercept = slope = 0.0
    if sizes and max(sizes) >= 2 * min(sizes):
        seconds = [seconds for _, seconds in alone]
        slope, intercept = statistics.linear_regression(sizes, seconds)
    if slope <= 0 or intercept < 0:
        busy = sum(union_length([(begin, end) for _, begin, end in step.all_reduces if end > begin])
                   for step in steps)
        if busy == 0:
            raise Refused("has all-reduces that take no time")
        slope, intercept = busy / sum(size for size, _, _ in all_reduces), 0.0
    messages = 2 * (ranks - 1)
    return intercept / messages, messages / (ranks * slope)


def what_if(traces):
    """Returns what the traces say, as lines, and gradients and options for the simulator."""
    if any(trace.on_device for trace in traces.values()):
        raise Refused("is a GPU's, and what-if takes those of a CPU: it would have to know which "
                      "kernel has made which gradient")
    steps, shapes = steps_of(traces)
    pairs = [(steps[number - 1], step) for number, step in steps.items() if number - 1 in steps]
    if not pairs:
        raise Refused("has no two steps, one after the other, that all ranks have made alike: "
                      "what-if takes two or more")
    ranks = max(len(traces), *(trace.world_size for trace in traces.values()))
    mean = statistics.mean
    recorded = mean(step.end - before.end for before, step in pairs)
    late = mean(step.late for _, step in pairs)
    marks = [mean(step.begin - before.end for before, step in pairs)]
    marks += [mean(step.ready[i] - before.end for before, step in pairs)
              for i in range(len(shapes))]
    times = [max(0.0, ready - earlier) for earlier, ready in zip(marks, marks[1:])]
    all_reduces = [each for _, step in pairs for each in step.all_reduces]
    alpha, bandwidth = link_of(all_reduces, [step for _, step in pairs], ranks)
    buckets = len(pairs[0][1].all_reduces)
    # The last gradient comes first: backward goes from the last parameter to the first.
    gradients = [f"gradient{i} {elements} {kind} {seconds * 1e6:.3f}us"
                 for i, ((elements, kind), seconds) in reversed([*enumerate(zip(shapes, times))])]
    options = ["--link", f"{alpha * 1e6:.3f}us,{bandwidth / 1e9:.6f}GB/s",
               "--forward", f"{marks[0] * 1e6:.3f}us", "--ranks", str(ranks),
               "--recorded", f"{recorded * 1e6:.3f}us,{buckets}"]
    options += ["--late", f"{late * 1e6:.3f}us"] if late > 0 else []
    size = mean(sum(size for size, _, _ in step.all_reduces) for _, step in pairs)
    words = [f"What if? From {read_traces.count(pairs, 'step')}: {milliseconds(marks[0])} until "
             "the last rank's backward begins, which here is called forward, "
             f"{milliseconds(sum(times))} of backward,",
             f"and {size / 1e6:.2f} MB in {read_traces.count(range(buckets), 'all-reduce')}. Once "
             "all ranks were there, these took as long as a link of alpha "
             f"{alpha * 1e6:.0f} us and {bandwidth / 1e9:.3g} GB/s does."]
    return words, gradients, options


def main(folder, traces):
    """Writes what is taken from the traces into the folder for the simulator. Returns it in
    words."""
    report = read_traces.report(traces)
    try:
        words, gradients, options = what_if(traces)
    except Refused as why:
        sys.exit(f"One of the traces {why}.")
    gradients_file, options_file = folder / "gradients", folder / "options"
    gradients_file.write_text("\n".join(gradients) + "\n")
    options_file.write_text("\n".join(["--parameters", str(gradients_file), *options]) + "\n")
    return report + ["", *words, ""]
