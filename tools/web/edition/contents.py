"""The shape of pages, and the menu: chapters in parts, exercises below their chapter, then others.

It is read from the table of chapters/README.md, and from where the pages stand. A chapter is called
by its subject, and its question stands below, with what it needs and where it leads.
"""
import html
import re
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform

from . import links

CHAPTER = re.compile(r"^(?:chapters|exercises|tests/bench)/(\d\d_\w+)/")
PART = re.compile(r"^\| *\| *\*\*(.+?)\*\*")
ROW = re.compile(r"^\| *(\d\d) *\| *\[(\w+)\]\((\d\d_\w+)\).*\|([^|]*)\|\s*$", re.M)
SUBJECTS = {"tiny": "All on one page", "sgd": "SGD", "all_reduce": "All-reduce",
            "checkpoint_failover": "Checkpoints and failover", "sync_batch_norm": "SyncBatchNorm"}

# A power; and a sign that no line should begin or end with.
FORMULA = re.compile(r"(?<=[\w)])\^(\w+|\([^()]+\))|(?<=[\dA-Z)]) [x*/+-] (?=[\dA-Z(])")


def subject(name):
    return SUBJECTS.get(name, name.replace("_", " ").capitalize())


def neighbours(overview):
    """Returns a chapter's folder -> (its number and subject, what it needs, where it leads)."""
    rows = ROW.findall(overview)
    needs = {number: re.findall(r"\b\d\d\b", text) for number, _, _, text in rows}
    return {folder: (f"{number} {subject(name)}", needs[number],
                     [other for other in needs if number in needs[other]])
            for number, name, folder, _ in rows}


def parts(overview):
    """Returns the parts of the book as (caption, names of chapters), from the overview's table."""
    found = [("", [])]
    for line in overview.splitlines():
        if part := PART.match(line):
            found.append((part[1], []))
        elif row := ROW.match(line):
            found[-1][1].append(row[3])
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


class NameChapter(SphinxTransform):
    """Titles a chapter by its subject; below stand its question, what it needs, where it leads."""
    default_priority = 310

    def apply(self):
        overview = Path(self.env.srcdir) / "chapters/README.md"
        chapter = re.fullmatch(r"chapters/(\w+)/README", self.env.docname)
        known = neighbours(overview.read_text()) if chapter and overview.exists() else {}
        if not chapter or chapter[1] not in known:
            return
        self.env.note_dependency("chapters/README.md")
        name, needs, leads = known[chapter[1]]
        title = next(self.document.findall(nodes.title))
        question = title.astext().partition(" ")[2]
        below = nodes.paragraph("", "", nodes.strong("", question), classes=["question"])
        for words, numbers in ((" Needs ", needs), (" Leads to ", leads)):
            pages = [folder for folder in known if folder[:2] in numbers]
            for i, folder in enumerate(pages):
                below += nodes.inline("", words if i == 0 else ", ")
                below += links.link_to(f"chapters/{folder}/README", title, self.env.docname,
                                       nodes.inline("", folder[:2]))
            if pages:
                below += nodes.inline("", ".")
        title.clear()
        title += nodes.Text(name)
        title.parent.insert(1, below)


class FoldFiles(SphinxTransform):
    """Folds a chapter's table of files, which would stand between its questions and its lesson."""
    default_priority = 430

    def apply(self):
        for section in self.document.findall(nodes.section):
            table = next(section.findall(nodes.table), None)
            if not section[0].astext().startswith("Files, in reading order") or table is None:
                continue
            rows = [row for row in table.findall(nodes.row)][1:]
            first = sum(row[0].astext() == "●" for row in rows)
            says = f"{len(rows)} rows; the {first} marked ● are to be read first"
            fold = f"<details><summary>{says}</summary>"
            section.insert(1, nodes.raw("", fold, format="html"))
            section.insert(section.index(table) + 1, nodes.raw("", "</details>", format="html"))


class SetFormulas(SphinxTransform):
    """Sets powers high and x as times, and holds products and short code together on a line."""
    default_priority = 455

    def apply(self):
        for text in list(self.document.findall(nodes.Text)):
            is_code = isinstance(text.parent, nodes.literal)
            if is_code or isinstance(text.parent, (nodes.paragraph, nodes.inline, nodes.emphasis)):
                links.put_in(text, [
                    (part.start(), part.end(), nodes.superscript("", part[1].strip("()")) if part[1]
                     else nodes.Text(re.sub("[x*]", "×", part[0]).replace(" ", "\u00a0")))
                    for part in FORMULA.finditer(text) if part[1] or not is_code])
        for code in self.document.findall(nodes.literal):
            if " " in code.astext() and len(code.astext()) <= 32:  # fits a phone
                code["classes"].append("short")


def read_on(app, docname, template, context, doctree):
    """Leads from a chapter to the next one, past its exercises and benches."""
    is_chapter = doctree and docname.startswith("chapters/") and app.builder.name == "html"
    for at, name in ((1, "prev"), (2, "next")) if is_chapter else ():
        page = docname
        while (page := app.builder.relations[page][at]) and page.startswith(("ex", "tests")):
            pass  # an exercise's page or a bench's
        title = page and app.builder.render_partial(app.env.titles[page])["title"]
        context[name] = page and {"link": context["pathto"](page), "title": title}


def describe(app, docname, template, context, doctree):
    """Tells whoever links or finds a page what it is about: by its first paragraph."""
    first = doctree and next((node for node in doctree.findall(nodes.paragraph)
                              if "question" not in node["classes"]), None)
    if first and app.builder.name == "html":
        text = html.escape(" ".join(first.astext().split())[:200])
        context["metatags"] += (f'<meta name="description" content="{text}">'
                                f'<meta property="og:title" content="{context["title"]}">'
                                f'<meta property="og:description" content="{text}">')
        if app.config.html_baseurl:
            card = f"{app.config.html_baseurl.rstrip('/')}/_static/card.png"
            context["metatags"] += f'<meta property="og:image" content="{card}">'


def write(app):
    """Writes the name by which a folder is opened; the first page itself is README.html."""
    (Path(app.outdir) / "index.html").write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{app.config.project}</title>'
        '<meta http-equiv="refresh" content="0; url=README.html">'
        '<a href="README.html">The book</a></html>\n')


def setup(app):
    app.add_transform(NestSections)
    app.add_transform(NameChapter)
    app.add_transform(FoldFiles)
    app.add_transform(SetFormulas)
    app.connect("source-read", add_toctree)
    app.connect("html-page-context", read_on)
    app.connect("html-page-context", describe)
