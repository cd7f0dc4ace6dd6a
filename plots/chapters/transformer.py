"""The pictures of the chapter transformer."""
import matplotlib.ticker
import matplotlib.pyplot as plt

from shared import BLUE, ORANGE, GREEN, RED, GREY, new_figure


def draw_transformer(measured):
    """The loss, and the learning rate; of real sentences the translations' BLEU instead."""
    figure, (loss, right) = new_figure(2, width=4.8)
    rows = list(
        zip(measured.text("what"), measured.numbers("step"), measured.numbers("loss"),
            measured.numbers("learning_rate")))
    steps, losses, rates = zip(*(row[1:] for row in rows if row[0] == "training"))
    loss.plot(steps, losses, color=BLUE, label="training")
    tested = [row for row in rows if row[0] == "validation"]
    loss.plot([row[1] for row in tested], [row[2] for row in tested], color=RED, marker="o",
              linestyle="none", label="validation")
    loss.set(title="The loss for a token", xlabel="step", yscale="log")
    loss.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    if min(losses) > 0.5:  # within a power of ten: there is room for all numbers
        loss.yaxis.set_minor_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    loss.legend()
    bleu = [(step, score)
            for what, step, score in zip(measured.text("what"), measured.numbers("step"),
                                         measured.numbers("bleu"))
            if what == "validation" and score > 0]
    if bleu:
        right.plot(*zip(*bleu), color=GREEN, marker="o", markersize=3, label="this book")
        reference = [(step, score)
                for what, step, score in zip(measured.text("what"), measured.numbers("step"),
                                             measured.numbers("bleu")) if what == "reference"]
        if reference:
            right.plot(*zip(*reference), color=ORANGE, marker="x", linestyle="none",
                       label="the same in PyTorch")
            right.legend(loc="lower right")
        right.set(title="BLEU of the held-out sentences", xlabel="step", ylim=(0, None))
    else:
        right.plot(steps, rates, color=ORANGE)
        right.set(title="The learning rate", xlabel="step", ylim=(0, None))
    return figure


def draw_transformer_attention(measured):
    """How much each token of a translation takes of each token of the source, in sentences."""
    sentences = list(dict.fromkeys(measured.text("sentence")))
    figure, panels = plt.subplots(1, len(sentences), figsize=(4.6 * len(sentences), 4.4),
                                  squeeze=False)
    rows = list(
        zip(measured.text("sentence"), measured.text("target"), measured.text("source"),
            measured.numbers("row"), measured.numbers("column"), measured.numbers("weight")))
    for panel, sentence in zip(panels[0], sentences):
        cells = [row[1:] for row in rows if row[0] == sentence]
        source = {int(column): text for _, text, _, column, _ in cells}
        target = {int(row): text for text, _, row, _, _ in cells}
        weights = [[0.0] * len(source) for _ in target]
        for _, _, row, column, weight in cells:
            weights[int(row)][int(column)] = weight
        shares = panel.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        panel.set_xticks(range(len(source)), [source[i].strip() for i in range(len(source))],
                         rotation=60, ha="right")
        panel.set_yticks(range(len(target)), [target[i].strip() for i in range(len(target))])
        panel.grid(visible=False)
        panel.tick_params(length=0)
        panel.set_title(sentence if len(sentence) < 46 else sentence[:44] + "…", fontsize=9)
    panels[0][0].set_ylabel("the next token of the translation")
    figure.colorbar(shares, ax=panels[0][-1], label="share that is taken of a token of the source")
    return figure


def draw_bench_transformer_parts(measured):
    """Where the time of a step goes, a bar a width."""
    groups = {
        "forward encoder": BLUE, "forward decoder": "#8fb4e0", "forward scores": ORANGE,
        "backward scores": "#f3c98b", "backward decoder": "#9fd3b0", "backward encoder": GREEN,
        "the rest": GREY
    }
    rows = list(zip(measured.numbers("width"), measured.text("part"), measured.numbers("seconds")))
    widths = sorted({width for width, _, _ in rows})
    figure, panel = plt.subplots(figsize=(8.6, 2.8))
    for place, width in enumerate(widths):
        times = dict.fromkeys(groups, 0)
        for _, part, seconds in (row for row in rows if row[0] == width):
            # The loss belongs to the scores: both walk over the whole vocabulary.
            name = " ".join(part.replace("loss", "scores").split()[:2])
            times[name if name in groups else "the rest"] += seconds * 1e3
        left = 0
        for name, time in times.items():
            panel.barh(place, time, left=left, color=groups[name], height=0.62,
                       label=name if place == 0 else None)
            left += time
        panel.annotate(f"{left:.0f} ms", (left, place), xytext=(4, 0), textcoords="offset points",
                       va="center", fontsize=9)
    panel.set_yticks(range(len(widths)), [f"width {width:.0f}" for width in widths])
    panel.grid(visible=False, axis="y")
    panel.invert_yaxis()
    panel.margins(x=0.1)
    panel.set(title="A step of one rank, by part", xlabel="milliseconds")
    panel.legend(loc="upper center", bbox_to_anchor=(0.45, -0.35), ncol=4)
    return figure


DRAWINGS = {
    "transformer": draw_transformer,
    "transformer_debian": draw_transformer,
    "transformer_attention": draw_transformer_attention,
    "bench_transformer_parts": draw_bench_transformer_parts,
}
