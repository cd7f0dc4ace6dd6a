"""Pictures that can be played: the page carries CSV files, and scenes.js knows how to show them.

The files are the one beside the picture, and those of other numbers of ranks, NAME_8_ranks.csv.
"""
import csv
import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

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
    """A picture, and the CSV files that are played in its place."""


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
            reference = Path(self.env.srcdir) / "plots/reference"
            runs = [reference / f"{name}.csv", *sorted(reference.glob(f"{name}_*_ranks.csv"))]
            for path in runs:
                self.env.note_dependency(str(path))
                if missing := lacking(path.read_text(), columns.split()):
                    LOGGER.warning("%s lacks the columns %s: scenes.js cannot play it", path,
                                   ", ".join(missing), location=image)
            image.parent.replace_self(recording("", image.deepcopy(), name=figure, scene=scene,
                                                runs=[str(path) for path in runs]))


def json_script(value):
    """Returns an element from which a script takes the value, in which no < can end or hide it."""
    data = json.dumps(value).replace("<", "\\u003c")
    return f'<script type="application/json">{data}</script>'


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
    for path in node["runs"]:
        self.body.append(json_script(shortened(Path(path).read_text())))
    self.body.append("</figure>")


def setup(app):
    shown = visit_recording, depart_recording
    app.add_node(recording, html=shown, epub=shown)
    app.add_transform(PlayPictures)
