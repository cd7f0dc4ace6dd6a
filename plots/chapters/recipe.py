"""The picture of the chapter recipe."""
import math

import matplotlib.pyplot as plt
from matplotlib.colors import to_rgba

from shared import BLUE, GREEN, GREY, ORANGE, RED

# Name, bits of exponent and mantissa; smallest number above 0, smallest normal one, largest.
FORMATS = (
    ("float32", 8, 23, 2.0**-149, 2.0**-126, (2 - 2.0**-23) * 2.0**127),
    ("bfloat16", 8, 7, 2.0**-133, 2.0**-126, (2 - 2.0**-7) * 2.0**127),
    ("float16", 5, 10, 2.0**-24, 2.0**-14, 65504.0),
    ("FP8 E5M2", 5, 2, 2.0**-16, 2.0**-14, 57344.0),
    ("FP8 E4M3", 4, 3, 2.0**-9, 2.0**-6, 448.0),
)
LOW, HIGH = 1e-13, 1e7  # of the axis: the first two formats go on far beyond both ends


def draw_bits(panel):
    """Each format as a row of boxes, a bit wide each."""
    for y, (_, exponent, mantissa, *_) in enumerate(FORMATS):
        begin = 0
        for bits, color in ((1, GREY), (exponent, ORANGE), (mantissa, BLUE)):
            for bit in range(begin, begin + bits):
                panel.barh(y, 1, left=bit, height=0.6, align="center", color=color,
                           edgecolor="white", linewidth=0.8)
            begin += bits
        panel.annotate(f"1 + {exponent} + {mantissa}", (begin, y), xytext=(5, 0),
                       textcoords="offset points", va="center")
    panel.set_yticks(range(len(FORMATS)), [row[0] for row in FORMATS])
    panel.set_ylim(len(FORMATS) - 0.4, -0.6)
    panel.set(title="Bits of a number", xlim=(0, 40), xticks=(0, 8, 16, 32), xlabel="bits")
    panel.grid(axis="y", visible=False)


def draw_ranges(panel):
    """From the smallest to the largest number of each format."""
    for y, (_, _, _, smallest, normal, largest) in enumerate(FORMATS):
        begin, end = max(normal, LOW), min(largest, HIGH)
        panel.barh(y, end - begin, left=begin, height=0.6, color=GREEN)
        if smallest > LOW:  # below the normal numbers, with fewer and fewer digits
            panel.barh(y, begin - smallest, left=smallest, height=0.6, color=GREEN, alpha=0.4)
        words = f"{smallest:.1g} to {largest:.5g}" if smallest > LOW else (
            f"◄   {smallest:.1g} to {largest:.1e}   ►".replace("e+", "e"))
        panel.annotate(words, (math.sqrt(max(smallest, LOW) * end), y), ha="center", va="center",
                       color="white", fontsize=8.5)
    panel.set_yticks([])
    panel.set_ylim(len(FORMATS) - 0.4, -0.6)
    panel.set(title="From the smallest to the largest")
    panel.grid(axis="y", visible=False)


def draw_gradient(panel, exponents, shares):
    """The gradient's numbers by size: as they are, and times the scales of the loss."""
    peak = exponents[shares.index(max(shares))]
    for scale, color, label in ((-16, RED, "times 1/65,536"), (0, BLUE, "the gradient"),
                                (16, ORANGE, "times 65,536")):
        left = [2.0**(exponent + scale) for exponent in exponents]
        panel.bar(left, [100 * share for share in shares], width=left, align="edge", color=color)
        panel.annotate(label, (2.0**(peak + scale + 0.5), 100 * max(shares)), xytext=(0, 4),
                       textcoords="offset points", ha="center", color=color)
    panel.axvline(2.0**-25, color="black", linestyle=":", ymax=0.8)
    panel.annotate("0 in float16 ◄", (2.0**-25, 50 * max(shares)), xytext=(-22, 0),
                   textcoords="offset points", ha="right", fontsize=8.5)
    panel.set(title="Where the numbers of this network's gradient are", xlabel="absolute value",
              ylabel="% of all", ylim=(0, 125 * max(shares)))


def draw_recipe_gradient(measured):
    """The formats of numbers, their ranges, and where a gradient's numbers lie in them."""
    exponents, shares = map(measured.numbers, ("exponent", "share"))
    figure = plt.figure(figsize=(10.4, 4.8))
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.5), height_ratios=(1.3, 1))
    draw_bits(figure.add_subplot(grid[0, 0]))
    ranges = figure.add_subplot(grid[0, 1])
    gradient = figure.add_subplot(grid[1, 1], sharex=ranges)
    draw_ranges(ranges)
    draw_gradient(gradient, exponents, shares)
    boxes = {"sign": GREY, "exponent": ORANGE, "mantissa": BLUE, "all digits": GREEN,
             "fewer and fewer digits, down to 0": to_rgba(GREEN, 0.4)}
    corner = figure.add_subplot(grid[1, 0], frame_on=False, xticks=[], yticks=[])
    corner.legend([plt.Rectangle((0, 0), 1, 1, color=color) for color in boxes.values()], boxes,
                  loc="upper left")
    ranges.set_xscale("log")
    ranges.set_xlim(LOW, HIGH)
    ranges.tick_params(labelbottom=False)
    return figure


DRAWINGS = {"recipe_gradient": draw_recipe_gradient}
