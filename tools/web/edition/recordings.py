"""Pictures that can be played: the page carries CSV files, and scenes.js knows how to show them.

The files are the one beside the picture, and those of other numbers of ranks, NAME_8_ranks.csv.
"""
import json
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform

# A figure's name in addresses, and the scene that plays it.
SCENES = {
    "broadcast_readers": ("ways", "ways"),
    "all_reduce_steps": ("ring", "holdings"),
    "data_parallel_replicas": ("paths", "replicas"),
    "overlap_link_timeline": ("overlap", "timeline"),
    "unused_parameters_timeline": ("hang", "timeline"),
}


class recording(nodes.General, nodes.Element):
    """A picture, and the CSV files that are played in its place."""


class PlayPictures(SphinxTransform):
    default_priority = 440

    def apply(self):
        for image in list(self.document.findall(nodes.image)):
            name = Path(image["uri"]).stem
            if name not in SCENES or Path(image["uri"]).parent.name != "reference":
                continue
            figure, scene = SCENES[name]
            reference = Path(self.env.srcdir) / "plots/reference"
            runs = [reference / f"{name}.csv", *sorted(reference.glob(f"{name}_*_ranks.csv"))]
            for path in runs:
                self.env.note_dependency(str(path))
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
        self.body.append(json_script(Path(path).read_text()))
    self.body.append("</figure>")


def setup(app):
    shown = visit_recording, depart_recording
    app.add_node(recording, html=shown, epub=shown)
    app.add_transform(PlayPictures)
