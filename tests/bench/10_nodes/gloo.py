#!/usr/bin/env python3
"""All-reduces of Gloo, PyTorch's library for CPUs: for `./book bench nodes --gloo PYTHON`.

Each rank of the bench starts one of these, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. When
all have met it prints PyTorch's version, and answers each line `run COUNT TIMES` of its stdin with
the seconds of each of TIMES all-reduces of COUNT floats, in place. The end of stdin ends it.
"""
import datetime
import sys
import time

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
ranks = dist.get_world_size()
probe = torch.full((1000,), float(dist.get_rank() + 1))
dist.all_reduce(probe)
if not torch.equal(probe, torch.full((1000,), ranks * (ranks + 1) / 2)):
    sys.exit("Gloo has given a wrong sum")
print(f"# Gloo of PyTorch {torch.__version__}", flush=True)
array = torch.zeros(1)
for line in sys.stdin:
    count, times = map(int, line.split()[1:])
    if array.numel() != count:
        array = torch.zeros(count)
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        dist.all_reduce(array)
        seconds.append(time.perf_counter() - begin)
    print(*seconds, flush=True)
dist.destroy_process_group()
