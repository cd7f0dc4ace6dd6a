"""Kernels that run in the page: below what chapter 02's run prints, a figure runs the same kernel.

static/live_figure.js has the figures' programs, and tools/web/live compiles them.
"""
import base64
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from . import recordings

LOGGER = logging.getLogger(__name__)
KERNELS = Path(__file__).resolve().parents[1] / "live/kernels.wasm"

# The programs, and how the title of the printed table begins after which each stands.
PAGE = "chapters/02_kernels/README"
PROGRAMS = {
    "race": "Two threads at the same time add 1 to a sum",
    "tree": "The same kernel without these barriers",
}


class live(nodes.General, nodes.Element):
    """A figure in which a program runs."""


class PlaceFigures(SphinxTransform):
    default_priority = 445

    def apply(self):
        blocks = list(self.document.findall(nodes.literal_block))
        for program, title in PROGRAMS.items() if self.env.docname == PAGE else ():
            printed = [block for block in blocks if f"\n{title}" in block.astext()]
            path = f"chapters/02_kernels/{program}.cu"
            if len(printed) == 1:
                self.env.note_dependency(path)
                printed[0].parent.insert(printed[0].parent.index(printed[0]) + 1,
                                         live("", program=program, source=path))
            else:
                LOGGER.warning("%s blocks with '%s': the figure of %s has no place", len(printed),
                               title, program, location=self.document)


def visit_live(self, node):
    if self.builder.name == "html":
        lines = (Path(self.builder.srcdir) / node["source"]).read_text().splitlines()
        self.body.append(f'<figure class="live" data-program="{node["program"]}" hidden>'
                         f'{recordings.json_script(lines)}</figure>')
    raise nodes.SkipNode


def load_scripts(app, docname, template, context, doctree):
    if app.builder.name == "html" and doctree and next(doctree.findall(live), None):
        for name in ("kernels.js", "live.js", "live_figure.js"):
            app.add_js_file(name, priority=900, defer="defer")  # after recording.js


def write(app):
    text = base64.b64encode(KERNELS.read_bytes()).decode()
    lines, runs = (KERNELS.with_name(name).read_text() for name in ("kernels.json", "runs.json"))
    (Path(app.outdir) / "_static/kernels.js").write_text(
        f'window.bookKernels = "{text}";\nwindow.bookLines = {lines}window.bookRuns = {runs}')


def setup(app):
    app.add_node(live, html=(visit_live, None), epub=(visit_live, None))
    app.add_transform(PlaceFigures)
    app.connect("html-page-context", load_scripts)
