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
