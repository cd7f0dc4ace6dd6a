"""The pictures of the chapter sync_batch_norm."""
import matplotlib.ticker

from shared import BLUE, ORANGE, GREY, new_figure


def draw_sync_batch_norm(measured):
    """Each rank learns from its own class: the accuracy in training and in the test."""
    figure, panels = new_figure(2)
    epochs = measured.numbers("epoch")
    for panel, column, title in zip(panels, ("batch_norm", "sync_batch_norm"),
                                    ("BatchNorm", "SyncBatchNorm")):
        panel.plot(epochs, measured.numbers(f"{column}_train"), color=BLUE, marker="o",
                   markersize=4, label="in training")
        panel.plot(epochs, measured.numbers(f"{column}_test"), color=ORANGE, marker="o",
                   markersize=4, label="in the test")
        panel.axhline(1 / 3, color=GREY, linestyle=":", linewidth=1.2, label="guessing")
        panel.set(title=title, xlabel="epoch", ylabel="share classified correctly")
        panel.set_ylim(0, 1.04)
        panel.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True))
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16),
                     ncol=3)  # below: no corner is free in every case
    return figure


DRAWINGS = {
    "sync_batch_norm": draw_sync_batch_norm,
}
