#!/usr/bin/env python3
"""The guard names each of the fourteen wrong programs by its fault, and accuses none of the right
ones; check.py takes the right ones, and refuses mends that leave out what a program is for."""
import copy
import io
import pathlib
import pickle
import re
import sys
import tempfile
import time
from unittest import mock

import torch
import torch.distributed as dist

ROOT = pathlib.Path(__file__).resolve().parents[3]
MUSEUM = ROOT / "exercises" / "23_your_job"
sys.path[:0] = [str(MUSEUM), str(ROOT / "chapters" / "23_your_job")]
import check  # noqa: E402
import ddp_guard  # noqa: E402
import guard_checks  # noqa: E402
from support import ranks  # noqa: E402

FAULTS = {
    "past_the_wrapper": "past the wrapper", "never_in_sync": "never in sync",
    "own_start": "changed after wrapping", "same_epochs": "the same epochs",
    "own_shuffle": "samples seen twice", "first_batches": "samples never seen",
    "padded_evaluation": "padded evaluation", "divided_twice": "divided twice",
    "summed_again": "reduced twice", "mean_of_means": "mean of means",
    "same_dropout": "the same dropout", "own_buffer": "buffers differ",
    "frozen_decay": "frozen but decays", "missed_head": "not in the optimizer",
}
PARAMETERS = {"past_the_wrapper": "0.weight", "never_in_sync": "0.weight", "own_start": "2.weight",
              "own_buffer": "largest", "frozen_decay": "0.weight", "missed_head": "2.weight"}
# Mends that leave out what a program is for: what is to be replaced in the right one.
CHEATS = {
    "same_dropout": ("nn.Dropout(0.3), ", "", "The dropout is gone"),
    "padded_evaluation": ("range(rank, 333, world_size)", "range(rank, 332, world_size)",
                          "over the 333 samples"),
    "frozen_decay": (", weight_decay=0.01", "", "No parameter decays any more"),
    "divided_twice": (" / micro_batches\n        loss.backward", "\n        loss.backward",
                      "not those of a right program"),
    "never_in_sync": ("with nullcontext() if is_last else model.no_sync():", "if True:",
                      "Every micro-batch communicates now"),
    "same_epochs": ("range(4)", "range(1)",
                    "makes 32 steps before it is mended, and yours makes 8"),
    "own_buffer": ("self.largest.copy_", "inputs.add", "The buffer `largest` is 1.0000"),
}
SOLUTIONS = ROOT / "solutions" / "23_your_job"
HAS_SOLUTIONS = SOLUTIONS.is_dir()  # a book for students has none
# What right programs do, too, and might be taken for a fault: changes to the right `same_epochs`.
STEP, LOSS = "        optimizer.step()\n", "loss = F.cross_entropy(model(inputs), labels)"
CLIP = "nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n"
LOADER, LOG = "DataLoader(samples, batch_size=32, sampler=sampler)", "    if rank == 0:\n"
IN_BATCHES = "DataLoader(samples, batch_sampler=torch.utils.data.BatchSampler(sampler, 32, False))"
EPOCH, LOOP = "    sampler.set_epoch(epoch)\n", "    for inputs, labels in loader:\n"
# Draws with replacement that are dealt out, and an endless stream of orders.
DEALT = """class Dealt(DistributedSampler):
    def __iter__(self):
        torch.manual_seed(9 + self.epoch)
        drawn = torch.randint(0, 64, (512,)).tolist()
        return iter([drawn[k] for k in super().__iter__()])
"""
ENDLESS = """class Endless(torch.utils.data.Sampler):
    def __iter__(self):
        generator = torch.Generator().manual_seed(5)
        while True:
            yield from torch.randperm(512, generator=generator).tolist()[rank::2]
"""
STREAM = ("class Stream(torch.utils.data.IterableDataset):\n    def __iter__(self):\n"
          "        return iter(list(samples)")
TEST = ("    for each, _ in DataLoader(tests, sampler=DistributedSampler(tests, drop_last=True)):\n"
        "        model(each)\n")
