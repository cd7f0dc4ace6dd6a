"""Where each name is born: names.js leads from a name in any code to the line that declares it."""
import json
import re
from pathlib import Path

TYPE = re.compile(r"^(?:template <.*> *)?(?:class|struct|enum class|enum) ([A-Za-z_]\w*)"
                  r"(?: final)?(?: :.*)? \{")
FUNCTION = re.compile(r"^(?!return|using|typedef|namespace|else|#|//)[A-Za-z_][\w:<>,&*\[\] ]*"
                      r"[ &*]([a-z_]\w{2,})\(")


def declared(text):
    """Yields (name, line) for the types and functions that a file declares outside of any class."""
    for number, line in enumerate(text.splitlines(), 1):
        found = TYPE.match(line) or FUNCTION.match(line)
        if found and found[1] != "main":
            yield found[1], number


def births(root, paths):
    """Returns path -> name -> line, of names that one header declares, or else one kernel file."""
    headers, kernels = {}, {}
    for path in paths:
        known = headers if Path(path).suffix in (".hpp", ".cuh") else kernels
        for name, number in declared((Path(root) / path).read_text()):
            known.setdefault(name, {}).setdefault(path, number)
    found = {}
    for name, places in (kernels | headers).items():
        if len(places) == 1:
            (path, number), = places.items()
            found.setdefault(path, {})[name] = number
    return found


def write(app):
    code = [path for path in sorted(app.book_sources)
            if path.startswith(("chapters/", "common/")) and path.endswith((".cu", ".cuh", ".hpp"))]
    text = json.dumps(births(app.srcdir, code), separators=(",", ":"), sort_keys=True)
    (Path(app.outdir) / "_static/names.js").write_text(f"window.bookNames={text};\n")
