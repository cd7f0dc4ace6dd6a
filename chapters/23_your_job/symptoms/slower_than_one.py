# symptom: 4 GPUs are slower than 1
# cause: steps are too short: the all-reduce takes longer than backward. `./book predict` says how
#   many ranks pay off [21](21_cluster/README.md#before-there-are-more-ranks)
# cause: there is no DistributedSampler, so every rank trains on all samples
#   [12](12_sampler/README.md#five-mistakes-without-a-message)
# cause: loaders and threads share too few cores: `OMP_NUM_THREADS` [environment](environment.md)
# cause: seldom the buckets' size: first leave `bucket_cap_mb` as it is
#   [14](14_buckets/README.md#what-to-do-on-eight-h100s)
# cause: one node's network is slow, and a ring is as slow as its slowest link: start
#   `ddp_doctor.py` on two nodes at a time
# section: [15](15_overlap/README.md#what-can-be-hidden)
# decides: Time a step, then the same step without communication.
import contextlib
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(nn.Sequential(nn.Linear(2048, 2048), nn.Linear(2048, 2048)))
inputs = torch.randn(1, 2048)  # the fault: a step that is over soon
seconds = {}  # decides
for context in [contextlib.nullcontext, model.no_sync] * 8:
    begin = time.perf_counter()
    with context():
        model(inputs).sum().backward()
    seconds[context] = min(seconds.get(context, 1e9), time.perf_counter() - begin)
if rank == 0:
    is_most = seconds[contextlib.nullcontext] > 2 * seconds[model.no_sync]
    print("the all-reduce is", "most of the step" if is_most else "not the cause")  # decides
