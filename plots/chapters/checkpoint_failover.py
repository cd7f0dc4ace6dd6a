"""The pictures of the chapter checkpoint_failover."""
import matplotlib.ticker
import matplotlib.pyplot as plt

from shared import BLUE, ORANGE, GREEN, RED, GREY, new_figure, smoothed

LIVES = {"trains": BLUE, "is down": RED, "starts": GREY, "loads": ORANGE,
         "redoes": "#8db4e2"}  # what a rank is doing


def draw_lives(panel, rows, title):
    """A supervised training: a lane for each rank, faults and checkpoints."""
    ranks = sorted({int(row["rank"]) for row in rows})
    for row in rows:
        begin, end, rank = float(row["begin_s"]), float(row["end_s"]), int(row["rank"])
        if row["what"] in LIVES:
            panel.barh(rank, end - begin, left=begin, height=0.62, color=LIVES[row["what"]])
        elif row["what"] == "checkpoint":
            panel.plot((begin + end) / 2, rank - 0.42, marker="v", color=GREEN, markersize=3.5,
                       clip_on=False)
        elif row["what"] != "loss":
            sign = "X" if row["what"].startswith("kill") else "s"
            panel.plot(begin, rank, marker=sign, color="black", markeredgecolor="white",
                       markersize=10, zorder=3)
    panel.set_yticks(ranks, [f"rank {rank}" for rank in ranks])
    panel.set_ylim(max(ranks) + 0.6, -0.75)
    panel.set_xlim(left=0)
    panel.grid(axis="y", visible=False)
    panel.tick_params(axis="y", length=0)
    panel.set(title=title, xlabel="seconds")


def draw_checkpoint_failover(measured):
    """What becomes of the ranks, and that the curve does not know of it."""
    rows = [dict(zip(measured.columns, row)) for row in zip(*measured.columns.values())]
    titles = {
        "killed": "Killed and stopped: all ranks go back to the last checkpoint",
        "fewer ranks": "A node is lost with half of the ranks: the others go on",
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
    marks += [
        plt.Line2D([], [], linestyle="", marker=sign, color=color) for _, sign, color in signs
    ]
    panel.legend(marks, [*LIVES, *(name for name, *_ in signs)], loc="upper center",
                 bbox_to_anchor=(0.5, -0.3), ncol=4)
    curve = figure.add_subplot(grid[:, 1])
    styles = {
        "undisturbed": (ORANGE, 4, 0.5), "killed": (BLUE, 1.3, 1), "fewer ranks": (GREEN, 1.3, 1)
    }  # from zero: as undisturbed
    for story, (color, width, alpha) in styles.items():
        points = [(int(row["samples"]), float(row["loss"])) for row in rows
                  if row["story"] == story and row["what"] == "loss"]
        if points:
            curve.plot(*zip(*smoothed(points)), color=color, linewidth=width, alpha=alpha,
                       label=story)
    curve.set(title="The curve goes on", xlabel="pictures learned from",
              ylabel="cross entropy of rank 0's samples")
    curve.set_ylim(bottom=0)
    curve.xaxis.set_major_formatter(matplotlib.ticker.StrMethodFormatter("{x:,.0f}"))
    curve.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(5))
    curve.legend(loc="upper right")
    return figure


def draw_checkpoint_failover_saving(measured):
    """What saving costs: too often, too seldom, and the smallest sum."""
    figure, (panel,) = new_figure(1, width=7, height=3.6)
    minutes = [seconds / 60 for seconds in measured.numbers("interval_s")]
    saving, redoing, simulated = ([100 * share for share in measured.numbers(name)]
                                  for name in ("saving", "redoing", "simulated"))
    both = [sum(pair) for pair in zip(saving, redoing)]
    panel.plot(minutes, saving, color=ORANGE, linestyle="--", label="d / T: saving")
    panel.plot(minutes, redoing, color=RED, linestyle="--", label="T / (2 M): doing steps again")
    panel.plot(minutes, both, color=BLUE, label="both")
    panel.plot(minutes, simulated, "o", color=BLUE, markersize=4,
               label="simulated: 20,000 failures")
    least, best = min(zip(both, minutes))
    panel.axvline(best, color=GREY, linewidth=1, linestyle=":")
    panel.annotate(f"least: {least:.1f} % at {best:.0f} minutes", (best, least), xytext=(6, 52),
                   textcoords="offset points")
    panel.set_xscale("log")
    ticks = (5, 10, 20, 47, 100, 200, 300)
    panel.set_xticks(ticks, list(map(str, ticks)))
    panel.minorticks_off()
    panel.set(title="d = 42 s for a checkpoint, M = 26 hours between failures",
              xlabel="T, minutes between checkpoints", ylabel="% of the time that is lost",
              ylim=(0, 17))
    panel.legend(loc="upper center")
    return figure


DRAWINGS = {
    "checkpoint_failover": draw_checkpoint_failover,
    "checkpoint_failover_saving": draw_checkpoint_failover_saving,
}
