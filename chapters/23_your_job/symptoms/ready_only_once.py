# symptom: "Expected to mark a variable ready only once", "has been marked as ready twice" or, for a
#   buffer, "modified by an inplace operation"
# cause: a layer in reentrant checkpointing is used twice: `use_reentrant=False`, or
#   `static_graph=True`
# cause: forward runs twice before one backward, as in a GAN: put both inputs into one batch or, for
#   buffers, set `forward_sync_buffers=False` (before 2.13 `broadcast_buffers=False`)
#   [environment](environment.md#distributeddataparallel)
# cause: a loss or a layer uses a parameter outside the wrapped forward
# section: [17](17_unused_parameters/README.md#static_graph)
# decides: Which parameter is it? PyTorch names it if you set this before you make the group.
import os
import re

os.environ["TORCH_DISTRIBUTED_DEBUG"] = "INFO"  # decides
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.shared = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, inputs):
        once = checkpoint(self.shared, self.first(inputs), use_reentrant=True)
        return checkpoint(self.shared, once, use_reentrant=True)  # the fault


dist.init_process_group("gloo")
model = DistributedDataParallel(Twice())
try:
    model(torch.randn(2, 4)).sum().backward()
except RuntimeError as error:
    if dist.get_rank() == 0:
        print(*re.findall(r"name (\S+) has been marked as ready twice", str(error)))
