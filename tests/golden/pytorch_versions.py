#!/usr/bin/env python3
"""Does PyTorch do what three pages say? It asks the one that its interpreter has.

    PYTHON tests/golden/pytorch_versions.py

The rows of chapters/pytorch_versions.md are the questions of pytorch_questions.py, in its order,
and their second cells are the answers. chapters/pytorch_map.md and environment.md name what is in
the wheel, and environment.md has all arguments, and all variables of its own that PyTorch reads.
What differs is printed. It is an error in the minor version that the page names; in another one it
is news, and the exit status is 77, which ctest counts as skipped.
"""
import importlib.util
import json
import mmap
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CHAPTERS = HERE.parent.parent / "chapters"
PAGE = (CHAPTERS / "pytorch_versions.md").read_text()
MAP = (CHAPTERS / "pytorch_map.md").read_text()
ENVIRONMENT = (CHAPTERS / "environment.md").read_text()
TIME_LIMIT = 600  # seconds, of all answers
SKIPPED = 77      # ctest's SKIP_RETURN_CODE


# ---- The questions -------------------------------------------------------------------------------


def ask():
    """The version, and its answers by question."""
    result = subprocess.run([sys.executable, "-B", str(HERE / "pytorch_questions.py")],
                            capture_output=True, text=True, timeout=TIME_LIMIT)
    if result.returncode != 0:
        sys.exit(f"{sys.executable} has not answered: {result.stderr.strip()[-2000:]}")
    found = json.loads(result.stdout)
    return found["version"], found["answers"]


def other_answers(answers):
    rows = re.findall(r"^\| (?!question )(.+?) \| (.+?) \| .+ \|$", PAGE, re.MULTILINE)
    assert len(rows) == len(answers), f"{len(rows)} rows for {len(answers)} questions"
    return [f"{question} ({name}): PyTorch answers\n    {answer}\nand the page says\n    {told}"
            for (question, told), (name, answer) in zip(rows, answers.items()) if answer != told]


# ---- The map's side that is PyTorch's ------------------------------------------------------------

SHORT = {"distributed.py": "torch/nn/parallel/distributed.py",
         "reducer.cpp": "torch/csrc/distributed/c10d/reducer.cpp"}


def names_of_the_map():
    """As pairs of a file and a name that it should have, which is empty for a folder."""
    pairs = []
    for line in MAP.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if (len(cells) < 4 or not cells[3].startswith("[") or "NCCL `" in cells[2]
                or "CUB" in cells[2]):
            continue
        file = None
        for word, token in re.findall(r"(\w+ )?`([^`]+)`", cells[2]):
            if re.search(r"\.(py|h|hpp|cpp)$|/$", token):
                file = SHORT.get(token, token)
                if file.endswith("/"):
                    pairs.append((file, ""))
            elif file and word != "earlier ":
                pairs.append((file, re.split(r"::", token.split("(")[0])[-1]))
    assert len(pairs) > 40, f"only {len(pairs)} names: has the form of the map's tables changed?"
    return pairs


def file_of_the_wheel(site, file):
    """Python files are themselves; what is C++ is there as headers."""
    if file.endswith(".py"):
        return site / file
    path = site / "torch" / "include" / file
    is_exact = file.endswith(("/", ".h", ".hpp"))
    headers = [path] if is_exact else [path.with_suffix(".hpp"), path.with_suffix(".h")]
    return next((header for header in headers if header.exists()), headers[0])


def lacking_of_the_map(site):
    for file, name in names_of_the_map():
        path = file_of_the_wheel(site, file)
        if not path.exists():
            yield f"pytorch_map.md: PyTorch has no {file}"
        elif name and not re.search(rf"\b{re.escape(name)}\b", path.read_text(errors="replace")):
            yield f"pytorch_map.md: PyTorch has no {name} in {file}"


# ---- Variables and arguments ---------------------------------------------------------------------

PYTHON_AND_HEADERS = (("distributed", "**/*.py"), ("nn/parallel", "*.py"),
                      ("include/torch/csrc/distributed", "**/*.hpp"))


def variables_of_the_page():
    """Without earlier names, and without NCCL's, OpenBLAS's..."""
    names = set()
    for line in ENVIRONMENT.split("## Old scripts say")[0].splitlines():
        cell = line.split("|")[1] if line.startswith("|") else ""
        names |= {name for word, name in re.findall(r"(\w+ )?`([A-Z][A-Z0-9_]+)`", cell)
                  if word != "earlier "
                  and not name.startswith(("NCCL_", "OPENBLAS_", "SLURM_", "DDP_"))}
    return names


def arguments_of_the_page():
    text = ENVIRONMENT.split("## `init_process_group`", 1)[1]
    rows = re.findall(r"^\| (`[a-z].*?) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)}


def variables_that_are_nowhere(site):
    """Those of the page that no Python file, header or library of the wheel names."""
    missing = variables_of_the_page()
    assert len(missing) > 40, "has the form of environment.md changed?"
    for folder, pattern in (*PYTHON_AND_HEADERS, ("lib", "libc10*.so"), ("lib", "libtorch*.so")):
        for path in (site / "torch" / folder).glob(pattern):
            if path.stat().st_size > 0:
                with open(path, "rb") as file:
                    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                        missing = {name for name in missing if content.find(name.encode()) < 0}
    return missing


def variables_of_the_wheel(site):
    """Those with names of its own that torch.distributed's Python files and headers name."""
    name = re.compile(rb"""["']((?:TORCH|TORCHELASTIC|PYTORCH_DDP|GLOO)_[A-Z0-9_]+)["']""")
    found = set()
    for folder, pattern in PYTHON_AND_HEADERS:
        for path in (site / "torch" / folder).glob(pattern):
            found |= {each.decode() for each in name.findall(path.read_bytes())}
    assert len(found) > 40, "does PyTorch name its variables in another way?"
    return found


def differences_of_the_environment(site, answers):
    arguments = arguments_of_the_page()
    here = set(re.findall("`([^`]+)`", answers["constructor_arguments"]
                          + answers["init_process_group_arguments"]))
    named = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", ENVIRONMENT))
    lacking = variables_that_are_nowhere(site) | (arguments - here)
    unnamed = (variables_of_the_wheel(site) - named) | (here - arguments)
    return ([f"environment.md: PyTorch has no {name}" for name in sorted(lacking)]
            + [f"environment.md does not name {name}" for name in sorted(unnamed)])


def main():
    version, answers = ask()
    kept = re.search(r"PyTorch ([0-9.]+[0-9])", PAGE)[1]
    site = pathlib.Path(importlib.util.find_spec("torch").origin).parents[1]
    found = [*other_answers(answers), *lacking_of_the_map(site),
             *differences_of_the_environment(site, answers)]
    for difference in found:
        print(difference)
    if not found:
        print(f"PyTorch {version} has answered {len(answers)} questions as the page says.")
    elif version.split(".")[:2] == kept.split(".")[:2]:
        sys.exit("PyTorch does not do what the pages say.")
    else:
        print(f"SKIPPED: the pages are about PyTorch {kept}, and here is {version}.")
        sys.exit(SKIPPED)


if __name__ == "__main__":
    main()
