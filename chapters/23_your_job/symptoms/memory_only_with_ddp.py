# symptom: out of memory only with DistributedDataParallel
# cause: gradients and buckets: the gradients twice
# cause: every rank has a context on GPU 0, see the next row
# cause: a larger batch on each rank than before
# section: [14](14_buckets/README.md#views-not-copies)
# decides: do gradients live in the buckets, or beside them?
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(nn.Linear(512, 512))  # the fault: no gradient_as_bucket_view=True
for _ in range(2):
    model(torch.randn(4, 512)).sum().backward()
parameters = list(model.parameters())
if rank == 0:
    print("gradients are views of buckets:", parameters[0].grad._base is not None)  # decides
