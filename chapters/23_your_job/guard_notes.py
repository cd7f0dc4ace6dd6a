"""What a rank knows of a model, of a loader and of one pass over it, for ddp_guard.py."""
import operator
import random
import sys
import weakref
import zlib

import torch
import torch.utils.data as data
from torch.nn.modules.batchnorm import _BatchNorm

MOST_SAMPLES = 1 << 24  # of a data set whose indices are compared between ranks


class Watched:
    """A wrapped model, and what has happened to it since the last check."""

    def __init__(self, ddp, number, is_whole):
        self.ddp = weakref.ref(ddp)
        self.number = number      # in the order of wrapping, which all ranks share
        self.is_whole = is_whole  # do all ranks of the job have a replica?
        self.names = {id(parameter): name for name, parameter in ddp.module.named_parameters()}
        self.forwards = self.in_sync = 0  # for training, through the wrapper; outside of no_sync

    def tensors(self):
        """Returns those that ranks share, by what they are and their names: parameters, and buffers
        that are not the statistics of a BatchNorm."""
        own = {id(buffer) for layer in self.ddp().modules()
               if isinstance(layer, _BatchNorm) and not isinstance(layer, torch.nn.SyncBatchNorm)
               for buffer in layer.buffers(recurse=False)}
        module = self.ddp().module
        return ([(("parameter", name), each) for name, each in module.named_parameters()]
                + [(("buffer", name), each) for name, each in module.named_buffers()
                   if id(each) not in own])

    def notes(self):
        """Returns the class of the model and its forwards, as far as they are known."""
        ddp = self.ddp()
        is_blind = getattr(ddp, "_ddp_guard_is_blind", False)
        return type(ddp.module).__name__, *([None] * 2 if is_blind else
                                            [self.forwards, self.in_sync])


# Samplers that take no sample twice in an epoch, each by the method that says so: a class of one's
# own that has another one may draw as it likes.
ONCE = {kind.__iter__ for kind in (data.SequentialSampler, data.RandomSampler,
                                   data.SubsetRandomSampler, data.DistributedSampler)}


class Loader:
    """What is known of a DataLoader: whose samples it takes, and in which kind of order."""

    def __init__(self, loader):
        batches, self.sampler = loader.batch_sampler, loader.sampler
        while isinstance(batches, data.BatchSampler) and hasattr(batches, "sampler"):
            batches, self.sampler = batches.sampler, batches.sampler
        self.base, self.subsets = loader.dataset, []
        while isinstance(self.base, data.Subset):
            self.subsets.append(self.base.indices)
            self.base = self.base.dataset
        self.size, self.length = length_of(self.base), length_of(loader)  # in samples, in batches
        dealt = length_of(getattr(self.sampler, "dataset", self.sampler))  # over all ranks
        self.once = (type(loader.batch_sampler) in (data.BatchSampler, type(None))
                     and type(self.sampler).__iter__ in ONCE
                     and not getattr(self.sampler, "replacement", False)
                     and 0 < dealt <= length_of(loader.dataset))
        self.whole = self.once and dealt == self.size  # shall an epoch take all samples?
        self.batch_size = getattr(loader.batch_sampler, "batch_size", 1)
        self.is_used = False      # has it handed out a batch?
        self.now = None           # the pass that has begun last
        self.epochs = 0           # passes with a backward
        self.order_before = None  # hash of the last whole epoch's indices
        self.begun_anew = 0       # epochs in turn that were given up after the same few batches
        self.given_up = self.print = None

    def alike(self):
        """Returns what must be equal on all ranks to compare samples."""
        if self.print is None:
            self.print = print_of(self.base)
        return self.print, self.size, self.once, self.whole, self.batch_size


class Pass:
    """One pass over a loader: which samples, and what was done with them."""

    def __init__(self, loader):
        self.loader = loader
        self.first, self.count, self.order = (), 0, 0  # of the indices; workers take them ahead
        # A bit for each sample, or None if the indices cannot be told.
        is_known = 0 < loader.size <= MOST_SAMPLES
        self.taken = bytearray(loader.size // 8 + 1) if is_known else None
        self.batches = 0         # that were handed out
        self.before = self.after = 0  # backwards of the job before the first and the last of them
        self.epoch = None        # its number, if a backward came after one of its batches
        self.is_complete = self.is_told = False
        self.contents = []       # hashes of the first batches, where there are no indices

    def take(self, indices):
        if self.taken is None:
            return
        try:
            indices = [operator.index(k) for k in
                       (indices if isinstance(indices, (list, tuple)) else [indices])]
            self.order = hash((self.order, *indices))
            self.first = (self.first + tuple(indices))[:8]
            self.count += len(indices)
            for k in indices:
                for subset in self.loader.subsets:
                    k = int(subset[k])
                self.taken[k >> 3] |= 1 << (k & 7)
        except (TypeError, IndexError):  # samples of a stream, or a data set's own kind of index
            self.taken = None

    def notes(self):
        """Returns what the ranks compare, until it was told complete; None if there is nothing."""
        if self.taken is None or self.is_told:
            return None
        self.is_told = self.is_complete
        try:
            alike = (*self.loader.alike(), self.epoch)
        except Exception:  # a data set of its own kind: nothing is said of it
            return None
        return {"alike": alike, "is_complete": self.is_complete, "taken": bytes(self.taken)}


def length_of(something):
    try:
        return len(something)
    except TypeError:
        return 0


def print_of(dataset):
    """Returns a hash of three samples. Augmentation draws from the same place on all ranks."""
    numpy = sys.modules.get("numpy")
    of_python, of_numpy = random.getstate(), numpy and numpy.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            random.seed(0)
            torch.random.default_generator.manual_seed(0)
            if numpy:
                numpy.random.seed(0)
            return zlib.crc32("".join(repr(dataset[index]) for index in (
                0, len(dataset) // 2, len(dataset) - 1)).encode())
    finally:
        random.setstate(of_python)
        if numpy:
            numpy.random.set_state(of_numpy)
