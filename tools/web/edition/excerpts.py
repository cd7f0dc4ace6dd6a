"""Excerpts: the block below <!-- excerpt: 09_all_reduce/ring.cu: void ring( --> links its file."""
import re
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from . import sources

LOGGER = logging.getLogger(__name__)
EXCERPT = re.compile(r"<!-- excerpt: (\S+): ")


class excerpt(nodes.General, nodes.Element):
    """A block of code from a file, with its lines."""


def find_lines(text, shown):
    """Returns the first and the last line of `shown` in `text`, however indented, or None."""
    lines, wanted = ([line.strip() for line in part.splitlines()] for part in (text, shown))
    starts = (first for first in range(len(lines)) if lines[first:first + len(wanted)] == wanted)
    first = next(starts, None)
    return None if first is None else (first + 1, first + len(wanted))


class ReadComments(SphinxTransform):
    """Acts on each comment, and removes it."""
    default_priority = 420

    def apply(self):
        for comment in list(self.document.findall(nodes.raw)):
            text = comment.astext().strip()
            if not text.startswith("<!--"):
                continue
            block = comment.next_node(descend=False, siblings=True)
            if isinstance(block, nodes.literal_block) and (found := EXCERPT.match(text)):
                self.caption(block, found[1])
            comment.parent.remove(comment)

    def caption(self, block, name):
        root = Path(self.env.srcdir)
        paths = [path for path in (f"chapters/{name}", name) if (root / path).is_file()]
        shown = block.astext().partition("\n")[2]  # behind the line that names the file
        where = find_lines((root / paths[0]).read_text(), shown) if paths else None
        if where is None:
            LOGGER.warning("this excerpt is not in %s", name, location=block)
            return
        self.env.note_dependency(paths[0])
        language = sources.LEXERS.get(Path(name).suffix, "text")
        code = nodes.literal_block(shown, shown, language=language)
        code.source, code.line = block.source, block.line
        block.replace_self(excerpt("", code, path=paths[0], name=name, lines=where))


def visit_excerpt(self, node):
    first, last = node["lines"]
    name = self.encode(node["name"])
    which = f"line {first}" if first == last else f"lines {first} to {last}"
    if self.builder.name == "html":
        page = self.builder.current_docname
        href = self.builder.get_relative_uri(page, f"source/{node['path']}")
        self.body.append(f'<figure class="excerpt"><figcaption><a href="{href}#L{first}">{name}</a>'
                         f"<span>{which}</span></figcaption>")
    else:
        self.body.append(f'<div class="excerpt"><p class="caption">{name}, {which}</p>')


def depart_excerpt(self, node):
    self.body.append("</figure>" if self.builder.name == "html" else "</div>")


def setup(app):
    shown = visit_excerpt, depart_excerpt
    app.add_node(excerpt, html=shown, epub=shown)
    app.add_transform(ReadComments)
