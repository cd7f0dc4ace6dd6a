# symptom: "Expected to have finished reduction in the prior iteration"
# cause: forward does not use a parameter, or its output is not in the loss
# cause: only some batches use a branch: `find_unused_parameters=True`
# cause: a checkpointed layer is used twice: `static_graph=True`
# section: [17](17_unused_parameters/README.md#find_unused_parameters)
# decides: After the first backward, which parameters have no gradient?
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(4, 1), nn.Linear(4, 1)

    def forward(self, inputs):
        return self.used(inputs)  # the fault


model = DistributedDataParallel(Model())
model(torch.randn(8, 4)).sum().backward()
if rank == 0:
    print(*[name for name, parameter in model.module.named_parameters()
            if parameter.grad is None])  # decides
