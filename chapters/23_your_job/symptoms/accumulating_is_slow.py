# symptom: accumulating gradients is as slow as not accumulating
# cause: `no_sync` wraps backward alone, where it does nothing: wrap forward, too
#   [15](15_overlap/README.md#no_sync)
# cause: no batch is in `no_sync`, so each backward sends all gradients
# cause: nothing is wrong: backward hides the all-reduce, and there is little to save
# section: [15](15_overlap/README.md#no_sync)
# decides: After the first backward, are the gradients averaged already?
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(nn.Linear(4, 1))
torch.manual_seed(rank)
loss = model(torch.randn(8, 4)).sum()
with model.no_sync():  # the fault: forward is outside
    loss.backward()
sums = [None] * dist.get_world_size()  # decides
dist.all_gather_object(sums, next(model.parameters()).grad.sum().item())
if rank == 0:
    print("averaged:", len(set(sums)) == 1)  # decides
