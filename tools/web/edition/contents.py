"""The menu: chapters in their parts, exercises one level below their chapter, then all other pages.

It is read from the table of chapters/README.md, and from where the pages stand.
"""
import re
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform

CHAPTER = re.compile(r"^(?:chapters|exercises|tests/bench)/(\d\d_\w+)/")
PART = re.compile(r"^\| *\| *\*\*(.+?)\*\*")
ROW = re.compile(r"^\| *\d\d *\| *\[\w+\]\((\d\d_\w+)\)")


def parts(overview):
    """Returns the parts of the book as (caption, names of chapters), from the overview's table."""
    found = [("", [])]
    for line in overview.splitlines():
        if part := PART.match(line):
            found.append((part[1], []))
        elif row := ROW.match(line):
            found[-1][1].append(row[1])
    return [(caption, chapters) for caption, chapters in found if chapters]


def below(docname, docs):
    """Returns the pages one level below a chapter's, those of its bench too, or its exercises'."""
    chapter = CHAPTER.match(docname)
    if not chapter or not docname.endswith("/README"):
        return []
    here = Path(docname).parent
    found = [doc for doc in sorted(docs) if doc != docname and Path(here) in Path(doc).parents]
    if docname == f"chapters/{chapter[1]}/README":
        found += [doc for doc in (f"{folder}/{chapter[1]}/README"
                                  for folder in ("tests/bench", "exercises")) if doc in docs]
    return found


def toctree(caption, docs):
    head = ":hidden:\n" + (f":caption: {caption}\n" if caption else "")
    return f"\n```{{toctree}}\n{head}\n" + "".join(f"/{doc}\n" for doc in docs) + "```\n"


def menu(docs, overview):
    """Returns the toctrees of the first page, for all pages that stand below no chapter."""
    trees, listed = "", {"README"}
    for number, (caption, chapters) in enumerate(parts(overview)):
        pages = [f"chapters/{name}/README" for name in chapters]
        if number == 0:
            pages.insert(0, "chapters/README")
        listed.update(pages)
        trees += toctree(caption, [page for page in pages if page in docs])
    rest = [doc for doc in sorted(docs) if doc not in listed and not CHAPTER.match(doc)]
    for caption, folder in (("Beside the chapters", "chapters/"), ("Appendices", "common/"),
                            ("The project", "")):
        pages = [doc for doc in rest if doc.startswith(folder)]
        rest = [doc for doc in rest if doc not in pages]
        trees += toctree(caption, pages) if pages else ""
    return trees


def add_toctree(app, docname, source):
    docs = app.env.found_docs
    if docname == "README":
        source[0] += menu(docs, (Path(app.srcdir) / "chapters/README.md").read_text())
        app.env.note_dependency("chapters/README.md")
    elif children := below(docname, docs):
        source[0] += toctree("", children)


class NestSections(SphinxTransform):
    """Makes of several titles of a README (an exercise each) sections of the first one."""
    default_priority = 300

    def apply(self):
        sections = [node for node in self.document.children if isinstance(node, nodes.section)]
        for section in sections[1:]:
            self.document.remove(section)
            sections[0] += section


def add_first_page(app):
    """Adds the name by which a folder is opened; the first page itself is README.html."""
    if app.builder.name == "html":
        app.config.html_additional_pages["index"] = "index.html"


def setup(app):
    app.add_transform(NestSections)
    app.connect("builder-inited", add_first_page)
    app.connect("source-read", add_toctree)
