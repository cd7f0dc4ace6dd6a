#!/usr/bin/env python3
"""Watches a job under DistributedDataParallel: names what runs, learns and is wrong all the same.

    torchrun --nproc-per-node 2 ddp_guard.py [--every 100] train.py ...    the script stays as it is
    import ddp_guard; ddp_guard.watch(every=100)        or these two lines in front of the script

Every rank looks at itself while it trains, mostly in the last steps before a check. A check comes
once in `every` steps of the optimizer, and before the first one: all ranks reduce one short vector,
by a group of their own, with Gloo, on the CPU.

    rank 0:  hash of parameters, buffers, learning rates, samples of the loss, ...  \\   maximum of
    rank 1:  hash of parameters, buffers, learning rates, samples of the loss, ...  /   x and of -x

A hash differs if its maximum is not minus the maximum of its negative. All ranks see that alike,
and only then exchange more. What is found goes to stderr once, with the step, the rank, the
parameter and the book's section, and stays in `watch(...).findings`.

For DistributedDataParallel only: where FSDP shards a model, the guard says that it is not for it.
It sees what goes through DataLoader, torch.nn.functional, backward and optimizers, and not what a
compiled graph holds. It ran with PyTorch 2.15; no earlier version has been tried.
"""
import argparse
import atexit
import collections
import dataclasses
import datetime
import runpy
import sys
import os
import weakref

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torch.utils.data.dataloader as loading
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import (
    Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook)

WINDOW = 16            # steps before a check in which samples of the loss are counted
MOST_SAMPLES = 1 << 26  # of a data set whose indices are compared between ranks
PATIENCE_OF_A_CHECK = datetime.timedelta(minutes=10)  # then it watches no more; the job goes on
PATIENCE = datetime.timedelta(seconds=20)             # of the last check, when the job ends

