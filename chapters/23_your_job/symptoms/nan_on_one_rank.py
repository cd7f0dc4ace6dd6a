# symptom: the loss is NaN, on all ranks after the all-reduce
# cause: one sample is broken, and one rank drew it
# cause: a float16 number is above 65,504: an activation, or a gradient whose scale was too large
#   and whose step was not skipped [16](16_recipe/README.md#loss-scaling)
# cause: the loss is divided by the number of labels, and a batch has none
# section: [16](16_recipe/README.md#loss-scaling)
# decides: Before backward, whose loss is finite?
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(nn.Linear(4, 1))
for step in range(5):
    inputs = torch.randn(8, 4)
    if rank == 1 and step == 3:
        inputs[2] = float("nan")  # the fault: one sample
    loss = model(inputs).square().mean()
    finite = [None] * dist.get_world_size()  # decides
    dist.all_gather_object(finite, loss.isfinite().item())
    if rank == 0 and not all(finite):
        print(f"step {step}: the loss of rank {finite.index(False)} is not finite")  # decides
    loss.backward()
