# symptom: one step in fifty is slow, or the first one of each epoch
# cause: one rank does something now and then: it writes a checkpoint, logs, collects garbage
# cause: samples of very different lengths
# cause: a loader that has run empty (too few workers), or starts its workers anew for each epoch
#   (`persistent_workers=True`)
# section: [23](23_your_job/README.md#the-traces-of-all-ranks)
# decides: the time of each rank *before* its all-reduce, in the slowest step; `./book read` finds
#   it in the profiler's traces of all ranks
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
