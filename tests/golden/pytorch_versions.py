#!/usr/bin/env python3
"""Which PyTorch does what: makes chapters/pytorch_versions.md of the answers of real versions.

    pytorch_versions.py --make PYTHON...    asks each version, keeps its answers, writes the page
    pytorch_versions.py --check             is the page what the kept answers make?
    pytorch_versions.py --ask PYTHON...     does each version still answer what is kept?

PYTHON is an interpreter that has PyTorch; this script itself needs none. pytorch_questions.py gives
the answers, pytorch/ has those that are kept, one file a version. --ask without PYTHON takes the
interpreters of DDP_PYTORCH (separated by colons), or build/pytorch, python3 and /usr/bin/python3;
if none of them has PyTorch, it says so and exits with 77, which ctest counts as skipped.
"""
import argparse
import difflib
import json
import mmap
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
KEPT = HERE / "pytorch"
BOOKS_OWN = str(ROOT / "build" / "pytorch" / "bin" / "python")
PAGE = ROOT / "chapters" / "pytorch_versions.md"
MAP = ROOT / "chapters" / "pytorch_map.md"
ENVIRONMENT = ROOT / "chapters" / "environment.md"
TIME_LIMIT = 600  # seconds, of one version's answers
SKIPPED = 77      # ctest's SKIP_RETURN_CODE

