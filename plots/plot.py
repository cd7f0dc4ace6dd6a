#!/usr/bin/env python3
"""Draws what the last runs measured: out/NAME.csv becomes out/NAME.svg and out/NAME.png.

    ./book plot                              everything that has been measured
    plot.py --only sgd                       what one program measured, if there is a drawing for it
    plot.py --from FOLDER --to FOLDER        the reference pictures

Which drawing a file gets is decided by its name, in DRAWINGS.
"""
import argparse
import concurrent.futures
import csv
import math
import multiprocessing
import os
import pathlib
import re
import sys

try:
    import matplotlib
    import matplotlib.colors
except ImportError:
    sys.exit("plot.py needs a python3 with matplotlib: `./book plot` looks for one, and says how to install it.")

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import matplotlib.ticker  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLUE, ORANGE, GREEN, RED, GREY = "#2f6db3", "#e08a1e", "#3a9a5b", "#c8453c", "#8a8f98"
STYLE = {
    "figure.facecolor": "white",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e5e8",
    "axes.edgecolor": "#5b6068",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
    "font.size": 9.5,
    "svg.hashsalt": "ddp",  # the same measurements give the same file
}


class NothingToDraw(Exception):
    """A file that is right, and in which there is nothing to see."""


class Measured:
    """One CSV file: columns by name, numbers where they are numbers."""

    def __init__(self, path):
        self.path = path
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        if not rows:
            raise ValueError(f"{path} has no measurements in it: the run that wrote it was stopped early")
        self.columns = {name: [row[name] for row in rows] for name in rows[0]}

    def beside(self, what):
        """What the same run has written to another file."""
        return Measured(self.path.with_name(f"{self.path.stem}_{what}{self.path.suffix}"))

    def text(self, name):
        return self.columns[name]

    def numbers(self, name):
        return [float(value) for value in self.columns[name]]


def new_figure(panels, width=4.6, height=3.4):
    figure, axes = plt.subplots(1, panels, figsize=(width * panels, height), squeeze=False)
    return figure, list(axes[0])


def loss_surface(panel, loss, w1_range, b_range):
    """Lines of equal loss(w1, b)."""
    count = 160
    w1s, bs = ([low + (high - low) * i / (count - 1) for i in range(count)] for low, high in (w1_range, b_range))
    losses = [[loss(w1, b) for w1 in w1s] for b in bs]
    low, high = min(map(min, losses)), max(map(max, losses))
    levels = [high * (low / high + 0.004) ** (1 - i / 12) for i in range(13)]
    lines = panel.contour(w1s, bs, losses, levels=sorted(set(levels)), colors="#b4bac2", linewidths=0.8, zorder=1)
    # A line's number stands where it crosses the panel's middle, away from the borders and from other numbers.
    middle, taken = (b_range[0] + b_range[1]) / 2, []
    for level, pieces in zip(lines.levels, lines.allsegs):
        inside = [(abs(b - middle), w1, b) for piece in pieces for w1, b in piece
                  if 0.05 < (w1 - w1_range[0]) / (w1_range[1] - w1_range[0]) < 0.93 and abs(b - middle) < 0.4 * (b_range[1] - b_range[0])]
        if inside and all(abs(min(inside)[1] - w1) > 0.085 * (w1_range[1] - w1_range[0]) for w1 in taken):
            _, w1, b = min(inside)
            taken.append(w1)
            panel.text(w1, b, f"{level:.2g}", fontsize=7, color=GREY, ha="center", va="center", zorder=1.5,
                       bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})
    panel.set(xlim=w1_range, ylim=b_range, xlabel="w1", ylabel="b")
    panel.grid(visible=False)


def loss_with_best_w2(houses):
    """The mean squared error at w1 and b, with the w2 that is best there. It is a parabola: six means say all."""
    x1, x2, y = (houses.numbers(name) for name in ("bedrooms", "bathrooms", "price"))
    mean = lambda *columns: sum(map(math.prod, zip(*columns))) / len(y)  # noqa: E731
    squares = mean(x1, x1), 1, mean(y, y), mean(x1), -mean(x1, y), -mean(y)
    shares = mean(x2, x1), mean(x2), -mean(x2, y)  # how x2 goes with each of the others
    best = mean(x2, x2)

    def loss(w1, b):
        whole = squares[0] * w1**2 + squares[1] * b**2 + squares[2] + 2 * (squares[3] * w1 * b + squares[4] * w1 + squares[5] * b)
        return whole - (shares[0] * w1 + shares[1] * b + shares[2]) ** 2 / best

    return loss


def draw_sgd(measured):
    """Chapter 01: the path over the loss surface, the loss, and the parameters, which approach the law."""
    figure, (surface, loss, parameters) = new_figure(3, width=4.4, height=3.8)
    epochs = measured.numbers("epoch")
    path = [0, *measured.numbers("w1")], [0, *measured.numbers("b")]
    loss_surface(surface, loss_with_best_w2(measured.beside("houses")), (-0.3, 1.15 * max(3, *path[0])), (min(-5, *path[1]) - 0.6, max(path[1]) + 0.6))
    surface.plot(*path, color=BLUE, marker="o", markersize=3, markevery=[i for i in range(len(path[0])) if i < 2 or i % 50 == 0], linewidth=1.1, label="epochs 0, 1, 50, 100 ...")
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
    """Chapter 01: the boxes of one step's tape; values flow to the right, gradients back to the left."""
    names, inputs = measured.text("name"), [[int(box) for box in text.split()] for text in measured.text("inputs")]
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
        panel.add_patch(plt.Rectangle((x - width / 2, y - height / 2), width, height, facecolor="#f6f7f9" if inputs[box] else "white",
                                      edgecolor="#5b6068" if gradients[box] else "#b4bac2", linewidth=1.1, zorder=2))
        panel.text(x, y - 0.2, signs.get(names[box], names[box]), ha="center", va="center", weight="bold", fontsize=10, zorder=3)
        panel.text(x - width / 2 + 0.03, y - height / 2 + 0.03, str(box), ha="left", va="top", color=GREY, fontsize=6.5, zorder=3)
        panel.text(x, y + 0.06, f"{values[box]:g}", ha="center", va="center", color=BLUE, fontsize=9.5, zorder=3)
        if gradients[box]:
            panel.text(x, y + 0.26, f"{float(gradients[box]):g}", ha="center", va="center", color=ORANGE, fontsize=9.5, zorder=3)
        for source in inputs[box]:
            left, right = (places[source][0] + width / 2, places[source][1]), (x - width / 2, y)
            panel.annotate("", (right[0], right[1] - 0.05), (left[0], left[1] - 0.05), arrowprops={"arrowstyle": "->", "color": BLUE, "linewidth": 1.2})
            if gradients[source]:
                panel.annotate("", (left[0], left[1] + 0.11), (right[0], right[1] + 0.11), arrowprops={"arrowstyle": "->", "color": ORANGE, "linewidth": 1.2})
    columns = [x for x, _ in places.values()]
    panel.set_xlim(min(columns) - 0.5, 0.55)
    panel.set_ylim(len(leaves) - 0.35, -1.05)
    panel.text(min(columns) - 0.33, -0.72, "forward: values, from left to right  ⟶", color=BLUE, fontsize=10.5, va="center")
    panel.text(0.33, -0.72, "⟵  backward: gradients, from right to left", color=ORANGE, fontsize=10.5, va="center", ha="right")
    panel.axis("off")
    return figure


def draw_sgd_stream(measured):
    """Chapter 01: host and stream side by side; the first read comes before the kernel has ended."""
    columns = *map(measured.text, ("lane", "what")), *map(measured.numbers, ("begin_s", "end_s", "w1"))
    rows = {(lane, what): (1e6 * begin, 1e6 * end, w1) for lane, what, begin, end, w1 in zip(*columns)}
    figure, (panel,) = new_figure(1, width=9.6, height=2.5)
    end = rows["stream", "kernel and copy"][1]
    for (lane, what), color, text in ((("host", "launch"), BLUE, ""), (("host", "wait"), "#c3c7cd", "waits for the stream"),
                                      (("stream", "kernel and copy"), GREEN, "the kernel takes all steps; then the copy of w1")):
        begin, done, _ = rows[lane, what]
        panel.barh(0 if lane == "host" else 1, done - begin, left=begin, height=0.6, color=color)
        panel.text((begin + done) / 2, 0 if lane == "host" else 1, text, ha="center", va="center", color="white" if lane == "stream" else "#3d4249")
    _, returned, early = rows["host", "launch"]
    arrow = {"arrowstyle": "->", "color": RED, "linewidth": 1.2}
    panel.annotate(f"the launch has returned: read w1 = {early:.4f}", (returned, -0.32), (returned + 0.03 * end, -0.78), color=RED, va="center", arrowprops=arrow)
    panel.annotate(f"read w1 = {rows['host', 'wait'][2]:.4f}", (end, -0.32), (end, -0.78), color=GREEN, va="center", ha="center",
                   arrowprops={**arrow, "color": GREEN})
    panel.set_yticks([0, 1], ["host", "stream"])
    panel.set_ylim(1.5, -1.05)
    panel.set_xlim(0, 1.1 * end)
    panel.grid(axis="y", visible=False)
    panel.tick_params(axis="y", length=0)
    panel.set(title="One launch, and two reads of its result", xlabel="microseconds since the launch")
    return figure


def draw_gradient_accumulation(measured):
    """Chapter 04: how far the first eight houses bring each descent, and what all of them bring."""
    columns = measured.text("way"), *map(measured.numbers, ("houses", "w1", "loss"))
    rows = list(zip(*columns))
    ways = dict(zip(dict.fromkeys(columns[0]), ((BLUE, "-", 1.8), (ORANGE, "-", 1.8), (GREEN, "--", 2.6))))
    figure, (steps, loss) = new_figure(2, width=5.6, height=3.6)
    for place, (way, (color, line, thick)) in enumerate(ways.items()):
        _, houses, w1s, losses = zip(*(row for row in rows if row[0] == way))
        first = [(w1, int(seen)) for w1, seen in zip(w1s, houses) if seen <= 8]
        steps.plot([w1 for w1, _ in first], [place] * len(first), color=color, marker="o", markersize=6, linewidth=1.1)
        for w1, seen in first:
            steps.annotate(str(seen), (w1, place), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=8.5)
        loss.plot(houses[1:], losses[1:], color=color, linestyle=line, linewidth=thick, label=way)
    steps.set_yticks(range(len(ways)), list(ways))
    steps.set_ylim(len(ways) - 0.5, -0.6)
    steps.grid(axis="y", visible=False)
    steps.tick_params(axis="y", length=0)
    steps.set(title="A dot for each step; above it, the houses seen", xlabel="w1")
    loss.set(title="The loss falls", xlabel="houses seen", ylabel="mean squared error of both houses", xscale="log", yscale="log")
    loss.legend(loc="lower left")
    return figure


