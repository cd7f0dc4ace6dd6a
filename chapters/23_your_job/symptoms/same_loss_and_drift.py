# symptom: all ranks print the same loss, and their models drift apart
# cause: forward is called on `model.module`, so no gradient is averaged
# cause: a parameter was changed after the model was wrapped, or on one rank only
# cause: the printed loss is an average over the ranks: it agrees even if the models do not
# section: [11](11_data_parallel/README.md#why-they-drift-and-what-stops-it)
# decides: Compare one number of each rank's parameters. `ddp_guard.py` names the parameter that
#   differs.
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(nn.Linear(4, 1))
torch.manual_seed(rank)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    optimizer.zero_grad()
    model.module(torch.randn(8, 4)).square().mean().backward()  # the fault
    optimizer.step()
sums = [None] * dist.get_world_size()  # decides
dist.all_gather_object(sums, sum(parameter.double().sum().item()
                                 for parameter in model.parameters()))
if rank == 0:
    print("the parameters are", "equal" if len(set(sums)) == 1 else "not equal")  # decides
