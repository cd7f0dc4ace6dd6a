"""Runs a script as it is, over the book's collectives, whichever backend its groups name.

    torchrun --nproc-per-node 2 -m ddp_by_hand train.py --your options
"""
import functools
import pathlib
import runpy
import sys

import torch.distributed as dist

import ddp_by_hand


def take_all_groups():
    """Gives this backend to every group, in the place of the one that the script names."""
    for name in ("init_process_group", "new_group"):
        usual = getattr(dist, name)

        @functools.wraps(usual)
        def replaced(*arguments, usual=usual, name=name, **options):
            if name == "init_process_group":
                arguments = arguments[1:]
            return usual(*arguments, **{**options, "backend": ddp_by_hand.NAME})
        setattr(dist, name, replaced)


def main():
    if len(sys.argv) < 2:
        sys.exit("ddp_by_hand takes a script, and the script's own arguments after it: "
                 "torchrun -m ddp_by_hand train.py")
    take_all_groups()
    script = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path[0] = str(pathlib.Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


main()
