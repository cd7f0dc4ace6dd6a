"""Plain pages of the files that READMEs link: code with line numbers, and links to the ● files.

They stand under source/, outside Sphinx: with its menu and its search they would be far larger.
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
LINK = re.compile(r"\]\(([^)#]+)\)")


@functools.cache
def style_of(token):
    return next((CLASSES[kind] for kind in CLASSES if token in kind), None)


def highlighted(text, ending):
    """Returns the text as HTML, an element L1, L2, ... for each line, with classes of tokens.

    Elements have names of one letter, neighbours of one class are one of them, and no attribute has
    quotes: in some hundred files that is more than a megabyte.
    """
    lexer = get_lexer_by_name(LEXERS.get(ending, "text"), stripnl=False)
    lines, last = [""], None
    for token, part in lexer.get_tokens(text):
        style = style_of(token)
        for number, piece in enumerate(part.split("\n")):
            if number:
                lines.append("")
                last = None
            if not piece:
                continue
            piece = html.escape(piece, quote=False)
            if style and style == last:
                lines[-1] = lines[-1].removesuffix("</i>") + piece + "</i>"
            else:
                lines[-1] += f"<i class={style}>{piece}</i>" if style else piece
            last = style
    while lines and not lines[-1]:
        lines.pop()
    return "".join(f"<b id=L{number}>{line}\n</b>" for number, line in enumerate(lines, 1))


def first_reading(root, path):
    """Returns the files that the README beside a file (or above it) marks with ●."""
    for parent in Path(path).parents:
        readme = Path(root) / parent / "README.md"
        if readme.exists():
            names = [name for row in ROW.findall(readme.read_text()) for name in LINK.findall(row)]
            files = [f"{parent}/{name}" for name in names]
            return [file for file in files if (Path(root) / file).is_file()]
    return []


def files_of(root, path):
    """Returns a folder's own files that can be read as text, but for pages and pictures."""
    entries = sorted(entry for entry in (Path(root) / path).iterdir() if entry.is_file())
    return [entry.relative_to(root).as_posix() for entry in entries
            if entry.suffix not in (".md", ".svg", ".csv") and b"\0" not in entry.read_bytes()]


def shown(root, linked):
    """Returns what gets a page: what is linked, the files in there, and what is read first."""
    paths = set(linked)
    for path in linked:
        folder = (Path(root) / path).is_dir()
        paths |= set(files_of(root, path) if folder else first_reading(root, path))
    return sorted(paths)


def all_shown(app):
    pages = app.env.metadata.values()
    return shown(app.srcdir, set().union(*(kept.get("sources", ()) for kept in pages)))


def write(app):
    root, paths = Path(app.srcdir), all_shown(app)
    pages = {doc.removesuffix("/README"): f"{doc}.html" for doc in app.env.found_docs}
    pages |= {path: f"source/{path}.html" for path in paths}
    loader = jinja2.FileSystemLoader(app.config.templates_path)
    templates = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True)
    for path in paths:
        page = Path(app.outdir) / pages[path]
        link = functools.partial(os.path.relpath, start=os.path.dirname(pages[path]))
        if (root / path).is_dir():
            below = sorted(entry for entry in pages.items() if os.path.dirname(entry[0]) == path)
            made = templates.get_template("folder.html").render(path=path, link=link, below=below)
        else:
            code = highlighted((root / path).read_text(), Path(path).suffix)
            made = templates.get_template("source.html").render(
                path=path, link=link, code=code, first_reading=first_reading(root, path))
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(made)
