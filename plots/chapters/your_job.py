#!/usr/bin/env python3
"""The picture of the chapter your_job. As a program, it makes the picture's numbers of traces:

    PYTHONPATH=chapters/23_your_job plots/chapters/your_job.py FILES >out/your_job_traces.csv
"""
import pathlib
import sys


def step_of(traces):
    """Yields a row for each part of one step, on the clock that read_traces.py makes."""
    import read_traces
    names, collectives, _ = read_traces.matched(traces)
    ahead, _ = read_traces.offsets(collectives, sorted(traces))
    steps = {rank: next(step for step in trace.steps if step.name == names[1])
             for rank, trace in traces.items()}
    start = min(step.begin - ahead[rank] for rank, step in steps.items())
    for rank, trace in sorted(traces.items()):
        step = steps[rank]
        backward = trace.in_step(step, trace.backward)
        first, last = backward[0].begin, max(span.end for span in backward)
        parts = [("forward" if begin < first else "backward" if begin < last else "optimizer",
                  begin, end) for begin, end in trace.work if step.begin <= begin < step.end]
        parts += [(f"all-reduce {i}", span.begin, span.end)
                  for i, span in enumerate(trace.in_step(step, trace.collectives))]
        for name, *ends in parts:
            yield rank, name, *(f"{1e3 * (at - ahead[rank] - start):.3f}" for at in ends)


def draw_traces(measured):
    """A step of all ranks on one clock: who computes, and who waits in an all-reduce for whom."""
    import matplotlib.pyplot as plt
    from shared import BLUE, GREEN, ORANGE, RED, new_figure
    kinds = {"forward": BLUE, "backward": GREEN, "optimizer": ORANGE, "all-reduce": RED}
    rows = list(zip(map(int, measured.numbers("rank")), measured.text("name"),
                    measured.numbers("begin_ms"), measured.numbers("end_ms")))
    ranks = sorted({row[0] for row in rows})
    figure, (panel,) = new_figure(1, width=9.6, height=1.0 + 0.8 * len(ranks))
    for rank, name, begin, end in rows:
        kind, _, number = name.partition(" ")
        place = 2.5 * rank + (0.85 + 0.45 * int(number) if number else 0)
        panel.barh(place, end - begin, left=begin, color=kinds[kind],
                   height=0.4 if number else 0.84)
    begun = max(begin for _, name, begin, _ in rows if name == "all-reduce 0")
    panel.axvline(begun, color="black", linestyle=":", linewidth=1)
    panel.text(begun - 0.3, -0.75, "the last rank has come", ha="right", va="center")
    panel.set_yticks([2.5 * rank + lane for rank in ranks for lane in (0, 1.07)],
                     [f"rank {rank} {does}" for rank in ranks
                      for does in ("computes", "communicates")])
    panel.set_xlim(left=0)
    panel.set_ylim(2.5 * len(ranks) - 0.8, -1.1)
    panel.set(title="A step of three ranks on one clock", xlabel="milliseconds")
    panel.grid(axis="y", visible=False)
    panel.tick_params(axis="y", length=0)
    panel.legend([plt.Rectangle((0, 0), 1, 1, color=color) for color in kinds.values()],
                 list(kinds), loc="lower right", bbox_to_anchor=(1, 1), ncol=len(kinds))
    return figure


DRAWINGS = {
    "your_job_traces": draw_traces,
}

if __name__ == "__main__":
    import read_traces
    print("rank,name,begin_ms,end_ms")
    for row in step_of(read_traces.load(map(pathlib.Path, sys.argv[1:]))):
        print(*row, sep=",")
