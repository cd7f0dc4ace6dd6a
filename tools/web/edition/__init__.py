"""The web edition's extension of Sphinx: what only a site can do with the READMEs.

Each module has one feature, which its setup(app) plugs in, or whose files its write(app) makes. No
README is written for it: all of them read what is there, tables, links, comments and fenced blocks.
"""
from . import (contents, excerpts, front, glossary, links, live, predictions, recordings,
               search, sources, symptoms)


def write(app, error):
    if not error and app.builder.name == "html":
        for feature in (contents, sources, live, search, glossary):
            feature.write(app)


def setup(app):
    for feature in (contents, links, sources, glossary, excerpts, predictions, recordings, front,
                    live, symptoms, search):
        feature.setup(app)
    app.connect("build-finished", write)
    return {"version": "1", "env_version": 5,  # raised where pages must be read anew
            "parallel_read_safe": True, "parallel_write_safe": True}
