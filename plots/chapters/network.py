"""The pictures of the chapter network."""
import matplotlib.colors
import matplotlib.ticker
import matplotlib.pyplot as plt

from shared import BLUE, ORANGE, GREEN, RED, NothingToDraw, new_figure


def draw_network(measured):
    """What an epoch brings, on the training pictures and on those never seen."""
    epochs = measured.numbers("epoch")
    if len(epochs) < 2:
        raise NothingToDraw("one epoch makes no curve")
    figure, (loss, accuracy) = new_figure(2)
    loss.plot(epochs, measured.numbers("loss"), color=BLUE, marker="o")
    loss.set(title="The loss falls", xlabel="epoch", ylabel="mean cross entropy")
    loss.set_ylim(bottom=0)
    accuracy.plot(epochs, measured.numbers("train_accuracy"), color=BLUE, marker="o",
                  label="training pictures")
    accuracy.plot(epochs, measured.numbers("test_accuracy"), color=ORANGE, marker="o",
                  label="test pictures")
    accuracy.set(title="The accuracy rises", xlabel="epoch",
                 ylabel="share of pictures classified correctly")
    accuracy.legend(loc="lower right")
    for panel in (loss, accuracy):
        panel.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True))
    return figure


PROFILE = {  # how a part's name begins: what it is, color
    "loading": ("loading", "#8a8f98"),
    "forward": ("forward", BLUE),
    "backward": ("backward", GREEN),
    "optimizer": ("optimizer", ORANGE),
    "metrics": ("metrics", "#c3c7cd"),
}


def draw_network_profile(measured):
    """One step, its parts one behind the other."""
    figure, (panel,) = new_figure(1, width=9.6, height=1.9)
    parts, milliseconds = measured.text("part"), [
        1e3 * seconds for seconds in measured.numbers("seconds")
    ]
    total, begin = sum(milliseconds), 0.0
    for part, length in zip(parts, milliseconds):
        kind = part.split()[0]
        panel.barh(0, length, left=begin, height=0.8, color=PROFILE[kind][1], edgecolor="white",
                   linewidth=0.8)
        name = part.removeprefix(kind).removeprefix(" to").strip()
        if length > 0.012 * total * max(2.5, len(name)):
            panel.annotate(f"{name}\n{100 * length / total:.0f} %".strip(), (begin + length / 2, 0),
                           ha="center", va="center", color="white", fontsize=8.5)
        begin += length
    for name, color in PROFILE.values():
        share = sum(length
                    for part, length in zip(parts, milliseconds) if part.split()[0] == name) / total
        panel.barh(0, 0, color=color, label=f"{name} {100 * share:.1f} %")
    panel.set(title="Where a step's time goes", xlabel="milliseconds")
    panel.set_xlim(0, total)
    panel.set_yticks([])
    panel.grid(visible=False)
    panel.legend(loc="lower right", bbox_to_anchor=(1.01, 0.97), ncol=len(PROFILE), handlelength=1,
                 handletextpad=0.5, columnspacing=1.2)
    return figure


def pixels_of(text, width):
    """Rows of numbers from 0 to 255, from two hexadecimal digits each."""
    numbers = bytes.fromhex(text)
    return [list(numbers[at:at + width]) for at in range(0, len(numbers), width)]


def draw_network_pictures(measured):
    """The first test picture of each class and the first ten mistakes, with the answers."""
    columns = *map(measured.text, ("row", "shows", "says")), *map(
        measured.numbers, ("probability", "width")), measured.text("pixels")
    rows = list(zip(*columns))
    figure, grid = plt.subplots(2, 10, figsize=(12.4, 4.1), squeeze=False)
    for kind, line in zip(("first", "mistake"), grid):
        mine = [row for row in rows if row[0] == kind]
        for panel in line:
            panel.axis("off")
        for panel, (_, shows, says, probability, width, pixels) in zip(line, mine):
            panel.imshow(pixels_of(pixels, int(width)), cmap="gray_r", vmin=0, vmax=255,
                         interpolation="nearest")
            panel.set_title(f"{says}\n{100 * probability:.0f} %", fontsize=9, loc="center",
                            weight="normal", color=GREEN if shows == says else RED)
            if shows != says:
                panel.text(0.5, -0.1, f"is: {shows}", transform=panel.transAxes, ha="center",
                           va="top", fontsize=9)
    figure.suptitle(
        "What the network says of the first test picture of each class (above), "
        "and its first ten mistakes",
        x=0.01, ha="left", fontsize=11, weight="bold")
    return figure


def draw_network_confusion(measured):
    """The confusion matrix, a row for each class."""
    names = list(dict.fromkeys(measured.text("shows")))
    counts = measured.numbers("pictures")
    table = [counts[at:at + len(names)] for at in range(0, len(counts), len(names))]
    figure, (panel,) = new_figure(1, width=7.6, height=5.2)
    shares = [[count / max(1, sum(row)) for count in row] for row in table]
    panel.imshow(shares, cmap="Blues", norm=matplotlib.colors.PowerNorm(0.5, 0, 1), aspect="auto")
    for actual, row in enumerate(table):
        for predicted, count in enumerate(row):
            if count:
                panel.text(predicted, actual, f"{count:.0f}", ha="center", va="center",
                           fontsize=8.5,
                           color="white" if shares[actual][predicted] > 0.3 else "#2d3138")
    panel.set_xticks(range(len(names)), names, rotation=35, ha="right")
    panel.set_yticks(range(len(names)), names)
    panel.grid(visible=False)
    panel.tick_params(length=0)
    panel.set(title="Test pictures by what they show and what the network says",
              xlabel="the network says", ylabel="the picture shows")
    return figure


def draw_network_weights(measured):
    """Weights of the first layer, each output's as a picture."""
    rows = list(zip(measured.text("weights"), map(int, measured.numbers("width"))))
    figure, grid = plt.subplots((len(rows) + 7) // 8, 8,
                                figsize=(8.2, 0.6 + 1.02 * ((len(rows) + 7) // 8)), squeeze=False)
    for panel in grid.flat:
        panel.axis("off")
    for panel, (weights, width) in zip(grid.flat, rows):
        panel.imshow(pixels_of(weights, width), cmap="RdBu_r", vmin=1, vmax=255,
                     interpolation="nearest")
    figure.suptitle("What the first layer looks for: red adds, blue subtracts", x=0.01, ha="left",
                    fontsize=11, weight="bold")
    return figure


DRAWINGS = {
    "network": draw_network,
    "network_pictures": draw_network_pictures,
    "network_confusion": draw_network_confusion,
    "network_weights": draw_network_weights,
    "network_profile": draw_network_profile,
}
