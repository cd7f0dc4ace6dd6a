"""The pictures of the chapter kernels."""
import matplotlib.ticker
import matplotlib.pyplot as plt

from shared import BLUE, GREY, REDUCTIONS, new_figure, bars


def draw_kernels(measured):
    """How fast five kernels read, beside a loop that only reads."""
    figure, (panel,) = new_figure(1, width=7.6, height=3)
    versions = measured.text("version")
    panel.set_xscale("log")
    speeds = measured.numbers("gbs")
    bars(panel, versions, speeds, [REDUCTIONS[version] for version in versions],
         lambda speed: f"{speed:.3g} GB/s" if speed >= 1 else f"{1e3 * speed:.3g} MB/s")
    panel.axvline(speeds[versions.index("limit")], color=GREY, linestyle=":", linewidth=1.2)
    panel.set_xlim(0.5 * min(speeds), 5 * max(speeds))
    panel.set(title="Five ways to one sum, and the memory's limit",
              xlabel="bytes read, GB/s (logarithmic; more is better)")
    return figure


def draw_kernels_warps(measured):
    """Which lanes of a block's four warps add in each step of two trees."""
    figure, panels = plt.subplots(2, 1, figsize=(8.6, 5.4), sharex=True)
    rows = list(
        zip(measured.text("order"),
            *(map(int, measured.text(name)) for name in ("step", "thread"))))
    threads = (max(thread for _, _, thread in rows) // 32 + 1) * 32
    kinds = {
        "adds": BLUE, "idle, but its warp is busy": "#a4a9b1",
        "idle, as its whole warp is": "#f4f5f6"
    }
    for panel, order in zip(panels, ("interleaved", "sequential")):
        additions_of_warps = 0
        for step in sorted({step for _, step, _ in rows}):
            adding = [thread for name, at, thread in rows if (name, at) == (order, step)]
            for first in range(0, threads,
                               32):  # a warp's row of 32 lanes, and on it those that add
                is_busy = any(first <= thread < first + 32 for thread in adding)
                additions_of_warps += is_busy
                panel.broken_barh([(first + 0.5, 30.75)], (step - 0.36, 0.72),
                                  color=list(kinds.values())[1 if is_busy else 2], linewidth=0)
            panel.broken_barh([(thread // 32 * 32 + 0.5 + 0.97 * (thread % 32), 0.68)
                               for thread in adding], (step - 0.36, 0.72), color=BLUE, linewidth=0)
        panel.set(title=f"{order}: a warp adds {additions_of_warps} times", ylabel="step",
                  xlim=(0, threads + 0.5), ylim=(7.6, 0.4))
        panel.set_yticks(range(1, 8))
        panel.set_xticks([first + 15.9 for first in range(0, threads, 32)], [
            f"warp {first // 32}: threads {first} to {first + 31}"
            for first in range(0, threads, 32)
        ])
        panel.grid(visible=False)
    handles = [plt.Rectangle((0, 0), 1, 1, color=color) for color in kinds.values()]
    panels[1].legend(handles, kinds, loc="upper center", ncol=3, bbox_to_anchor=(0.5, -0.16))
    return figure


def draw_bench_reduce(measured):
    """Five ways to add up an array, in blocks of every size, against the memory."""
    figure, (panel,) = new_figure(1, width=5.2)
    rows = list(zip(measured.text("version"), *map(measured.numbers, ("block", "gbs"))))
    for version in dict.fromkeys(row[0] for row in rows if row[0] != "limit"):
        points = [row[1:] for row in rows if row[0] == version]
        panel.plot(*zip(*points), color=REDUCTIONS[version], marker="o", label=version)
    limit = next(row[2] for row in rows if row[0] == "limit")
    panel.axhline(limit, color=GREY, linestyle=":", linewidth=1.2, label="only reading")
    panel.set(title="How fast five versions read", xlabel="threads of a block", ylabel="GB/s",
              yscale="log")
    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_formatter(matplotlib.ticker.ScalarFormatter())
    panel.set_xticks(sorted({row[1] for row in rows if row[0] != "limit"}))
    panel.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


DRAWINGS = {
    "kernels_warps": draw_kernels_warps,
    "kernels": draw_kernels,
    "bench_reduce": draw_bench_reduce,
}
