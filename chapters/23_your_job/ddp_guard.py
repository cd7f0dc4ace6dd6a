#!/usr/bin/env python3
"""Watches a job under DistributedDataParallel: names what runs, learns and is wrong all the same.

    torchrun --nproc-per-node 2 ddp_guard.py [--every 100] train.py ...    the script stays as it is
    import ddp_guard; ddp_guard.watch(every=100)        or these two lines in front of the script

Every rank looks at itself while it trains, mostly in the last steps before a check. A check comes
once in `every` steps of the optimizer, and before the first one: each rank leaves its notes in the
store where the ranks have met, and goes on. Rank 0 compares them when the last rank's are there.

    rank 0:  hashes of parameters and buffers, learning rates, samples, ...  ─┬─▶  store  ─▶  rank 0
    rank 1:  hashes of parameters and buffers, learning rates, samples, ...  ─┘

So no rank ever waits for another that makes fewer steps. What is found goes to stderr once, and
stays in rank 0's `watch(...).findings`. The last lines say what was watched, and what was not.

For DistributedDataParallel only, not for FSDP. It sees what goes through DataLoader, backward,
torch.nn.functional and optimizers, and not what a compiled graph holds. It ran with PyTorch 2.15.
"""
import argparse
import atexit
import collections
import contextlib
import datetime
import os
import pickle
import runpy
import sys
import weakref

import torch
import torch.distributed as dist
import torch.distributed.fsdp as fsdp
import torch.nn.functional as F
import torch.utils.data as data
import torch.utils.data.dataloader as loading
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import (
    Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook)

from guard_checks import MASK, Checks, hash_of, hashes_of
from guard_notes import Loader, Pass, Watched

WINDOW = 16  # steps before a check in which samples of the loss are counted
PATIENCE = datetime.timedelta(seconds=20)  # of rank 0 with the others' last notes, at the end


