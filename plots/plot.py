#!/usr/bin/env python3
"""Draws what the last runs measured: out/NAME.csv becomes out/NAME.svg and out/NAME.png.

    ./book plot                              everything that has been measured
    plot.py --only sgd                       what one program measured, if there is a drawing for it
    plot.py --from FOLDER --to FOLDER        the reference pictures

Which drawing a file gets is decided by its name, in the DRAWINGS of chapters/*.py.
"""
import argparse
import concurrent.futures
import importlib
import multiprocessing
import os
import pathlib
import re
import sys

try:
    import matplotlib
except ImportError:
    sys.exit("plot.py needs a python3 with matplotlib: `./book plot` looks for one, and says how "
             "to install it.")

import matplotlib.pyplot as plt  # noqa: E402
from shared import STYLE, Measured, NothingToDraw  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
DRAWINGS = {}
for chapter in sorted(path.stem for path in (HERE / "chapters").glob("*.py")):
    DRAWINGS |= importlib.import_module(f"chapters.{chapter}").DRAWINGS


def draw(source, target, formats):
    """Draws one CSV file; returns the picture's path."""
    with matplotlib.rc_context(STYLE):
        picture = target / source.stem
        for ending in (".svg", ".png"):
            picture.with_suffix(ending).unlink(missing_ok=True)  # of an earlier run
        figure = DRAWINGS[source.stem](Measured(source))
        figure.tight_layout()
        target.mkdir(parents=True, exist_ok=True)
        for ending in formats:
            figure.savefig(picture.with_suffix(f".{ending}"), dpi=150, bbox_inches="tight",
                           metadata={"Date": None} if ending == "svg" else None)
        plt.close(figure)
    small = picture.with_suffix(".svg")
    small.write_text(without_line_breaks(small.read_text()))
    return small


def without_line_breaks(svg):
    """Returns an SVG with a line for each panel, and none for each point, for git's sake."""
    svg = re.sub(r'"[^"<>]*"', lambda quoted: re.sub(r"\s*\n\s*", " ", quoted[0]), svg)
    svg = re.sub(r"\s*\n\s*", " ", re.sub(r">\s+<", "><", svg))
    return re.sub(r'(<g id="(?:axes|figure|legend)_|<defs|</svg>)', r"\n\1", svg).strip() + "\n"


def draw_all(sources, target, formats):
    """Draws in as many processes as there are cores, or pictures; says the paths in this order."""
    workers = max(1, min(len(os.sched_getaffinity(0)), len(sources)))
    # A fork has matplotlib already, whose import takes longer than a picture.
    with concurrent.futures.ProcessPoolExecutor(workers,
                                                multiprocessing.get_context("fork")) as pool:
        pictures = [(source, pool.submit(draw, source, target or source.parent, formats))
                    for source in sources]
        for source, picture in pictures:
            try:
                path = os.path.relpath(picture.result())
            except NothingToDraw as reason:
                print(f"not drawn: {os.path.relpath(source)}: {reason}")
                continue
            except (ValueError, KeyError, OSError) as error:
                sys.exit(f"{source} cannot be drawn: {error}")
            print(f"drawn: {path}" + (" (and .png)" if "png" in formats else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", help="draw only what the program NAME measured")
    parser.add_argument("--from", dest="source", type=pathlib.Path, default=HERE.parent / "out",
                        help="folder of CSV files")
    parser.add_argument("--to", dest="target", type=pathlib.Path,
                        help="folder for the pictures (the same one)")
    parser.add_argument("--svg", action="store_true", help="no .png beside each .svg")
    options = parser.parse_args()

    def is_wanted(name):  # a program's second file is called as its first, and more
        return options.only is None or name == options.only or name.startswith(f"{options.only}_")

    sources = [path for path in sorted(options.source.glob("*.csv")) if is_wanted(path.stem)]
    # A program's first picture comes first; what has no drawing is skipped below.
    order = {name: place for place, name in enumerate(DRAWINGS)}
    sources.sort(key=lambda path: order.get(path.stem, len(order)))
    if not sources:
        wanted = "measurements"
        if options.only is not None:
            wanted += f" of '{options.only}' (--only)"
        sys.exit(f"There are no {wanted} in {options.source}: `./book run NN` first.")
    draw_all([source for source in sources if source.stem in DRAWINGS], options.target,
             ["svg"] if options.svg else ["svg", "png"])


if __name__ == "__main__":
    main()
