"""The pictures of the chapter nodes."""
from shared import BLUE, GREY, ORANGE, new_figure


def size_of(count):
    return f"{count / 2**20:g} MiB" if count >= 2**20 else f"{count / 2**10:g} KiB"


def draw_nodes(measured):
    """What leaves a node, and the time, of one ring and of two levels."""
    levels, sizes = measured.numbers("levels"), measured.numbers("bytes")
    counted = [
        float(sent or expected) for sent, expected in zip(
            measured.text("bytes_leaving_node"), measured.text("expected_bytes_leaving_node"))
    ]
    milliseconds = [1e3 * seconds for seconds in measured.numbers("seconds")]
    distinct = sorted(set(sizes))
    figure, (traffic, time) = new_figure(2, width=4.4)
    for level, color, name in ((1, ORANGE, "one ring"), (2, BLUE, "two levels")):
        rows = [i for i, of_row in enumerate(levels) if of_row == level]
        places = [distinct.index(sizes[i]) + 0.4 * level - 0.6 for i in rows]
        traffic.bar(places, [counted[i] / sizes[i] for i in rows], width=0.38, color=color,
                    label=name)
        time.plot([distinct.index(sizes[i]) for i in rows], [milliseconds[i] for i in rows],
                  color=color, marker="o", label=name)
    traffic.axhline(1, color=GREY, linestyle=":", linewidth=1.2)
    traffic.set(title="What leaves a node", ylabel="arrays")
    time.set(title="What it takes", ylabel="milliseconds", yscale="log")
    for panel in (traffic, time):
        panel.set_xticks(range(len(distinct)), [size_of(size) for size in distinct])
        panel.set_xlabel("size of the array")
    time.legend(loc="upper left")
    return figure


DRAWINGS = {"nodes": draw_nodes}
