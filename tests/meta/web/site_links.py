"""Prints each link of a site that leads nowhere, or loads from elsewhere: site_links.py FOLDER."""
import html
import os
import pathlib
import re
import sys
import urllib.parse

# A parser of HTML takes four times as long, and Sphinx and the templates write < only in tags.
TAG = re.compile(r"<([a-z]\w*)(\s[^>]*)>")
ATTRIBUTE = re.compile(r'\s(id|href|src)="?((?<=")[^"]*|[^"\s]+)')


def wrong_links(folder):
    pages = {path: [(tag, name, html.unescape(value))
                    for tag, rest in TAG.findall(path.read_text())
                    for name, value in ATTRIBUTE.findall(rest)] for path in folder.rglob("*.html")}
    ids = {path: {value for _, name, value in found if name == "id"}
           for path, found in pages.items()}
    for path, found in sorted(pages.items()):
        for tag, name, link in found:
            if name == "id":
                continue
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                if tag != "a":  # what a reader may follow is no dependence
                    yield f"{path}: <{tag}> loads {link}"
                continue
            target = path if not parts.path else path.parent / urllib.parse.unquote(parts.path)
            target = pathlib.Path(os.path.normpath(target))
            if not target.is_file():
                yield f"{path}: {link} leads nowhere"
            elif parts.fragment and parts.fragment not in ids.get(target, {parts.fragment}):
                yield f"{path}: {link} leads to no place of its page"


wrong = list(wrong_links(pathlib.Path(sys.argv[1]).resolve()))
print("\n".join(wrong))
sys.exit(bool(wrong))
