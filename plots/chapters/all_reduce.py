"""The pictures of the chapter all_reduce."""
import matplotlib.ticker
import matplotlib.pyplot as plt

from shared import (BLUE, ORANGE, GREEN, RED, GREY, RANKS, new_figure, predicted_and_measured,
                    size_axis)


def rows_of(measured):
    """The rows of all-reduces: who, of how much, how fast, and how fast by the formula."""
    columns = ("algorithm", "ranks", "bytes", "seconds", "expected_seconds")
    return [dict(zip(columns, row)) for row in zip(*map(measured.text, columns))]


def draw_all_reduce(measured):
    """All-reduces over a link, beside predictions."""
    rows = rows_of(measured)
    figure, panels = new_figure(1, width=5.2)
    predicted_and_measured(
        panels[0],
        [row["algorithm"] for row in rows],
        [float(row["expected_seconds"]) * 1e3 for row in rows],
        [float(row["seconds"]) * 1e3 for row in rows],
        lambda ms: f"{ms:.3g} ms",
    )
    mebibytes = int(rows[0]["bytes"]) / 2**20
    panels[0].set(
        title=f"{mebibytes:g} MiB over a simulated link, {rows[0]['ranks']} ranks",
        xlabel="milliseconds (less is better)",
    )
    return figure


