"""The pictures of the chapter sharded."""
from shared import BLUE, ORANGE, GREEN, RED, GREY, new_figure

KINDS = {
    "parameters": BLUE, "gathered": "#9cc0ea", "gradients": GREEN, "buckets": "#a5d6b5",
    "moments": ORANGE, "activations": GREY, "communicator": "#d0d0d0"
}


def draw_bill(measured):
    """What a rank keeps at each stage, by kind: a panel for each number of ranks."""
    kinds = {kind: measured.numbers(kind) for kind in KINDS}
    stages, ranks = measured.numbers("stage"), measured.numbers("ranks")
    counts = sorted(set(ranks))
    figure, panels = new_figure(len(counts), width=2.9)
    highest = max(sum(values[i] for values in kinds.values()) for i in range(len(ranks)))
    for panel, count in zip(panels, counts):
        rows = [i for i, of_row in enumerate(ranks) if of_row == count]
        bottom = [0.0] * len(rows)
        for kind, values in kinds.items():
            heights = [values[i] / 2**20 for i in rows]
            panel.bar([stages[i] for i in rows], heights, bottom=bottom, color=KINDS[kind],
                      width=0.68, label=kind)
            bottom = [low + height for low, height in zip(bottom, heights)]
        panel.axhline(bottom[0] / count, color=RED, linestyle=":", linewidth=1.2,
                      label="DDP's bytes / ranks")
        panel.set(title=f"{count:.0f} rank{'s' if count > 1 else ''}", xlabel="stage")
        panel.set_xticks([0, 1, 2, 3], ["DDP", "1", "2", "3"])
        panel.set_ylim(0, 1.05 * highest / 2**20)
        panel.grid(axis="x", visible=False)
    panels[0].set_ylabel("MiB on each rank")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncol=8)
    return figure


DRAWINGS = {
    "sharded_bill": draw_bill,
}
