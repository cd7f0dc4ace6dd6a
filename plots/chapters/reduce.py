"""The pictures of the chapter reduce."""
import matplotlib.ticker

from shared import GREY, REDUCTIONS, new_figure, bars


def draw_reduce(measured):
    """How far from the exact sum each order of additions ends."""
    figure, (panel,) = new_figure(1, width=7.6, height=3.6)
    orders = measured.text("order")
    colors = [
        REDUCTIONS[order.removeprefix("kernel, ")] if order.startswith("kernel") else GREY
        for order in orders
    ]
    errors = measured.numbers("last_places")
    panel.set_xscale("symlog", linthresh=1)
    bars(panel, orders, [abs(error) for error in errors], colors, lambda error: f"{error:.1f}")
    panel.set_xlim(0, 3 * max(2, *map(abs, errors)))
    panel.xaxis.set_major_formatter(matplotlib.ticker.ScalarFormatter())
    panel.set(
        title="The same million floats, added in nine orders", xlabel=
        "units of the last place away from the exact sum (logarithmic beyond 1; less is better)")
    return figure


DRAWINGS = {
    "reduce": draw_reduce,
}