def draw_gradient_accumulation_memory(measured):
    """Chapter 04: the memory of tensors during one step, in one batch and in eight micro-batches."""
    columns = measured.numbers("pictures"), measured.text("phase"), *map(measured.numbers, ("seconds", "bytes"))
    rows = list(zip(*columns))
    sizes = list(dict.fromkeys(columns[0]))
    shown = [sizes[0], sizes[-1]] if len(sizes) > 1 else sizes
    figure, panels = new_figure(len(shown), width=5.4, height=3.6)
    colors = {"forward": BLUE, "backward": GREEN}
    room = max(columns[3]) / 2**20
    for panel, size in zip(panels, shown):
        mine = [(phase, 1e3 * seconds, size_bytes / 2**20) for pictures, phase, seconds, size_bytes in rows if pictures == size]
        for (phase, begin, mib), (_, end, _) in zip(mine, mine[1:]):
            panel.fill_between([begin, end], 0, mib, color=colors[phase], linewidth=0)
        kept = mine[0][2]
        panel.axhline(kept, color="#3d4249", linestyle=":", linewidth=1.2)
        highest = max(mib for *_, mib in mine)
        panel.axhline(highest, color=RED, linestyle="--", linewidth=1)
        panel.annotate(f"at most {highest:.2f} MiB", (0.99, highest), xycoords=("axes fraction", "data"), xytext=(0, 4), textcoords="offset points",
                       ha="right", color=RED)
        panel.set(title=f"{size:.0f} pictures at a time", xlabel="milliseconds", xlim=(0, mine[-1][1]), ylim=(0, 1.2 * room))
    panels[0].set_ylabel("memory that tensors hold, MiB")
    handles = [plt.Rectangle((0, 0), 1, 1, color=color) for color in colors.values()] + [plt.Line2D([], [], color="#3d4249", linestyle=":", linewidth=1.2)]
    panels[-1].legend(handles, [*colors, "parameters and gradients"], loc="upper left", bbox_to_anchor=(0.0, 0.9))
    return figure


def draw_network(measured):
    """Chapters 03 and 15: what an epoch brings, on the training pictures and on those never seen."""
    epochs = measured.numbers("epoch")
    if len(epochs) < 2:
        raise NothingToDraw("one epoch makes no curve")
    figure, (loss, accuracy) = new_figure(2)
    loss.plot(epochs, measured.numbers("loss"), color=BLUE, marker="o")
    loss.set(title="The loss falls", xlabel="epoch", ylabel="mean cross entropy")
    loss.set_ylim(bottom=0)
    accuracy.plot(epochs, measured.numbers("train_accuracy"), color=BLUE, marker="o", label="training pictures")
    accuracy.plot(epochs, measured.numbers("test_accuracy"), color=ORANGE, marker="o", label="test pictures")
    accuracy.set(title="The accuracy rises", xlabel="epoch", ylabel="share of pictures classified correctly")
    accuracy.legend(loc="lower right")
    for panel in (loss, accuracy):
        panel.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True))
    return figure


PROFILE = {  # how a part's name begins: what it is, color
    "loading": ("loading", "#8a8f98"),
    "forward": ("forward", BLUE),
    "backward": ("backward", GREEN),
    "optimizer": ("optimizer", ORANGE),
    "metrics": ("metrics", "#c3c7cd"),
}


def draw_network_profile(measured):
    """Chapter 03: one step, its parts one behind the other."""
    figure, (panel,) = new_figure(1, width=9.6, height=1.9)
    parts, milliseconds = measured.text("part"), [1e3 * seconds for seconds in measured.numbers("seconds")]
    total, begin = sum(milliseconds), 0.0
    for part, length in zip(parts, milliseconds):
        kind = part.split()[0]
        panel.barh(0, length, left=begin, height=0.8, color=PROFILE[kind][1], edgecolor="white", linewidth=0.8)
        name = part.removeprefix(kind).removeprefix(" to").strip()
        if length > 0.012 * total * max(2.5, len(name)):
            panel.annotate(f"{name}\n{100 * length / total:.0f} %".strip(), (begin + length / 2, 0), ha="center", va="center", color="white", fontsize=8.5)
        begin += length
    for name, color in PROFILE.values():
        share = sum(length for part, length in zip(parts, milliseconds) if part.split()[0] == name) / total
        panel.barh(0, 0, color=color, label=f"{name} {100 * share:.1f} %")
    panel.set(title="Where a step's time goes", xlabel="milliseconds")
    panel.set_xlim(0, total)
    panel.set_yticks([])
    panel.grid(visible=False)
    panel.legend(loc="lower right", bbox_to_anchor=(1.01, 0.97), ncol=len(PROFILE), handlelength=1, handletextpad=0.5, columnspacing=1.2)
    return figure


def pixels_of(text, width):
    """Rows of numbers from 0 to 255, from two hexadecimal digits each."""
    numbers = bytes.fromhex(text)
    return [list(numbers[at : at + width]) for at in range(0, len(numbers), width)]


def draw_network_pictures(measured):
    """Chapter 03: the first test picture of each class and the first ten mistakes, with the network's answers."""
    columns = *map(measured.text, ("row", "shows", "says")), *map(measured.numbers, ("probability", "width")), measured.text("pixels")
    rows = list(zip(*columns))
    figure, grid = plt.subplots(2, 10, figsize=(12.4, 3.7), squeeze=False)
    for kind, line in zip(("first", "mistake"), grid):
        mine = [row for row in rows if row[0] == kind]
        for panel in line:
            panel.axis("off")
        for panel, (_, shows, says, probability, width, pixels) in zip(line, mine):
            panel.imshow(pixels_of(pixels, int(width)), cmap="gray_r", vmin=0, vmax=255, interpolation="nearest")
            panel.set_title(f"{says}\n{100 * probability:.0f} %", fontsize=9, loc="center", weight="normal", color=GREEN if shows == says else RED)
            if shows != says:
                panel.text(0.5, -0.1, f"is: {shows}", transform=panel.transAxes, ha="center", va="top", fontsize=9)
    figure.suptitle("What the network says of the first test picture of each class (above), and its first ten mistakes", x=0.01, ha="left", fontsize=11, weight="bold")
    return figure


def draw_network_confusion(measured):
    """Chapter 03: the confusion matrix, a row for each class."""
    names = list(dict.fromkeys(measured.text("shows")))
    counts = measured.numbers("pictures")
    table = [counts[at : at + len(names)] for at in range(0, len(counts), len(names))]
    figure, (panel,) = new_figure(1, width=7.6, height=5.2)
    shares = [[count / max(1, sum(row)) for count in row] for row in table]
    panel.imshow(shares, cmap="Blues", norm=matplotlib.colors.PowerNorm(0.5, 0, 1), aspect="auto")
    for actual, row in enumerate(table):
        for predicted, count in enumerate(row):
            if count:
                panel.text(predicted, actual, f"{count:.0f}", ha="center", va="center", fontsize=8.5, color="white" if shares[actual][predicted] > 0.3 else "#2d3138")
    panel.set_xticks(range(len(names)), names, rotation=35, ha="right")
    panel.set_yticks(range(len(names)), names)
    panel.grid(visible=False)
    panel.tick_params(length=0)
    panel.set(title="Test pictures by what they show and what the network says", xlabel="the network says", ylabel="the picture shows")
    return figure


