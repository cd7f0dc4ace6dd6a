"""The pictures of the chapter overlap."""
import matplotlib.ticker
import matplotlib.pyplot as plt

from chapters.network import draw_network
from shared import BLUE, ORANGE, GREEN, RED, GREY, TIMELINE, new_figure, bars


def draw_overlap_link_timeline(measured):
    """Two steps over a simulated link that is as slow as backward."""
    return draw_two_steps(
        measured, {
            "off": "Over a slow link, without overlap: the buckets wait until backward has ended",
            "on": "Over the same link, with overlap: the buckets travel while backward runs",
        })


def number_of_bucket(name):
    return name.removeprefix("bucket ").split(",")[0] if name.startswith("bucket") else ""


def draw_two_steps(measured, titles, kinds=TIMELINE, number_of=number_of_bucket):
    """Two steps, one above the other, of the ranks' streams. `titles` by overlap, from the top.
    `kinds` are the intervals' as in TIMELINE, and `number_of` says what stands in one, by name."""
    columns = map(measured.text,
                  ("overlap", "rank", "stream", "name")), map(measured.numbers,
                                                              ("begin_ms", "end_ms"))
    rows = list(zip(*(column for kind in columns for column in kind)))
    lanes = sorted({(int(rank), stream) for _, rank, stream, *_ in rows}, key=lambda lane:
                   (lane[0], lane[1] != "compute"))
    # A gap between the ranks: lane i of the drawing stands at places[i].
    places = {lane: i + 0.4 * lane[0] for i, lane in enumerate(lanes)}
    steps = [overlap for overlap in titles if any(row[0] == overlap for row in rows)]
    height = 0.75 + 0.3 * max(places.values())
    figure, panels = plt.subplots(len(steps), 1, figsize=(9.6, 0.5 + height * len(steps)),
                                  squeeze=False, sharex=True)
    length = max(row[5] for row in rows)
    for overlap, panel in zip(steps, panels[:, 0]):
        for of, rank, stream, name, begin, end in rows:
            if of != overlap:
                continue
            color = next(color for start, color in kinds.values() if name.startswith(start))
            place = places[int(rank), stream]
            panel.barh(place, end - begin, left=begin, height=0.84, color=color, edgecolor="white",
                       linewidth=0.7)
            if end - begin > 0.02 * length:
                panel.annotate(number_of(name), ((begin + end) / 2, place), ha="center",
                               va="center_baseline", color="white", fontsize=8)
        panel.set_yticks(list(places.values()), [
            f"rank {rank} {'computes' if stream == 'compute' else 'communicates'}"
            for rank, stream in lanes
        ])
        panel.set_ylim(max(places.values()) + 0.6, -0.6)
        panel.set_xlim(0, length)
        panel.grid(axis="y", visible=False)
        panel.tick_params(axis="y", length=0)
        panel.set(title=titles[overlap])
    panels[-1, 0].set(xlabel="milliseconds")
    panels[-1,
           0].legend([plt.Rectangle((0, 0), 1, 1, color=color) for _, color in kinds.values()],
                     list(kinds), loc="upper center", bbox_to_anchor=(0.5, -0.5 / height),
                     ncol=len(kinds))
    return figure


def draw_bench_traffic(measured):
    """What each bucket hook sends, and how far from the average it is."""
    figure, (sent, error) = new_figure(2, width=5.2, height=3.2)
    names = measured.text("hook")
    colors = [
        BLUE if not name.startswith("power") else RED if "no feedback" in name else ORANGE
        for name in names
    ]
    sent.set_xscale("log")
    bars(sent, names, [value / 1024 for value in measured.numbers("bytes")], colors,
         lambda value: f"{value:,.0f}" if value >= 100 else f"{value:.3g}")
    sent.set_xlim(1, 20 * max(measured.numbers("bytes")) / 1024)
    sent.set(title="What a rank sends in a step", xlabel="KiB (logarithmic; less is better)")
    steps, sums = ([100 * value for value in measured.numbers(column)]
                   for column in ("step_error", "sum_error"))
    for values, color, shift, label in ((steps, GREY, -0.19, "of the last step"),
                                        (sums, BLUE, 0.19, "of the sum of all steps")):
        error.barh([place + shift for place in range(len(names))], values, height=0.35, color=color,
                   label=label)
        for place, value in enumerate(values):
            error.annotate(f"{value:.3g}", (value, place + shift), xytext=(3, 0),
                           textcoords="offset points", va="center", fontsize=8)
    error.set_xlim(0, 1.15 * max(steps + sums))
    error.set_yticks(range(len(names)), [""] * len(names))
    error.set_ylim(len(names) - 0.4, -0.6)
    error.grid(axis="y", visible=False)
    error.set(title="Error of the gradient", xlabel="% of the average's length")
    error.legend(loc="upper right")
    return figure


DARK_BLUE = "#16365c"
TRAINERS = {
    "": ("this book", BLUE), "_copies": ("copies, each alone", GREEN), "_pytorch": ("PyTorch", GREY)
}


