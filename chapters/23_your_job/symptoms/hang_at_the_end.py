# symptom: a hang at the end of an epoch, or after the last one
# cause: the ranks have different numbers of batches: a custom sampler, an IterableDataset
# cause: one rank skips a bad batch, stops early, or gets an exception in its last batch
# cause: rank 0 writes the last checkpoint for longer than the time-out
# section: [17](17_unused_parameters/README.md#join)
# decides: How many batches has each rank finished? The rank with more does not hang at once: its
#   extra all-reduce pairs with the others' first one of the next epoch, and training goes on, a
#   step out of phase, until the last epoch ends, or a different collective follows. `len(loader)`
#   does not show this: it counts skipped batches, and an IterableDataset may have none.
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset

dist.init_process_group("gloo")
rank = dist.get_rank()
samples = torch.randn(33, 4)
mine = Subset(samples, range(rank, 33, dist.get_world_size()))  # the fault: 17 and 16 samples
loader = DataLoader(mine, batch_size=4)
model = DistributedDataParallel(nn.Linear(4, 1))
try:
    for epoch in range(2):
        finished = 0  # decides
        for inputs in loader:
            model(inputs).sum().backward()
            finished += 1
        print(f"rank {rank}, epoch {epoch}: {finished} batches", flush=True)  # decides
except RuntimeError:
    pass  # rank 0 hung in epoch 1, until rank 1 left
