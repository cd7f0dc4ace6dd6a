"""What the search finds: sections.js has each section's page, anchor, title and prose.

A page from a folder may fetch nothing, so this is a script. The glossary's entries and the symptoms
come first, then chapters, then all else.
"""
import json
from pathlib import Path

from docutils import nodes

from . import glossary

def rank(docname):
    if docname == "chapters/symptoms":
        return 0
    return 1 if docname.startswith("chapters/") else 2


def prose(section):
    """Returns what stands in a section itself, of paragraphs and lists, its first 900 letters."""
    parts = [words(node) for node in section.findall(nodes.paragraph)
             if next(parent for parent in ancestors(node) if isinstance(parent, nodes.section))
             is section]
    return " ".join(" ".join(parts).split())[:900]


def words(paragraph):
    """Returns a paragraph's text, without the HTML in it."""
    return "".join(str(text) for text in paragraph.findall(nodes.Text)
                   if not isinstance(text.parent, nodes.raw))


def ancestors(node):
    while node.parent is not None:
        node = node.parent
        yield node


def entries(docname, doctree):
    """Yields [page, anchor, title, prose] of a page's sections."""
    title = next(doctree.findall(nodes.title)).astext()
    for section in doctree.findall(nodes.section):
        name = section[0].astext()
        shown = name if name == title else f"{title}: {name}"
        yield [f"{docname}.html", section["ids"][0], shown, prose(section)]


def write(app):
    found = [entry for docname in sorted(app.env.found_docs, key=lambda doc: (rank(doc), doc))
             for entry in entries(docname, app.env.get_doctree(docname))]
    found = [[f"{glossary.GLOSSARY}.html", anchor, f"{anchor} (glossary)", meaning]
             for anchor, meaning in app.book_glossary.items()] + found
    (Path(app.outdir) / "_static/sections.js").write_text(
        f"window.bookSections={json.dumps(found, ensure_ascii=False, separators=(',', ':'))};\n")
    unused = ["searchindex.js", "_static/searchtools.js", "_static/language_data.js"]
    for pattern in (*unused, "_static/*stemmer.js", "_static/**/*.map", "_static/**/debug.css"):
        for path in Path(app.outdir).glob(pattern):
            path.unlink()
