"""The pictures of the chapter ranks."""
import matplotlib.pyplot as plt

from shared import BLUE, GREEN, GREY, ORANGE, RED

KINDS = {
    "meeting": ("meeting", ORANGE),
    "working": ("working", GREEN),
    "waiting": ("waiting for rank 3", BLUE),
    "ending": ("told why, and ending", RED),
    "stopped": ("stopped", "#d9dbdf"),
    "watching": ("launcher", GREY),
}


def draw_bench_kill(measured):
    """Four ranks and their launcher: one rank is killed, one is stopped."""
    rows = list(
        zip(measured.text("fate"), measured.text("lane"), measured.text("what"),
            measured.numbers("begin_s"), measured.numbers("end_s")))
    fates = list(dict.fromkeys(row[0] for row in rows))
    lanes = list(dict.fromkeys(row[1] for row in rows))
    figure, axes = plt.subplots(len(fates), 1, figsize=(9.6, 2.5 * len(fates)), squeeze=False)
    for panel, fate in zip(axes[:, 0], fates):
        end = max(row[4] for row in rows if row[0] == fate)
        for which, lane, what, begin, finish in rows:
            if which != fate:
                continue
            # What takes a hundredth of a second is to be seen, too.
            panel.barh(lanes.index(lane), max(finish - begin, end / 250), left=begin, height=0.7,
                       color=KINDS[what][1])
            if what == "working":
                panel.plot(finish, lanes.index(lane), marker="x", color="black", markersize=9,
                           markeredgewidth=2.2)
                panel.annotate(f" {fate}", (finish + end / 100, lanes.index(lane)), va="center")
        panel.set_yticks(range(len(lanes)), lanes)
        panel.set_ylim(len(lanes) - 0.4, -0.6)
        panel.set_xlim(0, 1.06 * end)
        panel.grid(axis="y", visible=False)
        panel.tick_params(axis="y", length=0)
        panel.set(title=f"Rank {len(lanes) - 2} is {fate}")
    axes[-1, 0].set_xlabel("seconds since the job was started")
    handles = [plt.Rectangle((0, 0), 1, 1, color=color) for _, color in KINDS.values()]
    figure.legend(handles, [label for label, _ in KINDS.values()], loc="lower center",
                  bbox_to_anchor=(0.5, -0.06), ncol=len(KINDS), handlelength=1)
    return figure


DRAWINGS = {"bench_kill": draw_bench_kill}
