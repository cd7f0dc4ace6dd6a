"""What the pictures of all chapters share: colours, a run's file, bars and axes."""
import csv

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

BLUE, ORANGE, GREEN, RED, GREY = "#2f6db3", "#e08a1e", "#3a9a5b", "#c8453c", "#8a8f98"

# The colour of each rank, from the first again after eight.
RANKS = (BLUE, ORANGE, GREEN, RED, "#7a4fa3", "#2aa3a3", "#7a4a2b", GREY)

REDUCTIONS = {
    "atomics": RED, "interleaved": ORANGE, "sequential": GREEN, "warps": "#2aa3a3",
    "accumulators": BLUE, "limit": GREY
}

TIMELINE = {  # what a step's intervals are called: how the name begins, color
    "forward": ("forward", BLUE),
    "backward": ("backward", GREEN),
    "waiting for gradients": ("waiting", "#e3e5e8"),
    "optimizer": ("optimizer", ORANGE),
    "a bucket's all-reduce": ("bucket", RED),
}

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
    "axes.formatter.min_exponent": 5,  # up to 10000 as numbers, not as powers
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
    "font.size": 9.5,
    "svg.hashsalt": "ddp",  # the same measurements give the same file
    "svg.fonttype": "none",  # text stays text: in the first of these fonts that a reader has
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
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
            raise ValueError(
                f"{path} has no measurements in it: the run that wrote it was stopped early")
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


def bars(panel, labels, values, colors, text):
    """Horizontal bars, the first on top, each with its value in words."""
    places = range(len(labels))
    panel.barh(places, values, color=colors, height=0.62)
    panel.set_yticks(places, labels)
    panel.set_ylim(max(len(labels), 2) - 0.4, -0.6)
    panel.grid(axis="y", visible=False)
    room = max(values)
    for place, value in zip(places, values):
        panel.annotate(text(value), (value, place), xytext=(4, 0), textcoords="offset points",
                       va="center")
    if panel.get_xscale() == "linear":
        panel.set_xlim(0, room * 1.18)


def predicted_and_measured(panel, labels, predicted, measured, text):
    """Horizontal pairs of bars, the first on top, each with its value in words."""
    places = range(len(labels))
    for name, values, color, shift in (("predicted", predicted, GREY, -0.18), ("measured", measured,
                                                                               BLUE, 0.18)):
        panel.barh([place + shift for place in places], values, color=color, height=0.34,
                   label=name)
        for place, value in zip(places, values):
            panel.annotate(text(value), (value, place + shift), xytext=(3, 0),
                           textcoords="offset points", va="center")
    panel.set_xlim(0, 1.15 * max(predicted + measured))
    panel.set_yticks(places, labels)
    panel.invert_yaxis()
    panel.grid(axis="y", visible=False)
    panel.legend(loc="lower right")


def size_axis(panel, sizes):
    """Bytes, in powers of two, with their units."""
    panel.set_xscale("log", base=2)
    ticks = sorted(set(sizes))
    units = ((30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B"))
    names = [
        next(f"{size >> bits} {unit}" for bits, unit in units if size >> bits)
        for size in map(int, ticks)
    ]
    panel.set_xticks(ticks, names, rotation=30, ha="right")
    panel.minorticks_off()


def smoothed(points, width=4):
    """The mean of some neighbours."""
    points = sorted(points)
    groups = [points[max(0, i - width):i + width + 1] for i in range(len(points))]
    return [(x, sum(y for _, y in group) / len(group)) for (x, _), group in zip(points, groups)]
