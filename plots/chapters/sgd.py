"""The pictures of the chapter sgd."""
import math

import matplotlib.pyplot as plt

from shared import BLUE, ORANGE, GREEN, RED, GREY, new_figure


def loss_surface(panel, loss, w1_range, b_range, path):
    """Lines of equal loss(w1, b), with their numbers where the path leaves room for them."""
    count = 160
    w1s, bs = ([low + (high - low) * i / (count - 1) for i in range(count)]
               for low, high in (w1_range, b_range))
    losses = [[loss(w1, b) for w1 in w1s] for b in bs]
    low, high = min(map(min, losses)), max(map(max, losses))
    levels = [high * (low / high + 0.004)**(1 - i / 12) for i in range(13)]
    lines = panel.contour(w1s, bs, losses, levels=sorted(set(levels)), colors="#b4bac2",
                          linewidths=0.8, zorder=1)
    width, height = w1_range[1] - w1_range[0], b_range[1] - b_range[0]
    middle, taken = (b_range[0] + b_range[1]) / 2, []

    def is_clear(w1, b):
        """Says if a number has room here: away from the borders, the path and other numbers."""
        return (0.05 < (w1 - w1_range[0]) / width < 0.93 and abs(b - middle) < 0.4 * height
                and all(abs(x - w1) > 0.085 * width for x in taken)
                and all(abs(x - w1) > 0.06 * width or abs(y - b) > 0.04 * height
                        for x, y in zip(*path)))

    # A line's number stands where it crosses the panel's middle, or as near to that as it can.
    for level, pieces in zip(lines.levels, lines.allsegs):
        inside = [(abs(b - middle), w1, b) for piece in pieces for w1, b in piece
                  if is_clear(w1, b)]
        if inside:
            _, w1, b = min(inside)
            taken.append(w1)
            panel.text(w1, b, f"{level:.2g}", fontsize=7, color=GREY, ha="center", va="center",
                       zorder=1.5, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})
    panel.set(xlim=w1_range, ylim=b_range, xlabel="w1", ylabel="b")
    panel.grid(visible=False)


def loss_with_best_w2(houses):
    """The mean squared error at w1 and b, with the best w2 there: a parabola, of six means."""
    x1, x2, y = (houses.numbers(name) for name in ("bedrooms", "bathrooms", "price"))
    mean = lambda *columns: sum(map(math.prod, zip(*columns))) / len(y)  # noqa: E731
    squares = mean(x1, x1), 1, mean(y, y), mean(x1), -mean(x1, y), -mean(y)
    shares = mean(x2, x1), mean(x2), -mean(x2, y)  # how x2 goes with each of the others
    best = mean(x2, x2)

    def loss(w1, b):
        whole = squares[0] * w1**2 + squares[1] * b**2 + squares[2] + 2 * (
            squares[3] * w1 * b + squares[4] * w1 + squares[5] * b)
        return whole - (shares[0] * w1 + shares[1] * b + shares[2])**2 / best

    return loss


def draw_sgd(measured):
    """The path over the loss surface, the loss, and the parameters, which approach the law."""
    figure, (surface, loss, parameters) = new_figure(3, width=4.4, height=3.8)
    epochs = measured.numbers("epoch")
    path = [0, *measured.numbers("w1")], [0, *measured.numbers("b")]
    w1_range = (-0.3, 1.15 * max(3, *path[0]))
    b_range = (min(-5, *path[1]) - 0.6, max(path[1]) + 0.6)
    loss_surface(surface, loss_with_best_w2(measured.beside("houses")), w1_range, b_range, path)
    surface.plot(*path, color=BLUE, marker="o", markersize=3,
                 markevery=[i for i in range(len(path[0])) if i < 2 or i % 50 == 0], linewidth=1.1,
                 label="epochs 0, 1, 50, 100 ...")
    surface.plot(3, -5, color=RED, marker="*", markersize=11, linestyle="none", label="the law")
    surface.plot([], [], color="#b4bac2", linewidth=0.8, label="equal loss, at the best w2")
    surface.set(title="The way down")
    surface.legend(loc="lower left", frameon=True, framealpha=0.9, edgecolor="none")
    loss.plot(epochs, measured.numbers("loss"), color=BLUE)
    loss.set(title="The loss falls", xlabel="epoch", ylabel="mean squared error", yscale="log")
    law = {"w1": (3, BLUE), "w2": (1, ORANGE), "b": (-5, GREEN)}
    for name, (value, color) in law.items():
        parameters.plot(epochs, measured.numbers(name), color=color, label=name)
        parameters.axhline(value, color=color, linestyle=":", linewidth=1.2)
    parameters.set(title="The parameters approach the law", xlabel="epoch", ylabel="value")
    parameters.plot([], [], color=GREY, linestyle=":", linewidth=1.2, label="the law")
    parameters.legend(loc="center right", bbox_to_anchor=(1, 0.45))
    return figure


