"""What the search finds: sections.js has each section's page, anchor, title and prose.

A page from a folder may fetch nothing, so this is a script. The symptoms come first, then chapters,
then all else; terms.js has the glossary's entries.
"""
import json
import textwrap
from pathlib import Path

from docutils import nodes


def prose(section):
    """Returns what stands in a section itself, of paragraphs and lists, its first 450 letters."""
    own = [part for part in section.children if not isinstance(part, nodes.section)]
    paragraphs = [paragraph.findall(nodes.Text) for part in own
                  for paragraph in part.findall(nodes.paragraph)]
    found = " ".join("".join(text for text in texts if not isinstance(text.parent, nodes.raw))
                     for texts in paragraphs)
    return textwrap.shorten(found, 450, placeholder=" …")


def entries(docname, doctree):
    """Yields [page, anchor, title, prose] of a page's sections."""
    title = next(doctree.findall(nodes.title)).astext()
    for section in doctree.findall(nodes.section):
        name = section[0].astext()
        shown = name if name == title else f"{title}: {name}"
        yield [f"{docname}.html", section["ids"][0], shown, prose(section)]


def write(app):
    pages = sorted(app.env.found_docs, key=lambda doc: (
        doc != "chapters/symptoms", not doc.startswith("chapters/"), doc))
    found = [entry for docname in pages
             for entry in entries(docname, app.env.get_doctree(docname))]
    (Path(app.outdir) / "_static/sections.js").write_text(
        f"window.bookSections={json.dumps(found, ensure_ascii=False, separators=(',', ':'))};\n")
    for pattern in ("searchtools.js", "language_data.js", "**/*.map", "**/debug.css"):
        for path in (Path(app.outdir) / "_static").glob(pattern):
            path.unlink()


def replace_search(app):
    """Has Sphinx make no index of its own, which a page from a folder could not fetch."""
    if app.builder.name == "html":
        app.builder.search = False
        app.config.html_additional_pages["search"] = "search.html"


def setup(app):
    app.connect("builder-inited", replace_search)
