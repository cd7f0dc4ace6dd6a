"""The pictures of the chapter mesh."""
import matplotlib.pyplot as plt

from shared import BLUE, GREEN, GREY, ORANGE, new_figure


def draw_mesh_axes(measured):
    """Which ranks talk in which axis, where the nodes and their rails are known."""
    figure, (panel,) = new_figure(1, width=9.6, height=4.4)
    places = {}
    for rank, node, dp, pp, tp in zip(*(map(int, measured.numbers(name))
                                        for name in ("rank", "node", "dp", "pp", "tp"))):
        x, y = pp * 6.2 + tp * 1.3, -dp * 3.0
        places[dp, pp, tp] = x, y
        panel.add_patch(plt.Circle((x, y), 0.36, zorder=4, facecolor="white", edgecolor=GREY))
        panel.text(x, y, rank, ha="center", va="center", zorder=5)
        if tp == 0:
            panel.add_patch(plt.Rectangle((x - 0.6, y - 0.85), 5.1, 1.55, facecolor="#eef0f3",
                                          edgecolor=GREY, linewidth=0.8, zorder=0))
            panel.text(x + 1.95, y - 0.58, f"node {node}: replica {dp}, stage {pp}", fontsize=8.5,
                       ha="center", va="center", zorder=6,
                       bbox={"facecolor": "#eef0f3", "edgecolor": "none", "pad": 1})
    for (dp, pp, tp), (x, y) in places.items():
        if (dp, pp, tp + 1) in places:
            to_x, to_y = places[dp, pp, tp + 1]
            panel.plot([x, to_x], [y, to_y], color=BLUE, linewidth=6, zorder=2)
        if (dp, pp + 1, tp) in places:
            to_x, to_y = places[dp, pp + 1, tp]
            panel.annotate("", (to_x, to_y + 0.36), (x, y + 0.36), zorder=1,
                           arrowprops={"arrowstyle": "->", "color": ORANGE, "linewidth": 1.2,
                                       "connectionstyle": "arc3,rad=-0.25"})
        if (dp + 1, pp, tp) in places:
            to_x, to_y = places[dp + 1, pp, tp]
            panel.plot([x, to_x], [y, to_y], color=GREEN, linewidth=1.5, linestyle="--", zorder=1)
    panel.legend([plt.Line2D([], [], color=BLUE, linewidth=6),
                  plt.Line2D([], [], color=ORANGE, linewidth=1.2),
                  plt.Line2D([], [], color=GREEN, linewidth=1.5, linestyle="--")],
                 ["tp: within a node, sums of activations",
                  "pp: along a rail, activations and their gradients",
                  "dp: along a rail, sums of gradients, once per step"],
                 loc="upper center", bbox_to_anchor=(0.5, 0.02), ncol=2, frameon=False)
    panel.set(title="Sixteen ranks as 2 x 2 x 4, on four nodes of four GPUs",
              xlim=(-0.9, 10.9), ylim=(-4.0, 1.6), aspect="equal")
    panel.axis("off")
    return figure


def draw_mesh_schedules(measured):
    """When each stage of a pipeline works on which micro-batch."""
    rows = [row for row in zip(measured.text("schedule"), measured.numbers("micro_batches"),
                               measured.numbers("rank"), measured.text("what"),
                               measured.numbers("begin_s"), measured.numbers("end_s"))
            if row[1] == max(measured.numbers("micro_batches"))]
    names = list(dict.fromkeys(row[0] for row in rows))
    stages = int(max(row[2] for row in rows)) + 1
    figure, panels = new_figure(len(names), width=5.6, height=2.6)
    last = max(row[5] for row in rows) * 1000
    for panel, name in zip(panels, names):
        for schedule, _, rank, what, begin, end in rows:
            if schedule != name:
                continue
            kind, number = what.split()
            color = BLUE if kind == "forward" else ORANGE
            panel.barh(rank, (end - begin) * 1000, left=begin * 1000, height=0.8, color=color,
                       edgecolor="white", linewidth=0.6)
            panel.text((begin + end) * 500, rank, number, ha="center", va="center", fontsize=6.5,
                       color="white")
        panel.set(title=name, xlabel="ms", xlim=(0, last), ylim=(stages - 0.4, -0.6),
                  yticks=range(stages), ylabel="stage")
        panel.grid(False)
    panels[0].legend([plt.Rectangle((0, 0), 1, 1, color=BLUE),
                      plt.Rectangle((0, 0), 1, 1, color=ORANGE)], ["forward", "backward"],
                     loc="upper center", bbox_to_anchor=(0.5, -0.3), ncol=2, frameon=False)
    return figure


DRAWINGS = {
    "mesh_axes": draw_mesh_axes,
    "mesh_schedules": draw_mesh_schedules,
}