def draw_sgd_tape(measured):
    """The boxes of one step's tape; values flow to the right, gradients back to the left."""
    names, inputs = measured.text("name"), [[int(box) for box in text.split()]
                                            for text in measured.text("inputs")]
    values, gradients = measured.numbers("value"), measured.text("gradient")
    signs = {"multiply": "×", "add": "+", "subtract": "−", "square": "square"}
    places, leaves = {}, []

    def place(box, column):  # a leaf takes the next row, an operation stands between its inputs
        for source in inputs[box]:
            place(source, column - 1)
        if not inputs[box]:
            leaves.append(box)
        rows = [places[source][1] for source in inputs[box]] or [len(leaves) - 1]
        places[box] = column, (min(rows) + max(rows)) / 2

    place(len(names) - 1, 0)
    figure, (panel,) = new_figure(1, width=10.4, height=5.2)
    width, height = 0.66, 0.74
    for box, (x, y) in places.items():
        panel.add_patch(
            plt.Rectangle((x - width / 2, y - height / 2), width, height,
                          facecolor="#f6f7f9" if inputs[box] else "white",
                          edgecolor="#5b6068" if gradients[box] else "#b4bac2", linewidth=1.1,
                          zorder=2))
        panel.text(x, y - 0.2, signs.get(names[box], names[box]), ha="center", va="center",
                   weight="bold", fontsize=10, zorder=3)
        panel.text(x - width / 2 + 0.03, y - height / 2 + 0.03, str(box), ha="left", va="top",
                   color=GREY, fontsize=6.5, zorder=3)
        panel.text(x, y + 0.06, f"{values[box]:g}", ha="center", va="center", color=BLUE,
                   fontsize=9.5, zorder=3)
        if gradients[box]:
            panel.text(x, y + 0.26, f"{float(gradients[box]):g}", ha="center", va="center",
                       color=ORANGE, fontsize=9.5, zorder=3)
        for source in inputs[box]:
            left, right = (places[source][0] + width / 2, places[source][1]), (x - width / 2, y)
            panel.annotate("", (right[0], right[1] - 0.05), (left[0], left[1] - 0.05),
                           arrowprops={"arrowstyle": "->", "color": BLUE, "linewidth": 1.2})
            if gradients[source]:
                panel.annotate("", (left[0], left[1] + 0.11), (right[0], right[1] + 0.11),
                               arrowprops={"arrowstyle": "->", "color": ORANGE, "linewidth": 1.2})
    columns = [x for x, _ in places.values()]
    panel.set_xlim(min(columns) - 0.5, 0.55)
    panel.set_ylim(len(leaves) - 0.35, -1.05)
    panel.text(
        min(columns) - 0.33, -0.72, "forward: values, from left to right  ⟶", color=BLUE,
        fontsize=10.5, va="center")
    panel.text(0.33, -0.72, "⟵  backward: gradients, from right to left", color=ORANGE,
               fontsize=10.5, va="center", ha="right")
    panel.axis("off")
    return figure


def draw_sgd_stream(measured):
    """Host and stream side by side; the first read comes before the kernel has ended."""
    columns = *map(measured.text, ("lane", "what")), *map(measured.numbers,
                                                          ("begin_s", "end_s", "w1"))
    rows = {(lane, what): (1e6 * begin, 1e6 * end, w1)
            for lane, what, begin, end, w1 in zip(*columns)}
    figure, (panel,) = new_figure(1, width=9.6, height=2.5)
    end = rows["stream", "kernel and copy"][1]
    for (lane, what), color, text in (
        (("host", "launch"), BLUE, ""),
        (("host", "wait"), "#c3c7cd", "waits for the stream"),
        (("stream", "kernel and copy"), GREEN, "the kernel takes all steps; then the copy of w1"),
    ):
        begin, done, _ = rows[lane, what]
        panel.barh(0 if lane == "host" else 1, done - begin, left=begin, height=0.6, color=color)
        panel.text((begin + done) / 2, 0 if lane == "host" else 1, text, ha="center", va="center",
                   color="white" if lane == "stream" else "#3d4249")
    _, returned, early = rows["host", "launch"]
    arrow = {"arrowstyle": "->", "color": RED, "linewidth": 1.2}
    panel.annotate(f"the launch has returned: read w1 = {early:.4f}", (returned, -0.32),
                   (returned + 0.03 * end, -0.78), color=RED, va="center", arrowprops=arrow)
    panel.annotate(f"read w1 = {rows['host', 'wait'][2]:.4f}", (end, -0.32), (end, -0.78),
                   color=GREEN, va="center", ha="center", arrowprops={**arrow, "color": GREEN})
    panel.set_yticks([0, 1], ["host", "stream"])
    panel.set_ylim(1.5, -1.05)
    panel.set_xlim(0, 1.1 * end)
    panel.grid(axis="y", visible=False)
    panel.tick_params(axis="y", length=0)
    panel.set(title="One launch, and two reads of its result",
              xlabel="microseconds since the launch")
    return figure


DRAWINGS = {
    "sgd": draw_sgd,
    "sgd_tape": draw_sgd_tape,
    "sgd_stream": draw_sgd_stream,
}
