#!/usr/bin/env python3
"""A job that trains and is wrong, on two ranks with Gloo, and what names its fault: the run of this
chapter."""
import argparse
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


def train(rank, is_wrong, steps):
    """Trains as one rank, and returns its losses and what the guard has found."""
    import torch
    import torch.distributed as dist
    from torch import nn

    import ddp_guard
    guard = ddp_guard.watch(every=10)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(1 + rank)
    losses = []
    for _ in range(steps):
        inputs = torch.randn(64, 8)
        labels = (inputs[:, 0] * inputs[:, 1] > 0).long()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy((model.module if is_wrong else model)(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    dist.destroy_process_group()
    return {"losses": losses, "findings": [str(finding) for finding in guard.findings]}


def show_traces():
    import read_traces
    traces = read_traces.load(sorted((HERE / "traces").glob("*.json.gz")))
    print("\n".join(read_traces.report(traces)))


def main():
    parser = argparse.ArgumentParser(prog="your_job", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer steps")
    options = parser.parse_args()
    if lack := os.environ.get("DDP_LACK"):
        print(f"This chapter runs PyTorch, and {lack}: `./book setup pytorch` fetches one "
              "into build/. What needs none: the text,\n"
              "chapters/symptoms.md, the fourteen programs in exercises/23_your_job, each of which "
              "has one mistake to find by reading,\n"
              "`./book predict`, and `./book read`. A PyTorch elsewhere has recorded three ranks, "
              "of which one sleeps before each backward:\n")
        show_traces()
        return
    import torch

    from support import ranks
    ranks.load()
    steps = 40 if options.quick else 200
    print(f"PyTorch {torch.__version__}, two ranks, Gloo, {steps} steps\n")
    for title, is_wrong in (("loss = cross_entropy(model(inputs), labels)", False),
                            ("loss = cross_entropy(model.module(inputs), labels)", True)):
        answers = ranks.run(lambda rank, is_wrong=is_wrong: train(rank, is_wrong, steps))
        if None in answers:
            sys.exit(f"A rank has not ended within {ranks.TIME_LIMIT} s: is this machine busy? "
                     "Try again.")
        losses = answers[0]["losses"]
        first, last = (sum(part) / len(part) for part in (losses[:10], losses[-10:]))
        print(f"{title}\n    rank 0's loss: {first:.3f} in the first ten steps, {last:.3f} in the "
              "last ten")
        findings = answers[0]["findings"] or ["the guard has found nothing"]
        print("\n".join(f"    {finding}" for finding in findings) + "\n")
    print("Both losses fall. Of the two, one is of a network that learns from half of the samples, "
          "twice.")


if __name__ == "__main__":
    main()
