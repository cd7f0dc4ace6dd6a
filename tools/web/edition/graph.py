"""What chapter needs what: below the table with a column "needs", its rows as a graph."""
import functools
import re

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

ROW_HEIGHT, TEXT_AT, WIDTH = 28, 150, 400


class chapter_graph(nodes.General, nodes.Element):
    """The rows of the table: number, name, page, question, numbers of what it needs."""


def rows_of(table):
    """Returns a table's rows of chapters, (number, name, page, question, needs), if it has any."""
    head = [entry.astext() for entry in table.findall(nodes.entry)][:5]
    if "needs" not in head:
        return []
    rows = []
    for row in table.findall(nodes.row):
        cells = list(row.findall(nodes.entry))
        link = next(iter(row.findall(addnodes.pending_xref)), None)
        if link is not None and re.fullmatch(r"\d\d", cells[0].astext()):
            number, name, question = (cell.astext() for cell in cells[:3])
            needs = re.findall(r"\b\d\d\b", cells[head.index("needs")].astext())
            rows.append((number, name, link["reftarget"], question, needs))
    return rows


def drawing(rows, uri):
    """Returns the graph as SVG: rows, and left of them an arc from each need to who needs it."""
    place = {row[0]: ROW_HEIGHT * (i + 0.5) for i, row in enumerate(rows)}
    arcs, texts = [], []
    for number, name, page, question, needs in rows:
        y = place[number]
        for need in needs:
            top, x = place[need], TEXT_AT - 14
            left = x - 1.33 * min(TEXT_AT - 30, 10 + 0.27 * (y - top))
            arcs.append(f'<path class="arc" data-from="{need}" data-to="{number}" '
                        f'd="M{x} {top:g} C{left:g} {top:g} {left:g} {y:g} {x} {y:g}"/>')
        needed = f"needs {', '.join(needs)}" if needs else "needs no other chapter"
        texts.append(f'<a href="{uri(page)}" data-chapter="{number}" '
                     f'data-needs="{" ".join(needs)}" '
                     f'aria-label="{number} {name}: {question} ({needed})">'
                     f'<circle cx="{TEXT_AT - 14}" cy="{y:g}" r="5"/>'
                     f'<text x="{TEXT_AT}" y="{y + 5:g}">{number} {name}</text></a>')
    height = ROW_HEIGHT * len(rows)
    return (f'<svg class="chapter-graph" viewBox="0 0 {WIDTH} {height}" role="group" '
            'aria-label="Chapters, each with arcs to those that it needs">'
            f'{"".join(arcs + texts)}</svg>')


class AddGraph(SphinxTransform):
    default_priority = 430

    def apply(self):
        for table in list(self.document.findall(nodes.table)):
            if rows := rows_of(table):
                at = table.parent.index(table) + 1
                table.parent.insert(at, chapter_graph("", rows=rows))


def visit_graph(self, node):
    if self.builder.name == "html":
        uri = functools.partial(self.builder.get_relative_uri, self.builder.current_docname)
        self.body.append('<figure class="graph"><figcaption>What needs what: point at a chapter, '
                         'and its arcs lead up to what it needs and down to what needs it.'
                         '</figcaption>'
                         f'{drawing(node["rows"], uri)}</figure>')
    raise nodes.SkipNode


def setup(app):
    app.add_node(chapter_graph, html=(visit_graph, None), epub=(visit_graph, None))
    app.add_transform(AddGraph)
