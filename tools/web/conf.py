"""How Sphinx makes the web edition of the READMEs, for `./book web` (tools/web/verbs.sh)."""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

project = html_title = "DDP by Hand"
author = copyright = ""
language = "en"
extensions = ["myst_parser", "edition"]
root_doc = "README"
include_patterns = ["*.md"] + [
    f"{folder}/**.md"
    for folder in ("chapters", "common", "exercises", "plots", "tests/bench", "tools")
]
# Sphinx does not look into these folders, which take it longer than the book itself.
# What is for those who work on the book has no page.
exclude_patterns = [".git", "build", "out", "my", "carry", "solutions", "tests/[!b]*",
                    "tools/web", "CHANGELOG.md", "SECURITY.md"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
smartquotes_action = "q"
highlight_language = "none"
highlight_options = {"cpp": {"stripnl": False}}

# Where the book's files are, such as https://forge.example/owner/book: what has no page of its own
# is linked there. While it is empty, nothing on the site speaks of it.
book_address = ""
# Where the site will be, such as https://book.example/: a link to a page then shows a picture.
html_baseurl = ""

html_theme = "furo"
html_theme_options = {"navigation_with_keys": False}  # the arrow keys step recordings
html_static_path = [str(HERE / "static")]
html_favicon = str(HERE / "static/favicon.svg")
html_css_files = ["book.css"]
html_js_files = [(f"{name}.js", {"defer": "defer"})
                 for name in ("terms", "page", "predictions", "scenes", "recording")]
templates_path = [str(HERE / "templates")]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_use_index = False

epub_theme = "epub"
epub_css_files = ["print.css"]
epub_basename = "ddp_by_hand"
epub_title = project
epub_author = epub_publisher = "the authors of DDP by Hand"
epub_copyright = "MIT licence"
epub_show_urls = "no"
epub_tocscope = "includehidden"
epub_tocdepth = 2
epub_tocdup = False
suppress_warnings = ["epub.duplicated_toc_entry"]  # a page that stands below two others
epub_identifier = "ddp-by-hand"
version = release = "1"
