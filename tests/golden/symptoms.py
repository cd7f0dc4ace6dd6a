#!/usr/bin/env python3
"""Makes chapters/symptoms.md from small programs with a fault, and from their outputs.

    python3 tests/golden/symptoms.py --make     runs them, and writes the page (needs PyTorch)
    python3 tests/golden/symptoms.py --check    do they and the kept outputs still make the page?
    python3 tests/golden/symptoms.py --ask      do they still print what is kept? (needs PyTorch)

The programs are in chapters/23_your_job/symptoms. The comments at the top of each name the symptom,
its causes, the question that decides, and the book's section; a deeper indent continues a line.
`# decides` marks the first and the last line to copy: they run where they are pasted, with what the
program imports, and YOURS. Numbers can differ from run to run.
"""
import ast
import builtins
import contextlib
import difflib
import io
import json
import pathlib
import re
import runpy
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHAPTER = ROOT / "chapters" / "23_your_job"
PROGRAMS = CHAPTER / "symptoms"
KEPT = ROOT / "tests" / "golden" / "symptoms.json"
PAGE = ROOT / "chapters" / "symptoms.md"
SKIPPED = 77  # ctest's SKIP_RETURN_CODE
YOURS = "model loss loader optimizer inputs rank step epoch checkpoint file train".split()
SECTIONS = [
    ("It is slow",
     "slower_than_one accumulating_is_slow slower_than_last_week one_step_in_fifty "
     "every_rank_does_all".split()),
    ("It learns something wrong",
     "lower_accuracy nan_on_one_rank jumps_after_resume same_loss_and_drift".split()),
    ("It hangs", "hang_without_message hang_with_message wrong_interface watchdog_time_out "
                 "hang_at_validation hang_at_the_end".split()),
    ("It ends", "child_failed node_is_gone expected_to_have_finished ready_only_once "
                "address_in_use memory_only_with_ddp gpu_0_is_fuller all_names_missing "
                "lost_before_preemption".split()),
]
NAMES = [name for _, names in SECTIONS for name in names]


def parts_of(name):
    """Returns the comments at a program's top, and its deciding lines without the marks."""
    text = (PROGRAMS / f"{name}.py").read_text()

    def said(key):
        found = re.findall(rf"^# {key}: (.*(?:\n#   .*)*)$", text, re.MULTILINE)
        return [each.replace("\n#  ", "") for each in found]

    (symptom,), causes, (section,), (asks,) = map(said, ("symptom", "cause", "section", "decides"))
    lines, program = text.splitlines(), list(ast.walk(ast.parse(text)))
    marks = [number for number, line in enumerate(lines, 1) if line.endswith("  # decides")]
    if len(causes) < 3 or not marks:
        sys.exit(f"{name}.py needs three causes or more, and a deciding line.")
    first = max(node.lineno for node in program
                if isinstance(node, ast.stmt) and marks[0] in (node.lineno, node.end_lineno))
    copied = textwrap.dedent("\n".join(lines[first - 1:marks[-1]])).replace("  # decides", "")
    imports = [node for node in program if isinstance(node, (ast.Import, ast.ImportFrom))]
    unknown = undefined(copied) - {(alias.asname or alias.name).split(".")[0]
                                   for node in imports for alias in node.names}
    if unknown:
        sys.exit(f"{name}.py: where its deciding lines are pasted, {sorted(unknown)} do not exist.")
    return symptom, causes, section, asks, copied


def undefined(statements):
    """Returns the names that statements use and do not bind; neither builtins nor YOURS."""
    nodes = list(ast.walk(ast.parse(statements)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler)}
    return {node.id for node in names} - bound - set(dir(builtins)) - set(YOURS)


def run_rank(name):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        runpy.run_path(str(PROGRAMS / f"{name}.py"), run_name="__main__")
    return said.getvalue().strip()


def output_of(name):
    from support import ranks
    said = ranks.run(lambda rank: run_rank(name), patience=60)
    if None in said:
        sys.exit(f"{name}.py has not ended on rank {said.index(None)}.")
    if len([words for words in said if words]) < 2:
        return "".join(said)
    return "\n".join(words if words.startswith("rank ") else f"rank {rank}: {words}"
                     for rank, words in enumerate(said) if words)


def outputs():
    """Returns all programs' outputs, or None without PyTorch."""
    sys.path.insert(0, str(CHAPTER))
    try:
        import torch  # noqa: F401
    except ImportError:
        return None
    from support import ranks
    ranks.load()
    return {name: output_of(name) for name in NAMES}


def page_of(kept):
    page = """# Symptoms

Your job hangs, crashes, crawls, or learns nonsense. Search this page for the message, or for what
you see. Each block lists likely causes, then lines to paste into your script, whose output shows
where to look. Add the imports; `model`, `loss`, `loader`, `inputs`, `rank`, `step` are yours. The
output below is from a program of some 20 lines that has the first of the causes. It ran on two
ranks, on a CPU, with Gloo. Run them all again with your own PyTorch:

    PYTHON tests/golden/symptoms.py --ask

If no block fits, [And my own script?](23_your_job/README.md) investigates a wrong job, a hang and a
slow job from beginning to end, and has tools that watch yours.
"""
    for title, names in SECTIONS:
        page += f"\n## {title}\n"
        for name in names:
            symptom, causes, section, asks, line = parts_of(name)
            listed = "\n".join(f"- {cause}" for cause in causes)
            page += f"""
<a id="{name}"></a>
### {symptom[0].upper() + symptom[1:]}

{listed}

{asks} The program: [{name}.py](23_your_job/symptoms/{name}.py). The reason: {section}.
```python
{line}
```
```text
{kept[name]}
```
"""
    return page


def alike(text):
    return re.sub(r"\d+(\.\d+)?", "0", text)


def main():
    action = sys.argv[1:]
    there = {path.stem for path in PROGRAMS.glob("*.py")}
    if there != set(NAMES):
        sys.exit(f"The lists of programs differ: {sorted(there ^ set(NAMES))}.")
    if action == ["--check"]:
        page, right = PAGE.read_text(), page_of(json.loads(KEPT.read_text()))
        difference = list(difflib.unified_diff(page.splitlines(), right.splitlines(), "the page",
                                               "the programs", "", "", 0))
        if difference:
            print("\n".join(difference))
            sys.exit("chapters/symptoms.md is out of date: run "
                     "tests/golden/symptoms.py --make.")
        print(f"The page has {len(NAMES)} symptoms, and is current.")
    elif action in (["--make"], ["--ask"]):
        found = outputs()
        if found is None:
            print("SKIPPED: no PyTorch is here: `./book setup pytorch` fetches one into build/.")
            sys.exit(SKIPPED)
        if action == ["--make"]:
            KEPT.write_text(json.dumps(found, indent=1) + "\n")
            PAGE.write_text(page_of(found))
            return
        kept = json.loads(KEPT.read_text())
        wrong = [name for name in NAMES if alike(found[name]) != alike(kept[name])]
        for name in wrong:
            print(f"{name}.py prints\n    {found[name]}\nand has printed\n    {kept[name]}")
        sys.exit("The symptoms are not what is kept." if wrong else 0)
    else:
        sys.exit("symptoms.py takes --make, --check or --ask.")


if __name__ == "__main__":
    main()
