#!/usr/bin/env python3
"""The book's collectives beside Gloo's, under one PyTorch: the same training by both, and
all-reduces in turns.

    ./book under torch [--ranks 2] [--algorithm mine]           or, where the package is installed:
    torchrun --nproc-per-node 2 chapters/23_your_job/beside_gloo.py
"""
import argparse
import hashlib
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn

import ddp_by_hand

MIB = 1 << 20
SIZES = (MIB // 16, MIB, 4 * MIB, 16 * MIB, 64 * MIB)
ROUNDS = 5


def train(group, steps):
    """Trains a small network over the group. Returns a hash of its parameters, a step's seconds."""
    rank = dist.get_rank(group)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
                          nn.Linear(256, 10))
    model = nn.parallel.DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    torch.manual_seed(1 + rank)
    times = []
    for _ in range(steps):
        inputs, labels = torch.randn(64, 784), torch.randint(10, (64,))
        begin = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    bits = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
    return hashlib.sha256(bits).hexdigest()[:16], statistics.median(times)


def seconds_of(group, data, calls):
    data.fill_(1)
    dist.barrier(group)
    begin = time.perf_counter()
    for _ in range(calls):
        dist.all_reduce(data, group=group)
    return (time.perf_counter() - begin) / calls


def compare(groups, total_bytes):
    """Prints for each size the median of the rounds, in which all groups have their turns."""
    print_once(f"\nAll-reduce of a tensor of float32, {dist.get_world_size()} ranks: median of "
               f"{ROUNDS} rounds, in turns\n{'bytes':>10} {'Gloo':>12} {'by hand':>12} "
               f"{'Gloo / by hand':>16} {'of a round':>16}")
    for size in SIZES:
        data = torch.empty(size // 4)
        calls = max(1, min(50, total_bytes // size))
        for group in groups.values():
            seconds_of(group, data, 1)
        rounds = [{name: seconds_of(group, data, calls) for name, group in groups.items()}
                  for _ in range(ROUNDS)]
        gloo, by_hand = (statistics.median(each[name] for each in rounds) for name in groups)
        ratios = sorted(each["gloo"] / each[ddp_by_hand.NAME] for each in rounds)
        print_once(f"{size:>10} {gloo * 1e6:>9.0f} us {by_hand * 1e6:>9.0f} us "
                   f"{gloo / by_hand:>16.1f} {ratios[0]:>9.1f} to {ratios[-1]:.1f}")


def print_once(text):
    if dist.get_rank() == 0:
        print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(prog="beside_gloo.py", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer calls")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    own = dist.new_group(backend=ddp_by_hand.NAME)
    groups = {"gloo": dist.group.WORLD, ddp_by_hand.NAME: own}
    print_once(f"{dist.get_world_size()} ranks on {os.cpu_count()} cores, on one node; load "
               f"{os.getloadavg()[0]:.1f}. By hand: {ddp_by_hand.algorithm()}")
    print_once("\n100 steps of a network of 269,322 parameters under DistributedDataParallel")
    for name, group in groups.items():
        digest, seconds = train(group, 100)
        digests = [None] * dist.get_world_size()
        dist.all_gather_object(digests, digest)
        alike = ("the same on all ranks" if len(set(digests)) == 1
                 else f"NOT the same on all ranks: {digests}")
        print_once(f"    {name:<12} parameters {digest}, {alike}; a step {seconds * 1e3:.1f} ms")
    compare(groups, (16 if options.quick else 256) * MIB)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
