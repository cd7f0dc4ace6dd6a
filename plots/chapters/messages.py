"""The pictures of the chapter messages."""
import matplotlib.pyplot as plt

from shared import BLUE, ORANGE, TIMELINE, new_figure, size_axis


def draw_messages(measured):
    """What a message costs, measured and as alpha + bytes beta."""
    figure, (seconds, bandwidth) = new_figure(2)
    sizes = measured.numbers("bytes")
    for panel, name, factor in ((seconds, "seconds", 1e6), (bandwidth, "bytes_per_second", 1e-9)):
        panel.plot(sizes, [factor * value for value in measured.numbers(name)], color=BLUE,
                   marker="o", label="measured")
        panel.set(xscale="log", yscale="log")
        size_axis(panel, sizes[::2])
    model = measured.numbers("model_seconds")
    seconds.plot(sizes, [1e6 * value for value in model], color=ORANGE, linestyle="--",
                 label="alpha + bytes beta")
    bandwidth.plot(sizes, [1e-9 * size / value for size, value in zip(sizes, model)], color=ORANGE,
                   linestyle="--", label="alpha + bytes beta")
    seconds.set(title="A message takes", ylabel="microseconds",
                ylim=(0.2e6 * min(model), 5e6 * max(model)))
    bandwidth.set(title="... which is a bandwidth of", ylabel="GB/s")
    seconds.legend(loc="upper left")
    return figure


def draw_messages_timeline(measured):
    """A network split over two ranks; who computes when."""
    rows = list(
        zip(measured.text("schedule"), measured.numbers("rank"), measured.text("name"),
            measured.numbers("begin_ms"), measured.numbers("end_ms")))
    lanes = list(
        dict.fromkeys(sorted(((way, rank) for way, rank, *_ in rows), key=lambda lane: lane[1])))
    ways = list(dict.fromkeys(row[0] for row in rows))
    lanes.sort(key=lambda lane: (ways.index(lane[0]), lane[1]))
    places = {lane: i + 0.7 * ways.index(lane[0]) for i, lane in enumerate(lanes)}
    figure, (panel,) = new_figure(1, width=9.6, height=1.2 + 0.4 * max(places.values()))
    length = max(row[4] for row in rows)
    for way, rank, name, begin, end in rows:
        kind, number = name.split()
        panel.barh(places[way, rank], end - begin, left=begin, height=0.84, edgecolor="white",
                   linewidth=0.7, color=TIMELINE[kind][1])
        if end - begin > 0.02 * length:
            panel.annotate(number, ((begin + end) / 2, places[way, rank]), ha="center",
                           va="center_baseline", color="white", fontsize=8)
    panel.set_yticks(
        list(places.values()),
        [f"{way}: rank {rank:.0f}" if rank == 0 else f"rank {rank:.0f}" for way, rank in lanes])
    panel.set_ylim(max(places.values()) + 0.6, -0.6)
    panel.set_xlim(0, length)
    panel.grid(axis="y", visible=False)
    panel.tick_params(axis="y", length=0)
    panel.set(title="A network split over two ranks: one step, and its micro-batches",
              xlabel="milliseconds")
    kinds = ("forward", "backward")
    handles = [plt.Rectangle((0, 0), 1, 1, color=TIMELINE[kind][1]) for kind in kinds]
    panel.legend(handles, kinds, loc="lower right", bbox_to_anchor=(1, 1), ncol=2, handlelength=1,
                 borderaxespad=0.2)
    return figure


DRAWINGS = {
    "messages": draw_messages,
    "messages_timeline": draw_messages_timeline,
}
