"""The pictures of the chapter broadcast."""
import matplotlib.pyplot as plt

from shared import BLUE, ORANGE, GREEN, RED, GREY, new_figure, predicted_and_measured, size_axis


def draw_broadcast(measured):
    """The readers' file, and broadcasts on the machine."""
    columns = ("table", "algorithm", "ranks", "bytes", "seconds", "predicted_seconds")
    rows = [dict(zip(columns, row)) for row in zip(*map(measured.text, columns))]
    figure, (story, machine) = new_figure(2, width=5)
    told = [row for row in rows if row["table"] == "worked example"]
    predicted_and_measured(
        story,
        [row["algorithm"] for row in told],
        [float(row["predicted_seconds"]) for row in told],
        [float(row["seconds"]) for row in told],
        lambda seconds: f"{seconds:.1f}",
    )
    readers = int(told[0]["ranks"]) - 1
    story.set(title=f"5 MB for {readers} reader{'s' if readers > 1 else ''} at 1 MB/s",
              xlabel="seconds until the last one has it")
    runs = [row for row in rows if row["table"] == "machine"]
    for way, color in zip(dict.fromkeys(row["algorithm"] for row in runs),
                          (BLUE, ORANGE, GREEN, RED)):
        mine = [row for row in runs if row["algorithm"] == way]
        sizes = [int(row["bytes"]) for row in mine]
        machine.plot(sizes, [float(row["seconds"]) * 1e6 for row in mine], color=color, marker="o",
                     markersize=4, label=way)
        machine.plot(sizes, [float(row["predicted_seconds"]) * 1e6 for row in mine], color=color,
                     linestyle=":", linewidth=1.2)
    machine.set_yscale("log")
    size_axis(machine, [int(row["bytes"]) for row in runs])
    machine.plot([], [], color=GREY, linestyle=":", linewidth=1.2, label="predicted")
    machine.legend(loc="upper left")
    machine.set(title=f"A broadcast among {runs[0]['ranks']} ranks", xlabel="size of the array",
                ylabel="microseconds (less is better)")
    return figure


def draw_broadcast_readers(measured):
    """When each reader receives the file, in four ways: bars that fill."""
    rows = list(
        zip(measured.text("algorithm"),
            *map(measured.numbers, ("reader", "begin_seconds", "end_seconds"))))
    algorithms = list(dict.fromkeys(row[0] for row in rows))
    readers = int(max(row[1] for row in rows))
    figure, panels = plt.subplots(len(algorithms), 1, figsize=(8.6, 1.55 * len(algorithms) + 0.4),
                                  sharex=True)
    length = max(row[3] for row in rows)
    for panel, algorithm in zip(panels, algorithms):
        mine = [row[1:] for row in rows if row[0] == algorithm]
        for reader, begin, end in mine:
            panel.fill_between([begin, end], [reader + 0.36, reader + 0.36],
                               [reader + 0.36, reader - 0.36], color=BLUE, linewidth=0)
            panel.barh(reader, end - begin, left=begin, height=0.72, facecolor="none",
                       edgecolor=BLUE, linewidth=0.7)
            panel.barh(reader, 1.02 * length - end, left=end, height=0.72, color="#cfe0f3")
        panel.set_ylim(readers + 0.6, 0.4)
        panel.set_yticks([1, readers], ["first", "last"])
        panel.set_xlim(0, 1.02 * length)
        panel.grid(axis="y", visible=False)
        panel.tick_params(axis="y", length=0)
        panel.set_title(f"{algorithm}: {max(row[2] for row in mine):.1f} s", fontsize=10)
    panels[-1].set_xlabel("seconds")
    handles = [
        plt.Polygon([(0, 0), (1, 0), (1, 1)], color=BLUE),
        plt.Rectangle((0, 0), 1, 1, color="#cfe0f3")
    ]
    panels[0].legend(handles, ["receiving: the height is the part of the file", "has all of it"],
                     loc="lower right", bbox_to_anchor=(1, 1), ncol=2, borderaxespad=0.1)
    return figure


DRAWINGS = {
    "broadcast": draw_broadcast,
    "broadcast_readers": draw_broadcast_readers,
}