# The name of the function that answers, the question, and what this book does.
SECTIONS = [("The loss and the graph", [
    ("nothing_unused_with_the_flag", "`find_unused_parameters=True`, and every parameter is used",
     "`FindUnused::has_found` says it: [17](17_unused_parameters)"),
    ("loss_leaves_out_an_output", "`find_unused_parameters=True`; forward returns two outputs, and "
     "the loss uses one", "the same: [17](17_unused_parameters/README.md#find_unused_parameters)"),
    ("loss_leaves_out_an_output_on_one_rank", "`find_unused_parameters=True`; two outputs, and "
     "only rank 1's loss leaves the second one out", "the same"),
    ("old_gradient_that_no_forward_uses", "`find_unused_parameters=True`; an old gradient was not "
     "cleared, and no rank's forward uses its parameter", "the same"),
    ("old_gradient_that_no_loss_uses",
     "`find_unused_parameters=True`; an old gradient was not cleared, and only an output that no "
     "loss uses needs its parameter", "stays as it was on each rank"),
    ("unused_parameter_without_the_flag", "forward does not use a parameter, and nothing says so",
     "an error in the first step, with its name: [17](17_unused_parameters/README.md#the-hang)"),
    ("unused_parameter_with_debug_info",
     "forward does not use a parameter; `TORCH_DISTRIBUTED_DEBUG=INFO`",
     "always with the names: [17](17_unused_parameters/README.md#pytorchs-words-and-ours)"),
    ("static_graph_that_changes", "`static_graph=True`, and the second step takes another branch",
     "an error with the parameters' names: [17](17_unused_parameters/README.md#static_graph)"),
    ("static_graph_with_another_loss", "`static_graph=True`; the loss of the first step uses one "
     "output, that of the second step the other", "an error with the parameters' names"),
]), ("A step", [
    ("backward_in_evaluation", "a model in `eval()` is trained",
     "the same: [15](15_overlap/README.md#what-the-class-refuses)"),
    ("buffers_in_forward", "five forwards in turn: are rank 1's buffers replaced by rank 0's?",
     "the same; `no_grad` is a tape with `Recording::off`: [01](01_sgd)"),
    ("two_forwards_then_two_backwards", "two forwards, then two backwards",
     "an error: [15](15_overlap/README.md#what-the-class-refuses)"),
    ("past_the_wrapper", "`ddp.module(x)` is called, and not `ddp(x)`", "an error"),
    ("no_sync_around_backward_only", "`no_sync` around backward only",
     "the same: [15](15_overlap/README.md#no_sync)"),
    ("not_a_number_on_one_rank", "one rank's loss is NaN: the gradients",
     "the same; `--detect-anomaly` names the rank and the parameter"),
    ("cross_entropy_of_uneven_tokens",
     "`CrossEntropyLoss(ignore_index=...)`; rank 0's batch has one token, rank 1's three",
     "the same loss, and one that is told all ranks' tokens: "
     "[20](20_transformer/README.md#the-mean-of-means)"),
    ("uneven_inputs_with_join", "`join`; rank 1 has a batch more",
     "the same: [17](17_unused_parameters/README.md#join)"),
]), ("The model", [
    ("another_order_of_parameters",
     "rank 1 lists w1 and w2, of one shape, in the other order; rank 0 has w1 = 1, w2 = 2", "an "
     "error with the names: [11](11_data_parallel/README.md#equal-to-one-rank-with-all-samples)"),
    ("another_shape_on_one_rank", "a layer of another size on rank 1",
     "an error with the name, on that rank; it ends the others"),
    ("another_number_of_parameters", "rank 1's layer has no bias", "the same error"),
    ("wrapped_names", "a name of the wrapped model's `state_dict`; loaded into the bare model",
     "no prefix; one in a file is understood: [19](19_checkpoint_failover/README.md#the-file)"),
    ("sync_batch_norm_on_a_cpu", "SyncBatchNorm on a CPU", "runs: [18](18_sync_batch_norm)"),
]), ("Buckets", [
    ("buckets_by_default", "the buckets of 784-1024-1024-10 in the first two iterations",
     "the same: [14](14_buckets)"),
    ("buckets_with_25", "these buckets with `bucket_cap_mb=25`", "as in 2.15"),
    ("buckets_with_a_list", "these buckets with `bucket_cap_mb_list=[1, 4]`", "as in 2.15"),
    ("buckets_with_find_unused", "these buckets with `find_unused_parameters=True`", "the same"),
    ("gradients_as_views", "`gradient_as_bucket_view=True`, and `zero_grad(set_to_none=...)`",
     "always kept: [14](14_buckets/README.md#views-not-copies)"),
]), ("Data", [
    ("epochs_without_set_epoch", "DistributedSampler: a second epoch without `set_epoch`",
     "the same: [12](12_sampler)"),
    ("loader_with_sampler_and_shuffle", "`DataLoader(sampler=sampler, shuffle=True)`",
     "a loader is given an order"),
    ("samplers_of_one_process", "DistributedSampler with one rank, beside the samplers of a script "
     "of one process", "the same: [12](12_sampler/README.md#what-pytorch-does)"),
    ("next_of_a_new_iterator",
     "`next(iter(loader))` for each update; one iterator for more updates than an epoch has",
     "the same: [12](12_sampler/README.md#five-mistakes-without-a-message)"),
]), ("Defaults and names", [
    ("time_outs", "how long a collective may take (Gloo; NCCL)", "30 seconds: `--timeout`"),
    ("port_that_is_in_use", "two jobs on one node with the same `MASTER_PORT`",
     "a free port for each job: [05](05_ranks)"),
    ("post_accumulate_hook", "`Tensor.register_post_accumulate_grad_hook`",
     "the tape's visitor: [01](01_sgd)"),
    ("load_weights_only", "`torch.load` of a file with a function in it",
     "safetensors, which has none: [19](19_checkpoint_failover/README.md#the-file)"),
    ("power_sgd_start", "where PowerSGD begins by default; may it begin at 1?",
     "step 10; at 1 never: [15](15_overlap/powersgd.md)"),
    ("variables_of_torchrun", "the variables that `torchrun --nproc_per_node 2` sets",
     "[environment](environment.md)"),
    ("arguments_of_launch", "what `torch.distributed.launch` passes to the script",
     "[environment](environment.md)"),
    ("old_ways", "old ways: are they refused, deprecated, or do they work?",
     "[environment](environment.md#old-scripts-say-today-says)"),
    ("constructor_arguments", "the arguments of `DistributedDataParallel`",
     "[environment](environment.md)"),
    ("init_process_group_arguments", "the arguments of `init_process_group`",
     "[environment](environment.md)"),
]), ("This book's own checks", [
    ("golden_files", "the reference files of `tests/golden`", ""),
    ("names_of_the_map",
     "the names of [PyTorch beside this book](pytorch_map.md) that are looked up in the wheel", ""),
    ("variables_and_arguments",
     "the variables and the arguments of [Variables and arguments](environment.md)", ""),
    ("variables_that_are_read", "the variables with names of its own that `torch.distributed` "
     "reads", "each is named on that page"),
])]
QUESTIONS = [entry for _, entries in SECTIONS for entry in entries]


