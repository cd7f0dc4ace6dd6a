"""Follows every link of a site that was built: site_links.py FOLDER. Prints each that leads nowhere, or out to another node."""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """What a page links, and where it can be entered."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            elif name in ("href", "src", "data-source") and value:
                self.links.append((tag, value))


def wrong_links(folder):
    pages = {path: Page(path) for path in folder.rglob("*.html")}
    for path, page in sorted(pages.items()):
        for tag, link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                if tag != "a":  # what a reader may follow is no dependence
                    yield f"{path}: <{tag}> loads {link}"
                continue
            target = path if not parts.path else path.parent / urllib.parse.unquote(parts.path)
            target = pathlib.Path(target.resolve())
            if not target.is_file():
                yield f"{path}: {link} leads nowhere"
            elif parts.fragment and target in pages and parts.fragment not in pages[target].ids:
                yield f"{path}: {link} leads to no place of its page"


wrong = list(wrong_links(pathlib.Path(sys.argv[1]).resolve()))
print("\n".join(wrong))
sys.exit(bool(wrong))
