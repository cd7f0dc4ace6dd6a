"""Pictures that are recordings: where scenes.js can play a picture's CSV file, the page carries the file and plays it.

The file is the reader's own of the last run, out/NAME.csv, where there is one, else the reference beside the picture. Runs of other
numbers of ranks, NAME_8_ranks.csv, are for the reader to choose.
"""
import csv
import datetime
import json
import os
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)

# Which scene plays which file, and the columns that it needs.
TIMELINE = ("name", "begin_ms", "end_ms", "rank")
SCENES = {
    "all_reduce_steps": ("ring", ("step", "rank", "chunk", "ranks", "received")),
    "broadcast_readers": ("readers", ("algorithm", "reader", "begin_seconds", "end_seconds")),
    "kernels_warps": ("warps", ("order", "step", "thread")),
    "sgd": ("descent", ("epoch", "step", "w1", "w2", "b", "loss")),
    "gradient_accumulation": ("descents", ("way", "houses", "step", "w1", "w2", "b", "loss")),
    "data_parallel": ("drift", ("step", "alone", "averaged", "drift_alone", "drift_averaged")),
    "data_parallel_replicas": ("replicas", ("gradients", "rank", "step", "bias_0", "bias_1")),
    "messages_timeline": ("timeline", TIMELINE + ("schedule", )),
    "overlap_timeline": ("timeline", TIMELINE + ("overlap", "stream")),
    "overlap_link_timeline": ("timeline", TIMELINE + ("overlap", "stream")),
    "unused_parameters_timeline": ("timeline", TIMELINE + ("part", "stream")),
    "checkpoint_failover": ("stories", ("story", "what", "rank", "begin_s", "end_s", "samples")),
    "cluster_scale": ("scaling", ("scaling", "ranks", "nodes", "step_s", "predicted_s", "ideal_s")),
}


class recording(nodes.General, nodes.Element):
    """A picture, and the CSV file from which it was drawn."""


def source_of(root, name):
    """Returns the CSV file that is played, and whether it is the reader's own."""
    own = Path(root) / "out" / f"{name}.csv"
    if own.exists():
        return own, True
    return Path(root) / "plots/reference" / f"{name}.csv", False


def runs_of(root, name):
    """Returns all files that are played, with the day of the reader's own run, or ""."""
    path, own = source_of(root, name)
    made = datetime.date.fromtimestamp(path.stat().st_mtime).isoformat() if own else ""
    others = sorted((Path(root) / "plots/reference").glob(f"{name}_*_ranks.csv"))
    return [(path, made)] + [(other, "") for other in others]


def lacking(text, wanted):
    """Returns the columns that a CSV file does not have."""
    head = next(csv.reader(text.splitlines()), [])
    return [column for column in wanted if column not in head]


class PlayPictures(SphinxTransform):
    default_priority = 440

    def apply(self):
        for image in list(self.document.findall(nodes.image)):
            name = Path(image["uri"]).stem
            if name not in SCENES or Path(image["uri"]).parent.name != "reference":
                continue
            runs = runs_of(self.env.srcdir, name)
            for read in [path for path, _ in runs] + [f"{self.env.srcdir}/out/{name}.csv"]:
                self.env.note_dependency(os.path.relpath(read, self.env.srcdir))
            lacks = {path: lacking(path.read_text(), SCENES[name][1]) for path, _ in runs}
            for path, missing in lacks.items():
                if missing:
                    LOGGER.warning("%s lacks the columns %s: scenes.js cannot play it", path,
                                   ", ".join(missing), location=image)
            if any(lacks.values()):
                continue
            block = image.parent
            played = recording("", image.deepcopy(), name=name, scene=SCENES[name][0],
                               runs=[(str(path), made) for path, made in runs])
            if isinstance(block, nodes.paragraph) and len(block.children) == 1:
                block.replace_self(played)


def visit_recording(self, node):
    if self.builder.name != "html":
        return
    self.body.append(f'<figure class="recording" data-name="{node["name"]}" data-scene="{node["scene"]}">')


def depart_recording(self, node):
    if self.builder.name != "html":
        return
    for path, made in node["runs"]:
        text = json.dumps(Path(path).read_text()).replace("</", "<\\/")
        self.body.append(f'<script type="application/json" data-made="{made}">{text}</script>')
    self.body.append("</figure>")


def setup(app):
    app.add_node(recording, html=(visit_recording, depart_recording), epub=(visit_recording, depart_recording))
    app.add_transform(PlayPictures)
