# symptom: the loss jumps after a resume
# cause: the optimizer's state was not saved, or not loaded
# cause: the sampler starts the epoch again [12](12_sampler)
# cause: the learning rate's schedule starts again
# section: [19](19_checkpoint_failover/README.md#what-a-training-is)
# decides: After the resume, what does the optimizer remember?
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
model(torch.randn(8, 4)).sum().backward()
optimizer.step()
checkpoint = {"model": model.state_dict()}  # the fault: without the optimizer

model = nn.Linear(4, 1)
model.load_state_dict(checkpoint["model"])
model = DistributedDataParallel(model)
optimizer = torch.optim.Adam(model.parameters())
if rank == 0:
    print(f"the optimizer remembers {len(optimizer.state)} of "
          f"{len(list(model.parameters()))} parameters")  # decides
