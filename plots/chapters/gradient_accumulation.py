"""The pictures of the chapter gradient_accumulation."""
import itertools

import matplotlib.pyplot as plt

from shared import BLUE, ORANGE, GREEN, RED, new_figure


def draw_gradient_accumulation(measured):
    """How far the first eight houses bring each descent, and what all of them bring."""
    columns = measured.text("way"), *map(measured.numbers, ("houses", "w1", "loss"))
    rows = list(zip(*columns))
    ways = dict(
        zip(dict.fromkeys(columns[0]), ((BLUE, "-", 1.8), (ORANGE, "-", 1.8), (GREEN, "--", 2.6))))
    figure, (steps, loss) = new_figure(2, width=5.6, height=3.6)
    for place, (way, (color, line, thick)) in enumerate(ways.items()):
        _, houses, w1s, losses = zip(*(row for row in rows if row[0] == way))
        first = [(w1, int(seen)) for w1, seen in zip(w1s, houses) if seen <= 8]
        steps.plot([w1 for w1, _ in first], [place] * len(first), color=color, marker="o",
                   markersize=6, linewidth=1.1)
        for w1, seen in first:
            steps.annotate(str(seen), (w1, place), xytext=(0, 7), textcoords="offset points",
                           ha="center", fontsize=8.5)
        loss.plot(houses[1:], losses[1:], color=color, linestyle=line, linewidth=thick, label=way)
    steps.set_yticks(range(len(ways)), list(ways))
    steps.set_ylim(len(ways) - 0.5, -0.6)
    steps.grid(axis="y", visible=False)
    steps.tick_params(axis="y", length=0)
    steps.set(title="A dot for each step; above it, the houses seen", xlabel="w1")
    loss.set(title="The loss falls", xlabel="houses seen",
             ylabel="mean squared error of both houses", xscale="log", yscale="log")
    loss.legend(loc="lower left")
    return figure


def draw_bench_micro_batches(measured):
    """The memory of tensors during one step, in one batch and in eight micro-batches."""
    columns = measured.numbers("pictures"), measured.text("phase"), *map(
        measured.numbers, ("seconds", "bytes"))
    rows = list(zip(*columns))
    sizes = list(dict.fromkeys(columns[0]))
    shown = [sizes[0], sizes[-1]] if len(sizes) > 1 else sizes
    figure, panels = new_figure(len(shown), width=5.4, height=3.6)
    colors = {"forward": BLUE, "backward": GREEN}
    room = max(columns[3]) / 2**20
    longest = 1e3 * max(row[2] for row in rows if row[0] in shown)  # one axis of time for both
    for panel, size in zip(panels, shown):
        mine = [(phase, 1e3 * seconds, size_bytes / 2**20)
                for pictures, phase, seconds, size_bytes in rows if pictures == size]
        spans = [(phase, begin, end, mib)
                 for (phase, begin, mib), (_, end, _) in zip(mine, mine[1:])]
        for phase, span in itertools.groupby(spans, key=lambda span: span[0]):  # a polygon of steps
            corners = [(time, mib) for _, begin, end, mib in span for time in (begin, end)]
            times, heights = zip((corners[0][0], 0), *corners, (corners[-1][0], 0))
            panel.fill(times, heights, color=colors[phase], linewidth=0)
        kept = mine[0][2]
        panel.axhline(kept, color="#3d4249", linestyle=":", linewidth=1.2)
        highest = max(mib for *_, mib in mine)
        panel.axhline(highest, color=RED, linestyle="--", linewidth=1)
        panel.annotate(f"at most {highest:.2f} MiB", (0.99, highest),
                       xycoords=("axes fraction", "data"), xytext=(0, 4),
                       textcoords="offset points", ha="right", color=RED)
        panel.set(title=f"{size:.0f} pictures at a time", xlabel="milliseconds",
                  xlim=(0, longest), ylim=(0, 1.2 * room))
    panels[0].set_ylabel("memory that tensors hold, MiB")
    handles = [plt.Rectangle((0, 0), 1, 1, color=color) for color in colors.values()
               ] + [plt.Line2D([], [], color="#3d4249", linestyle=":", linewidth=1.2)]
    panels[-1].legend(handles, [*colors, "parameters and gradients"], loc="upper left",
                      bbox_to_anchor=(0.0, 0.9))
    return figure


DRAWINGS = {
    "gradient_accumulation": draw_gradient_accumulation,
    "bench_micro_batches": draw_bench_micro_batches,
}
