"""The pictures of the chapter sampler."""
import matplotlib.ticker
import matplotlib.pyplot as plt

from shared import ORANGE, GREEN, RED, GREY, RANKS, new_figure, bars


def draw_sampler(measured):
    """An epoch with the sampler and with the wrong ones: its time, and what is seen of the data."""
    figure, (time, seen) = new_figure(2, width=5.2, height=2.6)
    labels = measured.text("division")
    bars(time, labels, measured.numbers("seconds"), [GREEN] + [RED] * (len(labels) - 1),
         lambda value: f"{value:.2f} s")
    time.set(title="An epoch takes", xlabel="seconds")
    once = [
        all_seen - twice
        for all_seen, twice in zip(measured.numbers("seen"), measured.numbers("twice"))
    ]
    left = [0.0] * len(labels)
    for name, values, color in (("seen once", once, GREEN), ("more than once",
                                                             measured.numbers("twice"), ORANGE),
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


def draw_sampler_dealt(measured):
    """Samples dealt out to ranks, in two epochs and where their number does not divide."""
    rows = list(zip(*map(measured.text, ("deal", "place", "sample", "rank", "fate"))))
    deals = list(dict.fromkeys(row[0] for row in rows))
    figure, (panel,) = new_figure(1, width=9.6, height=0.9 + 0.55 * len(deals))
    for deal, place, sample, rank, fate in rows:
        x, y, number = int(place), deals.index(deal), int(rank)
        color = RANKS[number % len(RANKS)] if number >= 0 else "white"
        panel.barh(y, 0.9, left=x + 0.05, height=0.66, color=color,
                   edgecolor="black" if fate == "again" else GREY if number < 0 else color,
                   linewidth=2 if fate == "again" else 1, linestyle="--" if number < 0 else "-")
        panel.annotate(sample, (x + 0.5, y), ha="center", va="center_baseline",
                       color="white" if number >= 0 else GREY, fontsize=8.5)
    panel.set_yticks(
        range(len(deals)),
        [f"the order of {deal}" if deal.startswith("epoch") else deal for deal in deals])
    panel.set_ylim(len(deals) - 0.4, -0.6)
    panel.set_xlim(0, max(int(row[1]) for row in rows) + 1)
    panel.set_xticks([])
    panel.grid(visible=False)
    panel.tick_params(axis="y", length=0)
    for side in ("left", "bottom"):
        panel.spines[side].set_visible(False)
    ranks = sorted({int(row[3]) for row in rows if int(row[3]) >= 0})
    marks = [plt.Rectangle((0, 0), 1, 1, color=RANKS[rank % len(RANKS)]) for rank in ranks]
    marks += [
        plt.Rectangle((0, 0), 1, 1, facecolor="white", edgecolor="black", linewidth=2),
        plt.Rectangle((0, 0), 1, 1, facecolor="white", edgecolor=GREY, linestyle="--")
    ]
    panel.legend(marks, [*(f"rank {rank}" for rank in ranks), "taken a second time", "left out"],
                 loc="upper center", bbox_to_anchor=(0.5, 0.0), ncol=min(6, len(marks)),
                 handlelength=1.2, columnspacing=1.4)
    panel.set(title="Each sample goes to the rank of its colour")
    return figure


DRAWINGS = {
    "sampler": draw_sampler,
    "sampler_dealt": draw_sampler_dealt,
}