class Guard:
    """What one rank knows. All its methods are called by the hooks below, which `watch` sets."""

    def __init__(self, every):
        self.every = every
        self.checks = Checks()  # rank 0's
        self.findings = self.checks.findings
        self.own = []          # found by this rank alone, and not yet told
        self.said = set()
        self.models = []
        self.optimizers = weakref.WeakSet()
        self.pace = None       # the optimizer whose steps are counted
        self.step = 0
        self.scalers = []
        self.store, self.rank, self.world_size = None, 0, 1
        self.number = 0        # of the last check
        self.pending = collections.deque(maxlen=4)  # rank 0's: checks that not all have made yet
        self.loaders = weakref.WeakKeyDictionary()
        self.loaders_used = self.loaders_unknown = 0
        self.opening = None    # the pass whose iterator is being made
        self.latest = None     # the pass that has handed out a batch last
        self.trained = self.evaluated = None  # passes whose samples are compared
        self.left_out = {}     # by a data set's id: what is wrong unless its rest is tested, too
        self.tested_undivided = set()  # ids of the data sets that were
        self.means = collections.deque([0] * WINDOW, maxlen=WINDOW)
        self.all_backwards = self.checked_backwards = 0
        self.is_finished = False
        self.begin_step()

    def begin_step(self):
        self.backwards = self.dropout = 0
        self.reduces_by_hand, self.after_backward = False, None
        self.gradients = ()
        self.divisors, self.mean_of = [], []

    def should_check(self):
        """Returns whether this step is the one before a check."""
        return (self.step + 1) % self.every == 0 or self.step == 0

    def should_count(self):
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
        if self.store is None:
            self.store = dist.distributed_c10d._get_default_store()
            self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        ranks = dist.get_process_group_ranks(ddp.process_group)
        self.models.append(Watched(ddp, len(self.models), len(ranks) == self.world_size))

    def on_forward(self, ddp):
        """Counts forwards. (A hook of the model's own would be copied, saved with it.)"""
        for model in self.models:
            if model.ddp() is ddp:
                model.forwards += 1
                model.in_sync += ddp.require_backward_grad_sync

    def on_backward(self, root):
        self.backwards += 1
        self.all_backwards += 1
        if self.latest is not None:
            self.note_training(self.latest)
        if self.should_check() and self.watched() and isinstance(root, torch.Tensor):
            self.divisors.append(divisors_of(root))

    def on_backward_end(self):
        if self.should_check() and self.watched():
            smallest = [p for model in self.watched() for p in model.ddp().module.parameters()
                        if p.grad is not None and not p.grad.is_sparse]
            if smallest:
                parameter = min(smallest, key=torch.Tensor.numel)
                self.after_backward = (parameter, parameter.grad.detach().clone())

    def on_all_reduce(self, tensor):
        if self.should_check() and not self.reduces_by_hand:
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
        if self.number == 0:
            self.check()
        if self.should_check():
            self.look_at_scales()
            self.decaying = [(p, p.detach().clone(), known[id(p)]) for group, p in mine
                             if group.get("weight_decay") and is_out_of_use(p)]

    def is_pace(self, optimizer):
        return self.pace is not None and self.pace() is optimizer

    def look_at_scales(self):
        """Compares a gradient before the step with what backward left: did the script change it?"""
        if self.after_backward is None or self.after_backward[0].grad is None:
            return
        parameter, before = self.after_backward
        after = parameter.grad.detach()
        self.gradients = tuple(hashes_of([before, after]))
        micro_batches = self.backwards
        by_loss = [found.count(micro_batches) - found.count(-micro_batches)
                   for found in self.divisors]
        if micro_batches > 1 and by_loss and (min(by_loss) > 1 or (
                min(by_loss) == 1 and is_divided(after, before, micro_batches))):
            self.find("divided twice", f"the step has {micro_batches} micro-batches, and its "
                      f"gradients are divided by {micro_batches} twice: once in the loss, and once "
                      "after it. The steps are too short by as much.")
        elif (self.world_size > 1 and self.reduces_by_hand
              and abs(uniform_ratio(after, before) / self.world_size - 1) < 1e-5):
            self.find("reduced twice", f"after backward the gradients grow {self.world_size} "
                      "times. DistributedDataParallel has averaged them already: an all-reduce by "
                      "hand sums equal numbers.")

    def after_step(self, optimizer):
        if not self.is_pace(optimizer):
            return
        for parameter, before, name in self.decaying:
            # Where a closure goes backward, the gradient is new by now.
            if is_out_of_use(parameter) and not torch.equal(parameter.detach(), before):
                how = ("has a gradient of zeros" if parameter.requires_grad
                       else "does not require a gradient, but an old one of zeros was left")
                self.find("frozen but decays", f"the parameter {how}, so the optimizer still "
                          "applies weight decay to it. Set its .grad to None, or leave it out of "
                          "the optimizer.", name)
        self.means.append(sum(int(count) for count in self.mean_of) if self.should_count() else 0)
        self.step += 1
        if self.step % self.every == 0 or self.step == 1:
            self.look_at_optimizers()
            self.check()
            self.checked_backwards = self.all_backwards
            for model in self.models:
                model.forwards = model.in_sync = 0
        self.compare_what_is_there()
        self.begin_step()

    def look_at_optimizers(self):
        held = {id(p) for optimizer in self.optimizers for group in optimizer.param_groups
                for p in group["params"]}
        missing = [name for model in self.watched()
                   for name, p in model.ddp().module.named_parameters()
                   if p.requires_grad and p.grad is not None and id(p) not in held]
        if missing and self.number > 1:
            self.find("not in the optimizer", f"backward computes gradients for {len(missing)} "
                      "parameters, all ranks reduce them, and no optimizer has them: was the "
                      "optimizer made before the model was changed?", missing[0])

    # ---- Samples ----

    def on_pass_begin(self, loader):
        known = self.loaders.get(loader)
        if known is None:
            known = self.loaders[loader] = Loader(loader)
        before = known.now
        self.on_pass_end_by_count(before)
        if before and before.epoch is not None and before.batches * 2 < known.length:
            known.begun_anew = known.begun_anew + 1 if known.given_up == before.first else 1
            known.given_up = before.first
        if known.begun_anew == 4:
            self.find("samples never seen", "the loader was begun anew four times, each time with "
                      f"the same samples, and given up after {before.batches} of {known.length} "
                      "batches: the others are never seen. Keep one iterator until it ends.")
        known.now = Pass(known)
        return known.now

    def on_batch(self, one, batch):
        if one.batches == 0:
            one.before = self.all_backwards
            self.loaders_used += not one.loader.is_used
            one.loader.is_used = True
        one.batches += 1
        one.after = self.all_backwards
        if one.taken is None and one.batches <= 4:
            one.contents += hashes_of(each for each in torch.utils._pytree.tree_leaves(batch)
                                      if isinstance(each, torch.Tensor))
        self.latest = one

    def note_training(self, one):
        """Notes that there was a backward after a batch: the pass is an epoch of training."""
        if one.epoch is not None:
            return
        one.epoch = one.loader.epochs
        one.loader.epochs += 1
        self.loaders_unknown += one.epoch == 0 and not one.loader.once
        if self.trained is None or (
                one.loader is self.trained.loader and not self.trained.is_complete):
            self.trained = one

    def on_pass_end_by_count(self, one):
        """Ends a pass of which no more than the last batch was asked for."""
        if one is not None and one.batches >= one.loader.length > 0:
            self.on_pass_end(one)

    def on_pass_end(self, one):
        if one.is_complete:
            return
        one.is_complete = True
        one.loader.begun_anew = 0
        if one.epoch is not None:
            self.look_at_order(one)
        elif one.before == one.after and self.watched():  # a test: no backward at all
            self.look_at_padding(one.loader)
            if self.trained and one.loader.base is self.trained.loader.base:
                self.evaluated = one

    def look_at_order(self, one):
        sampler = one.loader.sampler
        if (isinstance(sampler, data.DistributedSampler) and sampler.shuffle and one.count > 4
                and one.order == one.loader.order_before):
            self.find("the same epochs", "two epochs in turn had the same order, as the sampler's "
                      f"epoch stayed {sampler.epoch}: call sampler.set_epoch(epoch) before each of "
                      "them.")
        one.loader.order_before = one.order

    def look_at_padding(self, loader):
        sampler, base = loader.sampler, id(loader.base)
        if not isinstance(sampler, data.DistributedSampler):
            self.tested_undivided.add(base)
        elif sampler.num_replicas > 1:
            size, padded = len(sampler.dataset), sampler.total_size
            if padded > size:
                self.find("padded evaluation", f"DistributedSampler pads {size} samples to "
                          f"{padded}: {padded - size} of them count twice. Give rank r the "
                          "samples r, r + W, ... instead, and sum over the ranks.")
            elif padded < size:
                self.left_out[base] = ("DistributedSampler with drop_last leaves out "
                                       f"{size - padded} of {size} samples.")

    # ---- A check ----

    def notes(self):
        """Returns what this rank knows, as the other ranks' notes will be compared with it."""
        models = self.watched()
        tensors = [((model.number, *key), each) for model in models
                   for key, each in model.tensors()]
        hashes = hashes_of(each for _, each in tensors)
        pace = self.pace() if self.pace else None
        settings = ("lr", "weight_decay", "momentum", "betas")
        found, self.own = self.own, []
        return {
            "step": self.step, "found": found,
            "hashes": {key: number for (key, _), number in zip(tensors, hashes)},
            "models": {model.number: model.notes() for model in models},
            "backwards": self.all_backwards - self.checked_backwards,
            "gradients": self.gradients, "dropout": self.dropout, "means": list(self.means),
            "scales": [scaler.get_scale() for scaler in self.scalers],
            "rates": [str({key: group.get(key) for key in settings})
                      for group in (pace.param_groups if pace else [])],
            "trained": self.trained and self.trained.notes(),
            "evaluated": self.evaluated and self.evaluated.notes(),
            "contents": self.trained.contents if self.trained else [],
        }

    def keys(self, number):
        return [f"ddp_guard/{number}/{rank}" for rank in range(self.world_size)]

    def check(self, number=None):
        """Leaves this rank's notes in the store. It waits for nobody."""
        self.number += 1
        number = number or self.number
        self.store.set(self.keys(number)[self.rank], pickle.dumps(self.notes()))
        if self.rank == 0:
            self.pending.append(number)

    def compare_what_is_there(self):
        """Compares, on rank 0, the notes of each check that all ranks have made, in their order: it
        asks for the last one first, since meanwhile a rank may make two."""
        made = [number for number in reversed(self.pending) if self.store.check(self.keys(number))]
        for number in reversed(made):
            self.pending.remove(number)
            self.checks.compare([pickle.loads(self.store.get(key)) for key in self.keys(number)])
            for key in self.keys(number):
                self.store.delete_key(key)

    # ---- The end ----

    def finish(self):
        """Makes one check more, and says what was watched."""
        if not self.is_finished:
            self.begin_step()
            quietly(self.check_at_the_end)
            self.is_finished = True
            if self.rank == 0:
                self.report()

    def check_at_the_end(self):
        """Leaves the last notes. Rank 0 waits a little for the others', unless it ends by an error
        itself: they leave theirs however they end, if they were not killed."""
        if self.store is None:
            self.rank = dist.get_rank() if dist.is_initialized() else 0
            if self.rank == 0:
                self.checks.tell_what_was_found([self.own])
            return
        for loader in self.loaders.values():
            self.on_pass_end_by_count(loader.now)
        for base, words in self.left_out.items():
            if base not in self.tested_undivided:
                self.find("padded evaluation", words)
        self.check("last")
        if self.rank == 0:
            if not sys.exc_info()[0] and not hasattr(sys, "last_value"):
                with contextlib.suppress(dist.DistStoreError):  # then what is there must do
                    self.store.wait(self.keys("last"), PATIENCE)
            self.compare_what_is_there()

    def report(self):
        """Says what was watched, and what was not: silence reads as praise."""
        def count(number, what):
            return f"{number} {what}{'' if number == 1 else 's'}"
        models = sum(model.is_whole for model in self.models)
        lines = [f"watched {count(models, 'model')}, {count(self.step, 'step')} and "
                 f"{count(self.loaders_used, 'loader')}; {count(self.checks.made, 'check')} "
                 f"compared {count(self.world_size, 'rank')}; "
                 f"{count(len(self.findings), 'finding')}."]
        if models < len(self.models):
            lines.append(f"NOT WATCHED: {count(len(self.models) - models, 'model')} that a part of "
                         "the ranks share.")
        if not self.models:
            lines.append("NOTHING WAS WATCHED: no model was wrapped by DistributedDataParallel in "
                         "this process. (Ranks that it starts itself, as mp.spawn does, run "
                         "without the guard: call ddp_guard.watch() in the function they run.)")
        elif self.step == 0:
            lines.append("NOTHING WAS WATCHED: no optimizer made a step with the parameters of a "
                         "wrapped model.")
        elif self.checks.made == 0:
            lines.append("NOTHING WAS COMPARED: no check was made by all ranks. Start each of them "
                         "under the guard: a launcher of the script's own does not.")
        elif self.loaders_used == 0:
            lines.append("NO SAMPLES WERE WATCHED: no batch came from a DataLoader.")
        elif self.loaders_unknown:
            lines.append(f"NOT ALL SAMPLES WERE WATCHED: {count(self.loaders_unknown, 'loader')} "
                         "of a stream, or with a sampler of its own that may repeat samples.")
        print("\n".join(f"ddp_guard: {line}" for line in lines), file=sys.stderr, flush=True)