# ---- The map's side that is PyTorch's ------------------------------------------------------------

SHORT = {"distributed.py": "torch/nn/parallel/distributed.py",
         "reducer.cpp": "torch/csrc/distributed/c10d/reducer.cpp"}


def names_of_the_map():
    """As pairs of a file and the names that it should have, one of which is enough."""
    pairs = []
    for line in MAP.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if (len(cells) < 4 or not cells[3].startswith("[") or "NCCL `" in cells[2]
                or "CUB" in cells[2]):
            continue
        file = None
        for word, token in re.findall(r"(\w+ )?`([^`]+)`", cells[2]):
            if re.search(r"\.(py|h|hpp|cpp)$|/$", token):
                file = SHORT.get(token, token)
                if file.endswith("/"):
                    pairs.append((file, []))
            elif file and word == "earlier ":
                pairs[-1][1].append(token)
            elif file:
                pairs.append((file, [re.split(r"::", token.split("(")[0])[-1]]))
    return pairs


def file_of_the_wheel(site, file):
    """Python files are themselves; what is C++ is there as headers."""
    if file.endswith(".py"):
        return site / file
    path = site / "torch" / "include" / file
    is_exact = file.endswith(("/", ".h", ".hpp"))
    headers = [path] if is_exact else [path.with_suffix(".hpp"), path.with_suffix(".h")]
    return next((header for header in headers if header.exists()), headers[0])


def check_the_map(site):
    pairs, lacking = names_of_the_map(), []
    for file, names in pairs:
        path = file_of_the_wheel(site, file)
        if not path.exists():
            lacking.append(f"`{file}`")
        elif names and not re.search(rf"\b({'|'.join(map(re.escape, names))})\b",
                                     path.read_text(errors="replace")):
            lacking.append(f"`{names[0]}` in `{file}`")
    assert len(pairs) > 40, f"only {len(pairs)} names: has the form of the map's tables changed?"
    return how_many(len(pairs), lacking)


def how_many(total, lacking):
    if not lacking:
        return f"all {total}"
    return f"{total - len(lacking)} of {total}; it lacks {', '.join(dict.fromkeys(lacking))}"


# ---- Variables and arguments ---------------------------------------------------------------------

PYTHON_AND_HEADERS = (("distributed", "**/*.py"), ("nn/parallel", "*.py"),
                      ("include/torch/csrc/distributed", "**/*.hpp"))


def variables_of_the_page():
    """As lists of a name and earlier ones, one of which is enough; without NCCL's, OpenBLAS's..."""
    lists = []
    for line in ENVIRONMENT.read_text().split("## Old scripts say")[0].splitlines():
        cell = line.split("|")[1] if line.startswith("|") else ""
        for word, name in re.findall(r"(\w+ )?`([A-Z][A-Z0-9_]+)`", cell):
            if word == "earlier ":
                lists[-1].append(name)
            elif not name.startswith(("NCCL_", "OPENBLAS_", "SLURM_", "DDP_")):
                lists.append([name])
    return lists


