"""Where a README's link leads on the site: to a page, to a source page, to the book, or nowhere."""
import os
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)

# The site has no answers, and of the tests only pages: a link to anything else there is its text.
LEFT_OUT = re.compile(r"(solutions|tests|my)(/|$)")


def link_to(page, where, docname, *children, anchor=None):
    """Returns a link of a page to another one; warnings name the place of the node `where`."""
    link = addnodes.pending_xref("", *children, refdoc=docname, refdomain="doc", reftype="myst",
                                 refexplicit=True, reftarget=page, reftargetid=anchor)
    link.source, link.line = where.source, where.line
    return link


def put_in(text, found):
    """Puts nodes in the place of parts of a text; `found` has (begin, end, node) of each."""
    parts, end = [], 0
    for begin, after, node in found:
        parts += [nodes.Text(text[end:begin]), node]
        end = after
    if parts:
        at = text.parent.index(text)
        text.parent[at:at + 1] = [*parts, nodes.Text(text[end:])]


def target_of(root, docname, path, is_page):
    """Returns what a relative link leads to, "page", "source", "text" or "dead", and its path."""
    path = os.path.normpath(os.path.join(os.path.dirname(docname), path))
    readme = "README.md" if path == "." else f"{path}/README.md"
    for candidate in (path, readme):
        if is_page(candidate):
            return "page", candidate.removesuffix(".md")
    if LEFT_OUT.match(path):
        return "text", path
    is_dead = path.startswith("..") or not (Path(root) / path).exists()
    return "dead" if is_dead else "source", path


class ResolveLinks(SphinxTransform):
    """Makes of each relative link a page's, a source's or plain text; of a dead one a warning."""
    default_priority = 400

    def apply(self):
        for kind in (addnodes.pending_xref, addnodes.download_reference):
            for node in list(self.document.findall(kind)):
                if node.get("reftype") == "myst":
                    self.resolve(node)

    def resolve(self, node):
        link, _, anchor = node["reftarget"].partition("#")
        if node.get("refdomain") == "doc":  # MyST has found the page
            link = os.path.relpath(link + ".md", os.path.dirname(self.env.docname) or ".")
            anchor = node.get("reftargetid")
        kind, path = target_of(self.env.srcdir, self.env.docname, link,
                               lambda path: self.env.path2doc(path) in self.env.found_docs)
        if kind == "dead":
            LOGGER.warning("dead link: %s", node["reftarget"], location=node)
        if kind in ("dead", "text"):
            node.replace_self(node.children[0].children)
        elif kind == "page":
            node.replace_self(link_to(path, node, self.env.docname, *node.children,
                                      anchor=anchor or None))
        else:
            node.replace_self(addnodes.pending_xref("", *node.children, refdoc=self.env.docname,
                                                    refdomain="", reftype="book-source",
                                                    reftarget=path))


def resolve_source(app, env, node, content):
    """Links a file's page, or else the book's address, if it has one; paper keeps the text."""
    path, address = node.get("reftarget"), app.config.book_address
    if node.get("reftype") != "book-source":
        return None
    if app.builder.name == "html" and path in app.book_sources:
        uri = app.builder.get_relative_uri(node["refdoc"], f"source/{path}")
    elif app.builder.name == "html" and address:
        uri = f"{address}/{'tree' if (Path(app.srcdir) / path).is_dir() else 'blob'}/main/{path}"
    else:
        return nodes.inline("", "", *content.children)
    return nodes.reference("", "", content, refuri=uri, internal=not uri.startswith("http"))


def setup(app):
    app.add_transform(ResolveLinks)
    app.add_config_value("book_address", "", "html")
    app.connect("missing-reference", resolve_source)