# ---- Helpers -------------------------------------------------------------------------------------
def divisors_of(root):
    """Returns by what the loss was divided last and, negative, multiplied: -2, 4 of (x / 4) * 2."""
    found, node = [], root.grad_fn
    while type(node).__name__ in ("DivBackward0", "MulBackward0") and len(found) < 8:
        other = getattr(node, "_saved_other", None)
        if (not isinstance(other, torch.Tensor) or other.numel() != 1
                or node.next_functions[1][0] is not None):
            break
        found.append(float(other) * (1 if type(node).__name__ == "DivBackward0" else -1))
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


def is_divided(after, before, count):
    """Returns whether each element was divided by count, to the bit: clipping is near at best."""
    return bool(before.any()) and count > 1 and (
        torch.equal(after, before / count) or torch.equal(after, before * (1 / count)))


def is_out_of_use(parameter):
    """Returns whether it has a gradient, and one that means nothing."""
    if parameter.grad is None or parameter.grad.is_sparse:
        return False
    return not parameter.requires_grad or (parameter.numel() > 1 and not bool(parameter.grad.any()))


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
    around(DistributedDataParallel, "__init__", wrap_init(guard.add_model))
    around(DistributedDataParallel, "forward", wrap_forward)
    around(torch.autograd, "backward", wrap_backward)
    around(Optimizer, "__init__", wrap_init(guard.optimizers.add))
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
    around(torch.amp.GradScaler, "__init__", wrap_init(guard.scalers.append))
    around(dist, "all_reduce", wrap_all_reduce)
    for holder in (dist, dist.distributed_c10d):
        around(holder, "destroy_process_group", wrap_destroy)
    around(fsdp.FullyShardedDataParallel, "__init__", wrap_fsdp)
    around(fsdp, "fully_shard", wrap_fsdp)
    atexit.register(guard.finish)
    return guard


