"""The first screen: a step with and without overlap, which plays when seen, and three doors."""
from docutils import nodes
from sphinx.transforms import SphinxTransform

from . import links, recordings

SAYS = ("One training step on two ranks. Above, the gradients wait until backward has ended. "
        "Below, they travel while it is still running.")
DOORS = (("Learn it", "chapters/00_tiny/README", None),
         ("My job is broken", "chapters/symptoms", None), ("Run it", "README", "two-commands"))


class first_screen(nodes.General, nodes.Element):
    """The figure and the doors, on the site only."""


class AddFirstScreen(SphinxTransform):
    default_priority = 445  # after PlayPictures

    def apply(self):
        played = next(iter(self.document.findall(recordings.recording)), None)
        if self.env.docname != "README" or played is None:
            return
        screen = first_screen("", nodes.paragraph("", SAYS), played.deepcopy())
        screen[-1]["plays"] = played["is_above"] = True
        doors = nodes.paragraph("", "", classes=["doors"])
        for words, page, anchor in DOORS:
            doors += links.link_to(page, played, "README", nodes.inline("", words), anchor=anchor)
        screen += doors
        title = next(self.document.findall(nodes.title))
        title.parent.insert(1, screen)


def visit_screen(self, node):
    if self.builder.name != "html":
        raise nodes.SkipNode
    self.body.append('<div class="first-screen" id="first-screen">')


def depart_screen(self, node):
    self.body.append("</div>")


def setup(app):
    shown = visit_screen, depart_screen
    app.add_node(first_screen, html=shown, epub=shown)
    app.add_transform(AddFirstScreen)
