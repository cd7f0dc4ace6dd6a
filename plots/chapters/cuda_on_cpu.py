"""The pictures of the bench of barriers."""
from shared import BLUE, ORANGE, RED, new_figure, bars


def draw_bench_barriers(measured):
    """A barrier of one block, by three kinds of threads."""
    figure, (panel,) = new_figure(1, width=7.2, height=2.4)
    rows = [(way, us) for way, us in zip(measured.text("way"), measured.numbers("barrier_us"))
            if "launch" not in way]
    panel.set_xscale("log")
    bars(panel, [way for way, _ in rows], [us for _, us in rows], [BLUE, ORANGE, RED],
         lambda us: f"{us:,.0f} µs" if us >= 100 else f"{us:.3g} µs")
    panel.set_xlim(1, max(us for _, us in rows) * 4)
    threads = measured.text("threads")[0]
    panel.set(title=f"A barrier of {threads} threads on a CPU",
              xlabel="microseconds (logarithmic; less is better)")
    return figure


DRAWINGS = {
    "bench_barriers": draw_bench_barriers,
}
