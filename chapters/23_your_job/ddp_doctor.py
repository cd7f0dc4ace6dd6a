#!/usr/bin/env python3
"""Looks at the ranks, the nodes and the link of a job before it begins.

    torchrun --nnodes 2 --nproc-per-node 8 ... ddp_doctor.py [SCRIPT]
    or by srun, with the variables that torchrun sets

It asks, in this order: do all ranks meet? Is PyTorch the same everywhere, and SCRIPT, if one is
named? By which interface does a node speak? Have ranks of a node a device each, and cores of their
own? How many threads does a rank start? Do the clocks agree? Then it measures all-reduces of 4
bytes to 16 MiB by Gloo on the CPU (by NCCL with --backend nccl, which is untried), fits the line

    time = alpha * steps + beta * bytes on the wire

with 2 (W - 1) steps and 2 (W - 1) / W of the bytes, as a ring has them,

through the shortest and the longest, and puts the sizes between beside what it predicts
(the book: 06_messages, 09_all_reduce).
The exit status is 0 if nothing is wrong, 1 if something is, and 2 if the ranks do not meet.
"""
import argparse
import datetime
import hashlib
import os
import pathlib
import socket
import sys
import time

import torch
import torch.distributed as dist

SIZES = [4, 4096, 65536, 1 << 20, 4 << 20, 16 << 20]  # bytes
CLOCKS_AGREE = 0.1  # seconds
TIMES = 7


def meet(backend, seconds):
    """Joins the job, or says which rank did not."""
    needed = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    lacking = [name for name in needed if name not in os.environ]
    if lacking:
        sys.exit("ddp_doctor is started by torchrun, or by srun with its variables: "
                 f"{', '.join(lacking)} is not set.")
    timeout = datetime.timedelta(seconds=seconds)
    try:
        dist.init_process_group("gloo", timeout=timeout)
        dist.monitored_barrier(timeout=timeout, wait_all_ranks=True)
    except Exception as error:
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        print(f"rank {os.environ['RANK']}: the ranks do not meet at {address} within {seconds} s: "
              f"{str(error).strip().splitlines()[0]}", file=sys.stderr)
        os._exit(2)
    return dist.new_group(backend=backend) if backend != "gloo" else dist.group.WORLD


