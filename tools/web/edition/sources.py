"""Plain pages of the files that one reads: those marked ●, and those that excerpts are from.

They stand under source/, outside Sphinx: with its menu and its search they would be far larger. All
other files are on the book's address.
"""
import functools
import html
import os
import re
from pathlib import Path

import jinja2
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Number, String

LEXERS = {
    ".cu": "cuda", ".cuh": "cuda", ".cpp": "cpp", ".hpp": "cpp", ".py": "python", ".sh": "bash",
    ".sbatch": "bash", ".cmake": "cmake", ".diff": "diff"
}
CLASSES = {Comment.Preproc: "cp", Comment: "c1", Keyword: "k", Number: "m", String: "s"}
ROW = re.compile(r"^\| *● *\|([^|]*)\|", re.M)
EXCERPT = re.compile(r"^<!-- excerpt: (\S+): ", re.M)
LINK = re.compile(r"\]\(([^)#]+)\)")


@functools.cache
def style_of(token):
    return next((CLASSES[kind] for kind in CLASSES if token in kind), None)


def highlighted(text, ending):
    """Returns the text as HTML with an element L1, L2, ... for each line, in the fewest bytes."""
    lexer, lines = get_lexer_by_name(LEXERS.get(ending, "text"), stripnl=False), [""]
    for token, part in lexer.get_tokens(text):
        style = style_of(token)
        for number, piece in enumerate(html.escape(part, quote=False).split("\n")):
            if number:
                lines.append("")
            if piece:
                lines[-1] += f"<i class={style}>{piece}</i>" if style else piece
    while lines and not lines[-1]:
        lines.pop()
    return "".join(f"<b id=L{number}>{line}\n</b>" for number, line in enumerate(lines, 1))


def marked(root, readme):
    """Returns the files that a README marks with ●."""
    rows = ROW.findall(readme.read_text())
    files = [readme.parent / name for row in rows for name in LINK.findall(row)]
    return [file.relative_to(root).as_posix() for file in files if file.is_file()]


def shown(root):
    """Returns what gets a page, of all READMEs: the files marked ●, and those of excerpts."""
    root, paths = Path(root), set()
    for readme in [*root.glob("*.md"), *root.glob("[cet]*/**/*.md")]:
        paths |= set(marked(root, readme))
        names = EXCERPT.findall(readme.read_text())
        paths |= {path for name in names for path in (f"chapters/{name}", name)
                  if (root / path).is_file()}
    return paths


def note_shown(app):
    app.book_sources = shown(app.srcdir)


def write(app):
    root = Path(app.srcdir)
    loader = jinja2.FileSystemLoader(app.config.templates_path)
    template = jinja2.Environment(loader=loader, autoescape=True,
                                  trim_blocks=True).get_template("source.html")
    for path in app.book_sources:
        page = Path(app.outdir) / f"source/{path}.html"
        link = functools.partial(os.path.relpath, start=f"source/{os.path.dirname(path)}")
        above = (parent.as_posix() for parent in Path(path).parents)
        chapter = next((doc for doc in above if f"{doc}/README" in app.env.found_docs), "")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(template.render(
            path=path, link=link, chapter=chapter,
            code=highlighted((root / path).read_text(), Path(path).suffix)))


def setup(app):
    app.connect("builder-inited", note_shown)
