"""Pictures that can be played: the page carries CSV files, and scenes.js knows how to show them.

The files are the reference beside the picture, those of other numbers of ranks, NAME_8_ranks.csv,
and the reader's own of the last run, out/NAME.csv, if there is one. That one comes first.
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


def runs_of(root, name, is_public=False):
    """Returns the CSV files that are played, with the day on which the reader made one, or ""."""
    own = Path(root) / "out" / f"{name}.csv"
    runs = []
    if own.exists() and not is_public:
        runs.append((own, datetime.date.fromtimestamp(own.stat().st_mtime).isoformat()))
    reference = Path(root) / "plots/reference"
    return runs + [(path, "") for path in (reference / f"{name}.csv",
                                           *sorted(reference.glob(f"{name}_*_ranks.csv")))]


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
    if node.get("is_above"):
        self.body.append('<p><a href="#first-screen">It plays at the top of this page.</a></p>')
        raise nodes.SkipNode
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
