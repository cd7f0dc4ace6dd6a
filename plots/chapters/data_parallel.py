"""The pictures of the chapter data_parallel."""
from shared import BLUE, ORANGE, GREY, new_figure


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


DRAWINGS = {
    "data_parallel": draw_data_parallel,
}
