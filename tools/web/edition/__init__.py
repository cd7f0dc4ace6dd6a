"""The web edition's extension of Sphinx: what a code node does with the READMEs, and what only a site can do.

Each module has one feature, and a function setup(app) that plugs it in. No README is written for it: all of them read
what is there, tables, links, comments and fenced blocks.
"""
from . import (contents, excerpts, glossary, graph, headings, links, live, names, predictions,
               recordings, sources)

FEATURES = (headings, links, glossary, sources, excerpts, names, contents, graph, predictions,
            recordings, live)


def setup(app):
    for feature in FEATURES:
        feature.setup(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