def quietly(function, *arguments):
    """Calls it outside of autograd. If it fails, the guard says so and ends; the job goes on."""
    if guard.is_finished:
        return None
    try:
        with torch.no_grad():
            return function(*arguments)
    except Exception as error:
        guard.is_finished = True
        rank = dist.get_rank() if dist.is_initialized() else 0
        print(f"ddp_guard: it has stopped watching on rank {rank} after step {guard.step}: "
              f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
              file=sys.stderr, flush=True)
    return None


def wrap_init(meet):
    def make(original):
        def __init__(self, *arguments, **options):
            original(self, *arguments, **options)
            meet(self)
        return __init__
    return make


def wrap_forward(original):
    def forward(self, *arguments, **options):
        if torch.compiler.is_compiling():
            self._ddp_guard_is_blind = True  # a compiled forward counts nothing
        elif torch.is_grad_enabled():
            quietly(guard.on_forward, self)
        return original(self, *arguments, **options)
    return forward


def wrap_backward(original):
    def backward(tensors, *arguments, **options):
        quietly(guard.on_backward, tensors)
        original(tensors, *arguments, **options)
        quietly(guard.on_backward_end)
    return backward


def wrap_iter(original):
    def __iter__(self):
        guard.opening = quietly(guard.on_pass_begin, self)
        try:
            iterator = original(self)  # its workers take indices at once
            iterator._ddp_guard_pass = guard.opening
        finally:
            guard.opening = None
        return iterator
    return __iter__