def draw_bench_cross_overs(measured):
    """Ring against reduce + broadcast over a link: which wins at which size."""
    rows = rows_of(measured)
    figure, panels = new_figure(1, width=5.2)
    panel = panels[0]
    for way, color in (("reduce+broadcast", ORANGE), ("ring", BLUE)):
        mine = [row for row in rows if row["algorithm"] == way]
        sizes = [int(row["bytes"]) / 1024 for row in mine]
        panel.plot(sizes, [float(row["seconds"]) * 1e3 for row in mine], color=color,
                   marker="o", markersize=4, label=way)
        panel.plot(sizes, [float(row["expected_seconds"]) * 1e3 for row in mine], color=color,
                   linestyle=":", linewidth=1.2)
    panel.plot([], [], color=GREY, linestyle=":", linewidth=1.2, label="predicted")
    panel.set(title="Fewer messages, or fewer bytes?", xlabel="KiB, over a simulated link",
              ylabel="milliseconds (less is better)", xscale="log", yscale="log")
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        axis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    panel.xaxis.set_major_locator(matplotlib.ticker.LogLocator(base=2, subs=(1.0,), numticks=12))
    panel.yaxis.set_major_locator(matplotlib.ticker.LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    panel.legend(loc="lower right")
    return figure


def draw_all_reduce_steps(measured):
    """Who holds what in a ring after each step, and below it what each port has carried."""
    columns = [measured.numbers(name) for name in ("step", "rank", "chunk", "ranks", "received")]
    rows = [
        list(map(int, row))
        for algorithm, *row in zip(measured.text("algorithm"), *columns) if algorithm == "ring"
    ]
    ranks, steps = max(row[1] for row in rows) + 1, max(row[0] for row in rows) + 1
    chunk_bytes = max(row[4] for row in rows)
    figure, panels = plt.subplots(2, steps, figsize=(1.55 * steps, 4.3), sharey="row",
                                  height_ratios=(3, 1.5))
    carried = [0.0] * ranks  # arrays, by rank
    for step in range(steps):
        holds, ports = panels[0][step], panels[1][step]
        for _, rank, chunk, held, received in (row for row in rows if row[0] == step):
            members = [r for r in range(ranks) if held >> r & 1]
            for i, member in enumerate(members):  # a stripe for each rank that is in the sum
                height = 0.8 / ranks
                holds.barh(chunk + 0.4 - (i + 0.5) * height, 0.8, left=rank - 0.4, height=height,
                           color=RANKS[member % len(RANKS)])
            is_whole = len(members) == ranks
            edge = dict(edgecolor="black", linewidth=2.0) if received else dict(
                edgecolor="#c9cdd2", linewidth=0.6)
            holds.add_patch(
                plt.Rectangle((rank - 0.4, chunk - 0.4), 0.8, 0.8, fill=False,
                              zorder=4 if received else 3, **edge))
            if is_whole:
                holds.annotate("✓", (rank, chunk), ha="center", va="center", color="white",
                               fontsize=9, fontweight="bold", zorder=5)
            carried[rank] += received / chunk_bytes / ranks
        title = "begin" if step == 0 else f"step {step}: {'add' if step < ranks else 'copy'}"
        holds.set_title(title, fontsize=9.5, loc="center")
        holds.set(xlim=(-0.6, ranks - 0.4), ylim=(ranks - 0.4, -0.6), xticks=[],
                  yticks=range(ranks))
        holds.set_yticklabels([f"chunk {chunk}" for chunk in range(ranks)])
        ports.bar(range(ranks), carried, width=0.8,
                  color=[RANKS[r % len(RANKS)] for r in range(ranks)])
        ports.set(xlim=(-0.6, ranks - 0.4), ylim=(0, 1.1 * 2 * (ranks - 1) / ranks),
                  xticks=range(ranks))
        ports.set_xticklabels([str(r) for r in range(ranks)])
        for panel in (holds, ports):
            panel.tick_params(length=0)
            panel.grid(visible=False)
            panel.spines[["left", "bottom"]].set_visible(False)
        ports.spines["bottom"].set_visible(True)
        ports.grid(axis="y")
    panels[1][0].set_ylabel("arrays through\nthe port, in")
    panels[1][steps // 2].set_xlabel("rank")
    figure.suptitle(
        "Who holds what: a stripe for each rank in the sum (✓: of all); "
        "framed: it has just come in",
        x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    return figure


def draw_all_reduce_ports(measured):
    """What the busiest port carries, for 2 to 64 ranks."""
    figure, (panel,) = new_figure(1, width=8.2, height=3.2)
    ranks = measured.numbers("ranks")
    for name, label, color in (
        ("server", "parameter server: 2 K (N − 1)", RED),
        ("reduce_broadcast", "reduce + broadcast: 2 K log2 N", ORANGE),
        ("ring", "ring: 2 K (N − 1) / N", BLUE),
    ):
        values = measured.numbers(name)
        panel.plot(ranks, values, color=color)
        panel.annotate(f"{values[-1]:.3g} K, {label}", (ranks[-1], values[-1]), xytext=(5, 0),
                       textcoords="offset points", va="center", color=color)
    panel.set(title="Through the busiest port", xlabel="ranks N, with K bytes each",
              ylabel="bytes, in K (logarithmic)", yscale="log")
    panel.set_xticks([2, 8, 16, 32, 48, 64])
    panel.set_yticks([1, 2, 6, 14, 30, 126])
    panel.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    panel.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    panel.set_ylim(0.8, 200)
    return figure


def draw_bench_all_reduce(measured):
    """All-reduces of every size, beside MPI or NCCL and what the memory allows."""
    names = ("algorithm", "ranks", "bytes", "busbw_gbs")
    rows = [row for row in zip(*(measured.text(name) for name in names)) if row[3] != "n/a"]
    counts = sorted({int(row[1]) for row in rows})
    if not counts:
        raise ValueError("one rank has no bus bandwidth: measure two or more")
    figure, panels = new_figure(len(counts), width=5.0, height=3.8)
    styles = {
        "limit": dict(color=GREY, linestyle=":"),
        "mpi": dict(color=RED, linestyle="--", marker="o"),
        "mpi_tuned": dict(color=RED, marker="o"),
        "nccl": dict(color=RED, marker="s"),
        "native": dict(color=BLUE, marker="o", linewidth=2.6),
        "two-shot": dict(color=GREEN),
        "ring": dict(color=ORANGE),
        "one-shot": dict(color="#8e5bb5"),
        "host ring": dict(color=ORANGE, linestyle="--"),
        "reduce+broadcast": dict(color="#6b7a3a", linestyle="--"),
        "server": dict(color="#7a4a2b", linestyle="--"),
        "mine": dict(color="black", marker="D", linewidth=2.2),
    }
    # MPIs that --mpi has named, and all-reduces that are new.
    others = sorted({row[0] for row in rows} - set(styles))
    for name, marker in zip(others, "sv^P"):
        styles[name] = dict(color="#d98880" if "MPI" in name else "#3a6b6b", linestyle=":",
                            marker=marker)
    for panel, ranks in zip(panels, counts):
        for name, style in styles.items():
            points = [(int(row[2]), float(row[3])) for row in rows
                      if row[0] == name and int(row[1]) == ranks]
            if points:
                panel.plot(*zip(*points), label=name, markersize=3.5, **style)
        panel.set(title=f"All-reduce on {ranks} ranks", ylabel="bus bandwidth, GB/s", yscale="log")
        size_axis(panel, [int(row[2]) for row in rows])
        panel.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    panels[-1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


DRAWINGS = {
    "all_reduce": draw_all_reduce,
    "all_reduce_steps": draw_all_reduce_steps,
    "all_reduce_ports": draw_all_reduce_ports,
    "bench_all_reduce": draw_bench_all_reduce,
    "bench_cross_overs": draw_bench_cross_overs,
}
