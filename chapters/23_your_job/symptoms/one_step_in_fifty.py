# symptom: one step in fifty is slow, or the first one of each epoch (a straggler)
# cause: one rank has extra work now and then: a checkpoint, logging, garbage collection
# cause: samples differ widely in length
# cause: the loader ran empty (too few workers), or it starts its workers anew for each epoch:
#   `persistent_workers=True`
# section: [23](23_your_job/README.md#the-traces-of-all-ranks)
# decides: Before backward, who waits least for the others? `./book read` finds the straggler in all
#   ranks' profiler traces.
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(nn.Linear(64, 8))
for step in range(50):
    if rank == 1 and step == 30:
        time.sleep(1)  # the fault: only rank 1 writes something
    loss = model(torch.randn(32, 64)).sum()
    begin = time.perf_counter()  # decides
    dist.barrier()
    waited = [None] * dist.get_world_size()
    dist.all_gather_object(waited, time.perf_counter() - begin)
    if rank == 0 and max(waited) > 0.5:
        print(f"step {step}: rank {waited.index(min(waited))} comes last")  # decides
    loss.backward()