def arguments_of_the_page():
    text = ENVIRONMENT.read_text().split("## `init_process_group`", 1)[1]
    rows = re.findall(r"^\| (`[a-z].*?) \|", text, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([a-z_]+)`", row)]


def contents_of_the_wheel(site):
    """What may name a variable: Python files, headers and libraries."""
    for folder, pattern in (*PYTHON_AND_HEADERS, ("lib", "libc10*.so"), ("lib", "libtorch*.so")):
        for path in sorted((site / "torch" / folder).glob(pattern)):
            if path.stat().st_size > 0:
                with open(path, "rb") as file:
                    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                        yield content


def variables_of_the_wheel(site):
    """Those with names of its own that torch.distributed's Python files and headers name."""
    name = re.compile(rb"""["']((?:TORCH|TORCHELASTIC|PYTORCH_DDP|GLOO)_[A-Z0-9_]+)["']""")
    found = set()
    for folder, pattern in PYTHON_AND_HEADERS:
        for path in (site / "torch" / folder).glob(pattern):
            found |= {each.decode() for each in name.findall(path.read_bytes())}
    return sorted(found)


def check_variables_that_are_read(newest):
    """The page names all that the newest version reads."""
    named = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", ENVIRONMENT.read_text()))
    read = re.findall("`([^`]+)`", newest["variables_that_are_read"])
    assert len(read) > 40, "has the form of the answer changed?"
    unnamed = sorted(set(read) - named)
    if unnamed:
        sys.exit(f"{ENVIRONMENT.relative_to(ROOT)} does not name what PyTorch reads: "
                 f"{', '.join(unnamed)}.")


def check_variables_and_arguments(site, answers):
    lists, arguments = variables_of_the_page(), arguments_of_the_page()
    assert len(lists) > 40 and len(arguments) > 25, "has the form of environment.md changed?"
    missing = {tuple(names) for names in lists}
    for content in contents_of_the_wheel(site):
        missing = {names for names in missing
                   if all(content.find(name.encode()) < 0 for name in names)}
    here = re.findall("`([^`]+)`", answers["constructor_arguments"]
                      + answers["init_process_group_arguments"])
    unnamed = sorted(set(here) - set(arguments))
    lacking = [f"`{names[0]}`" for names in lists if tuple(names) in missing]
    lacking += [f"`{name}`" for name in arguments if name not in here]
    return how_many(len(lists) + len(arguments), lacking) + (
        f"; the page does not name {', '.join(unnamed)}" if unnamed else "")


# ---- Asking a version ----------------------------------------------------------------------------


def run(python, *arguments):
    return subprocess.run([python, "-B", *arguments], capture_output=True, text=True,
                          timeout=TIME_LIMIT)


def site_of(python):
    """The folder that has its PyTorch, or None."""
    question = ("import importlib.util as u, os; s = u.find_spec('torch'); "
                "print(os.path.dirname(os.path.dirname(s.origin)) if s else '')")
    try:
        return pathlib.Path(run(python, "-c", question).stdout.strip() or None)
    except (OSError, TypeError):
        return None


def ask(python):
    """The version, and its answers by question."""
    site = site_of(python)
    if site is None:
        sys.exit(f"{python} has no PyTorch, or is not there.")
    result = run(python, str(HERE / "pytorch_questions.py"))
    if result.returncode != 0:
        sys.exit(f"{python} has not answered: {result.stderr.strip()[-2000:]}")
    found = json.loads(result.stdout)
    answers, golden = found["answers"], run(python, str(HERE / "make_golden.py"), "--check")
    answers["golden_files"] = (golden.stdout.splitlines()[-1] if golden.returncode == 0
                               else golden.stderr.strip())
    answers["names_of_the_map"] = check_the_map(site)
    answers["variables_and_arguments"] = check_variables_and_arguments(site, answers)
    answers["variables_that_are_read"] = listed(variables_of_the_wheel(site))
    broken = {name: each for name, each in answers.items() if str(each).startswith("ERROR")}
    if broken:
        sys.exit(f"PyTorch {found['version']} could not do what was asked: {broken}")
    return found["version"], answers


def minor(version):
    return ".".join(version.split(".")[:2])


# ---- The page ------------------------------------------------------------------------------------


def kept_answers():
    found = [json.loads(path.read_text()) for path in KEPT.glob("*.json")]
    found.sort(key=lambda each: [int(part) for part in each["version"].split(".")])
    return {each["version"]: each["answers"] for each in found}


def listed(names):
    return ", ".join(f"`{name}`" for name in names)


def changes(answers):
    """The answers; of a list of names that follows another one, only what is new or gone."""
    lists = [re.findall("`([^`]+)`", answer) for answer in answers]
    if any(listed(names) != answer for names, answer in zip(lists, answers)):
        return answers
    told = answers[:1]
    for before, after in zip(lists, lists[1:]):
        words = [("also", [name for name in after if name not in before]),
                 ("no longer", [name for name in before if name not in after])]
        told.append("; ".join(f"{word} {listed(names)}" for word, names in words if names))
    return told


def page_of(kept):
    versions = list(kept)
    named = " and ".join(versions)
    lines = [
        "# Which PyTorch does what",
        "",
        "PyTorch changes, and a sentence about it is true of some versions. Each line of the "
        "tables below is a small program that",
        f"PyTorch {named} have run, with two processes and Gloo, on a CPU. The last column says "
        "what this book does in the same place.",
        "[PyTorch beside this book](pytorch_map.md) compares files and functions, and [Variables "
        "and arguments](environment.md) the",
        "ways to steer a program from outside.",
        "",
        "A script has made this page. It says whether a PyTorch of your own gives the same "
        "answers, if you name its interpreter:",
        "",
        "    python3 tests/golden/pytorch_versions.py --ask PYTHON",
        "",
        "## What has changed",
        "",
        "| question | " + " | ".join(versions) + " | this book |",
        "|---|" + "---|" * len(versions) + "---|",
    ]

    def differs(name):
        return len({answers[name] for answers in kept.values()}) > 1

    for name, question, here in QUESTIONS:
        if differs(name):
            answers = changes([answers[name] for answers in kept.values()])
            lines.append(f"| {question} | {' | '.join(answers)} | {here} |")
    for title, entries in SECTIONS:
        same = [entry for entry in entries if not differs(entry[0])]
        if same:
            lines += ["", f"## {title}", "", f"The same in {named}." if len(versions) > 1 else "",
                      "", "| question | PyTorch | this book |", "|---|---|---|"]
            lines += [f"| {question} | {kept[versions[0]][name]} | {here} |"
                      for name, question, here in same]
    return "\n".join(lines) + "\n"


def check_page():
    kept, names = kept_answers(), {name for name, _, _ in QUESTIONS}
    for version, answers in kept.items():
        if set(answers) != names:
            sys.exit(f"The answers of PyTorch {version} are to other questions "
                     f"({', '.join(sorted(set(answers) ^ names))}): run this script with --make.")
    check_variables_that_are_read(list(kept.values())[-1])
    page, right = PAGE.read_text().splitlines(), page_of(kept).splitlines()
    difference = list(difflib.unified_diff(page, right, "the page", "the answers", "", "", 0))
    if difference:
        print("\n".join(difference))
        sys.exit(f"{PAGE.relative_to(ROOT)} is not what the kept answers make: run this script "
                 "with --make.")
    print(f"The page is what PyTorch {' and '.join(kept)} have answered.")


# ---- Making and asking ---------------------------------------------------------------------------


def make(pythons):
    KEPT.mkdir(exist_ok=True)
    for python in pythons:
        version, answers = ask(python)
        for path in KEPT.glob(f"{minor(version)}.*.json"):
            path.unlink()
        kept = json.dumps({"version": version, "answers": answers}, indent=1)
        (KEPT / f"{version}.json").write_text(kept + "\n")
        print(f"PyTorch {version} has answered {len(answers)} questions.")
    PAGE.write_text(page_of(kept_answers()))


def compare(pythons):
    kept = {minor(version): (version, answers) for version, answers in kept_answers().items()}
    asked, failed = 0, False
    for python in pythons:
        if site_of(python) is None:
            continue
        version, answers = ask(python)
        if minor(version) not in kept:
            print(f"SKIPPED: PyTorch {version} ({python}) has no answers that are kept; --make "
                  "would add them.")
            continue
        asked += 1
        before, expected = kept[minor(version)]
        for name, answer in answers.items():
            if answer != expected.get(name):
                failed = True
                print(f"{name}: PyTorch {version} answers\n    {answer}\nand PyTorch {before} has "
                      f"answered\n    {expected.get(name)}")
    if failed:
        sys.exit("tests/golden/pytorch is not what PyTorch answers: run this script with --make.")
    if asked == 0:
        print(f"SKIPPED: no PyTorch was asked: none of {', '.join(pythons)} has a version whose "
              "answers are kept.")
        sys.exit(SKIPPED)


def main():
    parser = argparse.ArgumentParser(description="Which PyTorch does what.")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--make", nargs="+", metavar="PYTHON",
                        help="ask, keep the answers, write the page")
    action.add_argument("--check", action="store_true",
                        help="compare the page with the kept answers")
    action.add_argument("--ask", nargs="*", metavar="PYTHON",
                        help="ask, and compare with the kept answers")
    options = parser.parse_args()
    if options.make:
        make(options.make)
    elif options.check:
        check_page()
    else:
        named = [path for path in os.environ.get("DDP_PYTORCH", "").split(":") if path]
        compare(options.ask or named or [BOOKS_OWN, "python3", "/usr/bin/python3"])


if __name__ == "__main__":
    main()
