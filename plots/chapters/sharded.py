"""The pictures of the chapter sharded."""
import re

import matplotlib.pyplot as plt

from chapters.overlap import draw_two_steps
from shared import BLUE, ORANGE, GREEN, RED, GREY, RANKS, TIMELINE, new_figure

KINDS = {
    "parameters": BLUE, "gathered": "#9cc0ea", "gradients": GREEN, "buckets": "#a5d6b5",
    "moments": ORANGE, "activations": GREY, "communicator": "#d0d0d0"
}


def draw_bill(measured):
    """What a rank keeps at each stage, by kind: a panel for each number of ranks."""
    kinds = {kind: measured.numbers(kind) for kind in KINDS}
    stages, ranks = measured.numbers("stage"), measured.numbers("ranks")
    counts = sorted(set(ranks) - {1})  # one rank has nobody to share with
    figure, panels = new_figure(len(counts), width=3.4)
    highest = max(sum(values[i] for values in kinds.values()) for i in range(len(ranks)))
    for panel, count in zip(panels, counts):
        rows = [i for i, of_row in enumerate(ranks) if of_row == count]
        bottom = [0.0] * len(rows)
        for kind, values in kinds.items():
            heights = [values[i] / 2**20 for i in rows]
            panel.bar([stages[i] for i in rows], heights, bottom=bottom, color=KINDS[kind],
                      width=0.68, label=kind)
            bottom = [low + height for low, height in zip(bottom, heights)]
        panel.axhline(bottom[0] / count, color=RED, linestyle=":", linewidth=1.2,
                      label="DDP's bytes / ranks")
        panel.set_title(f"{count:.0f} ranks")
        panel.set_xticks([0, 1, 2, 3], ["DDP", "stage 1", "stage 2", "stage 3"])
        panel.set_ylim(0, 1.05 * highest / 2**20)
        panel.grid(axis="x", visible=False)
    panels[0].set_ylabel("MiB on each rank")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncol=4)
    return figure


# The intervals of a step at stage 3.
STEP = {
    **{kind: of_kind
       for kind, of_kind in TIMELINE.items() if of_kind[0] not in ("waiting", "bucket")},
    "waiting": TIMELINE["waiting for gradients"],
    "a unit's all-gather": ("gather", RED),
    "its reduce-scatter": ("reduce", RANKS[4]),
}


def number_of_unit(name):
    return "" if name.startswith("waiting") else re.search(r"\d*$", name).group()


def draw_timeline(measured):
    """A step at stage 3 over a simulated link, with prefetch and without."""
    return draw_two_steps(
        measured, {
            "off": "Stage 3 without prefetch: a unit is gathered when the computing comes to it",
            "on": "With prefetch: it is gathered while the unit before computes",
        }, STEP, number_of_unit)


def draw_steps(measured):
    """A step at each stage, without a link and over one, beside the simulator's."""
    names = measured.text("sharding")
    figure, (panel,) = new_figure(1, width=8.2, height=4.2)
    kinds = (("bare_ms", "no link", GREY), ("linked_ms", "over a link as slow as backward", BLUE),
             ("predicted_ms", "the same, simulated", "#9cc0ea"))
    for shift, (column, label, color) in zip((-0.26, 0.0, 0.26), kinds):
        values = measured.numbers(column)
        panel.barh([place + shift for place in range(len(names))], values, height=0.24, color=color,
                   label=label)
        for place, value in enumerate(values):
            panel.annotate(f"{value:.0f}", (value, place + shift), xytext=(3, 0), fontsize=8,
                           textcoords="offset points", va="center")
    panel.set_yticks(range(len(names)), ["DDP"] + [f"stage {name}" for name in names[1:]])
    panel.set_ylim(len(names) - 0.45, -0.55)
    panel.grid(axis="y", visible=False)
    panel.set(title="A step at each stage", xlabel="milliseconds (less is better)")
    panel.set_xlim(0, 1.1 * max(measured.numbers("linked_ms") + measured.numbers("predicted_ms")))
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncol=3)
    return figure


def draw_scale(measured):
    """Which share of its speed a rank keeps, by the number of ranks and the sharding."""
    figure, (panel,) = new_figure(1, width=6.4, height=3.2)
    shardings, ranks = measured.text("sharding"), measured.numbers("ranks")
    shares = measured.numbers("efficiency")
    colors = (GREY, ORANGE, BLUE, RED, GREEN)
    for name, color in zip(dict.fromkeys(shardings), colors):
        rows = [i for i, of_row in enumerate(shardings) if of_row == name]
        panel.plot([ranks[i] for i in rows], [100 * shares[i] for i in rows], color=color,
                   marker="o", label=name, linestyle="--" if name == "hybrid" else "-")
    panel.set_xscale("log", base=2)
    panel.set_xticks(sorted(set(ranks)), [f"{value:,.0f}" for value in sorted(set(ranks))])
    panel.minorticks_off()
    panel.set_ylim(0, 105)
    panel.set(title="Weak-scaling efficiency, simulated", xlabel="ranks",
              ylabel="% of the speed of a rank alone")
    panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def draw_rows(measured):
    """Which rank keeps which element of a layer: by pieces of the flat array, or by rows."""
    layouts, parameters = measured.text("layout"), measured.text("parameter")
    figure, panels = new_figure(2, width=4.8, height=2.6)
    titles = {"flat": "Flat, as FSDP1: seven elements per rank",
              "by rows": "By rows, as FSDP2: rank 2 has none"}
    for panel, (layout, title) in zip(panels, titles.items()):
        places = zip(layouts, parameters, *map(measured.numbers, ("row", "column", "rank")))
        for of, parameter, row, column, rank in places:
            if of == layout:
                x = column + (5.5 if parameter == "bias" else 0)
                panel.add_patch(plt.Rectangle((x, row), 1, 1, facecolor=RANKS[int(rank)],
                                              edgecolor="white"))
                panel.text(x + 0.5, row + 0.5, f"{rank:.0f}", color="white", ha="center",
                           va="center")
        for x, rows, name in ((0, 4, "weight"), (5.5, 1, "bias")):
            panel.add_patch(plt.Rectangle((x, 0), 4, rows, fill=False, linewidth=1.4))
            panel.text(x + 2, -0.35, name, ha="center")
        panel.set(title=title, xlim=(-0.2, 9.7), ylim=(4.1, -1))
        panel.set_aspect("equal")
        panel.axis("off")
    return figure


DRAWINGS = {
    "sharded_rows": draw_rows,
    "sharded_bill": draw_bill,
    "sharded_timeline": draw_timeline,
    "bench_sharded": draw_steps,
    "bench_sharded_scale": draw_scale,
}
