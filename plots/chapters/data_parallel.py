"""The pictures of the chapter data_parallel."""
from shared import BLUE, GREEN, GREY, ORANGE, RANKS, RED, new_figure


def draw_data_parallel(measured):
    """The ranks' mean loss is that of one rank with all samples; alone, replicas drift apart."""
    figure, (loss, drift) = new_figure(2, width=5.4, height=3.8)
    steps = measured.numbers("step")
    loss.plot(steps, measured.numbers("alone"), color=GREY, linewidth=1,
              label="one rank alone, with its own samples")
    loss.plot(steps, measured.numbers("one_rank"), color=ORANGE, linewidth=3.5, alpha=0.55,
              label="one rank with the samples of all ranks")
    loss.plot(steps, measured.numbers("averaged"), color=BLUE, linewidth=1.2,
              label="all ranks, gradients averaged")
    loss.set(title="Averaged: as if one rank saw everything", xlabel="step",
             ylabel="cross entropy of the step's samples")
    loss.set_ylim(bottom=0)
    loss.legend(loc="upper right")
    for column, color, label in (("drift_alone", GREY, "alone"), ("drift_averaged", BLUE,
                                                                  "gradients averaged: 0")):
        values = [100 * value for value in measured.numbers(column)]
        places = [i for i, value in enumerate(values)
                  if i == 0 or value != values[i - 1]] if any(values) else [0, len(values) - 1]
        drift.plot([steps[i] for i in places], [values[i] for i in places], color=color, marker="o",
                   markersize=3, label=label)
    drift.set(title="Alone, replicas drift apart", xlabel="step",
              ylabel="distance from rank 0, % of its length")
    drift.set_ylim(bottom=0)
    drift.legend(loc="center right")
    return figure


def draw_data_parallel_replicas(measured):
    """Two parameters of each replica: alone each takes its own path, averaged all take one."""
    figure, panels = new_figure(2, width=5.0, height=4.2)
    rows = list(zip(*map(measured.text, ("gradients", "rank", "bias_0", "bias_1"))))
    ranks = sorted({int(rank) for _, rank, *_ in rows})
    for panel, gradients, title in zip(panels, ("alone", "averaged"),
                                       ("Alone: each its own path", "Averaged: one path for all")):
        for rank in ranks:
            path = [(float(x), float(y)) for which, r, x, y in rows
                    if which == gradients and int(r) == rank]
            # Where all take one path, the lines of the first ranks are wider, so that each is seen.
            width = 1.4 if gradients == "alone" else 1.4 + 2.2 * (len(ranks) - 1 - rank)
            panel.plot(*zip(*path), color=RANKS[rank % len(RANKS)], linewidth=width,
                       label=f"rank {rank}")
            panel.plot(*path[-1], color=RANKS[rank % len(RANKS)], marker="o",
                       markersize=4 + width, zorder=3)
        panel.plot(*path[0], color="black", marker="s", markersize=6, zorder=4)
        panel.set(title=title, xlabel="bias of class 0", ylabel="bias of class 1")
    low, high = (min(p.get_xlim()[0] for p in panels), max(p.get_xlim()[1] for p in panels))
    bottom, top = (min(p.get_ylim()[0] for p in panels), max(p.get_ylim()[1] for p in panels))
    for panel in panels:
        panel.set(xlim=(low, high), ylim=(bottom, top))
    panels[0].legend(loc="best")
    return figure


def draw_bench_learning_rate(measured):
    """One rank against several with the same rate, with the scaled one, and with a warm-up."""
    figure, (loss, accuracy) = new_figure(2, width=5.2, height=3.8)
    rows = list(
        zip(measured.text("training"), measured.numbers("epoch"), measured.numbers("loss"),
            measured.numbers("accuracy")))
    for name, color in zip(dict.fromkeys(row[0] for row in rows), (GREY, BLUE, RED, GREEN)):
        mine = [row for row in rows if row[0] == name]
        epochs = [row[1] for row in mine]
        for panel, column in ((loss, 2), (accuracy, 3)):
            panel.plot(epochs, [row[column] for row in mine], color=color, marker="o",
                       markersize=4, label=name)
    loss.set(title="The loss of an epoch", xlabel="epoch", ylabel="cross entropy")
    loss.set_ylim(bottom=0)
    accuracy.set(title="Test accuracy", xlabel="epoch")
    accuracy.legend(loc="lower right")
    return figure


DRAWINGS = {
    "bench_learning_rate": draw_bench_learning_rate,
    "data_parallel": draw_data_parallel,
    "data_parallel_replicas": draw_data_parallel_replicas,
}
