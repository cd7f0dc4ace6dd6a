"""A link to the glossary says on hover and on focus what the term means: the entry's own words."""
from pathlib import Path

from docutils import nodes
from markdown_it import MarkdownIt
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
GLOSSARY = "chapters/glossary"


class glossary_term(nodes.General, nodes.Inline, nodes.TextElement):
    """A linked term, with its meaning."""


def entries(text):
    """Returns anchor -> meaning, of entries `- <a id="x"></a>**x** (where): meaning`, as text."""
    found = {}
    for token in MarkdownIt().parse(text):
        if token.type != "inline" or not token.content.startswith('<a id="'):
            continue
        anchor = token.content.split('"')[1]
        words = "".join("\n" if child.type == "softbreak" else child.content
                        for child in token.children
                        if child.type in ("text", "code_inline", "softbreak"))
        found[anchor] = " ".join(words.partition("): ")[2].split())
    return found


class LinkTerms(SphinxTransform):
    """Takes the links to the glossary's anchors, which are no headings, from MyST."""
    default_priority = 410  # behind ResolveLinks

    def apply(self):
        meanings = self.app.book_glossary
        for node in self.document.findall(nodes.reference):  # from one entry to another
            if self.env.docname == GLOSSARY and node.get("refuri", "").lstrip("#") in meanings:
                node.attributes.pop("id_link", None)
        for number, node in enumerate(list(self.document.findall(addnodes.pending_xref))):
            anchor = node.get("reftargetid")
            if node["reftarget"] != GLOSSARY or not anchor:
                continue
            if anchor not in meanings:
                LOGGER.warning("dead link: the glossary has no entry '%s'", anchor, location=node)
                node.replace_self(node.children[0].children)
                continue
            self.env.note_dependency(f"{GLOSSARY}.md")
            node.replace_self(addnodes.pending_xref("", *node.children, refdoc=self.env.docname,
                                                    refdomain="", reftype="book-term",
                                                    reftarget=anchor, serial=f"term-{number}"))


def resolve_term(app, env, node, content):
    if node.get("reftype") != "book-term":
        return None
    anchor = node["reftarget"]
    page = ""
    if app.builder.name != "singlehtml":
        page = app.builder.get_relative_uri(node["refdoc"], GLOSSARY)
    return glossary_term("", "", *content.children, refuri=f"{page}#{anchor}",
                         serial=node["serial"], meaning=app.book_glossary[anchor])


def visit_term(self, node):
    says = ""
    if self.builder.name == "html":
        says = f' aria-describedby="{node["serial"]}"'
    self.body.append(f'<span class="term"><a href="{node["refuri"]}"{says}>')


def depart_term(self, node):
    says = ""
    if self.builder.name == "html":
        says = f'<span role="tooltip" id="{node["serial"]}">{self.encode(node["meaning"])}</span>'
    self.body.append(f"</a>{says}</span>")


def read_entries(app):
    page = Path(app.srcdir) / f"{GLOSSARY}.md"
    app.book_glossary = entries(page.read_text()) if page.exists() else {}


def setup(app):
    app.add_node(glossary_term, html=(visit_term, depart_term), epub=(visit_term, depart_term))
    app.add_transform(LinkTerms)
    app.connect("builder-inited", read_entries)
    app.connect("missing-reference", resolve_term)
