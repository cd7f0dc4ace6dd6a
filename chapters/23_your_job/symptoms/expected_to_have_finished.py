# symptom: "Expected to have finished reduction in the prior iteration"
# cause: forward does not use a parameter, or its output is not in the loss
# cause: only some batches use a branch: `find_unused_parameters=True`
# cause: reentrant checkpointing around a layer whose input needs no gradient, such as the first:
#   `use_reentrant=False`
# section: [17](17_unused_parameters/README.md#find_unused_parameters)
# decides: After the first backward, which parameters have no gradient?
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
layer = nn.Linear(4, 1)
layer.unused = nn.Linear(4, 1)  # the fault: its forward does not call this one
model = DistributedDataParallel(layer)
model(torch.randn(8, 4)).sum().backward()
if rank == 0:
    print(*[name for name, parameter in model.module.named_parameters()
            if parameter.grad is None])  # decides
