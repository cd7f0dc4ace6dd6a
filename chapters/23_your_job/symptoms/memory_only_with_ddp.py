# symptom: "CUDA out of memory" only with DistributedDataParallel
# cause: gradients exist twice, once in the buckets: `gradient_as_bucket_view=True`
# cause: every rank has a context on GPU 0: see the next symptom
# cause: each rank has a larger batch than before
# section: [14](14_buckets/README.md#views-not-copies)
# decides: Do gradients live in the buckets, or beside them?
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(nn.Linear(512, 512))  # the fault: no gradient_as_bucket_view=True
for _ in range(2):
    model(torch.randn(4, 512)).sum().backward()
if rank == 0:
    print("gradients are views of buckets:",
          next(model.parameters()).grad._base is not None)  # decides
