"""The pictures of the chapter cluster."""
import re

import matplotlib.pyplot as plt
import matplotlib.ticker

from shared import BLUE, GREEN, GREY, ORANGE, RED, new_figure


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
              ylabel="weak-scaling efficiency")
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
            panel.plot(*zip(*lines), color=ORANGE, label="predicted from the links")
        panel.plot(ranks, [alone / step for _, alone, step, _ in points], "o", color=BLUE,
                   label="measured")
        panel.plot(ranks, ranks if kind == "strong" else [1] * len(ranks), color="black",
                   linewidth=1, linestyle=":", label="ideal")
        panel.set_xscale("log", base=2)
        panel.minorticks_off()
        panel.set_xticks(ranks, [f"{count:.0f}" for count in ranks])
        if kind == "strong":
            panel.set_yscale("log", base=2)
            panel.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        else:
            panel.set_ylim(bottom=0)
        panel.legend(loc="upper left" if kind == "strong" else "lower left")
        panel.set(title=f"{kind.capitalize()} scaling", xlabel="ranks",
                  ylabel="times as fast as one rank" if kind == "strong" else "efficiency")
    if "sleep" in measured.text("compute"):
        figure.text(0.5, -0.02, "Ranks sleep in place of computing.", ha="center")
    return figure


def draw_cluster_node(measured):
    """A node of eight GPUs and its network. A line is as wide as its bandwidth."""
    names, speeds = measured.text("link"), measured.numbers("gigabytes_per_s")
    colors, plain, rail = (BLUE, GREEN, ORANGE), "#eef0f3", "#f3b562"
    widths = [speed / 55 for speed in speeds]
    figure, (panel,) = new_figure(1, width=9.6, height=5.4)

    def box(x, y, text, width=0.8, color=plain):
        panel.add_patch(plt.Rectangle((x - width / 2, y - 0.24), width, 0.48, zorder=3,
                                      facecolor=color, edgecolor=GREY, linewidth=0.8))
        panel.text(x, y, text, ha="center", va="center", zorder=4, fontsize=8.5)

    def line(x, y, to_x, to_y, link):
        panel.plot([x, to_x], [y, to_y], color=colors[link], linewidth=widths[link],
                   solid_capstyle="butt")

    panel.add_patch(plt.Rectangle((-1.75, 2.55), 10.5, 4.0, facecolor="none", edgecolor=GREY,
                                  linestyle="--"))
    panel.text(-1.65, 6.3, "node 0", weight="bold", va="center")
    box(3.5, 6, "four NVSwitches: every GPU reaches every other", width=7.8)
    for side, (cpu, x) in enumerate((("CPU 0", -1.2), ("CPU 1", 8.2))):
        for switch in (0.5 + 4 * side, 2.5 + 4 * side):
            line(x, 4.1, switch, 4.1, 1)
            box(switch, 4.1, "PCIe switch", width=1.7)
        box(x, 4.1, cpu)
    for gpu in range(8):
        line(gpu, 5, gpu, 6, 0)
        line(gpu, 3.1, gpu, 5, 1)
        line(gpu, 0.6, gpu, 3.1, 2)
        line(gpu, 1.6, gpu + 0.3, 2.25, 2)
        color = rail if gpu == 3 else plain
        box(gpu, 5, f"GPU {gpu}", color=color)
        box(gpu, 3.1, f"NIC {gpu}", color=color)
        box(gpu, 1.5, f"leaf {gpu}", color=color)
    box(3.5, 0.5, "spine switches: from rail to rail", width=7.8)
    panel.text(7.4, 2.25, "to the other nodes", fontsize=8.5, va="center")
    handles = [plt.Line2D([], [], color=color, linewidth=width)
               for color, width in zip(colors, widths)]
    panel.legend(handles + [plt.Rectangle((0, 0), 1, 1, color=rail)],
                 [f"{name}: {speed:.0f} GB/s" for name, speed in zip(names, speeds)]
                 + ["rail 3: number 3 of every node, and its leaf"],
                 loc="upper center", bbox_to_anchor=(0.5, 0.03), ncol=2)
    panel.set(title="A node of eight H100s, and its network", xlim=(-1.9, 9.0), ylim=(0.1, 6.7))
    panel.axis("off")
    return figure


DRAWINGS = {
    "cluster_node": draw_cluster_node,
    "cluster_simulated": draw_cluster_simulated,
    "cluster_scale": draw_cluster_scale,
}