def interface_to(address):
    """Returns this node's address from which packets to the other leave. Nothing is sent."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.connect((socket.gethostbyname(address), 9))
            return s.getsockname()[0]
    except OSError as error:
        return f"none ({error.strerror or error})"


def facts_of_rank(script):
    local_rank = int(os.environ.get("LOCAL_RANK", os.environ.get("SLURM_LOCALID", "0")))
    file = pathlib.Path(script).read_bytes() if script and os.path.isfile(script) else b""
    devices = torch.cuda.device_count()
    return {"node": socket.gethostname(), "local rank": local_rank, "PyTorch": torch.__version__,
            "Python": sys.version.split()[0],
            "script": hashlib.sha256(file).hexdigest()[:12] if file else "not there",
            "interface": interface_to(os.environ["MASTER_ADDR"]),
            "threads": torch.get_num_threads(), "cores": sorted(os.sched_getaffinity(0)),
            "devices": devices,
            "device": torch.cuda.get_device_name(local_rank) if local_rank < devices else "CPU"}


def look_at_clocks():
    """Returns, on rank 0, by how many seconds each clock is ahead; the fastest answer counts."""
    answers = [0.0] * dist.get_world_size()
    for rank in range(1, dist.get_world_size()):
        best = None
        for _ in range(5):
            clock = torch.zeros(1, dtype=torch.float64)
            if dist.get_rank() == 0:
                begin = time.time()
                dist.send(clock, rank)
                dist.recv(clock, rank)
                took = time.time() - begin
                if best is None or took < best:
                    best, answers[rank] = took, clock.item() - (begin + took / 2)
            elif dist.get_rank() == rank:
                dist.recv(clock, 0)
                clock[0] = time.time()
                dist.send(clock, 0)
    return answers


def measure(group, device):
    """Returns the seconds of an all-reduce of each size: the median, of the slowest rank."""
    found = []
    for size in SIZES:
        tensor = torch.ones(max(1, size // 4), device=device)
        times = []
        for _ in range(TIMES + 1):
            dist.barrier()
            begin = time.perf_counter()
            dist.all_reduce(tensor, group=group)
            if device != "cpu":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        slowest = torch.tensor(sorted(times[1:])[TIMES // 2])
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        found.append(slowest.item())
    return found


def line_through(times, world_size):
    """Returns alpha in seconds and beta in seconds a byte."""
    steps, share = 2 * (world_size - 1), 2 * (world_size - 1) / world_size
    alpha = times[0] / steps
    return alpha, max(times[-1] - times[0], 1e-12) / (share * SIZES[-1])


def judge(ranks, clocks, script):
    """Returns (is it well?, a sentence) for each thing that was asked."""
    nodes = {}
    for rank, facts in enumerate(ranks):
        nodes.setdefault(facts["node"], []).append(rank)
    found = [(True, f"All {len(ranks)} ranks meet, on {len(nodes)} node"
              f"{'s' if len(nodes) > 1 else ''}.")]
    for what in ["PyTorch", "Python"] + (["script"] if script else []):
        kinds = {}
        for rank, facts in enumerate(ranks):
            kinds.setdefault(facts[what], []).append(rank)
        told = "; ".join(f"{kind} on rank {', '.join(map(str, which))}"
                         for kind, which in kinds.items())
        well = len(kinds) == 1 and "not there" not in kinds
        found.append((well, f"{what} is the same on all ranks: {next(iter(kinds))}." if well
                      else f"{what} is not the same on all ranks: {told}."))
    loopback = [rank for rank, facts in enumerate(ranks) if facts["interface"].startswith("127.")]
    if len(nodes) > 1 and loopback:
        found.append((False, f"Ranks {loopback} would speak to the other nodes from "
                      f"{ranks[loopback[0]]['interface']}: set GLOO_SOCKET_IFNAME and "
                      "NCCL_SOCKET_IFNAME."))
    else:
        interfaces = sorted({facts["interface"] for facts in ranks})
        found.append((True, f"The ranks speak from {', '.join(interfaces)}."))
    for node, which in nodes.items():
        threads = sum(ranks[rank]["threads"] for rank in which)
        cores = len(set().union(*(ranks[rank]["cores"] for rank in which)))
        fewer = ", and start fewer ranks" if len(which) > cores else ""
        advice = f": set OMP_NUM_THREADS to {max(1, cores // len(which))}{fewer}."
        found.append((threads <= cores, f"{node}: {len(which)} ranks start {threads} threads on "
                      f"{cores} cores" + ("." if threads <= cores else advice)))
        devices = ranks[which[0]]["devices"]
        if devices:
            well = len({ranks[rank]["local rank"] for rank in which}) == len(which) <= devices
            found.append((well, f"{node}: {len(which)} ranks and {devices} devices"
                          + ("." if well else ": ranks would share a device.")))
    late = ", ".join(f"rank {rank} by {clock:+.3f} s" for rank, clock in enumerate(clocks)
                     if abs(clock) > CLOCKS_AGREE)
    found.append((not late, f"Clocks differ: {late}; logs of the nodes will not fit together."
                  if late else "The clocks agree to a tenth of a second."))
    return found


def main():
    parser = argparse.ArgumentParser(
        description="Looks at the ranks, the nodes and the link of a job before it begins.")
    parser.add_argument("script", nargs="?", help="the script that is to be the same on all nodes")
    parser.add_argument("--backend", default="gloo", choices=["gloo", "nccl"],
                        help="what all-reduces are measured with (gloo)")
    parser.add_argument("--patience", type=int, default=60, metavar="S",
                        help="seconds in which all ranks must come (60)")
    options = parser.parse_args()
    group = meet(options.backend, options.patience)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    ranks = [None] * world_size
    dist.all_gather_object(ranks, facts_of_rank(options.script))
    clocks = look_at_clocks()
    device = "cpu" if options.backend == "gloo" else f"cuda:{ranks[rank]['local rank']}"
    times = measure(group, device) if world_size > 1 else []
    found = judge(ranks, clocks, options.script)
    if rank == 0:
        for well, sentence in found:
            print(f"{'well ' if well else 'WRONG'}  {sentence}")
        if times:
            alpha, beta = line_through(times, world_size)
            steps = 2 * (world_size - 1)
            print(f"\nall-reduce by {options.backend}: alpha {alpha * 1e6:.1f} us a step, beta "
                  f"{1 / beta / 1e9:.2f} GB/s; {steps} steps\n\n{'bytes':>12}{'measured us':>14}"
                  f"{'the line us':>14}{'GB/s':>8}")
            for size, seconds in zip(SIZES, times):
                told = steps * alpha + beta * steps / world_size * size
                print(f"{size:12,}{seconds * 1e6:14.1f}{told * 1e6:14.1f}"
                      f"{steps / world_size * size / seconds / 1e9:8.2f}")
    well = all(each for each, _ in found)
    dist.destroy_process_group()
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
