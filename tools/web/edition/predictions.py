"""Predict first: tells predictions.js a chapter's questions, and what was measured.

tools/predictions.sh has the form of the two sections. What was measured is what the README's
blocks show.
"""
import json
import re

from docutils import nodes
from sphinx.transforms import SphinxTransform

MEASURED = re.compile(r"<!-- measured: (.*?)(?: => (.*?))? -->")
QUESTIONS, ANSWERS = "Predict first", "Your predictions"


class predictions(nodes.General, nodes.Element):
    """What predictions.js needs to know of a page, as JSON."""


def section_called(document, title):
    return next((section for section in document.findall(nodes.section)
                 if section[0].astext() == title), None)


def items_of(section):
    """Returns the items of the section's own numbered list."""
    for node in section.children if section else ():
        if isinstance(node, nodes.enumerated_list):
            return list(node.children)
    return []


def first_match(regex, lines):
    """Returns the group of the first line that the extended regular expression matches, or None."""
    pattern = re.compile(regex.replace("[:space:]", r"\s"))
    return next((found[1] for line in lines if (found := pattern.search(line))), None)


class ReadPredictions(SphinxTransform):
    default_priority = 415  # before ReadComments

    def apply(self):
        asked = section_called(self.document, QUESTIONS)
        questions = items_of(asked)
        if not questions or not self.env.docname.startswith("chapters/"):
            return
        answers = items_of(section_called(self.document, ANSWERS))
        chapter = self.env.docname.split("/")[1]
        found = [self.entry(number, answer) for number, answer in enumerate(answers, 1)]
        found += [{"number": number} for number in range(len(found) + 1, len(questions) + 1)]
        asked += predictions("", asked={"chapter": chapter, "questions": found,
                                        "saves": not self.config.book_public})

    def entry(self, number, answer):
        entry = {"number": number}
        comment = MEASURED.search(" ".join(node.astext() for node in answer.findall(nodes.raw)))
        if comment and (value := first_match(comment[1], self.shown_lines())):
            entry["measured"] = value + (f" ({comment[2]})" if comment[2] else "")
        return entry

    def shown_lines(self):
        """Yields the lines that the README's blocks show of runs."""
        for block in self.document.findall(nodes.literal_block):
            if block.astext().startswith("$ ./book"):
                yield from block.astext().splitlines()


def json_script(value, attributes=""):
    """Returns an element from which a script takes the value, in which no < can end or hide it."""
    data = json.dumps(value).replace("<", "\\u003c")
    return f'<script type="application/json" {attributes}>{data}</script>'


def visit_predictions(self, node):
    if self.builder.name == "html":
        self.body.append(json_script(node["asked"], 'id="book-predictions"'))
    raise nodes.SkipNode


def setup(app):
    app.add_node(predictions, html=(visit_predictions, None), epub=(visit_predictions, None))
    app.add_transform(ReadPredictions)