HARMLESS = {
    "clipping": [(STEP, f"        {CLIP}{STEP}")],
    "a sum of weighted losses": [
        (LOSS, "outputs = model(inputs)\n        "
               "loss = 0.5 * F.cross_entropy(outputs, labels) + outputs.square().mean() / 2")],
    "the sum in place of the mean": [
        (STEP, "        for each in model.parameters():\n            each.grad *= 2\n" + STEP)],
    "loss scaling": [
        ("optimizer = ", "scaler = torch.amp.GradScaler('cpu', init_scale=2.0)\noptimizer = "),
        ("loss.backward()", "scaler.scale(loss).backward()"),
        (STEP, "        scaler.unscale_(optimizer)\n        scaler.step(optimizer)\n"
               "        scaler.update()\n")],
    "AdamW": [("SGD(model.parameters(), lr=0.1, momentum=0.9)",
               "AdamW(model.parameters(), weight_decay=0.1)")],
    "two optimizers": [
        ("optimizer = torch.optim.SGD(model.parameters()",
         "other = torch.optim.SGD(model.module[2].parameters(), lr=0.1)\n"
         "optimizer = torch.optim.SGD(model.module[0].parameters()"),
        (STEP, STEP + "        other.step()\n        other.zero_grad()\n")],
    "a part of the samples for each rank": [
        (LOADER, "DataLoader(torch.utils.data.Subset(samples, range(rank, 512, 2)), batch_size=32, "
                 "shuffle=True)")],
    "an incomplete last batch": [("batch_size=32", "batch_size=30")],
    "rank 0 looks at the model": [
        (LOG, LOG + "        with torch.no_grad():\n            model.module(x)\n")],
    "an evaluation in between": [
        (LOG, "    model.eval()\n    with torch.no_grad():\n"
              "        for inputs, labels in DataLoader(samples, batch_size=64):\n"
              "            model(inputs)\n    model.train()\n" + LOG)],
    "a second test, of those that drop_last leaves out": [
        (LOG, "    tests = TensorDataset(x[:333], y[:333])\n" + TEST +
              "    for each, _ in DataLoader(torch.utils.data.Subset(tests, [332])):\n"
              "        model(each)\n" + LOG)],
    "samples drawn with replacement": [
        (LOADER, "DataLoader(samples, batch_size=32, sampler=torch.utils.data.RandomSampler("
                 "samples, replacement=True, num_samples=256))")],
    "a look at a batch": [
        (EPOCH, ""), ("DistributedSampler(samples)", "DistributedSampler(samples, shuffle=False)"),
        (LOOP, "    size = len(next(iter(loader))[0])\n" + LOOP)],
    "draws that are dealt out": [
        ("samples = Tensor", DEALT + "samples = Tensor"),
        ("sampler = DistributedSampler", "sampler = Dealt")],
    "an endless sampler": [
        ("samples = Tensor", ENDLESS + "samples = Tensor"),
        (LOADER, "iter(DataLoader(samples, batch_size=32, sampler=Endless()))"),
        (LOOP, "    for (inputs, labels), _ in zip(loader, range(32)):\n")],
    "training in eval()": [
        ("TensorDataset(x, y)", "TensorDataset(x[:511], y[:511])"),
        ("optimizer = ", "model.eval()\noptimizer = ")],
    "uneven steps": [
        ("for epoch in range(4):\n" + EPOCH + LOOP,
         "from contextlib import ExitStack\nstack = ExitStack()\nstack.enter_context(model.join())"
         "\nfor epoch in range(4):\n    for inputs, labels in list(loader)[3 * rank:]:\n"),
        ("dist.destroy", "stack.close()\ndist.destroy")],
    "a stream": [
        (LOADER, "DataLoader(Stream(), batch_size=32)"),
        ("samples = Tensor", STREAM + "[rank::2])\nsamples = Tensor")],
}
# Faults that the museum has not, as changes to the right `same_epochs`.
NETWORK = "nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))"
GUILTY = {
    "learning rates differ": [("lr=0.1", "lr=0.1 * (1 + rank)")],
    "parameters differ": [(STEP, f"        if rank == 0:\n            {CLIP}{STEP}")],
    "the same epochs": [(EPOCH, ""), (LOADER, IN_BATCHES)],
    "loss scales differ": [
        ("optimizer = ",
         "scaler = torch.amp.GradScaler('cpu', init_scale=2.0 + rank)\noptimizer = "),
        ("loss.backward()", "scaler.scale(loss).backward()"),
        (STEP, "        scaler.step(optimizer)\n        scaler.update()\n")],
    "samples seen twice": [
        (LOADER, "DataLoader(Stream(), batch_size=32)"),
        ("samples = Tensor", STREAM + ")\nsamples = Tensor")],
    "padded evaluation": [(LOG, "    tests = TensorDataset(x[:333], y[:333])\n" + TEST + LOG)],
    "tested on training samples": [
        ("sampler = ", "samples, tests = torch.utils.data.random_split(\n    samples, [448, 64], "
         "torch.Generator().manual_seed(rank))\nsampler = "), (LOG, TEST + LOG)],
    "past the wrapper": [
        ("optimizer = ", "other = DistributedDataParallel(nn.Linear(8, 2))\noptimizer = "),
        ("SGD(model.parameters()", "SGD([*model.parameters(), *other.parameters()]"),
        ("F.cross_entropy(model(inputs), labels)",
         "F.cross_entropy(model(inputs) + other.module(inputs), labels)")],
    "not for FSDP": [(f"model = DistributedDataParallel({NETWORK})",
                      f"from torch.distributed.fsdp import fully_shard\nmodel = {NETWORK}\n"
                      "fully_shard(model, mesh=dist.device_mesh.init_device_mesh('cpu', (2,)))")],
}
failures = []


