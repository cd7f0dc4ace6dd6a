"""Terms: links to the glossary that say on hover, on focus, or at the first tap what a term means.

READMEs link some terms. This links the first use of all others in a page, in the forms for which
the test `readmes` looks. terms.js has the meanings, the entries' own words, and page.js shows them.
"""
import collections
import json
import re
from pathlib import Path

from docutils import nodes
from markdown_it import MarkdownIt
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from . import links

LOGGER = logging.getLogger(__name__)
GLOSSARY = "chapters/glossary"
ENTRY = re.compile(r'<a id="([^"]+)"></a>\*\*`?([^*`]+)`?\*\* \(\[(\d\d)\]')
FORMS = re.compile(r"<!-- checked as: (.*?) -->", re.S)
CHAPTER = re.compile(r"(?:chapters|exercises|tests/bench)/(\d\d)_")
SKIPPED = (nodes.literal, nodes.strong, nodes.literal_block, nodes.title, nodes.reference,
           nodes.raw, addnodes.pending_xref, addnodes.download_reference)


# A term: what it means, the chapter that introduces it, and the forms in which it is used.
Entry = collections.namedtuple("Entry", "meaning chapter forms")


def entries(text):
    """Returns anchor -> Entry, of entries `- <a id="x"></a>**x** (where): meaning`."""
    found = {}
    tokens = MarkdownIt().parse(text)
    for i, token in enumerate(tokens):
        entry = ENTRY.match(token.content) if token.type == "inline" else None
        if not entry:
            continue
        words = "".join("\n" if child.type == "softbreak" else child.content
                        for child in token.children
                        if child.type in ("text", "code_inline", "softbreak"))
        # A comment with a line of its own is a block after the paragraph.
        comments = token.content + "".join(next_.content for next_ in tokens[i + 1:i + 3]
                                           if next_.type == "html_block")
        anchor, term, chapter = entry.groups()
        forms = (term, f"{term}s")
        if others := FORMS.search(comments):
            forms = tuple(" ".join(others[1].split()).split(", "))
        elif "<!-- not checked -->" in comments:
            forms = ()
        found[anchor] = Entry(" ".join(words.partition("): ")[2].split()), chapter, forms)
    return found


def uses(text, known):
    """Yields (begin, end, anchor) of the first use of each term, none inside of another."""
    forms = {form.lower(): anchor for anchor, entry in known.items() for form in entry.forms}
    if not forms:
        return
    longest = sorted(forms, key=len, reverse=True)
    words = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, longest))})(?![\w-])", re.I)
    seen = set()
    for use in words.finditer(text):
        anchor = forms[use[0].lower()]
        if anchor not in seen:
            seen.add(anchor)
            yield use.start(), use.end(), anchor


class LinkTerms(SphinxTransform):
    """Takes the links to the glossary's anchors, which are no headings, from MyST; adds others."""
    default_priority = 450  # after all that moves text

    def apply(self):
        known, docname = self.app.book_glossary, self.env.docname
        for node in self.document.findall(nodes.reference):  # from one entry to another
            if docname == GLOSSARY and node.get("refuri", "").lstrip("#") in known:
                node.attributes.pop("id_link", None)
        linked = {self.take(node, node["reftargetid"])
                  for node in list(self.document.findall(addnodes.pending_xref))
                  if node["reftarget"] == GLOSSARY and node.get("reftargetid")}
        if docname == GLOSSARY:
            return
        chapter = CHAPTER.match(docname)
        left = {anchor: entry for anchor, entry in known.items() if anchor not in linked
                and entry.chapter != (chapter and chapter[1])}
        for text in list(self.document.findall(nodes.Text)):
            self.link_uses(text, left)
        self.env.note_dependency(f"{GLOSSARY}.md")

    def link(self, anchor, *children):
        return addnodes.pending_xref("", *children, refdoc=self.env.docname, refdomain="",
                                     reftype="book-term", reftarget=anchor)

    def take(self, node, anchor):
        if anchor in self.app.book_glossary:
            node.replace_self(self.link(anchor, *node.children))
        else:
            LOGGER.warning("dead link: the glossary has no entry '%s'", anchor, location=node)
            node.replace_self(node.children[0].children)
        return anchor

    def link_uses(self, text, left):
        """Links a text's uses of the terms that are left, and takes these out."""
        node = text
        while node.parent is not None:
            node = node.parent
            if isinstance(node, SKIPPED):
                return
        found = list(uses(str(text), left))
        links.put_in(text, [(begin, end, self.link(anchor, nodes.inline("", text[begin:end])))
                            for begin, end, anchor in found])
        for _, _, anchor in found:
            del left[anchor]


def resolve_term(app, env, node, content):
    if node.get("reftype") != "book-term":
        return None
    page = ""
    if app.builder.name != "singlehtml":
        page = app.builder.get_relative_uri(node["refdoc"], GLOSSARY)
    return nodes.reference("", "", *content.children, refuri=f"{page}#{node['reftarget']}",
                           internal=True, classes=["term"])


def read_entries(app):
    page = Path(app.srcdir) / f"{GLOSSARY}.md"
    app.book_glossary = entries(page.read_text()) if page.exists() else {}


def write(app):
    meanings = {anchor: entry.meaning for anchor, entry in app.book_glossary.items()}
    (Path(app.outdir) / "_static/terms.js").write_text(
        f"window.bookTerms={json.dumps(meanings, ensure_ascii=False, separators=(',', ':'))};\n")


def setup(app):
    app.add_transform(LinkTerms)
    app.connect("builder-inited", read_entries)
    app.connect("missing-reference", resolve_term)
