"""The commonest messages as pages of their own, each titled with PyTorch's own words.

Somebody who searches for a message finds such a page. It is a section of symptoms.md, as it stands
there; here is nothing but the list of messages, each from a section's title.
"""
import html
import re

from docutils import nodes
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
PAGE = "chapters/symptoms"
MESSAGES = (
    "Timed out waiting ... for recv operation",
    "unhandled system error",
    "Gloo connectFullMesh failed ... Connection refused",
    "Watchdog caught collective operation timeout",
    "ChildFailedError",
    "Expected to have finished reduction in the prior iteration",
    "Expected to mark a variable ready only once",
    "The server socket has failed to listen ... address already in use",
    "CUDA out of memory",
    "Missing key(s) in state_dict",
)


def page_of(message):
    """Returns the name of a message's page, which stands beside the page of all symptoms."""
    return re.sub(r"[^a-z0-9]+", "-", message.lower()).strip("-")


def sections(doctree):
    """Yields (message, section), for each message that the title of a section has."""
    for section in doctree.findall(nodes.section):
        for message in MESSAGES:
            if message in section[0].astext():
                yield message, section


def add_links(app, doctree, docname):
    """Ends a message's section with the link to its page, for passing on."""
    if docname != PAGE or app.builder.name != "html":
        return
    for message, section in list(sections(doctree)):
        link = nodes.reference("", message, refuri=f"{page_of(message)}.html", internal=True)
        section += nodes.paragraph("", "A page to pass on: ", link, classes=["pass-on"])


def pages(app):
    is_written = hasattr(app.builder, "fignumbers")  # else no page is out of date: nor are these
    if app.builder.name != "html" or PAGE not in app.env.found_docs or not is_written:
        return
    found = list(sections(app.env.get_and_resolve_doctree(PAGE, app.builder)))
    for message in set(MESSAGES) - {message for message, _ in found}:
        LOGGER.warning("%s.md has no title with the message '%s'", PAGE, message)
    for message, section in found:
        section = section.deepcopy()
        title = section.pop(0).astext()
        for link in [node for node in section if "pass-on" in node.get("classes", ())]:
            section.remove(link)
        back = nodes.reference("", title, refuri=f"symptoms.html#{section['ids'][0]}",
                               internal=True)
        section.insert(0, nodes.title("", message))
        section.insert(1, nodes.paragraph("", "One of the symptoms: ", back))
        says = html.escape(" ".join(next(section.findall(nodes.bullet_list)).astext().split()))
        yield f"chapters/{page_of(message)}", {
            "title": html.escape(message), "body": app.builder.render_partial(section)["fragment"],
            "metatags": f'<meta name="description" content="{says[:200]}">'}, "page.html"


def setup(app):
    app.connect("doctree-resolved", add_links)
    app.connect("html-collect-pages", pages)
