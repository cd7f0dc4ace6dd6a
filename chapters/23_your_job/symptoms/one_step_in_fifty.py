# symptom: one step in fifty is slow, or the first one of each epoch (a straggler)
# cause: one rank has extra work now and then: a checkpoint, logging, garbage collection
# cause: samples differ widely in length
# cause: the loader ran empty (too few workers), or it starts its workers anew for each epoch:
#   `persistent_workers=True`
# section: [23](23_your_job/README.md#the-traces-of-all-ranks)
# decides: On each rank, time the slowest step up to its all-reduce. `./book read` finds the
#   straggler in all ranks' profiler traces.
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(nn.Linear(64, 8))
times = []
for step in range(50):
    begin = time.perf_counter()
    if rank == 1 and step == 30:
        time.sleep(0.5)  # the fault: only rank 1 writes something
    with model.no_sync():
        loss = model(torch.randn(32, 64)).sum()
        loss.backward()
    times.append(time.perf_counter() - begin)  # decides
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
everybody = [None] * dist.get_world_size()
dist.all_gather_object(everybody, times)
if rank == 0:
    step = max(range(50), key=lambda step: max(each[step] for each in everybody))
    last = max(range(len(everybody)), key=lambda rank: everybody[rank][step])
    print(f"step {step}: rank {last} comes last")
