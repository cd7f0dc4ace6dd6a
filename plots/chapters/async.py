"""The pictures of the chapter async."""
import matplotlib.pyplot as plt

from shared import BLUE, ORANGE, GREEN, RED, smoothed


def draw_async(measured):
    """The loss of each algorithm: by time with equal workers and with a slow one; by gradients."""
    rows = list(
        zip(*map(measured.text, ("way", "slow")),
            *map(measured.numbers, ("gradients", "seconds", "loss"))))
    styles = {
        "synchronous": (BLUE, "-"), "asynchronous": (RED, "-"), "bounded staleness": (ORANGE, "--"),
        "local SGD": (GREEN, "-.")
    }
    views = (("no", 3, "Equal workers", "seconds"), ("yes", 3, "One slow worker", "seconds"),
             ("yes", 2, "One slow worker, by gradients", "gradients applied"))
    seconds = {slow: max(row[3] for row in rows if row[1] == slow) for slow in ("no", "yes")}
    # A second is equally long in both panels.
    figure, panels = plt.subplots(1, 3, figsize=(12.6, 4.0), sharey=True,
                                  width_ratios=(seconds["no"] / seconds["yes"], 1, 0.8))
    for panel, (slow, x, title, label) in zip(panels, views):
        for place, (way, (color, line)) in enumerate(styles.items()):
            points = smoothed([(row[x], row[4]) for row in rows
                               if row[0] == way and row[1] == slow])
            if points:
                panel.plot(*zip(*points), color=color, linestyle=line, marker="osD^"[place],
                           markersize=4, markevery=(2 * place, 9), linewidth=1.6, label=way)
        panel.set(title=title, xlabel=label)
        panel.set_xlim(0, 1.03 * max(row[x] for row in rows if row[1] == slow))
        panel.set_ylim(bottom=0)
    panels[0].set_ylabel("cross entropy of the workers' samples")
    figure.legend(*panels[1].get_legend_handles_labels(), loc="upper center",
                  bbox_to_anchor=(0.5, 0.03), ncol=4)
    return figure


DRAWINGS = {
    "async": draw_async,
}
