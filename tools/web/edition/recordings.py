"""Pictures that can be played: the page carries CSV files, and scenes.js knows how to show them.

The file is the reader's own of the last run, out/NAME.csv, where there is one, else the reference
beside the picture. The reader can choose further runs, which `./book web` makes, with other numbers
of ranks: NAME_8_ranks.csv.
"""
import csv
import datetime
import re
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from . import links, predictions

LOGGER = logging.getLogger(__name__)

# A figure's name in addresses, the scene that plays it, and the columns that the scene needs.
TIMELINE = "name begin_ms end_ms rank stream "
SCENES = {
    "broadcast_readers": ("ways", "ways", "algorithm reader begin_seconds end_seconds"),
    "all_reduce_steps": ("ring", "holdings",
                         "algorithm step rank chunk ranks received sent step_us"),
    "data_parallel_replicas": ("paths", "replicas", "gradients rank step bias_0 bias_1"),
    "overlap_link_timeline": ("overlap", "timeline", TIMELINE + "overlap"),
    "unused_parameters_timeline": ("hang", "timeline", TIMELINE + "part"),
}


class recording(nodes.General, nodes.Element):
    """A picture, and the CSV file from which it was drawn."""


def source_of(root, name, is_public=False):
    """Returns the CSV file that is played, and whether it is the reader's own."""
    own = Path(root) / "out" / f"{name}.csv"
    if own.exists() and not is_public:
        return own, True
    return Path(root) / "plots/reference" / f"{name}.csv", False


def runs_of(root, name, is_public=False):
    """Returns all files that are played, with the day on which this machine made them, or ""."""
    path, own = source_of(root, name, is_public)
    made_here = Path(root) / "build/web/recordings"
    paths = [path, *sorted(made_here.glob(f"{name}_*_ranks.csv"))]
    reference = Path(root) / "plots/reference" / f"{name}.csv"
    if own and len(paths) > 1:  # the reader's own may be of any number of ranks
        paths.insert(1, reference)
    days = (datetime.date.fromtimestamp(path.stat().st_mtime).isoformat() for path in paths)
    return [(path, "" if path == reference or is_public else day)
            for path, day in zip(paths, days, strict=True)]


def lacking(text, wanted):
    """Returns the columns that a CSV file does not have."""
    head = next(csv.reader(text.splitlines()), [])
    return [column for column in wanted if column not in head]


def shortened(text):
    """Returns a CSV file with seven digits of each number: no picture shows more."""
    return re.sub(r"(?<![^,\n])-?\d+\.\d{4,}(e[-+]?\d+)?(?![^,\n])",
                  lambda number: f"{float(number[0]):.7g}", text)


class PlayPictures(SphinxTransform):
    default_priority = 440

    def apply(self):
        for image in list(self.document.findall(nodes.image)):
            name = Path(image["uri"]).stem
            if name not in SCENES or Path(image["uri"]).parent.name != "reference":
                continue
            figure, scene, columns = SCENES[name]
            runs = runs_of(self.env.srcdir, name, self.config.book_public)
            for path in [path for path, _ in runs] + [Path(self.env.srcdir) / f"out/{name}.csv"]:
                links.note_own(self.env, path)
            lacks = {path: lacking(path.read_text(), columns.split()) for path, _ in runs}
            for path, missing in lacks.items():
                if missing:
                    LOGGER.warning("%s lacks the columns %s: scenes.js cannot play it", path,
                                   ", ".join(missing), location=image)
            if any(lacks.values()):
                continue
            block = image.parent
            played = recording("", image.deepcopy(), name=figure, scene=scene,
                               runs=[(str(path), made) for path, made in runs])
            if isinstance(block, nodes.paragraph) and len(block.children) == 1:
                block.replace_self(played)


def visit_recording(self, node):
    if self.builder.name != "html":
        return
    plays = " data-plays" if node.get("plays") else ""
    self.body.append(f'<figure class="recording" data-name="{node["name"]}" '
                     f'data-scene="{node["scene"]}"{plays}>')


def depart_recording(self, node):
    if self.builder.name != "html":
        return
    for path, made in node["runs"]:
        csv_text = shortened(Path(path).read_text())
        self.body.append(predictions.json_script(csv_text, f'data-made="{made}"'))
    self.body.append("</figure>")


def setup(app):
    shown = visit_recording, depart_recording
    app.add_node(recording, html=shown, epub=shown)
    app.add_transform(PlayPictures)
