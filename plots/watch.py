#!/usr/bin/env python3
"""Draws a training on the terminal while it runs: the file that the run writes, line by line.

    ./book watch                 out/run.jsonl, which ./book run 20 writes
    ./book watch FILE            the file of another run
    watch.py --once FILE         one picture of what there is, and the end

It ends with the run, or at Ctrl-C. It only reads: the training does not know of it. A run that is
killed and started again goes on in the same file, and so does the picture.
"""
import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it at once, wherever it is

import argparse  # noqa: E402
import json  # noqa: E402
import pathlib  # noqa: E402
import shutil  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402

REDRAW_AFTER = 0.5  # seconds
PATIENCE = 60  # seconds without a file
DOTS = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]]  # of a character, by row and column


class Run:
    """What the lines of the file say."""

    def __init__(self):
        self.name, self.has_ended, self.last = "", False, None
        self.losses, self.validations = {}, {}  # by step

    def read(self, line):
        """Takes one line; a line that is no object of ours is left out."""
        try:
            event = json.loads(line)
            kind = event["event"]
            if kind == "start":
                self.name, self.has_ended = str(event["name"]), False
                # Steps behind the checkpoint are made again.
                kept = [step for step in self.losses if step <= event["step"]]
                self.losses = {step: self.losses[step] for step in kept}
            elif kind == "step":
                self.losses[int(event["step"])] = float(event["loss"])
                names = ("step", "steps", "epoch", "tokens_per_second", "learning_rate")
                self.last = {name: event[name] for name in names}
            elif kind == "epoch":
                self.validations[int(event["step"])] = float(event["validation_loss"])
            elif kind == "end":
                self.has_ended = True
        except (ValueError, KeyError, TypeError):
            return


def curve(losses, columns, rows):
    """The points (step, loss) as lines of Braille characters, of two columns and four rows each."""
    steps = sorted(losses)
    low, high = min(losses.values()), max(losses.values())
    first, span = steps[0], max(1, steps[-1] - steps[0])
    cells = [[0] * columns for _ in range(rows)]
    for step in steps:
        x = (step - first) * (2 * columns - 1) // span
        y = round((high - losses[step]) / ((high - low) or 1) * (4 * rows - 1))
        cells[y // 4][x // 2] |= DOTS[y % 4][x % 2]
    return ["".join(chr(0x2800 + cell) for cell in row) for row in cells]


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def picture(run, columns, seconds_left):
    """The lines of the picture, at most `columns` wide."""
    if run.last is None:
        return [f"{run.name}: no step yet"[:columns]]
    step, steps = run.last["step"], run.last["steps"]
    lines = [f"{run.name}  epoch {run.last['epoch']}  step {step} of {steps}  "
             f"loss {run.losses[step]:.3f}"]
    plot = curve(run.losses, max(10, columns - 10), 10)
    labels = {0: max(run.losses.values()), len(plot) - 1: min(run.losses.values())}
    lines += [(f"{labels[i]:8.3f} " if i in labels else " " * 9) + row
              for i, row in enumerate(plot)]
    lines.append(" " * 9 + f"steps {min(run.losses)} to {max(run.losses)}")
    if run.validations:
        latest = sorted(run.validations.items())[-8:]
        lines.append("validation  " + "  ".join(f"{loss:.3f}" for _, loss in latest))
    rate = (f"{run.last['tokens_per_second']:,.0f} tokens/s  "
            f"learning rate {run.last['learning_rate']:.2g}")
    if run.has_ended:
        rate += "  the run has ended"
    elif seconds_left is not None:
        rate += f"  {clock(seconds_left)} left"
    return [line[:columns] for line in lines + [rate]]


class Follower:
    """Reads what is new in the file; from its beginning again if another run has begun it anew."""

    def __init__(self, path):
        self.path, self.run, self.at, self.rest, self.file = path, Run(), 0, "", None

    def read(self):
        """Returns whether there was anything new."""
        status = self.path.stat()
        if self.file != status.st_ino or status.st_size < self.at:
            self.file, self.at, self.rest, self.run = status.st_ino, 0, "", Run()
        with open(self.path, encoding="utf-8", errors="replace", newline="\n") as file:
            file.seek(self.at)
            text = file.read()
            self.at = file.tell()
        lines = (self.rest + text).split("\n")
        self.rest = lines.pop()  # a line that is not whole yet
        for line in lines:
            self.run.read(line)
        return bool(text)


def watch(path):
    follower, drawn, started, news = Follower(path), 0, time.monotonic(), time.monotonic()
    first_step, first_time = None, 0.0
    while True:
        if not path.exists():
            if time.monotonic() - started > PATIENCE:
                sys.exit(f"There is no {path}: start a run that writes it, ./book run 20, and "
                         "watch it from another terminal.")
            time.sleep(REDRAW_AFTER)
            continue
        if follower.read():
            run, news = follower.run, time.monotonic()
            if run.last and (first_step is None or run.last["step"] < first_step):
                first_step, first_time = run.last["step"], news
            left = None
            if run.last and run.last["step"] > first_step:
                a_step = (news - first_time) / (run.last["step"] - first_step)
                left = a_step * (run.last["steps"] - run.last["step"])
            lines = picture(run, shutil.get_terminal_size((80, 24)).columns - 1, left)
            if drawn and sys.stdout.isatty():
                print(f"\033[{drawn}A\033[J", end="")
            print("\n".join(lines), flush=True)
            drawn = len(lines)
        if follower.run.has_ended:
            return
        time.sleep(REDRAW_AFTER)


def main():
    parser = argparse.ArgumentParser(description="Draws a training on the terminal while it runs.")
    out = pathlib.Path(__file__).resolve().parent.parent / "out"
    parser.add_argument("file", nargs="?", default=str(out / "run.jsonl"))
    parser.add_argument("--once", action="store_true", help="one picture of what there is")
    options = parser.parse_args()
    path = pathlib.Path(options.file)
    try:
        if options.once:
            follower = Follower(path)
            follower.read()
            print("\n".join(picture(follower.run, 79, None)))
        else:
            watch(path)
    except OSError as error:
        sys.exit(f"{path} cannot be read: {error.strerror}.")


if __name__ == "__main__":
    main()
