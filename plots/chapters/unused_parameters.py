"""The pictures of the chapter unused_parameters."""
import matplotlib.pyplot as plt

from shared import BLUE, RED, GREY, TIMELINE, new_figure, bars


def draw_bench_cures(measured):
    """What the cures cost in a step that needs none of them."""
    figure, (panel,) = new_figure(1, width=7.2, height=2.6)
    ways, ratios = measured.text("way"), measured.numbers("ratio")
    bars(panel, ways, ratios, [GREY if way.startswith("plain") else BLUE for way in ways],
         lambda ratio: f"{ratio:.2f}")
    panel.axvline(1, color=GREY, linestyle=":", linewidth=1.2)
    panel.set(title=f"A step that uses everything, on {measured.text('ranks')[0]} ranks",
              xlabel="times a step of plain DDP (less is better)")
    return figure


def draw_unused_parameters_timeline(measured):
    """A step in which one rank leaves out a branch, and the same with find_unused_parameters."""
    columns = map(measured.text,
                  ("part", "rank", "stream", "name")), map(measured.numbers, ("begin_ms", "end_ms"))
    rows = list(zip(*(column for kind in columns for column in kind)))
    parts = [(part, title)
             for part, title in (("hangs",
                                  "One rank has no gradient for bucket 1: all others wait for it"),
                                 ("cured", "With find_unused_parameters: zeros in its place"))
             if any(row[0] == part for row in rows)]
    lanes = sorted({(int(rank), stream) for _, rank, stream, *_ in rows}, key=lambda lane:
                   (lane[0], lane[1] != "compute"))
    places = {lane: i + 0.4 * lane[0] for i, lane in enumerate(lanes)}
    room = max(1.2, 0.4 + 0.3 * max(places.values()))  # inches of a panel, about
    others = {"the map's all-reduce": ("used map", "#8e5bb5"), "at a barrier": ("elsewhere", GREY)}
    kinds = dict(
        TIMELINE,
        **{label: kind for label, kind in others.items() if any(row[3] == kind[0] for row in rows)})
    figure, panels = plt.subplots(len(parts), 1,
                                  figsize=(9.6, max(3.1,
                                                    len(parts) * (0.7 + room) + 0.9)),
                                  squeeze=False)
    for (part, title), panel in zip(parts, panels[:, 0]):
        mine = [row[1:] for row in rows if row[0] == part]
        whole = max(end for *_, end in mine)
        short = [end for *_, begin, end in mine
                 if end < whole / 2]  # what ends before the time is up
        length = whole if part == "cured" or not short else 1.7 * max(short)
        for rank, stream, name, begin, end in mine:
            if begin > length:
                continue
            color = next(color for start, color in kinds.values() if name.startswith(start))
            place = places[int(rank), stream]
            panel.barh(place,
                       min(end, length) - begin, left=begin, height=0.84, color=color,
                       edgecolor="white", linewidth=0.7)
            label = name.removeprefix("bucket ").split(",")[0] if name.startswith(
                "bucket") else "map" if name == "used map" else ""
            if end > length and label:
                label = f"bucket {label}: waits until the time is up, after {end / 1000:.1f} s"
            if label and min(end, length) - begin > (0.04 if label == "map" else 0.015) * length:
                panel.annotate(label, ((begin + min(end, length)) / 2, place), ha="center",
                               va="center_baseline", color="white", fontsize=8)
        for rank, begin in ((rank, begin) for rank, _, name, begin, _ in mine
                            if name == "elsewhere"):
            sent = [row for row in mine if row[0] == rank and row[1] == "communication"]
            panel.annotate(f"bucket {len(sent)} is never sent",
                           (max([begin, *(row[4]
                                          for row in sent)]), places[int(rank), "communication"]),
                           xytext=(5, 0), textcoords="offset points", va="center_baseline",
                           color=RED, fontsize=9)
        panel.set_yticks(list(places.values()), [
            f"rank {rank} {'computes' if stream == 'compute' else 'communicates'}"
            for rank, stream in lanes
        ])
        panel.set_ylim(max(places.values()) + 0.6, -0.6)
        panel.set_xlim(0, length)
        panel.grid(axis="y", visible=False)
        panel.tick_params(axis="y", length=0)
        panel.set(title=title, xlabel="milliseconds")
    panel.legend([plt.Rectangle((0, 0), 1, 1, color=color) for _, color in kinds.values()],
                 list(kinds), loc="upper center", bbox_to_anchor=(0.45, -0.62 / room), ncol=4)
    return figure


DRAWINGS = {
    "bench_cures": draw_bench_cures,
    "unused_parameters_timeline": draw_unused_parameters_timeline,
}