def draw_network_weights(measured):
    """Chapter 03: weights of the first layer, each output's as a picture."""
    rows = list(zip(measured.text("weights"), map(int, measured.numbers("width"))))
    figure, grid = plt.subplots((len(rows) + 7) // 8, 8, figsize=(8.2, 0.6 + 1.02 * ((len(rows) + 7) // 8)), squeeze=False)
    for panel in grid.flat:
        panel.axis("off")
    for panel, (weights, width) in zip(grid.flat, rows):
        panel.imshow(pixels_of(weights, width), cmap="RdBu_r", vmin=1, vmax=255, interpolation="nearest")
    figure.suptitle("What the first layer looks for: red adds, blue subtracts", x=0.01, ha="left", fontsize=11, weight="bold")
    return figure


def bars(panel, labels, values, colors, text):
    """Horizontal bars, the first on top, each with its value in words."""
    places = range(len(labels))
    panel.barh(places, values, color=colors, height=0.62)
    panel.set_yticks(places, labels)
    panel.set_ylim(max(len(labels), 2) - 0.4, -0.6)
    panel.grid(axis="y", visible=False)
    room = max(values)
    for place, value in zip(places, values):
        panel.annotate(text(value), (value, place), xytext=(4, 0), textcoords="offset points", va="center")
    if panel.get_xscale() == "linear":
        panel.set_xlim(0, room * 1.18)


def predicted_and_measured(panel, labels, predicted, measured, text):
    """Horizontal pairs of bars, the first on top, each with its value in words."""
    places = range(len(labels))
    for name, values, color, shift in (("predicted", predicted, GREY, -0.18), ("measured", measured, BLUE, 0.18)):
        panel.barh([place + shift for place in places], values, color=color, height=0.34, label=name)
        for place, value in zip(places, values):
            panel.annotate(text(value), (value, place + shift), xytext=(3, 0), textcoords="offset points", va="center")
    panel.set_xlim(0, 1.15 * max(predicted + measured))
    panel.set_yticks(places, labels)
    panel.invert_yaxis()
    panel.grid(axis="y", visible=False)
    panel.legend(loc="lower right")


def size_axis(panel, sizes):
    """Bytes, in powers of two, with their units."""
    panel.set_xscale("log", base=2)
    ticks = sorted(set(sizes))
    names = [f"{size >> 20} MiB" if size >= 2**20 else f"{size >> 10} KiB" if size >= 2**10 else f"{size} B" for size in map(int, ticks)]
    panel.set_xticks(ticks, names, rotation=30, ha="right")
    panel.minorticks_off()


def draw_messages(measured):
    """Chapter 06: what a message costs, measured and as alpha + bytes beta."""
    figure, (seconds, bandwidth) = new_figure(2)
    sizes = measured.numbers("bytes")
    for panel, name, factor in ((seconds, "seconds", 1e6), (bandwidth, "bytes_per_second", 1e-9)):
        panel.plot(sizes, [factor * value for value in measured.numbers(name)], color=BLUE, marker="o", label="measured")
        panel.set(xscale="log", yscale="log")
        size_axis(panel, sizes[::2])
    model = measured.numbers("model_seconds")
    seconds.plot(sizes, [1e6 * value for value in model], color=ORANGE, linestyle="--", label="alpha + bytes beta")
    bandwidth.plot(sizes, [1e-9 * size / value for size, value in zip(sizes, model)], color=ORANGE, linestyle="--", label="alpha + bytes beta")
    seconds.set(title="A message takes", ylabel="microseconds")
    bandwidth.set(title="The bandwidth that comes of it", ylabel="GB/s")
    seconds.legend(loc="upper left")
    return figure


def draw_messages_timeline(measured):
    """Chapter 06: a network split over two ranks; who computes when."""
    rows = list(zip(measured.text("schedule"), measured.numbers("rank"), measured.text("name"), measured.numbers("begin_ms"), measured.numbers("end_ms")))
    lanes = list(dict.fromkeys(sorted(((way, rank) for way, rank, *_ in rows), key=lambda lane: lane[1])))
    ways = list(dict.fromkeys(row[0] for row in rows))
    lanes.sort(key=lambda lane: (ways.index(lane[0]), lane[1]))
    places = {lane: i + 0.7 * ways.index(lane[0]) for i, lane in enumerate(lanes)}
    figure, (panel,) = new_figure(1, width=9.6, height=1.2 + 0.4 * max(places.values()))
    length = max(row[4] for row in rows)
    for way, rank, name, begin, end in rows:
        kind, number = name.split()
        panel.barh(places[way, rank], end - begin, left=begin, height=0.84, edgecolor="white", linewidth=0.7, color=TIMELINE[kind][1])
        if end - begin > 0.02 * length:
            panel.annotate(number, ((begin + end) / 2, places[way, rank]), ha="center", va="center_baseline", color="white", fontsize=8)
    panel.set_yticks(list(places.values()), [f"{way}: rank {rank:.0f}" if rank == 0 else f"rank {rank:.0f}" for way, rank in lanes])
    panel.set_ylim(max(places.values()) + 0.6, -0.6)
    panel.set_xlim(0, length)
    panel.grid(axis="y", visible=False)
    panel.tick_params(axis="y", length=0)
    panel.set(title="A network split over two ranks: one step, and its micro-batches", xlabel="milliseconds")
    kinds = ("forward", "backward")
    handles = [plt.Rectangle((0, 0), 1, 1, color=TIMELINE[kind][1]) for kind in kinds]
    panel.legend(handles, kinds, loc="lower right", bbox_to_anchor=(1, 1), ncol=2, handlelength=1, borderaxespad=0.2)
    return figure


def draw_broadcast_readers(measured):
    """Chapter 07: when each reader receives the file, in four ways: bars that fill."""
    rows = list(zip(measured.text("algorithm"), *map(measured.numbers, ("reader", "begin_seconds", "end_seconds"))))
    algorithms = list(dict.fromkeys(row[0] for row in rows))
    readers = int(max(row[1] for row in rows))
    figure, panels = plt.subplots(len(algorithms), 1, figsize=(8.6, 1.55 * len(algorithms) + 0.4), sharex=True)
    length = max(row[3] for row in rows)
    for panel, algorithm in zip(panels, algorithms):
        mine = [row[1:] for row in rows if row[0] == algorithm]
        for reader, begin, end in mine:
            panel.fill_between([begin, end], [reader + 0.36, reader + 0.36], [reader + 0.36, reader - 0.36], color=BLUE, linewidth=0)
            panel.barh(reader, end - begin, left=begin, height=0.72, facecolor="none", edgecolor=BLUE, linewidth=0.7)
            panel.barh(reader, 1.02 * length - end, left=end, height=0.72, color="#cfe0f3")
        panel.set_ylim(readers + 0.6, 0.4)
        panel.set_yticks([1, readers], ["first", "last"])
        panel.set_xlim(0, 1.02 * length)
        panel.grid(axis="y", visible=False)
        panel.tick_params(axis="y", length=0)
        panel.set_title(f"{algorithm}: {max(row[2] for row in mine):.1f} s", fontsize=10)
    panels[-1].set_xlabel("seconds")
    handles = [plt.Polygon([(0, 0), (1, 0), (1, 1)], color=BLUE), plt.Rectangle((0, 0), 1, 1, color="#cfe0f3")]
    panels[0].legend(handles, ["receiving: the height is the part of the file", "has all of it"], loc="lower right", bbox_to_anchor=(1, 1), ncol=2, borderaxespad=0.1)
    return figure


def draw_broadcast(measured):
    """Chapter 07: the readers' file, and broadcasts on the machine."""
    columns = ("table", "algorithm", "ranks", "bytes", "seconds", "predicted_seconds")
    rows = [dict(zip(columns, row)) for row in zip(*map(measured.text, columns))]
    figure, (story, machine) = new_figure(2, width=5)
    told = [row for row in rows if row["table"] == "worked example"]
    predicted_and_measured(
        story,
        [row["algorithm"] for row in told],
        [float(row["predicted_seconds"]) for row in told],
        [float(row["seconds"]) for row in told],
        lambda seconds: f"{seconds:.1f}",
    )
    readers = int(told[0]["ranks"]) - 1
    story.set(title=f"5 MB for {readers} reader{'s' if readers > 1 else ''} at 1 MB/s", xlabel="seconds until the last one has it")
    runs = [row for row in rows if row["table"] == "machine"]
    for way, color in zip(dict.fromkeys(row["algorithm"] for row in runs), (BLUE, ORANGE, GREEN, RED)):
        mine = [row for row in runs if row["algorithm"] == way]
        sizes = [int(row["bytes"]) for row in mine]
        machine.plot(sizes, [float(row["seconds"]) * 1e6 for row in mine], color=color, marker="o", markersize=4, label=way)
        machine.plot(sizes, [float(row["predicted_seconds"]) * 1e6 for row in mine], color=color, linestyle=":", linewidth=1.2)
    machine.set_yscale("log")
    size_axis(machine, [int(row["bytes"]) for row in runs])
    machine.plot([], [], color=GREY, linestyle=":", linewidth=1.2, label="predicted")
    machine.legend(loc="upper left")
    machine.set(title=f"A broadcast among {runs[0]['ranks']} ranks", xlabel="size of the array", ylabel="microseconds (less is better)")
    return figure


REDUCTIONS = {"atomics": RED, "interleaved": ORANGE, "sequential": GREEN, "warps": "#2aa3a3", "lanes": BLUE, "limit": GREY}


def draw_kernels(measured):
    """Chapter 02: how fast five kernels read, beside a loop that only reads."""
    figure, (panel,) = new_figure(1, width=7.6, height=3)
    versions = measured.text("version")
    panel.set_xscale("log")
    speeds = measured.numbers("gbs")
    bars(panel, versions, speeds, [REDUCTIONS[version] for version in versions], lambda speed: f"{speed:.3g} GB/s" if speed >= 1 else f"{1e3 * speed:.3g} MB/s")
    panel.axvline(speeds[versions.index("limit")], color=GREY, linestyle=":", linewidth=1.2)
    panel.set_xlim(0.5 * min(speeds), 5 * max(speeds))
    panel.set(title="Five ways to one sum, and the memory's limit", xlabel="bytes read, GB/s (logarithmic; more is better)")
    return figure


def draw_kernels_warps(measured):
    """Chapter 02: which lanes of a block's four warps add in each step of two trees."""
    figure, panels = plt.subplots(2, 1, figsize=(8.6, 5.4), sharex=True)
    rows = list(zip(measured.text("order"), *(map(int, measured.text(name)) for name in ("step", "thread"))))
    threads = (max(thread for _, _, thread in rows) // 32 + 1) * 32
    kinds = {"adds": BLUE, "idle, but its warp is busy": "#d9dbdf", "idle, as its whole warp is": "#f4f5f6"}
    for panel, order in zip(panels, ("interleaved", "sequential")):
        additions_of_warps = 0
        for step in sorted({step for _, step, _ in rows}):
            adding = [thread for name, at, thread in rows if (name, at) == (order, step)]
            for first in range(0, threads, 32):  # a warp's row of 32 lanes, and on it those that add
                is_busy = any(first <= thread < first + 32 for thread in adding)
                additions_of_warps += is_busy
                panel.broken_barh([(first + 0.5, 30.75)], (step - 0.36, 0.72), color=list(kinds.values())[1 if is_busy else 2], linewidth=0)
            panel.broken_barh([(thread // 32 * 32 + 0.5 + 0.97 * (thread % 32), 0.68) for thread in adding], (step - 0.36, 0.72), color=BLUE, linewidth=0)
        panel.set(title=f"{order}: a warp adds {additions_of_warps} times", ylabel="step", xlim=(0, threads + 0.5), ylim=(7.6, 0.4))
        panel.set_yticks(range(1, 8))
        panel.set_xticks([first + 15.9 for first in range(0, threads, 32)], [f"warp {first // 32}: threads {first} to {first + 31}" for first in range(0, threads, 32)])
        panel.grid(visible=False)
    handles = [plt.Rectangle((0, 0), 1, 1, color=color) for color in kinds.values()]
    panels[1].legend(handles, kinds, loc="upper center", ncol=3, bbox_to_anchor=(0.5, -0.16))
    return figure


def draw_reduce(measured):
    """Chapter 08: how far from the exact sum each order of additions ends."""
    figure, (panel,) = new_figure(1, width=7.6, height=3.6)
    orders = measured.text("order")
    colors = [REDUCTIONS[order.removeprefix("kernel, ")] if order.startswith("kernel") else GREY for order in orders]
    errors = measured.numbers("last_places")
    panel.set_xscale("symlog", linthresh=1)
    bars(panel, orders, [abs(error) for error in errors], colors, lambda error: f"{error:.1f}")
    panel.set_xlim(0, 3 * max(2, *map(abs, errors)))
    panel.xaxis.set_major_formatter(matplotlib.ticker.ScalarFormatter())
    panel.set(title="The same million floats, added in nine orders", xlabel="units of the last place away from the exact sum (logarithmic beyond 1; less is better)")
    return figure


def draw_all_reduce(measured):
    """Chapter 09: all-reduces over a link, as predicted; where one beats the other; and in memory, beside its limit."""
    columns = ("table", "algorithm", "ranks", "bytes", "seconds", "expected_seconds", "bus_bytes_per_second")
    rows = [dict(zip(columns, row)) for row in zip(*map(measured.text, columns))]
    link_runs = [row for row in rows if row["table"] == "link"]
    runs = [row for row in rows if row["table"] == "machine"]
    duels = [row for row in rows if row["table"] == "cross-over"]
    figure, panels = new_figure(3 if runs else 2, width=5.2)
    for way, color in (("reduce+broadcast", ORANGE), ("ring", BLUE)):
        mine = [row for row in duels if row["algorithm"] == way]
        sizes = [int(row["bytes"]) / 1024 for row in mine]
        panels[1].plot(sizes, [float(row["seconds"]) * 1e3 for row in mine], color=color, marker="o", markersize=4, label=way)
        panels[1].plot(sizes, [float(row["expected_seconds"]) * 1e3 for row in mine], color=color, linestyle=":", linewidth=1.2)
    panels[1].plot([], [], color=GREY, linestyle=":", linewidth=1.2, label="predicted")
    panels[1].set(title="Fewer messages, or fewer bytes?", xlabel="KiB, over a simulated link", ylabel="milliseconds (less is better)")
    panels[1].set(xscale="log", yscale="log")
    for axis in (panels[1].xaxis, panels[1].yaxis):
        axis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        axis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    panels[1].xaxis.set_major_locator(matplotlib.ticker.LogLocator(base=2, subs=(1.0,), numticks=12))
    panels[1].yaxis.set_major_locator(matplotlib.ticker.LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    panels[1].legend(loc="lower right")
    predicted_and_measured(
        panels[0],
        [row["algorithm"] for row in link_runs],
        [float(row["expected_seconds"]) * 1e3 for row in link_runs],
        [float(row["seconds"]) * 1e3 for row in link_runs],
        lambda ms: f"{ms:.3g} ms",
    )
    mebibytes = int(link_runs[0]["bytes"]) / 2**20
    panels[0].set(
        title=f"{mebibytes:g} MiB over a simulated link, {link_runs[0]['ranks']} ranks",
        xlabel="milliseconds (less is better)",
    )
    if not runs:
        return figure
    colors = {"server": RED, "reduce+broadcast": ORANGE, "host ring": GREEN, "ring": BLUE, "two-shot": "#7a4fa3", "one-shot": "#2aa3a3"}
    for way in dict.fromkeys(row["algorithm"] for row in runs):
        mine = [row for row in runs if row["algorithm"] == way]
        line = {"limit": ":", "native": "--"}.get(way, "-")
        style = {"color": colors.get(way, GREY), "linestyle": line, "marker": "o" if way in colors else None, "markersize": 4}
        panels[2].plot([int(row["bytes"]) for row in mine], [float(row["bus_bytes_per_second"]) / 1e9 for row in mine], label=way, **style)
    panels[2].set_yscale("log")
    size_axis(panels[2], [int(row["bytes"]) for row in runs])
    panels[2].legend(loc="center left", bbox_to_anchor=(1, 0.5))
    panels[2].set(title=f"In the memory of this machine, {runs[0]['ranks']} ranks", ylabel="bus bandwidth, GB/s (more is better)")
    return figure


RANKS = (BLUE, ORANGE, GREEN, RED, "#7a4fa3", "#2aa3a3", "#b59b1f", GREY)


def draw_all_reduce_steps(measured):
    """Chapter 09: who holds what in a ring after each step, and below it what each port has carried."""
    columns = [list(map(int, measured.numbers(name))) for name in ("step", "rank", "chunk", "ranks", "received")]
    rows = list(zip(*columns))
    ranks, steps = max(columns[1]) + 1, max(columns[0]) + 1
    figure, panels = plt.subplots(2, steps, figsize=(1.55 * steps, 4.3), sharey="row", height_ratios=(3, 1.5))
    carried = [0.0] * ranks  # arrays, by rank
    for step in range(steps):
        holds, ports = panels[0][step], panels[1][step]
        for _, rank, chunk, held, received in (row for row in rows if row[0] == step):
            members = [r for r in range(ranks) if held >> r & 1]
            for i, member in enumerate(members):  # a stripe for each rank that is in the sum
                height = 0.8 / ranks
                holds.barh(chunk + 0.4 - (i + 0.5) * height, 0.8, left=rank - 0.4, height=height, color=RANKS[member % len(RANKS)])
            is_whole = len(members) == ranks
            edge = dict(edgecolor="black", linewidth=2.0) if received else dict(edgecolor="#c9cdd2", linewidth=0.6)
            holds.add_patch(plt.Rectangle((rank - 0.4, chunk - 0.4), 0.8, 0.8, fill=False, zorder=4 if received else 3, **edge))
            if is_whole:
                holds.annotate("✓", (rank, chunk), ha="center", va="center", color="white", fontsize=9, fontweight="bold", zorder=5)
            carried[rank] += received / ranks
        title = "begin" if step == 0 else f"step {step}: {'add' if step < ranks else 'copy'}"
        holds.set_title(title, fontsize=9.5, loc="center")
        holds.set(xlim=(-0.6, ranks - 0.4), ylim=(ranks - 0.4, -0.6), xticks=[], yticks=range(ranks))
        holds.set_yticklabels([f"chunk {chunk}" for chunk in range(ranks)])
        ports.bar(range(ranks), carried, width=0.8, color=[RANKS[r % len(RANKS)] for r in range(ranks)])
        ports.set(xlim=(-0.6, ranks - 0.4), ylim=(0, 1.1 * 2 * (ranks - 1) / ranks), xticks=range(ranks))
        ports.set_xticklabels([str(r) for r in range(ranks)])
        for panel in (holds, ports):
            panel.tick_params(length=0)
            panel.grid(visible=False)
            panel.spines[["left", "bottom"]].set_visible(False)
        ports.spines["bottom"].set_visible(True)
        ports.grid(axis="y")
    panels[1][0].set_ylabel("arrays through\nthe port, in")
    panels[1][steps // 2].set_xlabel("rank")
    figure.suptitle("Who holds what: a stripe for each rank in the sum (✓: of all); framed: it has just come in", x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    return figure


def draw_all_reduce_ports(measured):
    """Chapter 09: what the busiest port carries, for 2 to 64 ranks."""
    figure, (panel,) = new_figure(1, width=8.2, height=3.2)
    ranks = measured.numbers("ranks")
    for name, label, color in (
        ("server", "parameter server: 2 K (N − 1)", RED),
        ("reduce_broadcast", "reduce + broadcast: 2 K log2 N", ORANGE),
        ("ring", "ring: 2 K (N − 1) / N", BLUE),
    ):
        values = measured.numbers(name)
        panel.plot(ranks, values, color=color)
        panel.annotate(f"{values[-1]:.3g} K   {label}", (ranks[-1], values[-1]), xytext=(5, 0), textcoords="offset points", va="center", color=color)
    panel.set(title="Through the busiest port", xlabel="ranks N, with K bytes each", ylabel="bytes, in K (logarithmic)", yscale="log")
    panel.set_xticks([2, 8, 16, 32, 48, 64])
    panel.set_yticks([1, 2, 6, 14, 30, 126])
    panel.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    panel.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    panel.set_ylim(0.8, 200)
    return figure


def draw_data_parallel(measured):
    """Chapter 11: the mean loss of the ranks is that of one rank with all the samples; alone, replicas drift apart."""
    figure, (loss, drift) = new_figure(2, width=5.4, height=3.8)
    steps = measured.numbers("step")
    loss.plot(steps, measured.numbers("alone"), color=GREY, linewidth=1, label="one rank alone, with its own samples")
    loss.plot(steps, measured.numbers("one_rank"), color=ORANGE, linewidth=3.5, alpha=0.55, label="one rank with the samples of all ranks")
    loss.plot(steps, measured.numbers("averaged"), color=BLUE, linewidth=1.2, label="all ranks, gradients averaged")
    loss.set(title="Averaged: as if one rank saw everything", xlabel="step", ylabel="cross entropy of the step's samples")
    loss.set_ylim(bottom=0)
    loss.legend(loc="upper right")
    for column, color, label in (("drift_alone", GREY, "alone"), ("drift_averaged", BLUE, "gradients averaged: 0")):
        values = [100 * value for value in measured.numbers(column)]
        places = [i for i, value in enumerate(values) if i == 0 or value != values[i - 1]] if any(values) else [0, len(values) - 1]
        drift.plot([steps[i] for i in places], [values[i] for i in places], color=color, marker="o", markersize=3, label=label)
    drift.set(title="Alone, replicas drift apart", xlabel="step", ylabel="distance from rank 0, % of its length")
    drift.set_ylim(bottom=0)
    drift.legend(loc="center right")
    return figure


def draw_sampler(measured):
    """Chapter 12: an epoch with the sampler and with the wrong ones: its time, and what is seen of the data."""
    figure, (time, seen) = new_figure(2, width=5.2, height=2.6)
    labels = measured.text("division")
    bars(time, labels, measured.numbers("seconds"), [GREEN] + [RED] * (len(labels) - 1), lambda value: f"{value:.2f} s")
    time.set(title="An epoch takes", xlabel="seconds")
    once = [all_seen - twice for all_seen, twice in zip(measured.numbers("seen"), measured.numbers("twice"))]
    left = [0.0] * len(labels)
    for name, values, color in (("seen once", once, GREEN), ("more than once", measured.numbers("twice"), ORANGE),
                                ("never", measured.numbers("missed"), GREY)):
        seen.barh(range(len(labels)), values, left=left, color=color, height=0.62, label=name)
        left = [before + value for before, value in zip(left, values)]
    seen.set_yticks(range(len(labels)), [""] * len(labels))
    seen.set_ylim(max(len(labels), 2) - 0.4, -0.6)
    seen.grid(axis="y", visible=False)
    seen.set(title="Of the pictures, the ranks together see", xlabel="pictures")
    seen.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(5))
    seen.xaxis.set_major_formatter(matplotlib.ticker.StrMethodFormatter("{x:,.0f}"))
    seen.legend(loc="upper center", bbox_to_anchor=(0.5, -0.32), ncol=3)
    return figure


def draw_sync_batch_norm(measured):
    """Chapter 18: each rank learns from its own class; what the network then knows, in training and in the test."""
    figure, panels = new_figure(2)
    epochs = measured.numbers("epoch")
    for panel, column, title in zip(panels, ("batch_norm", "sync_batch_norm"), ("BatchNorm", "SyncBatchNorm")):
        panel.plot(epochs, measured.numbers(f"{column}_train"), color=BLUE, marker="o", markersize=4, label="in training")
        panel.plot(epochs, measured.numbers(f"{column}_test"), color=ORANGE, marker="o", markersize=4, label="in the test")
        panel.axhline(1 / 3, color=GREY, linestyle=":", linewidth=1.2, label="guessing")
        panel.set(title=title, xlabel="epoch", ylabel="share classified correctly")
        panel.set_ylim(0, 1.04)
        panel.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True))
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=3)  # below: no corner is free in every case
    return figure


RANKS = (BLUE, ORANGE, GREEN, RED, "#7a4fa3", "#2aa3a3", "#7a4a2b", GREY)  # the color of each rank, again from the first after eight


def draw_sampler_dealt(measured):
    """Chapter 12: samples dealt out to ranks, in two epochs and where their number does not divide."""
    rows = list(zip(*map(measured.text, ("deal", "place", "sample", "rank", "fate"))))
    deals = list(dict.fromkeys(row[0] for row in rows))
    figure, (panel,) = new_figure(1, width=9.6, height=0.9 + 0.55 * len(deals))
    for deal, place, sample, rank, fate in rows:
        x, y, number = int(place), deals.index(deal), int(rank)
        color = RANKS[number % len(RANKS)] if number >= 0 else "white"
        panel.barh(y, 0.9, left=x + 0.05, height=0.66, color=color, edgecolor="black" if fate == "again" else GREY if number < 0 else color,
                   linewidth=2 if fate == "again" else 1, linestyle="--" if number < 0 else "-")
        panel.annotate(sample, (x + 0.5, y), ha="center", va="center_baseline", color="white" if number >= 0 else GREY, fontsize=8.5)
    panel.set_yticks(range(len(deals)), [f"the order of {deal}" if deal.startswith("epoch") else deal for deal in deals])
    panel.set_ylim(len(deals) - 0.4, -0.6)
    panel.set_xlim(0, max(int(row[1]) for row in rows) + 1)
    panel.set_xticks([])
    panel.grid(visible=False)
    panel.tick_params(axis="y", length=0)
    for side in ("left", "bottom"):
        panel.spines[side].set_visible(False)
    ranks = sorted({int(row[3]) for row in rows if int(row[3]) >= 0})
    marks = [plt.Rectangle((0, 0), 1, 1, color=RANKS[rank % len(RANKS)]) for rank in ranks]
    marks += [plt.Rectangle((0, 0), 1, 1, facecolor="white", edgecolor="black", linewidth=2), plt.Rectangle((0, 0), 1, 1, facecolor="white", edgecolor=GREY, linestyle="--")]
    panel.legend(marks, [*(f"rank {rank}" for rank in ranks), "taken a second time", "left out"], loc="upper center", bbox_to_anchor=(0.5, 0.0),
                 ncol=min(6, len(marks)), handlelength=1.2, columnspacing=1.4)
    panel.set(title="Each sample goes to the rank of its colour")
    return figure


def draw_async(measured):
    """Chapter 13: the loss of each algorithm: by time with equal workers, by time with a slow one, and by gradients."""
    rows = list(zip(*map(measured.text, ("way", "slow")), *map(measured.numbers, ("gradients", "seconds", "loss"))))
    styles = {"synchronous": (BLUE, "-"), "asynchronous": (RED, "-"), "bounded staleness": (ORANGE, "--"), "local SGD": (GREEN, "-.")}
    figure, panels = plt.subplots(1, 3, figsize=(12.6, 4.0), sharey=True)
    views = (("no", 3, "Equal workers, by time", "seconds"),
             ("yes", 3, "One slow worker, by time", "seconds"),
             ("yes", 2, "One slow worker, by gradients", "gradients applied"))
    for panel, (slow, x, title, label) in zip(panels, views):
        for place, (way, (color, line)) in enumerate(styles.items()):
            points = smoothed([(row[x], row[4]) for row in rows if row[0] == way and row[1] == slow])
            if points:
                panel.plot(*zip(*points), color=color, linestyle=line, marker="osD^"[place], markersize=4, markevery=(2 * place, 9), linewidth=1.6, label=way)
        panel.set(title=title, xlabel=label)
        panel.set_xlim(0, 1.03 * max(row[x] for row in rows if row[1] == "yes" or label != "seconds"))
        panel.set_ylim(bottom=0)
    panels[0].set_ylabel("cross entropy of the workers' samples")
    panels[1].legend(loc="upper right")
    return figure


def draw_buckets_plan(measured):
    """Chapter 14: which gradients travel in which bucket, before the first step and after it."""
    columns = *map(measured.text, ("network", "gradient")), *map(measured.numbers, ("iteration", "bucket", "bytes"))
    rows = list(zip(*columns))
    networks = list(dict.fromkeys(columns[0]))
    figure, panels = plt.subplots(len(networks), 1, figsize=(9.6, 1.75 * len(networks) + 0.3), squeeze=False)
    for network, panel in zip(networks, panels[:, 0]):
        mine = [row[1:] for row in rows if row[0] == network]
        iterations = sorted({row[1] for row in mine})
        total = sum(row[3] for row in mine if row[1] == iterations[0])
        unit, name = (2**20, "MiB") if total >= 2**20 else (2**10, "KiB")
        for iteration in iterations:
            begin, y = 0.0, iterations.index(iteration)
            for gradient, _, bucket, size in (row for row in mine if row[1] == iteration):
                panel.barh(y, size / unit, left=begin, height=0.7, color=RANKS[int(bucket) % len(RANKS)], edgecolor="white", linewidth=0.8)
                if size > 0.008 * total * len(gradient):
                    panel.annotate(gradient, (begin + size / unit / 2, y), ha="center", va="center_baseline", color="white", fontsize=7.5)
                begin += size / unit
        panel.set_yticks(range(len(iterations)), ["iteration 1", "from 2 on"])
        panel.set_ylim(len(iterations) - 0.4, -0.6)
        panel.set_xlim(0, total / unit)
        panel.grid(visible=False)
        panel.tick_params(axis="y", length=0)
        panel.set(title=network, xlabel=name)
        buckets = sorted({int(row[2]) for row in mine})
        panel.legend([plt.Rectangle((0, 0), 1, 1, color=RANKS[bucket % len(RANKS)]) for bucket in buckets], [f"bucket {bucket}" for bucket in buckets],
                     loc="lower right", bbox_to_anchor=(1, 0.97), ncol=min(6, len(buckets)), handlelength=1.2)
    return figure


def draw_buckets(measured):
    """Chapter 14: buckets of all sizes, on two models and two links, predicted and measured."""
    texts, numbers = ("model", "cap"), ("bandwidth", "latency_s", "seconds", "predicted_seconds", "backward_s")
    rows = [dict(zip(texts + numbers, row)) for row in zip(*map(measured.text, texts), *map(measured.numbers, numbers))]
    models = list(dict.fromkeys(row["model"] for row in rows))
    links = list(dict.fromkeys((row["bandwidth"], row["latency_s"]) for row in rows))
    figure, panels = new_figure(len(models), width=5.4, height=3.8)
    for panel, model in zip(panels, models):
        names = []
        for link, color in zip(links, (BLUE, ORANGE, GREEN)):
            mine = [row for row in rows if row["model"] == model and (row["bandwidth"], row["latency_s"]) == link]
            caps = [int(row["cap"]) for row in mine]
            names = ["each\ngradient" if cap == 0 else f"{cap // 2**10} KiB" if cap < 2**20 else f"{cap // 2**20} MiB" for cap in caps]
            names[-1] = "all"
            places = range(len(mine))
            label = f"{link[0] / 1e6:.0f} MB/s, {link[1] * 1e3:g} ms"
            panel.plot(places, [1e3 * row["seconds"] for row in mine], color=color, marker="o", markersize=4, label=label)
            panel.plot(places, [1e3 * row["predicted_seconds"] for row in mine], color=color, linestyle=":", linewidth=1.6)
            panel.axhline(1e3 * mine[0]["backward_s"], color=color, linewidth=0.8, alpha=0.5)
        panel.plot([], [], color=GREY, linestyle=":", linewidth=1.6, label="predicted")
        panel.plot([], [], color=GREY, linewidth=0.8, alpha=0.7, label="backward alone")
        panel.set_xticks(range(len(names)), names)
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        panel.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
        panel.set_yticks([tick for tick in (20, 50, 100, 200, 500, 1000) if tick < 1500 * max(row["seconds"] for row in rows)])
        panel.set(title=model, xlabel="a bucket is closed at", ylabel="milliseconds until all is reduced")
    panels[-1].legend(loc="upper right")
    return figure


LIVES = {"trains": BLUE, "is down": RED, "starts": GREY, "loads": ORANGE, "redoes": "#8db4e2"}  # what a rank is doing


def draw_lives(panel, rows, title):
    """A supervised training: a lane for each rank, faults and checkpoints."""
    ranks = sorted({int(row["rank"]) for row in rows})
    for row in rows:
        begin, end, rank = float(row["begin_s"]), float(row["end_s"]), int(row["rank"])
        if row["what"] in LIVES:
            panel.barh(rank, end - begin, left=begin, height=0.62, color=LIVES[row["what"]])
        elif row["what"] == "checkpoint":
            panel.plot((begin + end) / 2, rank - 0.42, marker="v", color=GREEN, markersize=3.5, clip_on=False)
        elif row["what"] != "loss":
            sign = "X" if row["what"].startswith("kill") else "s"
            panel.plot(begin, rank, marker=sign, color="black", markeredgecolor="white", markersize=10, zorder=3)
    panel.set_yticks(ranks, [f"rank {rank}" for rank in ranks])
    panel.set_ylim(max(ranks) + 0.6, -0.75)
    panel.set_xlim(left=0)
    panel.grid(axis="y", visible=False)
    panel.tick_params(axis="y", length=0)
    panel.set(title=title, xlabel="seconds")


def draw_checkpoint_failover(measured):
    """Chapter 19: what becomes of the ranks, and that the curve does not know of it."""
    rows = [dict(zip(measured.columns, row)) for row in zip(*measured.columns.values())]
    titles = {
        "killed": "Killed and stopped: all ranks go back to the last checkpoint",
        "fewer ranks": "A host is lost with half of the ranks: the others go on",
        "from zero": "Without checkpoints: everything is done again",
    }
    stories = [story for story in dict.fromkeys(row["story"] for row in rows) if story in titles]
    figure = plt.figure(figsize=(11, 1.2 + 2.3 * max(len(stories), 1.4)))
    grid = figure.add_gridspec(len(stories), 2, width_ratios=(3, 2))
    for place, story in enumerate(stories):
        panel = figure.add_subplot(grid[place, 0])
        draw_lives(panel, [row for row in rows if row["story"] == story], titles[story])
    marks = [plt.Rectangle((0, 0), 1, 1, color=color) for color in LIVES.values()]
    signs = (("checkpoint", "v", GREEN), ("killed", "X", "black"), ("stopped", "s", "black"))
    marks += [plt.Line2D([], [], linestyle="", marker=sign, color=color) for _, sign, color in signs]
    panel.legend(marks, [*LIVES, *(name for name, *_ in signs)], loc="upper center", bbox_to_anchor=(0.5, -0.3), ncol=4)
    curve = figure.add_subplot(grid[:, 1])
    styles = {"undisturbed": (ORANGE, 4, 0.5), "killed": (BLUE, 1.3, 1), "fewer ranks": (GREEN, 1.3, 1)}  # from zero: as undisturbed
    for story, (color, width, alpha) in styles.items():
        points = [(int(row["samples"]), float(row["loss"])) for row in rows if row["story"] == story and row["what"] == "loss"]
        if points:
            curve.plot(*zip(*smoothed(points)), color=color, linewidth=width, alpha=alpha, label=story)
    curve.set(title="The curve goes on", xlabel="pictures learned from", ylabel="cross entropy of rank 0's samples")
    curve.set_ylim(bottom=0)
    curve.xaxis.set_major_formatter(matplotlib.ticker.StrMethodFormatter("{x:,.0f}"))
    curve.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(5))
    curve.legend(loc="upper right")
    return figure


def smoothed(points, width=4):
    """The mean of some neighbours."""
    points = sorted(points)
    groups = [points[max(0, i - width) : i + width + 1] for i in range(len(points))]
    return [(x, sum(y for _, y in group) / len(group)) for (x, _), group in zip(points, groups)]


TIMELINE = {  # what a step's intervals are called: how the name begins, color
    "forward": ("forward", BLUE),
    "backward": ("backward", GREEN),
    "waiting for gradients": ("waiting", "#e3e5e8"),
    "optimizer": ("optimizer", ORANGE),
    "a bucket's all-reduce": ("bucket", RED),
}


def draw_overlap_link_timeline(measured):
    """Chapter 15: the same two steps over a simulated link that is as slow as backward."""
    return draw_two_steps(measured, {
        "off": "Over a slow link, without overlap: the buckets wait until backward has ended",
        "on": "Over the same link, with overlap: the buckets travel while backward runs",
    })


def draw_overlap_timeline(measured):
    """Chapter 15: a step of the training, without a link: first with overlap, then without."""
    return draw_two_steps(measured, {
        "on": "A step in shared memory, with overlap: the same cores compute and communicate",
        "off": "A step in shared memory, without overlap",
    })


def draw_two_steps(measured, titles):
    """Two steps, one above the other; of each the ranks' streams. `titles` by overlap, from the top."""
    columns = map(measured.text, ("overlap", "rank", "stream", "name")), map(measured.numbers, ("begin_ms", "end_ms"))
    rows = list(zip(*(column for kind in columns for column in kind)))
    lanes = sorted({(int(rank), stream) for _, rank, stream, *_ in rows}, key=lambda lane: (lane[0], lane[1] != "compute"))
    # A gap between the ranks: lane i of the drawing stands at places[i].
    places = {lane: i + 0.4 * lane[0] for i, lane in enumerate(lanes)}
    steps = [overlap for overlap in titles if any(row[0] == overlap for row in rows)]
    height = 0.75 + 0.3 * max(places.values())
    figure, panels = plt.subplots(len(steps), 1, figsize=(9.6, 0.5 + height * len(steps)), squeeze=False, sharex=True)
    length = max(row[5] for row in rows)
    for overlap, panel in zip(steps, panels[:, 0]):
        for of, rank, stream, name, begin, end in rows:
            if of != overlap:
                continue
            color = next(color for start, color in TIMELINE.values() if name.startswith(start))
            place = places[int(rank), stream]
            panel.barh(place, end - begin, left=begin, height=0.84, color=color, edgecolor="white", linewidth=0.7)
            if name.startswith("bucket") and end - begin > 0.02 * length:
                number = name.removeprefix("bucket ").split(",")[0]
                panel.annotate(number, ((begin + end) / 2, place), ha="center", va="center_baseline", color="white", fontsize=8)
        panel.set_yticks(list(places.values()), [f"rank {rank} {'computes' if stream == 'compute' else 'communicates'}" for rank, stream in lanes])
        panel.set_ylim(max(places.values()) + 0.6, -0.6)
        panel.set_xlim(0, length)
        panel.grid(axis="y", visible=False)
        panel.tick_params(axis="y", length=0)
        panel.set(title=titles[overlap])
    panels[-1, 0].set(xlabel="milliseconds")
    panels[-1, 0].legend([plt.Rectangle((0, 0), 1, 1, color=color) for _, color in TIMELINE.values()], list(TIMELINE),
                         loc="upper center", bbox_to_anchor=(0.5, -0.5 / height), ncol=len(TIMELINE))
    return figure


def draw_overlap_hooks(measured):
    """Chapter 15: what each bucket hook sends, and how far from the average it is."""
    figure, (sent, error) = new_figure(2, width=5.2, height=3.2)
    names = measured.text("hook")
    colors = [BLUE if not name.startswith("power") else RED if "no feedback" in name else ORANGE for name in names]
    sent.set_xscale("log")
    bars(sent, names, [value / 1024 for value in measured.numbers("bytes")], colors, lambda value: f"{value:,.0f}" if value >= 100 else f"{value:.3g}")
    sent.set_xlim(1, 20 * max(measured.numbers("bytes")) / 1024)
    sent.set(title="What a rank sends in a step", xlabel="KiB (logarithmic; less is better)")
    steps, sums = ([100 * value for value in measured.numbers(column)] for column in ("step_error", "sum_error"))
    for values, color, shift, label in ((steps, GREY, -0.19, "of the last step"), (sums, BLUE, 0.19, "of the sum of all steps")):
        error.barh([place + shift for place in range(len(names))], values, height=0.35, color=color, label=label)
        for place, value in enumerate(values):
            error.annotate(f"{value:.3g}", (value, place + shift), xytext=(3, 0), textcoords="offset points", va="center", fontsize="x-small")
    error.set_xlim(0, 1.15 * max(steps + sums))
    error.set_yticks(range(len(names)), [""] * len(names))
    error.set_ylim(len(names) - 0.4, -0.6)
    error.grid(axis="y", visible=False)
    error.set(title="Error of the gradient", xlabel="% of the average's length")
    error.legend(loc="upper right")
    return figure


def draw_unused_parameters(measured):
    """Chapter 17: what the cures cost in a step that needs none of them."""
    figure, (panel,) = new_figure(1, width=7.2, height=2.6)
    ways, ratios = measured.text("way"), measured.numbers("ratio")
    bars(panel, ways, ratios, [GREY if way.startswith("plain") else BLUE for way in ways], lambda ratio: f"{ratio:.2f}")
    panel.axvline(1, color=GREY, linestyle=":", linewidth=1.2)
    panel.set(title=f"A step that uses everything, on {measured.text('ranks')[0]} ranks", xlabel="times a step of plain DDP (less is better)")
    return figure


def draw_unused_parameters_timeline(measured):
    """Chapter 17: the step in which one rank leaves out a branch, and the same step with find_unused_parameters."""
    columns = map(measured.text, ("part", "rank", "stream", "name")), map(measured.numbers, ("begin_ms", "end_ms"))
    rows = list(zip(*(column for kind in columns for column in kind)))
    parts = [(part, title) for part, title in (("hangs", "One rank has no gradient for bucket 1: all others wait for it"),
                                               ("cured", "With find_unused_parameters: zeros in its place"))
             if any(row[0] == part for row in rows)]
    lanes = sorted({(int(rank), stream) for _, rank, stream, *_ in rows}, key=lambda lane: (lane[0], lane[1] != "compute"))
    places = {lane: i + 0.4 * lane[0] for i, lane in enumerate(lanes)}
    room = max(1.2, 0.4 + 0.3 * max(places.values()))  # inches of a panel, about
    others = {"the map's all-reduce": ("used map", "#8e5bb5"), "at a barrier": ("elsewhere", GREY)}
    kinds = dict(TIMELINE, **{label: kind for label, kind in others.items() if any(row[3] == kind[0] for row in rows)})
    figure, panels = plt.subplots(len(parts), 1, figsize=(9.6, max(3.1, len(parts) * (0.7 + room) + 0.9)), squeeze=False)
    for (part, title), panel in zip(parts, panels[:, 0]):
        mine = [row[1:] for row in rows if row[0] == part]
        whole = max(end for *_, end in mine)
        short = [end for *_, begin, end in mine if end < whole / 2]  # what ends before the time is up
        length = whole if part == "cured" or not short else 1.7 * max(short)
        for rank, stream, name, begin, end in mine:
            if begin > length:
                continue
            color = next(color for start, color in kinds.values() if name.startswith(start))
            place = places[int(rank), stream]
            panel.barh(place, min(end, length) - begin, left=begin, height=0.84, color=color, edgecolor="white", linewidth=0.7)
            label = name.removeprefix("bucket ").split(",")[0] if name.startswith("bucket") else "map" if name == "used map" else ""
            if end > length and label:
                label = f"bucket {label}: waits until the time is up, after {end / 1000:.1f} s"
            if label and min(end, length) - begin > (0.04 if label == "map" else 0.015) * length:
                panel.annotate(label, ((begin + min(end, length)) / 2, place), ha="center", va="center_baseline", color="white", fontsize=8)
        for rank, begin in ((rank, begin) for rank, _, name, begin, _ in mine if name == "elsewhere"):
            sent = [row for row in mine if row[0] == rank and row[1] == "communication"]
            panel.annotate(f"bucket {len(sent)} is never sent", (max([begin, *(row[4] for row in sent)]), places[int(rank), "communication"]),
                           xytext=(5, 0), textcoords="offset points", va="center_baseline", color=RED, fontsize=9)
        panel.set_yticks(list(places.values()), [f"rank {rank} {'computes' if stream == 'compute' else 'communicates'}" for rank, stream in lanes])
        panel.set_ylim(max(places.values()) + 0.6, -0.6)
        panel.set_xlim(0, length)
        panel.grid(axis="y", visible=False)
        panel.tick_params(axis="y", length=0)
        panel.set(title=title, xlabel="milliseconds")
    panel.legend([plt.Rectangle((0, 0), 1, 1, color=color) for _, color in kinds.values()], list(kinds),
                 loc="upper center", bbox_to_anchor=(0.45, -0.62 / room), ncol=4)
    return figure


TRAINERS = {"": ("this book", BLUE), "_copies": ("copies, each alone", GREEN), "_pytorch": ("PyTorch", GREY)}


def draw_bench_train(measured):
    """A training step on several ranks: this book beside copies that never communicate, and PyTorch."""
    columns = measured.text("model"), *map(measured.numbers, ("ranks", "samples_per_s", "step_ms", "exposed_ms"))
    rows = list(zip(*columns))
    models = [model for model in dict.fromkeys(columns[0]) if not model.endswith(tuple(filter(None, TRAINERS)))]
    figure, grid = plt.subplots(len(models), 2, figsize=(10.4, 0.8 + 0.28 * max(8, len(rows)) * len(models)), squeeze=False,
                                width_ratios=(3, 2))
    for model, (steps, speed) in zip(models, grid):
        bars_of = [(ranks, *TRAINERS[kind], ms, exposed) for ranks in sorted(set(columns[1])) for kind in TRAINERS
                   for name, n, _, ms, exposed in rows if name == model + kind and n == ranks]
        places = [i + 0.5 * sum(a[0] != b[0] for a, b in zip(bars_of[:i], bars_of[1:])) for i in range(len(bars_of))]
        for place, (ranks, _, color, ms, exposed) in zip(places, bars_of):
            exposed = 0 if exposed != exposed else min(exposed, ms)  # PyTorch does not say
            steps.barh(place, ms - exposed, height=0.72, color=color)
            steps.barh(place, exposed, left=ms - exposed, height=0.72, color=ORANGE)
            steps.annotate(f"{ms:.1f}", (ms, place), xytext=(4, 0), textcoords="offset points", va="center")
        steps.barh(0, 0, color=ORANGE, label="of that, waiting for gradients")
        steps.legend(loc="upper right")
        steps.set_yticks(places, [f"{name}, {ranks:.0f} rank{'s' if ranks > 1 else ''}" for ranks, name, *_ in bars_of])
        steps.set_ylim(max(places) + 0.6, -0.6)
        steps.set_xlim(0, 1.12 * max(row[3] for row in bars_of))
        steps.grid(axis="y", visible=False)
        steps.set(title=f"A step of the {model.upper()}", xlabel="milliseconds (less is better)")
        for kind, (name, color) in TRAINERS.items():
            points = sorted((ranks, rate) for label, ranks, rate, *_ in rows if label == model + kind)
            if kind == "_copies" and points:  # one copy is one rank
                points = [(ranks, rate) for label, ranks, rate, *_ in rows if label == model and ranks == 1] + points
            if points:
                speed.plot(*zip(*points), color=color, marker="o", label=name)
        speed.set(title="All ranks together", xlabel="ranks", ylabel="samples a second")
        speed.set_xticks(sorted(set(columns[1])))
        speed.set_ylim(bottom=0)
        speed.yaxis.set_major_formatter(matplotlib.ticker.StrMethodFormatter("{x:,.0f}"))
        speed.legend(loc="lower right")
    return figure


def draw_bench_overlap(measured):
    """A step with overlap and without it, over a link as slow as backward and over none."""
    columns = *map(measured.text, ("ranks", "link", "overlap")), *map(measured.numbers, ("step_ms", "hidden"))
    rows = list(zip(*columns))
    cases = list(dict.fromkeys(row[:2] for row in rows))
    names = [f"{ranks} ranks, {'no link' if link == 'none' else link}" for ranks, link in cases]
    figure, (steps, hidden) = plt.subplots(1, 2, figsize=(10.4, 1.5 + 0.62 * len(cases)), width_ratios=(3, 2))
    for overlap, color, shift in (("off", GREY, -0.19), ("on", BLUE, 0.19)):
        values = [next(row[3] for row in rows if row[:3] == (*case, overlap)) for case in cases]
        steps.barh([place + shift for place in range(len(cases))], values, height=0.35, color=color, label=f"overlap {overlap}")
        for place, value in enumerate(values):
            steps.annotate(f"{value:.1f}", (value, place + shift), xytext=(4, 0), textcoords="offset points", va="center")
    steps.set_yticks(range(len(cases)), names)
    steps.set_ylim(len(cases) - 0.4, -0.6)
    steps.set_xlim(0, 1.12 * max(columns[3]))
    steps.grid(axis="y", visible=False)
    steps.legend(loc="upper center", bbox_to_anchor=(0.5, -0.6 / (0.6 + 0.62 * len(cases))), ncol=2)
    steps.set(title="A step, with overlap and without", xlabel="milliseconds (less is better)")
    shares = [100 * next(row[4] for row in rows if row[:3] == (*case, "on")) for case in cases]
    hidden.barh(range(len(cases)), shares, color=[BLUE if share > 0 else RED for share in shares], height=0.62)
    for place, share in enumerate(shares):  # beside the bar, on the side of 0, where no line crosses it
        hidden.annotate(f"{share:.0f} %", (0, place), xytext=(-4 if share > 0 else 4, 0), textcoords="offset points",
                        ha="right" if share > 0 else "left", va="center")
    hidden.set_yticks(range(len(cases)), [""] * len(cases))
    hidden.set_ylim(len(cases) - 0.4, -0.6)
    hidden.grid(axis="y", visible=False)
    hidden.set_xlim(min(-30, 1.1 * min(shares)), 110)
    hidden.set_xticks([tick for tick in range(-100, 101, 50) if tick >= hidden.get_xlim()[0]])
    hidden.axvline(0, color=GREY, linewidth=0.8)
    hidden.axvline(100, color=GREY, linestyle=":", linewidth=1.2)
    hidden.set(title="Of what could be hidden, is", xlabel="%  (below 0: overlap makes the step longer)")
    return figure


def draw_bench_reduce(measured):
    """Five ways to add up an array, in blocks of every size, against the memory."""
    figure, (speed, share) = new_figure(2, width=5.2)
    rows = list(zip(*(measured.text("version"), *map(measured.numbers, ("block", "gbs", "share_of_limit")))))
    colors = {"atomics": GREY, "interleaved": RED, "sequential": ORANGE, "warps": GREEN, "lanes": BLUE}
    for version, color in colors.items():
        points = [row[1:] for row in rows if row[0] == version]
        speed.plot([row[0] for row in points], [row[1] for row in points], color=color, marker="o", label=version)
        if version == "lanes":
            share.plot([row[0] for row in points], [100 * row[2] for row in points], color=color, marker="o")
    limit = next(row[2] for row in rows if row[0] == "limit")
    speed.axhline(limit, color=GREY, linestyle=":", linewidth=1.2, label="only reading")
    speed.set(title="How fast five versions read", xlabel="threads of a block", ylabel="GB/s", yscale="log")
    speed.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    share.set(title="The fastest, of what memory allows", xlabel="threads of a block", ylabel="% of only reading")
    share.axhline(100, color=GREY, linestyle=":", linewidth=1.2)
    share.set_ylim(bottom=0)
    for panel in (speed, share):
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_formatter(matplotlib.ticker.ScalarFormatter())
        panel.set_xticks(sorted({row[1] for row in rows if row[0] == "lanes"}))
    return figure


def draw_bench_all_reduce(measured):
    """All-reduces of every size, beside MPI or NCCL and what the memory allows."""
    names = ("algorithm", "ranks", "bytes", "busbw_gbs")
    rows = [row for row in zip(*(measured.text(name) for name in names)) if row[3] != "n/a"]
    counts = sorted({int(row[1]) for row in rows})
    if not counts:
        raise ValueError("one rank has no bus bandwidth: measure two or more")
    figure, panels = new_figure(len(counts), width=5.0, height=3.8)
    styles = {
        "limit": dict(color=GREY, linestyle=":"),
        "mpi": dict(color=RED, linestyle="--", marker="o"),
        "mpi_tuned": dict(color=RED, marker="o"),
        "nccl": dict(color=RED, marker="s"),
        "native": dict(color=BLUE, marker="o", linewidth=2.6),
        "two-shot": dict(color=GREEN),
        "ring": dict(color=ORANGE),
        "one-shot": dict(color="#8e5bb5"),
        "host ring": dict(color=ORANGE, linestyle="--"),
        "reduce+broadcast": dict(color="#6b7a3a", linestyle="--"),
        "server": dict(color="#7a4a2b", linestyle="--"),
        "mine": dict(color="black", marker="D", linewidth=2.2),
    }
    for panel, ranks in zip(panels, counts):
        for name, style in styles.items():
            points = [(int(row[2]), float(row[3])) for row in rows if row[0] == name and int(row[1]) == ranks]
            if points:
                panel.plot(*zip(*points), label=name, markersize=3.5, **style)
        panel.set(title=f"All-reduce on {ranks} ranks", ylabel="bus bandwidth, GB/s", yscale="log")
        size_axis(panel, [int(row[2]) for row in rows])
        panel.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    panels[-1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def draw_bench_barriers(measured):
    """A barrier of one block, by three kinds of threads."""
    figure, (panel,) = new_figure(1, width=7.2, height=2.4)
    rows = [
        (way, us)
        for way, us in zip(measured.text("way"), measured.numbers("barrier_us"))
        if "launch" not in way
    ]
    panel.set_xscale("log")
    bars(panel, [way for way, _ in rows], [us for _, us in rows], [BLUE, ORANGE, RED], lambda us: f"{us:,.0f} µs" if us >= 100 else f"{us:.3g} µs")
    panel.set_xlim(1, max(us for _, us in rows) * 4)
    threads = measured.text("threads")[0]
    panel.set(title=f"A barrier of {threads} threads on a CPU", xlabel="microseconds (logarithmic; less is better)")
    return figure


def draw_cluster_simulated(measured):
    """Chapter 21: the share of its speed that a rank keeps: on hosts where it was measured, and on hosts that are not there."""
    figure, (known, asked) = new_figure(2, width=4.8, height=3.6)
    colors = {"flat ring": RED, "two levels": ORANGE, "double tree": BLUE, "the best, with jitter": BLUE}
    lines = {}  # of (panel, name): points (ranks, predicted, measured)
    for kind, what, seen, predicted in zip(*(measured.text(name) for name in ("kind", "what", "measured", "predicted"))):
        if kind == "steps" and re.fullmatch("100 Mbit/s, (2 x 1|. x 2), .*8 x 512 KiB", what):  # of 400 ms on a rank alone
            hosts, near, name = re.match(r".*, (\d) x (\d), (.*), ", what).groups()
            lines.setdefault((known, name), []).append((int(hosts) * int(near), 400 / float(predicted), 400 / float(seen)))
        elif kind == "speed kept":
            ranks, name = re.match(r"(\d+) ranks, (.*)", what).groups()
            lines.setdefault((asked, name), []).append((int(ranks), float(predicted), None))
    for panel in (known, asked):
        panel.set_xscale("log", base=2)
        panel.minorticks_off()
    for (panel, name), points in lines.items():
        ranks, predicted, seen = zip(*points)
        panel.plot(ranks, predicted, color=colors[name], linestyle="--" if "jitter" in name else "-", label=name)
        panel.plot(ranks, seen if panel is known else predicted, "o", color=colors[name], markersize=4)
    for panel in (known, asked):
        ranks = sorted({point[0] for (where, _), points in lines.items() if where is panel for point in points})
        panel.axhline(1, color="black", linewidth=1, linestyle=":", zorder=3, label="ideal")
        panel.set_xticks(ranks, [f"{count:,}" for count in ranks])
        panel.set(ylim=(0, 1.07), xlabel="ranks")
        panel.legend(loc="lower left")
    known.set(title="Four hosts: points are measured", ylabel="share of its speed that a rank keeps")
    asked.set(title="Up to 512 hosts: nothing is measured")
    return figure


def draw_cluster_scale(measured):
    """Chapter 21: what more ranks bring: measured points, the simulator's line, and the ideal."""
    kinds = list(dict.fromkeys(measured.text("scaling")))
    figure, panels = new_figure(len(kinds), width=4.8, height=3.6)
    numbers = ("ranks", "step_s", "ideal_s")
    rows = list(zip(measured.text("scaling"), *map(measured.numbers, numbers), measured.text("predicted_s")))
    for panel, kind in zip(panels, kinds):
        # Weak: the share of its speed that a rank keeps. Strong: how many times as fast as one rank.
        points = [(ranks, ideal * (ranks if kind == "strong" else 1), step, predicted) for name, ranks, step, ideal, predicted in rows if name == kind]
        ranks = [point[0] for point in points]
        lines = [(ranks, alone / float(predicted)) for ranks, alone, _, predicted in points if predicted]
        if lines:
            panel.plot(*zip(*lines), color=ORANGE, label="the simulator, from the links measured")
        panel.plot(ranks, [alone / step for _, alone, step, _ in points], "o", color=BLUE, label="measured")
        panel.plot(ranks, ranks if kind == "strong" else [1] * len(ranks), color="black", linewidth=1, linestyle=":", label="ideal")
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
        title = "Strong scaling: how many times as fast" if kind == "strong" else "Weak scaling: the speed that a rank keeps"
        panel.set_title(title + (", asleep" if "asleep" in measured.text("compute") else ""))
    return figure


def draw_transformer(measured):
    """Chapter 20: the loss while it falls, and the learning rate; of real sentences the translations' BLEU instead."""
    figure, (loss, right) = new_figure(2, width=4.8)
    rows = list(zip(measured.text("what"), measured.numbers("step"), measured.numbers("loss"), measured.numbers("learning_rate")))
    steps, losses, rates = zip(*(row[1:] for row in rows if row[0] == "training"))
    loss.plot(steps, losses, color=BLUE, label="training")
    tested = [row for row in rows if row[0] == "validation"]
    loss.plot([row[1] for row in tested], [row[2] for row in tested], color=RED, marker="o", linestyle="none", label="validation")
    loss.set(title="The loss for a token", xlabel="step", yscale="log")
    loss.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    if min(losses) > 0.5:  # within a power of ten: there is room for all numbers
        loss.yaxis.set_minor_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    loss.legend()
    bleu = [(step, score) for what, step, score in zip(measured.text("what"), measured.numbers("step"), measured.numbers("bleu"))
            if what == "validation" and score > 0]
    if bleu:
        right.plot(*zip(*bleu), color=GREEN, marker="o", markersize=3, label="this book")
        twin = [(step, score) for what, step, score in zip(measured.text("what"), measured.numbers("step"), measured.numbers("bleu"))
                if what == "twin"]
        if twin:
            right.plot(*zip(*twin), color=ORANGE, marker="x", linestyle="none", label="its twin in PyTorch")
            right.legend(loc="lower right")
        right.set(title="BLEU of the held-out sentences", xlabel="step", ylim=(0, None))
    else:
        right.plot(steps, rates, color=ORANGE)
        right.set(title="The learning rate", xlabel="step", ylim=(0, None))
    return figure


def draw_transformer_attention(measured):
    """Chapter 20: how much each token of a translation takes of each token of the source, for three sentences."""
    sentences = list(dict.fromkeys(measured.text("sentence")))
    figure, panels = plt.subplots(1, len(sentences), figsize=(4.6 * len(sentences), 4.4), squeeze=False)
    rows = list(zip(measured.text("sentence"), measured.text("target"), measured.text("source"), measured.numbers("row"),
                    measured.numbers("column"), measured.numbers("weight")))
    for panel, sentence in zip(panels[0], sentences):
        cells = [row[1:] for row in rows if row[0] == sentence]
        source = {int(column): text for _, text, _, column, _ in cells}
        target = {int(row): text for text, _, row, _, _ in cells}
        weights = [[0.0] * len(source) for _ in target]
        for _, _, row, column, weight in cells:
            weights[int(row)][int(column)] = weight
        shares = panel.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        panel.set_xticks(range(len(source)), [source[i].strip() for i in range(len(source))], rotation=60, ha="right")
        panel.set_yticks(range(len(target)), [target[i].strip() for i in range(len(target))])
        panel.grid(visible=False)
        panel.tick_params(length=0)
        panel.set_title(sentence if len(sentence) < 46 else sentence[:44] + "…", fontsize=9)
    panels[0][0].set_ylabel("the next token of the translation")
    figure.colorbar(shares, ax=panels[0][-1], label="share that is taken of a token of the source")
    return figure


def draw_bench_transformer_parts(measured):
    """Chapter 20: where the time of a step goes, a bar a width."""
    groups = {"forward encoder": BLUE, "forward decoder": "#8fb4e0", "forward scores": ORANGE, "backward scores": "#f3c98b",
              "backward decoder": "#9fd3b0", "backward encoder": GREEN, "the rest": GREY}
    rows = list(zip(measured.numbers("width"), measured.text("part"), measured.numbers("seconds")))
    widths = sorted({width for width, _, _ in rows})
    figure, panel = plt.subplots(figsize=(8.6, 2.8))
    for place, width in enumerate(widths):
        times = dict.fromkeys(groups, 0)
        for _, part, seconds in (row for row in rows if row[0] == width):
            # The loss belongs to the scores: both walk over the whole vocabulary.
            name = " ".join(part.replace("loss", "scores").split()[:2])
            times[name if name in groups else "the rest"] += seconds * 1e3
        left = 0
        for name, time in times.items():
            panel.barh(place, time, left=left, color=groups[name], height=0.62, label=name if place == 0 else None)
            left += time
        panel.text(left, place, f"  {left:.0f} ms", va="center", fontsize=9)
    panel.set_yticks(range(len(widths)), [f"width {width:.0f}" for width in widths])
    panel.grid(visible=False, axis="y")
    panel.invert_yaxis()
    panel.margins(x=0.1)
    panel.set(title="A step of one rank, by part", xlabel="milliseconds")
    panel.legend(loc="upper center", bbox_to_anchor=(0.45, -0.35), ncol=4)
    return figure


DRAWINGS = {
    "sgd": draw_sgd,
    "sgd_tape": draw_sgd_tape,
    "sgd_stream": draw_sgd_stream,
    "gradient_accumulation": draw_gradient_accumulation,
    "gradient_accumulation_memory": draw_gradient_accumulation_memory,
    "network": draw_network,
    "network_pictures": draw_network_pictures,
    "network_confusion": draw_network_confusion,
    "network_weights": draw_network_weights,
    "network_profile": draw_network_profile,
    "messages": draw_messages,
    "messages_timeline": draw_messages_timeline,
    "broadcast": draw_broadcast,
    "broadcast_readers": draw_broadcast_readers,
    "kernels_warps": draw_kernels_warps,
    "kernels": draw_kernels,
    "reduce": draw_reduce,
    "all_reduce": draw_all_reduce,
    "all_reduce_steps": draw_all_reduce_steps,
    "all_reduce_ports": draw_all_reduce_ports,
    "data_parallel": draw_data_parallel,
    "sampler": draw_sampler,
    "sampler_dealt": draw_sampler_dealt,
    "async": draw_async,
    "buckets": draw_buckets,
    "buckets_plan": draw_buckets_plan,
    "overlap_link_timeline": draw_overlap_link_timeline,
    "overlap_timeline": draw_overlap_timeline,
    "overlap": draw_network,
    "overlap_hooks": draw_overlap_hooks,
    "sync_batch_norm": draw_sync_batch_norm,
    "checkpoint_failover": draw_checkpoint_failover,
    "unused_parameters": draw_unused_parameters,
    "unused_parameters_timeline": draw_unused_parameters_timeline,
    "cluster_simulated": draw_cluster_simulated,
    "cluster_scale": draw_cluster_scale,
    "transformer": draw_transformer,
    "transformer_debian": draw_transformer,
    "transformer_attention": draw_transformer_attention,
    "bench_transformer_parts": draw_bench_transformer_parts,
    "bench_train": draw_bench_train,
    "bench_overlap": draw_bench_overlap,
    "bench_all_reduce": draw_bench_all_reduce,
    "bench_barriers": draw_bench_barriers,
    "bench_reduce": draw_bench_reduce,
}


def draw(source, target, formats):
    """Draws one CSV file; returns the picture's path."""
    with matplotlib.rc_context(STYLE):
        picture = target / source.stem
        for ending in (".svg", ".png"):
            picture.with_suffix(ending).unlink(missing_ok=True)  # of an earlier run
        figure = DRAWINGS[source.stem](Measured(source))
        figure.tight_layout()
        target.mkdir(parents=True, exist_ok=True)
        for ending in formats:
            figure.savefig(picture.with_suffix(f".{ending}"), dpi=150, metadata={"Date": None} if ending == "svg" else None)
        plt.close(figure)
    return picture.with_suffix(".svg")


def draw_all(sources, target, formats):
    """Draws in as many processes as there are cores, or pictures; says each one's path in the order of `sources`."""
    workers = max(1, min(len(os.sched_getaffinity(0)), len(sources)))
    # A fork has matplotlib already, whose import takes longer than a picture.
    with concurrent.futures.ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
        pictures = [(source, pool.submit(draw, source, target or source.parent, formats)) for source in sources]
        for source, picture in pictures:
            try:
                path = os.path.relpath(picture.result())
            except NothingToDraw as reason:
                print(f"not drawn: {os.path.relpath(source)}: {reason}")
                continue
            except (ValueError, KeyError, OSError) as error:
                sys.exit(f"{source} cannot be drawn: {error}")
            print(f"drawn: {path}" + (" (and .png)" if "png" in formats else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", help="draw only what the program NAME measured")
    parser.add_argument("--from", dest="source", type=pathlib.Path, default=ROOT / "out", help="folder of CSV files")
    parser.add_argument("--to", dest="target", type=pathlib.Path, help="folder for the pictures (the same one)")
    parser.add_argument("--svg", action="store_true", help="no .png beside each .svg")
    options = parser.parse_args()

    def is_wanted(name):  # a program's second file is called as its first, and more
        return options.only is None or name == options.only or name.startswith(f"{options.only}_")

    sources = [path for path in sorted(options.source.glob("*.csv")) if is_wanted(path.stem)]
    # A program's first picture comes first; what has no drawing is skipped below.
    order = {name: place for place, name in enumerate(DRAWINGS)}
    sources.sort(key=lambda path: order.get(path.stem, len(order)))
    if not sources:
        wanted = "measurements" if options.only is None else f"measurements of '{options.only}' (--only)"
        sys.exit(f"There are no {wanted} in {options.source}: `./book run NN` first.")
    draw_all([source for source in sources if source.stem in DRAWINGS], options.target, ["svg"] if options.svg else ["svg", "png"])


if __name__ == "__main__":
    main()
