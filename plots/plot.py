#!/usr/bin/env python3
"""Draws what the last runs measured: out/NAME.csv becomes out/NAME.svg and out/NAME.png.

    ./book plot                              everything that has been measured
    plot.py --only sgd                       what one program measured, if there is a drawing for it
    plot.py --from FOLDER --to FOLDER        the reference pictures

Which drawing a file gets is decided by its name, in DRAWINGS.
"""
import argparse
import csv
import os
import pathlib
import sys

import matplotlib

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


class Measured:
    """One CSV file: columns by name, numbers where they are numbers."""

    def __init__(self, path):
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        if not rows:
            raise ValueError(f"{path} has no measurements in it: the run that wrote it was stopped early")
        self.columns = {name: [row[name] for row in rows] for name in rows[0]}

    def text(self, name):
        return self.columns[name]

    def numbers(self, name):
        return [float(value) for value in self.columns[name]]


def new_figure(panels, width=4.6, height=3.4):
    figure, axes = plt.subplots(1, panels, figsize=(width * panels, height), squeeze=False)
    return figure, list(axes[0])


def draw_sgd(measured):
    """Chapter 01: the loss falls, and the parameters approach the law behind the prices."""
    figure, (loss, parameters) = new_figure(2)
    epochs = measured.numbers("epoch")
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


def draw_network(measured):
    """Chapter 03: what an epoch brings, on the training pictures and on those never seen."""
    figure, (loss, accuracy) = new_figure(2)
    epochs = measured.numbers("epoch")
    loss.plot(epochs, measured.numbers("loss"), color=BLUE, marker="o")
    loss.set(title="The loss falls", xlabel="epoch", ylabel="mean cross entropy")
    loss.set_ylim(bottom=0)
    accuracy.plot(epochs, measured.numbers("train_accuracy"), color=BLUE, marker="o", label="training pictures")
    accuracy.plot(epochs, measured.numbers("test_accuracy"), color=ORANGE, marker="o", label="test pictures")
    accuracy.set(title="The accuracy rises", xlabel="epoch", ylabel="share of pictures named rightly")
    accuracy.legend(loc="lower right")
    for panel in (loss, accuracy):
        panel.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True))
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


def size_axis(panel, sizes):
    """Bytes, in powers of two, with their units."""
    panel.set_xscale("log", base=2)
    ticks = sorted(set(sizes))
    names = [f"{size // 2**20} MiB" if size >= 2**20 else f"{size // 2**10} KiB" for size in map(int, ticks)]
    panel.set_xticks(ticks, names, rotation=30, ha="right")
    panel.minorticks_off()


def draw_broadcast(measured):
    """Chapter 05: the friends' story, and broadcasts on the machine."""
    columns = ("part", "way", "ranks", "bytes", "seconds", "predicted_seconds")
    rows = [dict(zip(columns, row)) for row in zip(*map(measured.text, columns))]
    figure, (story, machine) = new_figure(2, width=5)
    told = [row for row in rows if row["part"] == "story"]
    places = range(len(told))
    for name, color, shift in (("predicted_seconds", GREY, -0.18), ("seconds", BLUE, 0.18)):
        values = [float(row[name]) for row in told]
        story.barh([place + shift for place in places], values, color=color, height=0.34,
                   label="predicted" if color == GREY else "measured")
        for place, value in zip(places, values):
            story.annotate(f"{value:.1f}", (value, place + shift), xytext=(3, 0), textcoords="offset points", va="center")
    story.set_xlim(0, 1.12 * max(float(row["seconds"]) for row in told))
    story.set_yticks(places, [row["way"] for row in told])
    story.invert_yaxis()
    story.grid(axis="y", visible=False)
    story.legend(loc="lower right")
    friends = int(told[0]["ranks"]) - 1
    story.set(title=f"5 MB for {friends} friend{'s' if friends > 1 else ''} at 1 MB/s", xlabel="seconds until the last one has it")
    runs = [row for row in rows if row["part"] == "machine"]
    for way, color in zip(dict.fromkeys(row["way"] for row in runs), (BLUE, ORANGE, GREEN, RED)):
        mine = [row for row in runs if row["way"] == way]
        sizes = [int(row["bytes"]) for row in mine]
        machine.plot(sizes, [float(row["seconds"]) * 1e6 for row in mine], color=color, marker="o", markersize=4, label=way)
        machine.plot(sizes, [float(row["predicted_seconds"]) * 1e6 for row in mine], color=color, linestyle=":", linewidth=1.2)
    machine.set_yscale("log")
    size_axis(machine, [int(row["bytes"]) for row in runs])
    machine.plot([], [], color=GREY, linestyle=":", linewidth=1.2, label="predicted")
    machine.legend(loc="upper left")
    machine.set(title=f"A broadcast among {runs[0]['ranks']} ranks", ylabel="microseconds (less is better)")
    return figure


def draw_bench_train(measured):
    """One training step: this book beside PyTorch."""
    models = [model for model in measured.text("model") if not model.endswith("_pytorch")]
    figure, panels = new_figure(len(models), height=2.2)
    step = dict(zip(measured.text("model"), measured.numbers("step_ms")))
    for panel, model in zip(panels, models):
        rows = {"this book": step[model]}
        if model + "_pytorch" in step:
            rows["PyTorch"] = step[model + "_pytorch"]
        bars(panel, list(rows), list(rows.values()), [BLUE, GREY][: len(rows)], lambda ms: f"{ms:.1f} ms")
        panel.set(title=f"A step of the {model.upper()}", xlabel="milliseconds, one rank (less is better)")
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


DRAWINGS = {
    "sgd": draw_sgd,
    "network": draw_network,
    "broadcast": draw_broadcast,
    "bench_train": draw_bench_train,
    "bench_barriers": draw_bench_barriers,
    "bench_reduce": draw_bench_reduce,
}


def draw(source, target):
    """Draws one CSV file; returns the picture's path."""
    with matplotlib.rc_context(STYLE):
        figure = DRAWINGS[source.stem](Measured(source))
        figure.tight_layout()
        target.mkdir(parents=True, exist_ok=True)
        picture = target / (source.stem + ".svg")
        figure.savefig(picture, metadata={"Date": None})
        figure.savefig(picture.with_suffix(".png"), dpi=150)
        plt.close(figure)
    return picture


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", help="draw only what the program NAME measured")
    parser.add_argument("--from", dest="source", type=pathlib.Path, default=ROOT / "out", help="folder of CSV files")
    parser.add_argument("--to", dest="target", type=pathlib.Path, help="folder for the pictures (the same one)")
    options = parser.parse_args()
    sources = [path for path in sorted(options.source.glob("*.csv")) if options.only in (None, path.stem)]
    if not sources:
        sys.exit("No run has measured anything to be drawn: `./book run NN` first.")
    for source in sources:
        if source.stem not in DRAWINGS:
            continue
        try:
            picture = draw(source, options.target or options.source)
        except (ValueError, KeyError) as error:
            sys.exit(f"{source} cannot be drawn: {error}")
        print(f"drawn: {os.path.relpath(picture)} (and .png)")


if __name__ == "__main__":
    main()