def wrap_next_index(original):
    def _next_index(self):
        indices = original(self)
        one = guard.opening or getattr(self, "_ddp_guard_pass", None)
        if one is not None:
            quietly(one.take, indices)
        return indices
    return _next_index


def wrap_next(original):
    def __next__(self):
        one = getattr(self, "_ddp_guard_pass", None)
        try:
            batch = original(self)
        except StopIteration:
            if one is not None:
                quietly(guard.on_pass_end, one)
            raise
        if one is not None:
            quietly(guard.on_batch, one, batch)
        return batch
    return __next__


def wrap_mean(original):
    def loss(input, target, *arguments, **options):
        result = original(input, target, *arguments, **options)
        if (not torch.compiler.is_compiling() and result.dim() == 0 and torch.is_grad_enabled()
                and options.get("reduction", "mean") == "mean" and guard.should_count()):
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
                and torch.is_grad_enabled() and guard.should_check()):
            state = (torch.cuda.get_rng_state(input.device) if input.is_cuda
                     else torch.random.get_rng_state())
            guard.dropout = (int(hash_of(state)) & MASK) | 1
        return original(input, p, training, inplace)
    return dropout


def wrap_all_reduce(original):
    def all_reduce(tensor, *arguments, **options):
        if guard.backwards:
            quietly(guard.on_all_reduce, tensor)
        return original(tensor, *arguments, **options)
    return all_reduce


def wrap_destroy(original):
    def destroy_process_group(group=None):
        if group is None:
            guard.finish()
        return original(group)
    return destroy_process_group


def wrap_fsdp(original):
    def call(*arguments, **options):
        guard.find("not for FSDP", "this job shards its parameters by FSDP. The guard is for "
                   "DistributedDataParallel and says nothing of it.")
        return original(*arguments, **options)
    return call


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
