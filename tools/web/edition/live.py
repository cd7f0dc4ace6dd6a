"""Kernels that run in the page: behind what a run of chapter 02 prints, a figure in which the reader runs the same kernel.

static/live_figure.js has the figures' programs; tools/web/live compiles them. Only pages with a figure load the kernels.
"""
import base64
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
KERNELS = Path(__file__).resolve().parents[1] / "live/kernels.wasm"
SCRIPTS = ("kernels.js", "live.js", "live_figure.js")

# For each page the programs, and how the title of the printed table begins behind which they stand.
PROGRAMS = {
    "chapters/02_kernels/README": {
        "vector_add": "By grid_range: element i is computed by",
        "streams": "Two results, and what the host reads",
        "race": "Two threads at the same time add 1 to a sum",
        "tree": "The same kernel without these barriers",
    },
}


class live(nodes.General, nodes.Element):
    """A figure in which a program runs."""


class PlaceFigures(SphinxTransform):
    default_priority = 445

    def apply(self):
        programs = PROGRAMS.get(self.env.docname, {})
        blocks = list(self.document.findall(nodes.literal_block))
        for program, title in programs.items():
            printed = [block for block in blocks if f"\n{title}" in block.astext()]
            if len(printed) != 1:
                LOGGER.warning("%s blocks with '%s': the figure of %s has no place", len(printed), title, program,
                               location=self.document)
                continue
            block = printed[0]
            block.parent.insert(block.parent.index(block) + 1, live("", program=program))


def visit_live(self, node):
    if self.builder.name == "html":
        self.body.append(f'<figure class="live" data-program="{node["program"]}" hidden></figure>')
    raise nodes.SkipNode


def load_scripts(app, docname, template, context, doctree):
    if doctree is not None and next(doctree.findall(live), None):
        for name in SCRIPTS:
            app.add_js_file(name, priority=900, defer="defer")  # after recording.js


def write(app, error):
    if error or app.builder.name != "html":
        return
    text = base64.b64encode(KERNELS.read_bytes()).decode()
    (Path(app.outdir) / "_static/kernels.js").write_text(f'window.bookKernels = "{text}";\n')


def setup(app):
    app.add_node(live, html=(visit_live, None), epub=(visit_live, None))
    app.add_transform(PlaceFigures)
    app.connect("html-page-context", load_scripts)
    app.connect("build-finished", write)
