"""One title for a page: where a README has several (an exercise each), the later ones become sections of the first."""
from docutils import nodes
from sphinx.transforms import SphinxTransform


class NestSections(SphinxTransform):
    default_priority = 300

    def apply(self):
        sections = [node for node in self.document.children if isinstance(node, nodes.section)]
        for section in sections[1:]:
            self.document.remove(section)
            sections[0] += section


def setup(app):
    app.add_transform(NestSections)
