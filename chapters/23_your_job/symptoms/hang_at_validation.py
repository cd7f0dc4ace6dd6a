# symptom: a hang at the first validation
# cause: only rank 0 validates, and calls the wrapped model, whose forward broadcasts buffers
# cause: rank 0 validates for longer than the others' next collective waits
# cause: the accuracy's all-reduce is inside `if rank == 0`
# section: [11](11_data_parallel/README.md#only-rank-0-logs-but-all-ranks-call)
# decides: Try the same forward on `model.module`, which needs no other rank.
import threading

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)))
model(torch.randn(8, 4)).sum().backward()
model.eval()
dist.barrier()
inputs = torch.randn(8, 4)
if rank == 0:  # the fault: the others do not come
    for name, forward in (("model", model), ("model.module", model.module)):  # decides
        thread = threading.Thread(target=forward, args=[inputs], daemon=True)
        thread.start()
        thread.join(2)
        print(name, "waits" if thread.is_alive() else "returns", flush=True)  # decides
else:
    threading.Event().wait(5)
