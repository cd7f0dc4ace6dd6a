"""What rank 0 compares: the notes of all ranks, after the same step. What differs has a cause.

    hashes of the parameters     equal: the replicas are; else which was the first, since when?
    forwards, backwards, rates   why the parameters differ
    dropout's generator          equal: all ranks drop the same units
    terms of each mean           unequal: a mean of means
    samples taken                twice, never, or in another rank's test

ddp_guard.py has each rank write these notes. Nothing here needs a rank to wait.
"""
import collections
import dataclasses
import sys

import torch

# What is found, and the section of the book that explains it.
SECTIONS = {
    "parameters differ": "11_data_parallel, Why they drift, and what stops it",
    "changed after wrapping": "11_data_parallel, Why they drift, and what stops it",
    "learning rates differ": "11_data_parallel, The learning rate",
    "loss scales differ": "16_recipe, Loss scaling",
    "past the wrapper": "15_overlap, What the class refuses",
    "never in sync": "15_overlap, no_sync",
    "buffers differ": "18_sync_batch_norm, Each rank has a mean of its own",
    "the same epochs": "12_sampler, Five mistakes without a message",
    "samples seen twice": "12_sampler, Five mistakes without a message",
    "samples never seen": "12_sampler, Five mistakes without a message",
    "tested on training samples": "12_sampler, Five mistakes without a message",
    "padded evaluation": "12_sampler, Remainders",
    "mean of means": "20_transformer, The mean of means",
    "divided twice": "04_gradient_accumulation, Sum against mean",
    "reduced twice": "15_overlap, What happens in a step",
    "the same dropout": "16_recipe, Dropout",
    "frozen but decays": "17_unused_parameters, The sixth neither hangs nor fails",
    "not in the optimizer": "11_data_parallel, What changes in a program",
    "not for FSDP": "11_data_parallel, What changes in a program",
}


@dataclasses.dataclass(frozen=True)
class Finding:
    """One fault: what, after how many steps, on which ranks, at which parameter ('' if at none)."""
    kind: str
    step: int
    ranks: tuple
    parameter: str
    words: str

    def __str__(self):
        ranks = ("rank " if len(self.ranks) == 1 else "ranks ") + ", ".join(map(str, self.ranks))
        place = f", {self.parameter}" if self.parameter else ""
        return (f"ddp_guard: {self.kind} (step {self.step}, {ranks}{place}): {self.words} "
                f"[{SECTIONS[self.kind]}]")


# ---- Hashes --------------------------------------------------------------------------------------
# Sums of integers, so that no order of adding matters. Two sums, along the rows and the columns of
# the bits, also tell apart tensors in which the same numbers stand in other places.
COLUMNS = 1024
MASK = (1 << 61) - 1


def bits_of(tensor):
    """Returns the tensor's bits, flat: as int32 or, where they are not whole ones, as uint8."""
    flat = tensor.detach().contiguous().view(-1).view(torch.uint8)
    return flat.view(torch.int32) if flat.numel() % 4 == 0 and flat.data_ptr() % 4 == 0 else flat


def hash_of(tensor):
    """Returns a tensor with one int64."""
    bits = bits_of(tensor)
    rows = bits.numel() // COLUMNS
    table, rest = bits[:rows * COLUMNS].view(rows, COLUMNS), bits[rows * COLUMNS:]
    total = torch.zeros((), dtype=torch.int64, device=bits.device)
    for sums in (table.sum(1, dtype=torch.int32), table.sum(0, dtype=torch.int32), rest):
        weights = 2 * torch.arange(sums.numel(), device=bits.device) + 1
        total = total * 31 + (sums.to(torch.int64) * weights).sum()
    return total