def complain(words):
    failures.append(words)
    print(f"FAILED: {words}", flush=True)


def answer_of(path, **options):
    """Returns rank 0's answer; rank 0 tells what all have found."""
    answers = check.run(path, **options)
    for answer in answers:
        if answer["errors"] or "has stopped watching" in answer["words"]:
            complain(f"{path}: {answer['errors']} {answer['words'][-400:]}")
    return answers[0]


def look_at_the_museum(world_size, every):
    for name, fault in FAULTS.items():
        if name == "padded_evaluation" and 333 % world_size == 0:
            fault = None  # nothing to pad
        answer = answer_of(MUSEUM / name / "stub.py", world_size=world_size, every=every)
        if answer["kinds"] != ([fault] if fault else []):
            complain(f"{name} on {world_size} ranks, every {every}: {answer['kinds']} is found, "
                     f"not '{fault}'")
        at = f", {PARAMETERS[name]}" if name in PARAMETERS else ""
        form = rf"\(step \d+, ranks? [\d, ]+{at}\): .*[.?] \[\d\d_[a-z_]+, .*\]$"
        for found in answer["findings"]:
            if not re.search(form, found):
                complain(f"{name}: a finding names step, rank, parameter and section, and this one "
                         f"does not: {found}")
        if not HAS_SOLUTIONS:
            continue
        answer = answer_of(SOLUTIONS / f"{name}.py", world_size=world_size, every=every)
        if answer["kinds"]:
            complain(f"the right {name} on {world_size} ranks, every {every}, is accused: "
                     f"{answer['findings']}")


def look_at_workers():
    """With workers, which take indices ahead, the guard says the same of samples."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("own_shuffle", "same_epochs", "first_batches", "padded_evaluation"):
            programs = [(MUSEUM / name / "stub.py", [FAULTS[name]])]
            programs += [(SOLUTIONS / f"{name}.py", [])] * HAS_SOLUTIONS
            for program, wanted in programs:
                for more in ("num_workers=2", "num_workers=1, persistent_workers=True"):
                    if name == "first_batches" and "persistent" in more:
                        continue  # begun anew for each step it would start a worker each time
                    text = program.read_text().replace("batch_size=32", f"batch_size=32, {more}")
                    path = pathlib.Path(folder) / f"{name}.py"
                    path.write_text(text)
                    kinds = answer_of(path)["kinds"]
                    if kinds != wanted:
                        complain(f"{program} with {more}: {kinds} is found, not {wanted}")


def look_at_changed_programs():
    right = (SOLUTIONS / "same_epochs.py").read_text()
    with tempfile.TemporaryDirectory() as folder:
        for name, changes in [*HARMLESS.items(), *GUILTY.items()]:
            text, wanted = right, [name] if name in GUILTY else []
            wanted = sorted(wanted + ["samples seen twice"] * ("random_split" in str(changes)))
            for old, new in changes:
                if text.count(old) != 1:
                    complain(f"same_epochs has not one '{old}'")
                text = text.replace(old, new)
            path = pathlib.Path(folder) / "program.py"
            path.write_text(text)
            # What is right is looked at in each step, what is wrong as seldom as ddp_guard.py does.
            answer = answer_of(path, every=16 if name in GUILTY else 1)
            if answer["kinds"] != wanted:
                complain(f"of '{name}' is said: {answer['findings']}")


def look_at_the_checks():
    for name in FAULTS:
        answer = answer_of(SOLUTIONS / f"{name}.py", ask=True)
        if answer["wrong"]:
            complain(f"the solution of {name} is refused: {answer['wrong']}")
    with tempfile.TemporaryDirectory() as folder:
        for name, (old, new, words) in CHEATS.items():
            text = (SOLUTIONS / f"{name}.py").read_text()
            if text.count(old) != 1:
                complain(f"{name} has not one '{old}'")
            path = pathlib.Path(folder) / f"{name}.py"
            path.write_text(text.replace(old, new))
            answer = check.run(path, ask=True)[0]
            if words not in answer["wrong"]:
                complain(f"{name} with '{new}' for '{old}' is not told '{words}' but: "
                         f"{answer['wrong']}{answer['errors']}")


def copy_a_watched_model(rank):
    """Returns how many values of a watched model's copies differ from its own."""
    ddp_guard.watch(1)
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    model(torch.ones(2, 4)).sum().backward()
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    copies = [copy.deepcopy(model), torch.load(file, weights_only=False)]
    return sum(int((a != b).sum()) for each in copies
               for a, b in zip(each.parameters(), model.parameters()))


