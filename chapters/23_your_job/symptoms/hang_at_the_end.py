# symptom: a hang at the end of an epoch
# cause: the ranks have different numbers of batches: a custom sampler, an IterableDataset
# cause: one rank skips a bad batch, stops early, or gets an exception in its last batch
# cause: rank 0 writes the last checkpoint for longer than the time-out
# section: [17](17_unused_parameters/README.md#join)
# decides: Before the loop, how many batches does each rank have?
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Subset, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
samples = TensorDataset(torch.randn(33, 4))
mine = Subset(samples, range(rank, 33, dist.get_world_size()))  # the fault: 17 and 16 samples
loader = DataLoader(mine, batch_size=4)
batches = [None] * dist.get_world_size()
dist.all_gather_object(batches, len(loader))  # decides
if rank == 0:
    print(f"batches: {batches}")