def hashes_of(tensors):
    """Returns a number for each; there is one transfer from the device, however many there are."""
    tensors = list(tensors)
    by_device = collections.defaultdict(list)
    for k, tensor in enumerate(tensors):
        by_device[tensor.device].append(k)
    found = [0] * len(tensors)
    for members in by_device.values():
        for k, number in zip(members, torch.stack([hash_of(tensors[k]) for k in members]).tolist()):
            found[k] = number & MASK
    return found


# ---- Comparing -----------------------------------------------------------------------------------
class Checks:
    """The checks that all ranks have made, and what was found."""

    def __init__(self):
        self.made = 0
        self.findings = []  # what was told
        self.told = set()
        self.samples = {}   # of the first epoch and the first test, by rank

    def compare(self, notes):
        """Tells what differs between the ranks' notes."""
        self.made += 1
        self.tell_what_was_found([each["found"] for each in notes])
        if len({(each["step"], *each["hashes"]) for each in notes}) > 1:
            return  # not after the same step: ranks that end at different times
        for number in notes[0]["models"]:
            if ("drift", number) not in self.told:
                self.explain_parameters(notes, number)
            if notes[0]["step"] > 0:
                self.locate("buffers differ", notes, number, "buffer", "this buffer has other "
                            "values than on the other ranks, and nothing brings them together: "
                            "forward_sync_buffers (earlier broadcast_buffers) is off.")
        if notes[0]["dropout"] and len(notes) > 1 and not differ(notes, "dropout"):
            self.share("the same dropout", notes, "all ranks draw their dropout masks from a "
                       "generator in the same state, so all drop the same units: seed it by the "
                       "rank once the model is made.")
        self.look_at_means(notes)
        self.compare_samples(notes)

    def look_at_means(self, notes):
        """Counts the steps in which a mean was taken over other numbers of samples on the ranks."""
        steps = [(max(all), min(all)) for all in zip(*(each["means"] for each in notes))
                 if min(all) > 0]
        uneven = sum(high > 1.1 * low for high, low in steps)
        if len(steps) >= 4 and 2 * uneven >= len(steps):
            high, low = max(steps, key=lambda pair: pair[0] / pair[1])
            self.share("mean of means", notes, f"the loss is a mean over {low} terms on one rank "
                       f"and over {high} on another, in {uneven} of {len(steps)} steps the "
                       "difference was over 10 %. The mean of such means weighs terms unequally: "
                       "sum the loss, multiply it by the number of ranks, and divide it by all "
                       "ranks' terms.")

    def explain_parameters(self, notes, number):
        """Looks for the reason why the parameters of one model differ."""
        models = [each["models"][number] for each in notes]
        if notes[0]["step"] == 0:
            kind, words = "changed after wrapping", (
                "the ranks' values differ before the first step: they were changed after "
                "DistributedDataParallel sent rank 0's.")
        elif all(forwards and in_sync == 0 for _, forwards, in_sync in models):
            kind, words = "never in sync", (
                "no forward since the last check was outside of no_sync, so its gradients were not "
                "averaged.")
        elif any(forwards == 0 and each["backwards"]
                 for (_, forwards, _), each in zip(models, notes)):
            kind, words = "past the wrapper", (
                "the job went backward, and no forward of this model went through "
                "DistributedDataParallel (was it model.module's?), so nothing averaged its "
                "gradients.")
        elif differ(notes, "scales"):
            kind, words = "loss scales differ", (
                "GradScaler's scale is not the same on all ranks, so each divides the averaged "
                f"gradients by another number; here it is {notes[0]['scales'][-1]}.")
        elif differ(notes, "rates"):
            kind, words = "learning rates differ", (
                "the optimizer's settings are not the same on all ranks; here they are "
                f"{notes[0]['rates'][0]}.")
        else:
            kind, words = "parameters differ", "the ranks' values differ, so their steps did."
            if (all(each["gradients"] for each in notes) and differ(notes, "gradients")
                    and len({each["gradients"][0] for each in notes}) == 1):
                words += (" The gradients were equal after backward and differ at the step: look "
                          "at what changes them in between (clipping, scaling).")
        if self.locate(kind, notes, number, "parameter", words):
            self.told.add(("drift", number))

    def locate(self, kind, notes, number, what, words):
        """Names the first tensor of a model whose hash is not rank 0's, and the ranks. Returns
        whether there is one."""
        keys = [key for key in notes[0]["hashes"] if key[:2] == (number, what)]
        values = {key: [each["hashes"][key] for each in notes] for key in keys}
        at = [key for key in keys if len(set(values[key])) > 1]
        if at:
            ranks = [rank for rank, each in enumerate(values[at[0]]) if each != values[at[0]][0]]
            name, models = at[0][2], notes[0]["models"]
            if len(models) > 1:
                name = f"{name} of model {number + 1} ({models[number][0]})"
            self.tell(kind, notes[0]["step"], ranks, name, f"{words} It is the first of {len(at)} "
                      f"that differ, of {len(keys)}; rank 0 is compared with.", of=number)
        return bool(at)

    def compare_samples(self, notes):
        """Counts how often all ranks took each sample, in the first epoch and the first test."""
        for what in ("trained", "evaluated"):
            parts = [each[what] for each in notes]
            if all(parts) and not differ(parts, "alike"):
                taken = [int.from_bytes(part["taken"], "little") for part in parts]
                is_complete = all(part["is_complete"] for part in parts)
                if what == "trained":
                    self.count_samples(notes, taken, is_complete, *parts[0]["alike"][1:5])
                if is_complete:
                    self.samples[what] = taken
        if len(self.samples) == 2:
            self.look_at_split(notes, **self.samples)
        if len(notes) > 1 and len(notes[0]["contents"]) > 3 and not differ(notes, "contents"):
            self.share("samples seen twice", notes, "all ranks take the same batches from a "
                       f"stream: let rank r keep sample r of each {len(notes)}.")

    def count_samples(self, notes, taken, is_complete, size, once, whole, batch_size):
        seen = twice = 0
        for each in taken:
            twice |= seen & each
            seen |= each
        seen, twice = seen.bit_count(), twice.bit_count()
        left = max(len(notes) * batch_size, size // 100)  # the last batch may be left out
        if once and twice > max(len(notes), seen // 100):
            self.share("samples seen twice", notes, f"of the {seen} samples that the ranks have "
                       f"taken in this epoch, {twice} were taken more than once: use a "
                       "DistributedSampler, over the same split on all ranks.")
        elif whole and is_complete and size - seen > left:
            self.share("samples never seen", notes, "the epoch is over, and no rank has taken "
                       f"{size - seen} of {size} samples.")

    def look_at_split(self, notes, trained, evaluated):
        """A rank that tests on its own training samples means to; one that does so on another
        rank's does not know."""
        own = any(a & b for a, b in zip(trained, evaluated))
        both = 0
        for a in trained:
            for b in evaluated:
                both |= a & b
        if both and not own:
            self.share("tested on training samples", notes, f"{both.bit_count()} samples of one "
                       "rank's test are training samples of another rank: the ranks have split "
                       "the data differently. Give random_split a generator with the same seed.")

    def tell_what_was_found(self, by_rank):
        all = {each[0]: each for found in by_rank for each in found}
        for kind, step, parameter, words in all.values():
            ranks = [rank for rank, found in enumerate(by_rank)
                     if kind in (each[0] for each in found)]
            self.tell(kind, step, ranks, parameter, words)

    def share(self, kind, notes, words):
        self.tell(kind, notes[0]["step"], range(len(notes)), "", words)

    def tell(self, kind, step, ranks, parameter, words, of=None):
        if (kind, of) not in self.told:
            self.told.add((kind, of))
            self.findings.append(Finding(kind, step, tuple(ranks), parameter, words))
            print(self.findings[-1], file=sys.stderr, flush=True)


def differ(notes, key):
    return any(each[key] != notes[0][key] for each in notes)
