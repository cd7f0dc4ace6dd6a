"""The pictures of the chapter tiny."""
import matplotlib.pyplot as plt

from shared import BLUE, GREEN, GREY, ORANGE, RANKS, new_figure

DARK = "#3d4249"


def draw_tiny_ring(measured):
    """A chunk goes around four ranks: first each adds its own numbers, then each keeps a copy."""
    figure, (panel,) = new_figure(1, width=7.0, height=3.9)
    corners = [(0, 2), (4, 2), (4, 0), (0, 0)]  # of rank 0 and so on, clockwise
    for rank, (x, y) in enumerate(corners):
        panel.add_patch(plt.Rectangle((x - 0.5, y - 0.25), 1, 0.5, facecolor=RANKS[rank]))
        panel.text(x, y, f"rank {rank}", color="white", weight="bold", ha="center", va="center")
    for step, start, end, ranks in zip(*map(measured.text, ("step", "from", "to", "ranks"))):
        (x0, y0), (x1, y1) = corners[int(start)], corners[int(end)]
        along = (x1 > x0) - (x1 < x0), (y1 > y0) - (y1 < y0)
        is_copy = int(step) >= len(corners) - 1
        out = -0.28 if is_copy else 0.28  # a lap of sums outside, a lap of copies inside
        x0, x1 = (x - along[1] * out for x in (x0 + 0.6 * along[0], x1 - 0.6 * along[0]))
        y0, y1 = (y + along[0] * out for y in (y0 + 0.35 * along[1], y1 - 0.35 * along[1]))
        panel.annotate("", (x1, y1), (x0, y0), arrowprops={
            "arrowstyle": "->", "color": GREY if is_copy else DARK, "linewidth": 1.4})
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        panel.add_patch(plt.Rectangle((x - 0.22, y - 0.2), 0.44, 0.4, facecolor="white",
                                      edgecolor=DARK, linewidth=0.8, zorder=3))
        for i, rank in enumerate(map(int, ranks.split())):  # a stripe for each rank in the sum
            panel.add_patch(plt.Rectangle((x - 0.22, y + 0.1 - 0.1 * i), 0.44, 0.1,
                                          facecolor=RANKS[rank], zorder=3))
        side = along[1] * (1 if is_copy else -1)  # of an arrow up or down: where there is room
        panel.text(x + 0.3 * (side or 1), y + (0 if side else 0.13), f"step {step}", va="center",
                   ha="right" if side < 0 else "left", color=DARK)
    panel.text(1.65, 1.15, "steps 0 to 2: add", color=DARK, ha="center", va="center")
    panel.text(1.65, 0.85, "steps 3 to 5: copy", color=GREY, ha="center", va="center")
    panel.set(xlim=(-1.2, 5.2), ylim=(-0.6, 2.3))
    panel.set_aspect("equal")
    panel.axis("off")
    return figure


def draw_tiny_buckets(measured):
    """The array of gradients, which backward fills from left to right, and its buckets."""
    figure, (panel,) = new_figure(1, width=9.0, height=2.2)
    layers, buckets = measured.text("layer"), measured.text("bucket")
    sizes = [size / 1e3 for size in measured.numbers("bytes")]
    ends = [sum(sizes[:i + 1]) for i in range(len(sizes))]
    colors = dict(zip(sorted(set(buckets)), (BLUE, ORANGE, GREEN)))
    for layer, size, end, bucket in zip(layers, sizes, ends, buckets):
        panel.barh(0, size, left=end - size, height=0.6, color=colors[bucket], edgecolor="white")
        is_small = size < 0.05 * ends[-1]
        panel.text(end - size / 2, -0.55 if is_small else 0, f"layer {layer}", va="center",
                   ha="center", color=DARK if is_small else "white")
    for bucket, color in colors.items():
        parts = [i for i, name in enumerate(buckets) if name == bucket]
        begin, end = ends[parts[0]] - sizes[parts[0]], ends[parts[-1]]
        panel.annotate("", (begin, 0.6), (end, 0.6), arrowprops={
            "arrowstyle": "|-|,widthA=0.3,widthB=0.3", "color": color, "shrinkA": 2, "shrinkB": 2})
        panel.text((begin + end) / 2, 0.85, f"bucket {bucket}: {end - begin:.0f} KB", color=color,
                   ha="center", va="center")
    panel.annotate("", (ends[-1], -0.9), (0, -0.9), arrowprops={"arrowstyle": "->", "color": DARK})
    panel.text(ends[-1] / 2, -1.1, "backward fills the array", ha="center", color=DARK)
    panel.set(xlim=(-10, ends[-1] + 10), ylim=(1.05, -1.25))
    panel.axis("off")
    return figure


DRAWINGS = {
    "tiny_ring": draw_tiny_ring,
    "tiny_buckets": draw_tiny_buckets,
}