def draw_bench_train(measured):
    """A step on several ranks: this book beside copies that never communicate, and PyTorch. Where
    the step's products were measured alone, too, the bars of this book begin with them."""
    columns = measured.text("model"), *map(measured.numbers,
                                           ("ranks", "samples_per_s", "step_ms", "exposed_ms"))
    rows = list(zip(*columns))
    models = [model for model in dict.fromkeys(columns[0]) if "_" not in model]
    products = {
        (name.removesuffix("_products"), ranks): ms
        for name, ranks, _, ms, _ in rows if name.endswith("_products")
    }
    figure, grid = plt.subplots(len(models), 2,
                                figsize=(10.4, 0.8 + 0.28 * max(8, len(rows)) * len(models)),
                                squeeze=False, width_ratios=(3, 2))
    for model, (steps, speed) in zip(models, grid):
        bars_of = [(ranks, *TRAINERS[kind], ms, exposed) for ranks in sorted(set(columns[1]))
                   for kind in TRAINERS for name, n, _, ms, exposed in rows
                   if name == model + kind and n == ranks]
        places = [
            i + 0.5 * sum(a[0] != b[0] for a, b in zip(bars_of[:i], bars_of[1:]))
            for i in range(len(bars_of))
        ]
        for place, (ranks, _, color, ms, exposed) in zip(places, bars_of):
            exposed = 0 if exposed != exposed else min(exposed, ms)  # PyTorch does not say
            steps.barh(place, ms - exposed, height=0.72, color=color)
            steps.barh(place, exposed, left=ms - exposed, height=0.72, color=ORANGE)
            if color == TRAINERS[""][1] and (model, ranks) in products:
                steps.barh(place, min(products[model, ranks], ms - exposed), height=0.72,
                           color=DARK_BLUE)
            steps.annotate(f"{ms:.1f}", (ms, place), xytext=(4, 0), textcoords="offset points",
                           va="center")
        if any(name == model for name, _ in products):
            steps.barh(0, 0, color=DARK_BLUE, label="of that, the matrix products alone")
        steps.barh(0, 0, color=ORANGE, label="of that, waiting for gradients")
        steps.legend(loc="upper center", bbox_to_anchor=(0.5, -0.19), ncols=2)
        steps.set_yticks(
            places,
            [f"{name}, {ranks:.0f} rank{'s' if ranks > 1 else ''}" for ranks, name, *_ in bars_of])
        steps.set_ylim(max(places) + 0.6, -0.6)
        steps.set_xlim(0, 1.12 * max(row[3] for row in bars_of))
        steps.grid(axis="y", visible=False)
        steps.set(title=f"A step of the {model.upper()}", xlabel="milliseconds (less is better)")
        for kind, (name, color) in TRAINERS.items():
            points = sorted(
                (ranks, rate) for label, ranks, rate, *_ in rows if label == model + kind)
            if kind == "_copies" and points:  # one copy is one rank
                points = [(ranks, rate) for label, ranks, rate, *_ in rows
                          if label == model and ranks == 1] + points
            if points:
                speed.plot(*zip(*points), color=color, marker="o", label=name)
        speed.set(title="All ranks together", xlabel="ranks", ylabel="samples per second")
        speed.set_xticks(sorted(set(columns[1])))
        speed.set_ylim(bottom=0)
        speed.yaxis.set_major_formatter(matplotlib.ticker.StrMethodFormatter("{x:,.0f}"))
        speed.legend(loc="lower right")
    return figure


def draw_bench_overlap(measured):
    """A step with overlap and without it, over a link as slow as backward and over none."""
    columns = *map(measured.text, ("ranks", "link", "overlap")), *map(measured.numbers,
                                                                      ("step_ms", "hidden"))
    rows = list(zip(*columns))
    cases = list(dict.fromkeys(row[:2] for row in rows))
    names = [f"{ranks} ranks, {'no link' if link == 'none' else link}" for ranks, link in cases]
    figure, (steps, hidden) = plt.subplots(1, 2, figsize=(10.4, 1.5 + 0.62 * len(cases)),
                                           width_ratios=(3, 2))
    for overlap, color, shift in (("off", GREY, -0.19), ("on", BLUE, 0.19)):
        values = [next(row[3] for row in rows if row[:3] == (*case, overlap)) for case in cases]
        steps.barh([place + shift for place in range(len(cases))], values, height=0.35, color=color,
                   label=f"overlap {overlap}")
        for place, value in enumerate(values):
            steps.annotate(f"{value:.1f}", (value, place + shift), xytext=(4, 0),
                           textcoords="offset points", va="center")
    steps.set_yticks(range(len(cases)), names)
    steps.set_ylim(len(cases) - 0.4, -0.6)
    steps.set_xlim(0, 1.12 * max(columns[3]))
    steps.grid(axis="y", visible=False)
    steps.legend(loc="upper center", bbox_to_anchor=(0.5, -0.6 / (0.6 + 0.62 * len(cases))), ncol=2)
    steps.set(title="A step, with overlap and without", xlabel="milliseconds (less is better)")
    shares = [100 * next(row[4] for row in rows if row[:3] == (*case, "on")) for case in cases]
    hidden.barh(range(len(cases)), shares, color=[BLUE if share > 0 else RED for share in shares],
                height=0.62)
    for place, share in enumerate(
            shares):  # beside the bar, on the side of 0, where no line crosses it
        hidden.annotate(f"{share:.0f} %", (0, place), xytext=(-4 if share > 0 else 4, 0),
                        textcoords="offset points", ha="right" if share > 0 else "left",
                        va="center")
    hidden.set_yticks(range(len(cases)), [""] * len(cases))
    hidden.set_ylim(len(cases) - 0.4, -0.6)
    hidden.grid(axis="y", visible=False)
    hidden.set_xlim(min(-30, 1.1 * min(shares)), 110)
    hidden.set_xticks([tick for tick in range(-100, 101, 50) if tick >= hidden.get_xlim()[0]])
    hidden.axvline(0, color=GREY, linewidth=0.8)
    hidden.axvline(100, color=GREY, linestyle=":", linewidth=1.2)
    hidden.set(title="Of what could be hidden, is",
               xlabel="% (below 0: overlap makes the step longer)")
    return figure


DRAWINGS = {
    "overlap_link_timeline": draw_overlap_link_timeline,
    "overlap": draw_network,
    "bench_traffic": draw_bench_traffic,
    "bench_train": draw_bench_train,
    "bench_overlap": draw_bench_overlap,
}
