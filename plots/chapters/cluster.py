"""The pictures of the chapter cluster."""
import re

import matplotlib.ticker

from shared import BLUE, ORANGE, RED, new_figure


def draw_cluster_simulated(measured):
    """The share of its speed that a rank keeps: on nodes that were measured, and on more."""
    figure, (known, asked) = new_figure(2, width=4.8, height=3.6)
    colors = {
        "flat ring": RED, "two levels": ORANGE, "double tree": BLUE, "the best, with jitter": BLUE
    }
    lines = {}  # of (panel, name): points (ranks, predicted, measured)
    for kind, what, seen, predicted in zip(*(measured.text(name)
                                             for name in ("kind", "what", "measured",
                                                          "predicted"))):
        if kind == "steps" and re.fullmatch("100 Mbit/s, (2 x 1|. x 2), .*8 x 512 KiB",
                                            what):  # of 400 ms on a rank alone
            nodes, local, name = re.match(r".*, (\d) x (\d), (.*), ", what).groups()
            lines.setdefault((known, name), []).append(
                (int(nodes) * int(local), 400 / float(predicted), 400 / float(seen)))
        elif kind == "speed kept":
            ranks, name = re.match(r"(\d+) ranks, (.*)", what).groups()
            lines.setdefault((asked, name), []).append((int(ranks), float(predicted), None))
    for panel in (known, asked):
        panel.set_xscale("log", base=2)
        panel.minorticks_off()
    for (panel, name), points in lines.items():
        ranks, predicted, seen = zip(*points)
        panel.plot(ranks, predicted, color=colors[name],
                   linestyle="--" if "jitter" in name else "-", label=name)
        panel.plot(ranks, seen if panel is known else predicted, "o", color=colors[name],
                   markersize=4)
    for panel in (known, asked):
        ranks = sorted({
            point[0] for (where, _), points in lines.items() if where is panel for point in points
        })
        panel.axhline(1, color="black", linewidth=1, linestyle=":", zorder=3, label="ideal")
        panel.set_xticks(ranks, [f"{count:,}" for count in ranks])
        panel.set(ylim=(0, 1.07), xlabel="ranks")
        panel.legend(loc="lower left")
    known.set(title="Four nodes: points are measured",
              ylabel="share of its speed that a rank keeps")
    asked.set(title="Up to 512 nodes: nothing is measured")
    return figure


def draw_cluster_scale(measured):
    """What more ranks bring: measured points, the simulator's line, and the ideal."""
    kinds = list(dict.fromkeys(measured.text("scaling")))
    figure, panels = new_figure(len(kinds), width=4.8, height=3.6)
    numbers = ("ranks", "step_s", "ideal_s")
    rows = list(
        zip(measured.text("scaling"), *map(measured.numbers, numbers),
            measured.text("predicted_s")))
    for panel, kind in zip(panels, kinds):
        # Weak: the share of its speed that a rank keeps. Strong: how many times as fast as one.
        points = [(ranks, ideal * (ranks if kind == "strong" else 1), step, predicted)
                  for name, ranks, step, ideal, predicted in rows if name == kind]
        ranks = [point[0] for point in points]
        lines = [(ranks, alone / float(predicted)) for ranks, alone, _, predicted in points
                 if predicted]
        if lines:
            panel.plot(*zip(*lines), color=ORANGE, label="the simulator, from the links measured")
        panel.plot(ranks, [alone / step for _, alone, step, _ in points], "o", color=BLUE,
                   label="measured")
        panel.plot(ranks, ranks if kind == "strong" else [1] * len(ranks), color="black",
                   linewidth=1, linestyle=":", label="ideal")
        panel.set_xscale("log", base=2)
        panel.minorticks_off()
        panel.set_xticks(ranks, [f"{count:.0f}" for count in ranks])
        panel.set_xlabel("ranks")
        if kind == "strong":
            panel.set_yscale("log", base=2)
            panel.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        else:
            panel.set_ylim(bottom=0)
        panel.legend(loc="upper left" if kind == "strong" else "lower left")
        title = "Weak-scaling efficiency"
        if kind == "strong":
            title = "Strong scaling: speed-up"
        slept = "sleep" in measured.text("compute")
        panel.set_title(title + (" (a sleep computes)" if slept else ""))
    return figure


DRAWINGS = {
    "cluster_simulated": draw_cluster_simulated,
    "cluster_scale": draw_cluster_scale,
}
