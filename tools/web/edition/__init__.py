"""The web edition's extension of Sphinx: what only a site can do with the READMEs.

Each module has one feature, which its setup(app) plugs in, or whose files its write(app) makes. No
README is written for it: all of them read what is there, tables, links, comments and fenced blocks.
"""
from . import (contents, excerpts, front, glossary, links, live, recordings, search, sources,
               symptoms)


def write(app, error):
    if not error and app.builder.name == "html":
        for feature in (contents, sources, live, search, glossary):
            feature.write(app)


def let_save(app):
    """Lets predictions.js offer to save answers, which only somebody with a checkout can use."""
    if app.builder.name == "html" and not app.config.book_public:
        app.add_js_file(None, body="window.bookSaves = true;")


def setup(app):
    for feature in (contents, links, sources, glossary, excerpts, recordings, front, live,
                    symptoms, search):
        feature.setup(app)
    app.add_config_value("book_public", False, "html")  # without what serves a checkout only
    app.connect("builder-inited", let_save)
    app.connect("build-finished", write)
    return {"version": "1", "env_version": 9,  # raised where pages must be read anew
            "parallel_read_safe": True, "parallel_write_safe": True}