# What is found, and the section of the book that explains it.
SECTIONS = {
    "parameters differ": "11_data_parallel, Why they drift, and what stops it",
    "changed after wrapping": "11_data_parallel, Why they drift, and what stops it",
    "learning rates differ": "11_data_parallel, The learning rate",
    "past the wrapper": "15_overlap, What the class refuses",
    "never in sync": "15_overlap, no_sync",
    "buffers differ": "18_sync_batch_norm, Each rank has a mean of its own",
    "the same epochs": "12_sampler, Five mistakes without a message",
    "samples seen twice": "12_sampler, Five mistakes without a message",
    "samples never seen": "12_sampler, Five mistakes without a message",
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
    if not tensors:
        return []
    by_device = collections.defaultdict(list)
    for k, tensor in enumerate(tensors):
        by_device[tensor.device].append(k)
    found = [0] * len(tensors)
    for members in by_device.values():
        for k, number in zip(members, torch.stack([hash_of(tensors[k]) for k in members]).tolist()):
            found[k] = number & MASK
    return found


def combined(numbers):
    total = 17
    for number in numbers:
        total = (total * 1000003 + number) & MASK
    return total


# ---- What is known of a model, and of a loader ---------------------------------------------------
class Watched:
    """A wrapped model, and what has happened to it since the optimizer's last step."""

    def __init__(self, ddp, is_whole):
        self.ddp = weakref.ref(ddp)
        self.is_whole = is_whole  # do all ranks of the job have a replica?
        self.names = {id(parameter): name for name, parameter in ddp.module.named_parameters()}
        self.begin_step()

    def begin_step(self):
        self.forwards = self.in_sync = 0  # through the wrapper; of these, outside of no_sync

    def buffers(self):
        """Returns those that ranks share, by name: not the statistics of a BatchNorm."""
        own = {id(buffer) for layer in self.ddp().modules()
               if isinstance(layer, _BatchNorm) and not isinstance(layer, torch.nn.SyncBatchNorm)
               for buffer in layer.buffers(recurse=False)}
        return [pair for pair in self.ddp().module.named_buffers() if id(pair[1]) not in own]


class Pass:
    """One pass over a loader: which samples, in which order."""

    def __init__(self, number):
        self.number = number
        self.taken = []    # indices; workers take them ahead
        self.batches = 0   # that were handed out
        self.is_complete = False
        self.trains = None  # not known before the first batch is handed out


class Loader:
    """What is known of a DataLoader that has indices."""

    def __init__(self):
        self.now = None
        self.order_before = None    # hash of the last complete pass's indices
        self.begun_anew = 0         # passes in turn that were given up after the same few batches
        self.given_up = None


class Guard:
    """What one rank knows. All its methods are called by the hooks below, which `watch` sets."""

    def __init__(self, every):
        self.every = every
        self.findings = []
        self.own = []          # found by this rank alone, and not yet told
        self.said = set()
        self.models = []
        self.optimizers = weakref.WeakSet()
        self.pace = None       # the optimizer whose steps are counted
        self.step = 0
        self.group = self.world = None
        self.loaders = weakref.WeakKeyDictionary()
        self.trained_on = None  # the loader whose samples are compared between ranks
        self.compared = False
        self.means = collections.deque([0] * WINDOW, maxlen=WINDOW)
        self.uneven = self.checks = 0
        self.is_finished = False
        self.begin_step()

    def begin_step(self):
        self.backwards = self.dropout = 0
        self.reduces_by_hand, self.after_backward = False, None
        self.divisors, self.mean_of = [], []
        for model in self.models:
            model.begin_step()

    def looks(self):
        """Returns whether this step is the one before a check."""
        return (self.step + 1) % self.every == 0 or self.step == 0

    def counts(self):
        """Returns whether this step is one of those whose samples are counted."""
        return self.every - self.step % self.every <= WINDOW or self.step == 0

    def watched(self):
        return [model for model in self.models if model.is_whole and model.ddp() is not None]

    def find(self, kind, words, parameter=""):
        """Keeps what this rank has found by itself; the next check tells it."""
        if kind not in self.said:
            self.said.add(kind)
            self.own.append((kind, self.step, parameter, words))

    # ---- A step ----

    def add_model(self, ddp):
        if self.world is not dist.group.WORLD:  # a new job in the same process
            self.group, self.world = None, dist.group.WORLD
        ranks = dist.get_process_group_ranks(ddp.process_group)
        is_whole = set(ranks) == set(range(dist.get_world_size()))
        if is_whole and self.group is None and dist.get_world_size() > 1:
            self.group = dist.new_group(backend="gloo", timeout=PATIENCE_OF_A_CHECK)
        self.models.append(Watched(ddp, is_whole))

    def goes_forward(self, ddp):
        """Counts a step's forwards. (A hook of the model's own would be copied, saved with it.)"""
        for model in self.models:
            if model.ddp() is ddp:
                model.forwards += 1
                model.in_sync += ddp.require_backward_grad_sync

    def goes_backward(self, root):
        self.backwards += 1
        if self.looks() and self.watched():
            self.divisors.append(divisors_of(root))

    def has_gone_backward(self):
        if self.looks() and self.watched():
            smallest = [p for model in self.watched() for p in model.ddp().module.parameters()
                        if p.grad is not None and not p.grad.is_sparse]
            if smallest:
                parameter = min(smallest, key=torch.Tensor.numel)
                self.after_backward = (parameter, parameter.grad.detach().clone())

    def reduces(self, tensor):
        if self.looks() and not self.reduces_by_hand:
            self.reduces_by_hand = any(
                p.grad is not None and p.grad.data_ptr() == tensor.data_ptr()
                for model in self.watched() for p in model.ddp().module.parameters())

    def before_step(self, optimizer):
        self.optimizers.add(optimizer)
        known = {id(p): model.names.get(id(p), "") for model in self.watched()
                 for p in model.ddp().module.parameters()}
        mine = [(group, p) for group in optimizer.param_groups for p in group["params"]
                if id(p) in known]
        if mine and (self.pace is None or self.pace() is None):
            self.pace = weakref.ref(optimizer)
        self.decaying = []
        if not self.is_pace(optimizer):
            return
        if self.step == 0 and self.checks == 0:
            self.check(is_first=True)
        if self.looks():
            self.look_at_scales()
            self.decaying = [(p, p.detach().clone(), known[id(p)]) for group, p in mine
                             if group.get("weight_decay") and p.grad is not None
                             and not p.grad.is_sparse and is_out_of_use(p)]

    def is_pace(self, optimizer):
        return self.pace is not None and self.pace() is optimizer

    def look_at_scales(self):
        """Compares a gradient before the step with what backward left: did the script change it?"""
        if self.after_backward is None or self.after_backward[0].grad is None:
            return
        parameter, before = self.after_backward
        after = parameter.grad.detach()
        world_size, micro_batches = dist.get_world_size(), self.backwards
        by_loss = [found.count(micro_batches) - found.count(-micro_batches)
                   for found in self.divisors]
        if micro_batches > 1 and (min(by_loss) > 1 or (
                min(by_loss) == 1 and is_divided(after, before, micro_batches))):
            self.find("divided twice", f"the step has {micro_batches} micro-batches, and its "
                      f"gradients are divided by {micro_batches} twice: once in the loss, and once "
                      "more behind it. The steps are too short by as much.")
        elif (world_size > 1 and self.reduces_by_hand
              and is_near(uniform_ratio(after, before), world_size)):
            self.find("reduced twice", f"behind backward the gradients grow {world_size} times. "
                      "DistributedDataParallel has averaged them already: an all-reduce by hand "
                      "sums equal numbers.")

    def after_step(self, optimizer):
        if not self.is_pace(optimizer):
            return
        for parameter, before, name in self.decaying:
            if not torch.equal(parameter.detach(), before):
                how = ("has a gradient of zeros" if parameter.requires_grad
                       else "does not require a gradient, but an old one of zeros was left")
                self.find("frozen but decays", f"the parameter {how}, so the optimizer still "
                          "applies weight decay to it. Set its .grad to None, or leave it out of "
                          "the optimizer.", name)
        self.decaying = []
        self.means.append(sum(int(count) for count in self.mean_of) if self.counts() else 0)
        self.missing = self.parameters_without_optimizer() if self.looks() else []
        self.step += 1
        if self.step % self.every == 0 or self.step == 1:
            self.check()
        self.begin_step()

    def parameters_without_optimizer(self):
        held = {id(p) for optimizer in self.optimizers for group in optimizer.param_groups
                for p in group["params"]}
        return [name for model in self.watched()
                for name, p in model.ddp().module.named_parameters()
                if p.requires_grad and p.grad is not None and id(p) not in held]

    # ---- Samples ----

    def begins_pass(self, loader):
        known = self.loaders.setdefault(loader, Loader())
        before = known.now
        if before and before.trains and 0 < before.batches * 2 < length_of(loader):
            first = tuple(before.taken[:8])
            known.begun_anew = known.begun_anew + 1 if known.given_up == first else 1
            known.given_up = first
            if known.begun_anew == 4:
                self.find("samples never seen", "the loader was begun anew four times, each time "
                          f"with the same samples, and given up after {before.batches} of "
                          f"{length_of(loader)} batches: the others are never seen. Keep one "
                          "iterator until it ends.")
        known.now = Pass(before.number + 1 if before else 0)

    def takes(self, loader, indices):
        now = self.loaders[loader].now
        if isinstance(indices, int):
            now.taken.append(indices)
        elif isinstance(indices, (list, tuple)) and all(isinstance(k, int) for k in indices):
            now.taken.extend(indices)

    def hands_out(self, loader):
        known = self.loaders.get(loader)
        if known is None or known.now is None:
            return
        known.now.batches += 1
        if known.now.trains is not None:
            return
        models = self.watched()
        known.now.trains = (torch.is_grad_enabled()
                            and any(model.ddp().training for model in models))
        if known.now.trains:
            self.trained_on = weakref.ref(loader)
        elif models:
            self.look_at_evaluation(loader)

    def look_at_evaluation(self, loader):
        sampler = loader.sampler
        if isinstance(sampler, torch.utils.data.DistributedSampler) and sampler.num_replicas > 1:
            size, padded = len(sampler.dataset), sampler.total_size
            if padded > size:
                self.find("padded evaluation", f"DistributedSampler pads {size} samples to "
                          f"{padded}: {padded - size} of them count twice. Give rank r the "
                          "samples r, r + W, ... instead, and sum over the ranks.")
            elif padded < size:
                self.find("padded evaluation", "DistributedSampler with drop_last leaves out "
                          f"{size - padded} of {size} samples.")

    def ends_pass(self, loader):
        known = self.loaders[loader]
        now = known.now
        if now.is_complete:  # workers ask several times
            return
        now.is_complete = True
        if not now.taken or now.trains is False:
            return
        order = hash(tuple(now.taken))
        sampler = loader.sampler
        if (isinstance(sampler, torch.utils.data.DistributedSampler) and sampler.shuffle
                and order == known.order_before and len(now.taken) > 4):
            self.find("the same epochs", "two epochs in turn had the same order, as the sampler's "
                      f"epoch stayed {sampler.epoch}: call sampler.set_epoch(epoch) before each of "
                      "them.")
        known.order_before = order

    def compare_samples(self):
        """Sums how often all ranks took each sample; all call it, while an epoch is the first."""
        loader = self.trained_on()
        size = len(loader.dataset)
        now = self.loaders[loader].now
        taken = torch.zeros(size + 1, dtype=torch.int32)
        indices = torch.tensor(now.taken, dtype=torch.int64)
        taken.index_add_(0, indices, torch.ones(len(indices), dtype=torch.int32))
        taken[size] = now.is_complete
        dist.all_reduce(taken, group=self.group)
        ranks, is_complete = dist.get_world_size(), int(taken[size]) == dist.get_world_size()
        taken = taken[:size]
        twice, never = int((taken > 1).sum()), int((taken == 0).sum())
        seen = size - never
        left = max(ranks * (loader.batch_size or 1), size // 100)  # the last batch may be left out
        if twice > max(ranks, seen // 100):
            self.share("samples seen twice", range(ranks), "", f"of the {seen} samples that the "
                       f"ranks have taken in this epoch, {twice} were taken more than once: use a "
                       "DistributedSampler.")
        elif is_complete and never > left:
            self.share("samples never seen", range(ranks), "", "the epoch is over, and no rank "
                       f"has taken {never} of {size} samples.")
        self.compared = self.compared or is_complete

    def comparable(self):
        """Returns what must be equal to compare samples: 0, or a hash of data set and pass."""
        loader = self.trained_on() if self.trained_on else None
        if loader is None or self.compared or getattr(loader.sampler, "replacement", False):
            return 0
        now = self.loaders[loader].now
        try:
            size = len(loader.dataset)
            if not now.taken or max(now.taken) >= size or size > MOST_SAMPLES:
                return 0
            known = self.loaders[loader]
            if not hasattr(known, "print"):
                known.print = print_of(loader.dataset)
            return combined([size, now.number, known.print])
        except Exception:  # a data set of its own kind: nothing is said of it
            return 0

    # ---- A check ----

    def check(self, is_first=False, patience=None):
        """Reduces what ranks know, and tells what differs. All call it after the same step."""
        if self.group is None or not self.watched():
            self.tell(self.own, [dist.get_rank() if dist.is_initialized() else 0])
            self.own = []
            return
        self.checks += 1
        models = self.watched()
        parameters = [pair for model in models
                      for pair in model.ddp().module.named_parameters()]
        buffers = [] if is_first else [pair for model in models for pair in model.buffers()]
        hashes = hashes_of(tensor for _, tensor in parameters + buffers)
        of_parameters, of_buffers = hashes[:len(parameters)], hashes[len(parameters):]
        pace = self.pace() if self.pace else None
        settings = ("lr", "weight_decay", "momentum", "betas")
        rates = [str({key: group.get(key) for key in settings})
                 for group in (pace.param_groups if pace else [])]
        facts = [combined(of_parameters), combined(of_buffers),
                 combined(sum(text.encode()) for text in rates), self.dropout, self.comparable(),
                 bool(self.backwards) and not any(model.forwards for model in models),
                 any(model.forwards and not model.in_sync for model in models),
                 bool(self.own), self.checks] + list(self.means)
        both = torch.tensor([int(fact) for fact in facts] + [-int(fact) for fact in facts])
        work = dist.all_reduce(both, op=dist.ReduceOp.MAX, group=self.group, async_op=True)
        work.wait(patience) if patience else work.wait()
        most, least = both[:len(facts)].tolist(), (-both[len(facts):]).tolist()
        differs = [high != low for high, low in zip(most, least)]
        if differs[8]:
            return  # not after the same step: ranks that end at different times
        if differs[0]:
            self.explain_parameters(parameters, of_parameters, is_first, past=most[5],
                                    never_in_sync=least[6], rates=rates if differs[2] else None)
        elif differs[1]:
            self.locate("buffers differ", [name for name, _ in buffers], of_buffers,
                        "this buffer has other values than on the other ranks, and nothing brings "
                        "them together: forward_sync_buffers (earlier broadcast_buffers) is off.")
        if least[3] and not differs[3]:
            self.share("the same dropout", range(dist.get_world_size()), "", "all ranks draw their "
                       "dropout masks from a generator in the same state, so all drop the same "
                       "units: seed it by the rank once the model is made.")
        self.look_at_means(most[9:], least[9:])
        if least[4] and not differs[4]:
            self.compare_samples()
        if getattr(self, "missing", None) and self.checks > 2:
            self.find("not in the optimizer", "backward computes gradients for "
                      f"{len(self.missing)} parameters, all ranks reduce them, and no optimizer "
                      "has them: was the optimizer made before the model was changed?",
                      self.missing[0])
        if most[7] or self.own:
            self.exchange()

    def look_at_means(self, most, least):
        """Counts the steps in which a mean was taken over other numbers of samples on the ranks."""
        steps = [(high, low) for high, low in zip(most, least) if low > 0]
        self.uneven = sum(high > 1.1 * low for high, low in steps)
        if len(steps) >= 4 and 2 * self.uneven >= len(steps):
            high, low = max(steps, key=lambda pair: pair[0] / pair[1])
            self.share("mean of means", range(dist.get_world_size()), "", "the loss is a mean over "
                       f"{low} terms on one rank and over {high} on another, in {self.uneven} of "
                       f"{len(steps)} steps the difference was over 10 %. The mean of such means "
                       "weighs terms unequally: sum the loss, multiply it by the number of ranks, "
                       "and divide it by all ranks' terms.")

    def explain_parameters(self, parameters, hashes, is_first, past, never_in_sync, rates):
        if is_first:
            kind, words = "changed after wrapping", (
                "the ranks' values differ before the first step: they were changed after "
                "DistributedDataParallel sent rank 0's.")
        elif never_in_sync:
            kind, words = "never in sync", (
                "no forward of this step was outside of no_sync, so its gradients were not "
                "averaged.")
        elif past:
            kind, words = "past the wrapper", (
                "the step went backward, and no forward of it went through DistributedDataParallel "
                "(was it model.module's?), so nothing averaged its gradients.")
        elif rates:
            kind, words = "learning rates differ", (
                "the optimizer's settings are not the same on all ranks; here they are "
                f"{rates[0]}.")
        else:
            kind, words = "parameters differ", "the ranks' values differ, so their steps did."
        self.locate(kind, [name for name, _ in parameters], hashes, words)

    def locate(self, kind, names, hashes, words):
        """Names the first tensor whose hash is not rank 0's, and the ranks."""
        if kind in self.said or (kind != "buffers differ" and self.said & {
                "changed after wrapping", "never in sync", "past the wrapper",
                "learning rates differ", "parameters differ"}):
            return
        everybody = [None] * dist.get_world_size()
        dist.all_gather_object(everybody, hashes, group=self.group)
        at = next(k for k in range(len(names)) if len({each[k] for each in everybody}) > 1)
        count = sum(len({each[k] for each in everybody}) > 1 for k in range(len(names)))
        ranks = [rank for rank, each in enumerate(everybody) if each[at] != everybody[0][at]]
        self.share(kind, ranks, names[at], f"{words} It is the first of {count} that differ, of "
                   f"{len(names)}; rank 0 is compared with.")

    def share(self, kind, ranks, parameter, words):
        """Keeps what all ranks have found together, and lets rank 0 tell it."""
        if kind not in self.said:
            self.said.add(kind)
            self.tell([(kind, self.step, parameter, words)], ranks)

    def exchange(self):
        """Brings together what ranks have found alone."""
        everybody = [None] * dist.get_world_size()
        dist.all_gather_object(everybody, self.own, group=self.group)
        kinds = {}
        for rank, found in enumerate(everybody):
            for each in found:
                kinds.setdefault(each[0], (each, []))[1].append(rank)
        self.own = []
        for each, ranks in kinds.values():
            self.said.add(each[0])
            self.tell([each], ranks)

    def tell(self, found, ranks):
        for kind, step, parameter, words in found:
            finding = Finding(kind, step, tuple(ranks), parameter, words)
            self.findings.append(finding)
            if not dist.is_initialized() or dist.get_rank() == 0 or self.group is None:
                print(finding, file=sys.stderr, flush=True)

    def finish(self, alone=False):
        """Makes one check more, if all ranks come to it in time, and tells in any case what this
        one knows alone. A rank that ends by an error, or without destroying its process group,
        does not wait for the others."""
        if self.is_finished:
            return
        self.is_finished = True
        if (not alone and sys.exc_info()[0] is None and self.group is not None
                and dist.is_initialized() and self.watched()):
            try:
                self.dropout = self.backwards = 0
                for model in self.models:
                    model.begin_step()
                self.check(patience=PATIENCE)
            except Exception:  # another rank has ended already, or never comes
                pass
        self.tell(self.own, [dist.get_rank() if dist.is_initialized() else 0])
        self.own = []


# ---- Helpers -------------------------------------------------------------------------------------
def divisors_of(root):
    """Returns by what the loss was divided last and, negative, multiplied: -2, 4 of (x / 4) * 2."""
    found, node = [], root.grad_fn
    while type(node).__name__ in ("DivBackward0", "MulBackward0") and len(found) < 8:
        other = getattr(node, "_saved_other", None)
        if (not isinstance(other, torch.Tensor) or other.numel() != 1
                or node.next_functions[1][0] is not None):
            break
        number = float(other)
        found.append(number if type(node).__name__ == "DivBackward0" else -number)
        node = node.next_functions[0][0]
    return found


def uniform_ratio(after, before):
    """Returns the one number by which every element was multiplied, or 0.0 if there is none."""
    where = before.abs() > 1e-12
    if not bool(where.any()):
        return 0.0
    ratios = (after[where] / before[where]).double()
    middle = float(ratios.median())
    return middle if bool(((ratios - middle).abs() < 1e-5 * abs(middle)).all()) else 0.0


def is_near(a, b):
    return abs(a - b) < 1e-5 * abs(b)


def is_divided(after, before, count):
    """Returns whether each element was divided by count, to the bit: clipping is near at best."""
    return bool(before.any()) and count > 1 and (
        torch.equal(after, before / count) or torch.equal(after, before * (1 / count)))


def is_out_of_use(parameter):
    return not parameter.requires_grad or (parameter.numel() > 1 and not bool(parameter.grad.any()))


def length_of(loader):
    try:
        return len(loader)
    except TypeError:
        return 0


def print_of(dataset):
    """Returns a hash of three samples. Augmentation draws from the same place on all ranks."""
    import pickle
    import random
    import zlib
    of_python, of_torch = random.getstate(), torch.random.get_rng_state()
    numpy = sys.modules.get("numpy")
    of_numpy = numpy.random.get_state() if numpy else None
    total = 0
    try:
        for index in (0, len(dataset) // 2, len(dataset) - 1):
            random.seed(0)
            torch.random.default_generator.manual_seed(0)
            if numpy:
                numpy.random.seed(0)
            total = zlib.crc32(pickle.dumps(to_plain(dataset[index])), total)
    finally:
        random.setstate(of_python)
        torch.random.set_rng_state(of_torch)
        if numpy:
            numpy.random.set_state(of_numpy)
    return total


def to_plain(sample):
    if isinstance(sample, torch.Tensor):
        return sample.detach().cpu().tolist()
    if isinstance(sample, (list, tuple)):
        return [to_plain(each) for each in sample]
    if isinstance(sample, dict):
        return sorted((key, to_plain(value)) for key, value in sample.items())
    return sample


# ---- Hooks ---------------------------------------------------------------------------------------

guard = None


def around(holder, name, make):
    original = getattr(holder, name)
    changed = make(original)
    changed.__name__, changed.__doc__ = getattr(original, "__name__", name), original.__doc__
    changed.__wrapped__ = original
    setattr(holder, name, changed)


def watch(every=100):
    """Sets the hooks, once in a process, and returns the guard. To be called before wrapping."""
    global guard
    if guard is not None:
        return guard
    guard = Guard(every)
    around(DistributedDataParallel, "__init__", wrap_init)
    around(DistributedDataParallel, "forward", wrap_forward)
    around(torch.Tensor, "backward", wrap_backward)
    around(Optimizer, "__init__", wrap_optimizer)
    register_optimizer_step_pre_hook(lambda optimizer, *_: quietly(guard.before_step, optimizer))
    register_optimizer_step_post_hook(lambda optimizer, *_: quietly(guard.after_step, optimizer))
    around(loading.DataLoader, "__iter__", wrap_iter)
    around(loading._BaseDataLoaderIter, "_next_index", wrap_next_index)
    around(loading._BaseDataLoaderIter, "__next__", wrap_next)
    for name in ("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss",
                 "binary_cross_entropy", "binary_cross_entropy_with_logits"):
        around(F, name, wrap_mean)
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d"):
        around(F, name, wrap_dropout)
    around(dist, "all_reduce", wrap_all_reduce)
    for holder in (dist, dist.distributed_c10d):
        around(holder, "destroy_process_group", wrap_destroy)
    watch_fsdp()
    atexit.register(guard.finish, alone=True)
    return guard


def quietly(function, *arguments):
    """Calls it outside of autograd. If it fails, the guard says so and ends; the job goes on."""
    if guard.is_finished:
        return
    try:
        with torch.no_grad():
            function(*arguments)
    except Exception as error:
        guard.is_finished = True
        rank = dist.get_rank() if dist.is_initialized() else 0
        print(f"ddp_guard: it has stopped watching on rank {rank} after step {guard.step}: "
              f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
              file=sys.stderr, flush=True)


def wrap_init(original):
    def __init__(self, *arguments, **options):
        original(self, *arguments, **options)
        guard.add_model(self)
    return __init__


def wrap_forward(original):
    def forward(self, *arguments, **options):
        if not torch.compiler.is_compiling():
            quietly(guard.goes_forward, self)
        return original(self, *arguments, **options)
    return forward


def wrap_optimizer(original):
    def __init__(self, *arguments, **options):
        original(self, *arguments, **options)
        guard.optimizers.add(self)
    return __init__


def wrap_backward(original):
    def backward(self, *arguments, **options):
        quietly(guard.goes_backward, self)
        original(self, *arguments, **options)
        quietly(guard.has_gone_backward)
    return backward


def wrap_iter(original):
    def __iter__(self):
        if self.batch_sampler is not None or self.sampler is not None:
            quietly(guard.begins_pass, self)
        iterator = original(self)
        iterator._ddp_guard_loader = weakref.ref(self)
        return iterator
    return __iter__


def wrap_next_index(original):
    def _next_index(self):
        loader = getattr(self, "_ddp_guard_loader", lambda: guard_of_new(self))()
        try:
            indices = original(self)
        except StopIteration:
            if loader is not None and loader in guard.loaders:
                quietly(guard.ends_pass, loader)
            raise
        if loader is not None and loader in guard.loaders:
            quietly(guard.takes, loader, indices)
        return indices
    return _next_index


def guard_of_new(iterator):
    """Finds, by its sampler, the loader of an iterator whose workers take indices early."""
    sampler = getattr(iterator, "_index_sampler", None)
    return next((loader for loader in guard.loaders
                 if loader.sampler is sampler or loader.batch_sampler is sampler), None)


def wrap_next(original):
    def __next__(self):
        batch = original(self)
        loader = getattr(self, "_ddp_guard_loader", lambda: None)()
        if loader is not None:
            guard.hands_out(loader)
        return batch
    return __next__


def wrap_mean(original):
    def loss(input, target, *arguments, **options):
        result = original(input, target, *arguments, **options)
        if (not torch.compiler.is_compiling() and result.dim() == 0 and torch.is_grad_enabled()
                and options.get("reduction", "mean") == "mean" and guard.counts()):
            if original.__name__ not in ("cross_entropy", "nll_loss"):
                guard.mean_of.append(input.numel())
            elif target.is_floating_point():
                guard.mean_of.append(target.shape[0])
            else:
                guard.mean_of.append((target != options.get("ignore_index", -100)).sum())
        return result
    return loss


def wrap_dropout(original):
    def dropout(input, p=0.5, training=True, inplace=False):
        if (not torch.compiler.is_compiling() and training and p > 0 and not guard.dropout
                and torch.is_grad_enabled() and guard.looks()):
            state = (torch.cuda.get_rng_state(input.device) if input.is_cuda
                     else torch.random.get_rng_state())
            guard.dropout = (int(hash_of(state)) & MASK) | 1
        return original(input, p, training, inplace)
    return dropout


def wrap_all_reduce(original):
    def all_reduce(tensor, *arguments, **options):
        if guard.backwards:
            quietly(guard.reduces, tensor)
        return original(tensor, *arguments, **options)
    return all_reduce


def wrap_destroy(original):
    def destroy_process_group(group=None):
        if group is None:
            guard.finish()
        return original(group)
    return destroy_process_group


def watch_fsdp():
    try:
        import torch.distributed.fsdp as fsdp
    except ImportError:
        return

    def refuse(original):
        def call(*arguments, **options):
            guard.find("not for FSDP", "this job shards its parameters by FSDP. The guard is for "
                       "DistributedDataParallel and says nothing of it.")
            return original(*arguments, **options)
        return call
    around(fsdp.FullyShardedDataParallel, "__init__", refuse)
    if hasattr(fsdp, "fully_shard"):
        around(fsdp, "fully_shard", refuse)


def main():
    parser = argparse.ArgumentParser(
        description="Runs a script that trains with DistributedDataParallel, and names what is "
                    "wrong in it.",
        usage="torchrun --nproc-per-node 2 ddp_guard.py [--every N] SCRIPT [its options]")
    parser.add_argument("--every", type=int, default=100, metavar="N",
                        help="steps from one check to the next (100)")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...",
                        help="what the script gets")
    options = parser.parse_args()
    if options.every < 1:
        parser.error(f"--every takes a number of steps from 1 on, but not {options.every}")
    if not os.path.isfile(options.script):
        parser.error(f"there is no script {options.script}")
    sys.modules["ddp_guard"] = sys.modules["__main__"]  # one guard, also where a script asks for it
    sys.argv = [options.script] + options.rest
    sys.path[0] = os.path.dirname(os.path.abspath(options.script))
    watch(options.every)
    runpy.run_path(options.script, run_name="__main__")


if __name__ == "__main__":
    main()
