"""Predict first: tells predictions.js a chapter's questions, and what was measured.

tools/predictions.sh has the form of the two sections. What was measured is what the reader's last
`./book run NN --predict` has kept in my/NN_name/measured, or else what the README's blocks show.
"""
import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform

from . import links

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


def own_measurements(text):
    """Returns number -> what was measured, of a run's lines `1. text`, the last of each number."""
    return dict(re.findall(r"^(\d+)\. (.+)$", text, re.M))


class ReadPredictions(SphinxTransform):
    default_priority = 415  # before ReadComments

    def apply(self):
        asked = section_called(self.document, QUESTIONS)
        questions = items_of(asked)
        if not questions or not self.env.docname.startswith("chapters/"):
            return
        answers = items_of(section_called(self.document, ANSWERS))
        chapter = self.env.docname.split("/")[1]
        kept = Path(self.env.srcdir) / "my" / chapter / "measured"
        has_own = kept.exists() and not self.config.book_public
        own = own_measurements(kept.read_text()) if has_own else {}
        links.note_own(self.env, kept)
        found = [self.entry(number, answer, own) for number, answer in enumerate(answers, 1)]
        found += [{"number": number} for number in range(len(found) + 1, len(questions) + 1)]
        asked += predictions("", chapter=chapter, questions=found)

    def entry(self, number, answer, own):
        entry = {"number": number}
        comment = MEASURED.search(" ".join(node.astext() for node in answer.findall(nodes.raw)))
        if str(number) in own:
            entry |= {"measured": own[str(number)], "own": True}
        elif comment and (value := first_match(comment[1], self.shown_lines())):
            entry["measured"] = value + (f" ({comment[2]})" if comment[2] else "")
        return entry

    def shown_lines(self):
        """Yields the lines that the README's blocks show of runs."""
        for block in self.document.findall(nodes.literal_block):
            if block.astext().startswith("$ ./book"):
                yield from block.astext().splitlines()


def json_script(value, attributes):
    """Returns an element from which a script takes the value, in which no < can end or hide it."""
    data = json.dumps(value).replace("<", "\\u003c")
    return f'<script type="application/json" {attributes}>{data}</script>'


def visit_predictions(self, node):
    if self.builder.name == "html":
        asked = {"chapter": node["chapter"], "questions": node["questions"]}
        self.body.append(json_script(asked, 'id="book-predictions"'))
    raise nodes.SkipNode


def setup(app):
    app.add_node(predictions, html=(visit_predictions, None), epub=(visit_predictions, None))
    app.add_transform(ReadPredictions)
