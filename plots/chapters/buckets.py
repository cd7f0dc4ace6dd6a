"""The pictures of the chapter buckets."""
import matplotlib.ticker
import matplotlib.pyplot as plt

from shared import BLUE, ORANGE, GREEN, GREY, RANKS, RED, new_figure, size_axis


def draw_buckets(measured):
    """Buckets of all sizes, on two models and two links, predicted and measured."""
    texts, numbers = ("model", "cap"), ("bandwidth", "latency_s", "seconds", "predicted_seconds",
                                        "backward_s")
    rows = [
        dict(zip(texts + numbers, row))
        for row in zip(*map(measured.text, texts), *map(measured.numbers, numbers))
    ]
    models = list(dict.fromkeys(row["model"] for row in rows))
    links = list(dict.fromkeys((row["bandwidth"], row["latency_s"]) for row in rows))
    figure, panels = new_figure(len(models), width=5.4, height=3.8)
    for panel, model in zip(panels, models):
        names = []
        for link, color in zip(links, (BLUE, ORANGE, GREEN)):
            mine = [
                row for row in rows
                if row["model"] == model and (row["bandwidth"], row["latency_s"]) == link
            ]
            caps = [int(row["cap"]) for row in mine]
            names = [
                "each\ngradient"
                if cap == 0 else f"{cap // 2**10} KiB" if cap < 2**20 else f"{cap // 2**20} MiB"
                for cap in caps
            ]
            names[-1] = "all"
            places = range(len(mine))
            label = f"{link[0] / 1e6:.0f} MB/s, {link[1] * 1e3:g} ms"
            panel.plot(places, [1e3 * row["seconds"] for row in mine], color=color, marker="o",
                       markersize=4, label=label)
            panel.plot(places, [1e3 * row["predicted_seconds"] for row in mine], color=color,
                       linestyle=":", linewidth=1.6)
            panel.axhline(1e3 * mine[0]["backward_s"], color=color, linewidth=0.8, alpha=0.5)
        panel.plot([], [], color=GREY, linestyle=":", linewidth=1.6, label="predicted")
        panel.plot([], [], color=GREY, linewidth=0.8, alpha=0.7, label="backward alone")
        panel.set_xticks(range(len(names)), names)
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        panel.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
        panel.set_yticks([
            tick for tick in (20, 50, 100, 200, 500, 1000)
            if tick < 1500 * max(row["seconds"] for row in rows)
        ])
        panel.set(title=model, xlabel="a bucket is closed at",
                  ylabel="milliseconds until all is reduced")
    panels[-1].legend(loc="upper right")
    return figure


def draw_buckets_plan(measured):
    """Which gradients travel in which bucket, before the first step and after it."""
    columns = *map(measured.text, ("network", "gradient")), *map(measured.numbers,
                                                                 ("iteration", "bucket", "bytes"))
    rows = list(zip(*columns))
    networks = list(dict.fromkeys(columns[0]))
    figure, panels = plt.subplots(len(networks), 1, figsize=(9.6, 1.75 * len(networks) + 0.3),
                                  squeeze=False)
    for network, panel in zip(networks, panels[:, 0]):
        mine = [row[1:] for row in rows if row[0] == network]
        iterations = sorted({row[1] for row in mine})
        total = sum(row[3] for row in mine if row[1] == iterations[0])
        unit, name = (2**20, "MiB") if total >= 2**20 else (2**10, "KiB")
        for iteration in iterations:
            begin, y = 0.0, iterations.index(iteration)
            for gradient, _, bucket, size in (row for row in mine if row[1] == iteration):
                panel.barh(y, size / unit, left=begin, height=0.7,
                           color=RANKS[int(bucket) % len(RANKS)], edgecolor="white", linewidth=0.8)
                if size > 0.008 * total * len(gradient):
                    panel.annotate(gradient, (begin + size / unit / 2, y), ha="center",
                                   va="center_baseline", color="white", fontsize=7.5)
                begin += size / unit
        panel.set_yticks(range(len(iterations)), ["iteration 1", "from 2 on"])
        panel.set_ylim(len(iterations) - 0.4, -0.6)
        panel.set_xlim(0, total / unit)
        panel.grid(visible=False)
        panel.tick_params(axis="y", length=0)
        panel.set(title=network, xlabel=name)
        buckets = sorted({int(row[2]) for row in mine})
        panel.legend(
            [plt.Rectangle((0, 0), 1, 1, color=RANKS[bucket % len(RANKS)])
             for bucket in buckets], [f"bucket {bucket}" for bucket in buckets], loc="lower right",
            bbox_to_anchor=(1, 0.97), ncol=min(6, len(buckets)), handlelength=1.2)
    return figure


def draw_buckets_bandwidth(measured):
    """Bus bandwidth by size: how large a bucket must be before a link is well used."""
    names, sizes = measured.text("what"), measured.numbers("bytes")
    figure, (panel,) = new_figure(1, width=8.4, height=4.0)
    for name, color, marker in zip(dict.fromkeys(names), (GREEN, BLUE, ORANGE, RED), "osD^"):
        rows = [i for i, of_row in enumerate(names) if of_row == name]
        panel.plot([sizes[i] for i in rows], [measured.numbers("busbw_gbs")[i] for i in rows],
                   color=color, marker=marker, markersize=4, label=name)
    panel.set_yscale("log")
    panel.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    size_axis(panel, [4**i for i in range(6, 18)])
    for cap, side in ((1, "center"), (25, "right"), (100, "left")):
        panel.axvline(cap * 2**20, color=GREY, linestyle=":", linewidth=1.2)
        panel.text(cap * 2**20, 1.02, f"{cap} MiB", transform=panel.get_xaxis_transform(),
                   ha=side, color="#5b6068", fontsize=8.5)
    panel.set(xlabel="size of the array", ylabel="bus bandwidth, GB/s")
    panel.set_title("All-reduces of different sizes", pad=18)
    panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


DRAWINGS = {
    "buckets": draw_buckets,
    "buckets_plan": draw_buckets_plan,
    "buckets_bandwidth": draw_buckets_bandwidth,
}
