"""Where a README's link leads on the site: to a page, to a source page, to the book, or nowhere."""
import dataclasses
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


@dataclasses.dataclass(frozen=True)
class Target:
    """A page (kind "page"), a file or folder ("source"), what is left out ("text"), or "dead"."""
    kind: str
    path: str = ""
    anchor: str = ""


def target_of(root, docname, link, is_page):
    """Returns the Target of a page's relative link; is_page(path) says which files are pages."""
    path, _, anchor = link.partition("#")
    path = os.path.normpath(os.path.join(os.path.dirname(docname), path))
    readme = "README.md" if path == "." else f"{path}/README.md"
    for candidate in (path, readme):
        if is_page(candidate):
            return Target("page", candidate.removesuffix(".md"), anchor)
    if LEFT_OUT.match(path):
        return Target("text", path)
    if path.startswith("..") or not (Path(root) / path).exists():
        return Target("dead", path, anchor)
    return Target("source", path, anchor)


class ResolveLinks(SphinxTransform):
    """Makes of each relative link a page's, a source's or plain text; of a dead one a warning."""
    default_priority = 400

    def apply(self):
        for kind in (addnodes.pending_xref, addnodes.download_reference):
            for node in list(self.document.findall(kind)):
                if node.get("reftype") == "myst":
                    self.resolve(node)

    def resolve(self, node):
        link = node["reftarget"]
        if node.get("refdomain") == "doc":  # MyST has found the page
            link = os.path.relpath(link + ".md", os.path.dirname(self.env.docname) or ".")
            if node.get("reftargetid"):
                link += "#" + node["reftargetid"]
        target = target_of(self.env.srcdir, self.env.docname, link,
                           lambda path: self.env.path2doc(path) in self.env.found_docs)
        if target.kind == "dead":
            LOGGER.warning("dead link: %s", node["reftarget"], location=node)
        if target.kind in ("dead", "text"):
            node.replace_self(node.children[0].children)
        elif target.kind == "page":
            found = addnodes.pending_xref("", *node.children, refdoc=self.env.docname,
                                          refdomain="doc", reftype="myst", refexplicit=True,
                                          reftarget=target.path, reftargetid=target.anchor or None)
            found.source, found.line = node.source, node.line
            node.replace_self(found)
        else:
            node.replace_self(addnodes.pending_xref("", *node.children, refdoc=self.env.docname,
                                                    refdomain="", reftype="book-source",
                                                    reftarget=target.path))


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
