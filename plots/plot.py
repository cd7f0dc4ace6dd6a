#!/usr/bin/env python3
"""Draws what the last runs measured: out/NAME.csv becomes out/NAME.svg and out/NAME.png.

    ./book plot          everything that has been measured
    ./book plot 01       what chapter 01's program measured

Also `plot.py --from FOLDER --to FOLDER`, for the reference pictures. Which drawing a file gets is decided by its
name, in DRAWINGS at the end.
"""
import argparse
import csv
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

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


DRAWINGS = {"sgd": draw_sgd}


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


def name_of_chapter(number):
    folders = sorted((ROOT / "chapters").glob(f"{int(number):02d}_*"))
    if not folders:
        sys.exit(f"There is no chapter {number}.")
    return folders[0].name.split("_", 1)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chapter", nargs="?", help="draw only what this chapter measured")
    parser.add_argument("--from", dest="source", type=pathlib.Path, default=ROOT / "out", help="folder of CSV files")
    parser.add_argument("--to", dest="target", type=pathlib.Path, help="folder for the pictures (the same one)")
    options = parser.parse_args()
    sources = [path for path in sorted(options.source.glob("*.csv")) if path.stem in DRAWINGS]
    if options.chapter:
        name = name_of_chapter(options.chapter)
        sources = [path for path in sources if path.stem == name]
    if not sources:
        what = f"Chapter {options.chapter} has" if options.chapter else "No run has"
        sys.exit(f"{what} measured nothing yet that could be drawn: `./book run {options.chapter or 'NN'}` first.")
    for source in sources:
        try:
            picture = draw(source, options.target or options.source)
        except (ValueError, KeyError) as error:
            sys.exit(f"{source} cannot be drawn: {error}")
        print(f"drawn: {picture} (and .png)")


if __name__ == "__main__":
    main()
