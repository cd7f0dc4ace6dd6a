"""The book's collectives as a backend of PyTorch, for CPU tensors of ranks on one node.

    import ddp_by_hand                                          # registers it
    torch.distributed.init_process_group("ddp_by_hand")

Or a script stays as it is, and every group that it makes uses this backend, whichever it names:

    torchrun --nproc-per-node 2 -m ddp_by_hand train.py --your options
"""
import atexit
import functools
import pathlib
import runpy
import sys
import weakref

import torch.distributed as dist

import _ddp_by_hand

NAME = "ddp_by_hand"
groups = weakref.WeakSet()


def create(store, rank, size, timeout):
    """Makes the backend of a process group: what init_process_group calls."""
    group = _ddp_by_hand.create(store, rank, size, timeout)
    groups.add(group)
    return group


def algorithm():
    """Returns, in words, whose all-reduce sums floats here."""
    return "the reader's all-reduce" if _ddp_by_hand.sums_by_the_readers() else "the book's all-reduce"


def leave():
    """Ends what the script has not ended by destroy_process_group, while PyTorch is still there. After an exception the other ranks are
    told at once: they may be waiting for this one."""
    error = getattr(sys, "last_value", None)
    for group in list(groups):
        if error is not None:
            _ddp_by_hand.fail(group, f"its program has ended by {type(error).__name__}: {error}")
        group.shutdown()


def take_all_groups():
    """Gives this backend to every group, in the place of the one that the script names."""
    for name in ("init_process_group", "new_group"):
        usual = getattr(dist, name)

        @functools.wraps(usual)
        def replaced(*arguments, usual=usual, name=name, **options):
            if name == "init_process_group":
                arguments = arguments[1:]
            return usual(*arguments, **{**options, "backend": NAME})
        setattr(dist, name, replaced)


def main():
    if len(sys.argv) < 2:
        sys.exit("ddp_by_hand takes a script, and the script's own arguments after it: torchrun -m ddp_by_hand train.py")
    take_all_groups()
    script = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path[0] = str(pathlib.Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


if NAME not in dist.Backend.backend_list:
    dist.Backend.register_backend(NAME, create, devices=["cpu"])
    atexit.register(leave)

if __name__ == "__main__":
    main()