def end_by_an_error(rank):
    """Returns how long rank 0, which ends by an error, waits for rank 1, which goes on."""
    ddp_guard.watch(1)
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    begin = time.monotonic()
    if rank == 1:
        time.sleep(5)
        return 0
    try:
        raise ValueError
    except ValueError:
        dist.destroy_process_group()
    return time.monotonic() - begin


def look_at_errors():
    seconds = ranks.run(end_by_an_error)[0]
    if seconds is None or seconds > 3:
        complain(f"a rank that ends by an error waits {seconds} s for the others")


def look_at_order():
    """Checks are compared in their order, even if a rank makes two after rank 0 has asked."""
    guard, compared = ddp_guard.Guard(1), []
    guard.store, guard.checks.compare = mock.Mock(get=pickle.dumps), compared.extend
    guard.store.check.side_effect = [False, True, True]
    guard.pending.extend([1, 2])
    guard.compare_what_is_there()
    guard.compare_what_is_there()
    if compared != ["ddp_guard/1/0", "ddp_guard/2/0"]:
        complain(f"the checks are compared in this order: {compared}")


REPORTS = {
    "dist.destroy_process_group()": "NOTHING WAS WATCHED: no model was wrapped",
    "nn.parallel.DistributedDataParallel(net)\ndist.destroy_process_group()":
        "NOTHING WAS WATCHED: no optimizer made a step",
    "model = nn.parallel.DistributedDataParallel(net)\nmodel(torch.ones(2, 4)).sum().backward()\n"
    "torch.optim.SGD(model.parameters()).step()":
        "NO SAMPLES WERE WATCHED: no batch came from a DataLoader"}


def look_at_reports():
    """What was not watched is said: silence would read as praise."""
    begin = ("import torch, torch.distributed as dist\nfrom torch import nn\n"
             "dist.init_process_group('gloo')\nnet = nn.Linear(4, 1)\n")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "program.py"
        for end, words in REPORTS.items():
            path.write_text(begin + end)
            said = answer_of(path)["words"]
            if words not in said:
                complain(f"the guard says of '{end}': {said}")
    said = answer_of(MUSEUM / "same_epochs" / "stub.py")["words"]
    if "watched 1 model, 32 steps and 1 loader; 5 checks compared 2 ranks; 1 finding." not in said:
        complain(f"the guard says of what it has watched: {said}")


def look_at_copies():
    """A watched model can be saved and copied as before: the guard hangs nothing on it."""
    if ranks.run(copy_a_watched_model) != [0, 0]:
        complain("a model that is watched cannot be saved whole, or copied")


def look_at_sections():
    for kind, section in guard_checks.SECTIONS.items():
        chapter, title = section.split(", ", 1)
        if f"\n## {title}\n" not in (ROOT / "chapters" / chapter / "README.md").read_text():
            complain(f"'{kind}' names a section that is not there: {section}")


def main():
    ranks.load()
    if sys.argv[1:] == ["more"]:
        look_at_the_museum(world_size=3, every=1)
        look_at_the_museum(world_size=2, every=1)
        look_at_workers()
    else:
        look_at_sections()
        look_at_copies()
        look_at_errors()
        look_at_order()
        look_at_reports()
        look_at_the_museum(world_size=2, every=16)
        if HAS_SOLUTIONS:
            look_at_the_checks()
            look_at_changed_programs()
        else:
            print("SKIPPED: the right programs (a book for students has no solutions)")
    print("all as expected" if not failures else f"{len(failures)} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
