#!/usr/bin/env python3
"""Runs a program of the museum on two ranks, watched by the guard, and says what is wrong with it.

    check.py FILE [TASK]       FILE is named as the exercise

It prints "passed", or what is wrong, with exit status 5. A mended program trains as long as before,
and does what it is for. What the guard does not see is asked of the program's own variables.
"""
import contextlib
import io
import os
import pathlib
import runpy
import sys
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "chapters" / "23_your_job"))
import ddp_guard  # noqa: E402
from support import ranks  # noqa: E402

WRONG = 5  # the exit status of a program that is not mended


class Wrong(Exception):
    """What is wrong, in words for the reader."""


# ---- What the guard does not ask -----------------------------------------------------------------
# Each takes the program's variables. `marks` are the first four weights of the last layer: known
# where only one mend is right.
STEPS = {"divided_twice": 8, "never_in_sync": 8, "mean_of_means": 64}  # the others make 32
MARKS = {"past_the_wrapper": [0.1707, -0.5008, 0.2727, -0.1739],
         "same_epochs": [0.1707, -0.5008, 0.2727, -0.1739],
         "summed_again": [0.1707, -0.5008, 0.2727, -0.1739],
         "divided_twice": [0.0705, -0.2087, 0.0381, -0.0833],
         "never_in_sync": [0.0705, -0.2087, 0.0381, -0.0833],
         "mean_of_means": [0.8278, 0.4651, 0.2081, 0.7462],
         "missed_head": [0.1921, -0.4363, 0.1208, -0.0375]}
TOLERANCE = 0.002  # other versions of PyTorch add up in another order


def marks_of(model):
    last = [parameter for parameter in model.parameters() if parameter.dim() == 2][-1]
    return [round(number, 4) for number in last.detach().flatten()[:4].tolist()]


def keeps_its_dropout(values):
    if not any(type(layer).__name__ == "Dropout" and layer.p > 0
               for layer in values["model"].modules()):
        raise Wrong("The dropout is gone. It is to stay, with other masks on each rank.")


def keeps_its_decay(values):
    if not any(group["weight_decay"] > 0 for group in values["optimizer"].param_groups):
        raise Wrong("No parameter decays any more. Those that learn are to decay as before.")
    if any(parameter.requires_grad for parameter in values["model"].module[0].parameters()):
        raise Wrong("The first layer learns to the end. It is to be frozen from the second epoch "
                    "on.")


def tests_every_sample_once(values):
    inputs, labels = values["test_inputs"], values["test_labels"]
    right = (values["model"].module(inputs).argmax(1) == labels).double().mean().item()
    if "accuracy" not in values or abs(values["accuracy"] - right) > 1e-6:
        raise Wrong(f"The program's `accuracy` is {values.get('accuracy', 'gone')}; over the 333 "
                    f"samples, each once, it is {right:.6f}.")


def has_seen_the_largest(values):
    largest, right = float(values["model"].module.largest), float(values["x"].abs().max())
    if abs(largest - right) > 1e-6:
        raise Wrong(f"The buffer `largest` is {largest:.4f}, and the largest value of all ranks' "
                    f"samples is {right:.4f}.")


def still_saves_messages(values):
    if "no_sync" not in pathlib.Path(values["__file__"]).read_text():
        raise Wrong("Every micro-batch communicates now. Only the last one of a step is to.")


ASKED = {"same_dropout": keeps_its_dropout, "frozen_decay": keeps_its_decay,
         "padded_evaluation": tests_every_sample_once, "own_buffer": has_seen_the_largest,
         "never_in_sync": still_saves_messages}


def judge(name, guard, values):
    wanted = STEPS.get(name, 32)
    if guard.findings:
        raise Wrong("\n".join(str(finding) for finding in guard.findings))
    if guard.step != wanted:
        raise Wrong(f"The program makes {wanted} steps before it is mended, and yours makes "
                    f"{guard.step}.")
    if type(values.get("model")).__name__ != "DistributedDataParallel":
        raise Wrong("`model` is no DistributedDataParallel any more.")
    marks = marks_of(values["model"])
    if name in MARKS and max(abs(a - b) for a, b in zip(marks, MARKS[name])) > TOLERANCE:
        raise Wrong("The guard finds nothing, but the parameters are not those of a right program: "
                    f"the last layer begins with {marks}, and not with {MARKS[name]}. Was more "
                    "changed than the mistake?")
    if name in ASKED:
        ASKED[name](values)


# ---- Running it ----------------------------------------------------------------------------------
def run_rank(path, every, ask):
    """Runs the program as this rank; returns what is wrong with it and what the guard has found."""
    sys.argv = [str(path)]
    guard, said = ddp_guard.watch(every), io.StringIO()
    answer = {"wrong": "", "errors": ""}
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            values = runpy.run_path(str(path), run_name="__main__")
            guard.finish()
        if ask:
            judge(path.stem, guard, values)
    except Wrong as wrong:
        answer["wrong"] = str(wrong)
    except BaseException:
        answer["errors"] = traceback.format_exc(limit=-1)
    answer["kinds"] = sorted({finding.kind for finding in guard.findings})
    answer["findings"] = [str(finding) for finding in guard.findings]
    answer["words"] = said.getvalue()
    return answer


def run(path, world_size=2, every=16, ask=False):
    path = pathlib.Path(path).resolve()
    answers = ranks.run(lambda rank: run_rank(path, every, ask), world_size)
    late = f"A rank has not ended within {ranks.TIME_LIMIT} s, or was ended from outside."
    return [answer or {"wrong": "", "errors": late, "kinds": [], "findings": [], "words": ""}
            for answer in answers]


def main():
    if len(sys.argv) not in (2, 3) or not os.path.isfile(sys.argv[1]):
        sys.exit("check.py takes a program that is there, and the name of its task.")
    ranks.load()
    answers = run(sys.argv[1], ask=True)
    for answer in answers:
        if answer["errors"]:
            print(f"The program fails:\n{answer['errors']}")
            sys.exit(WRONG)
    for answer in answers:
        if answer["wrong"]:
            print(answer["wrong"])
            sys.exit(WRONG)
    print("passed")


if __name__ == "__main__":
    main()
