"""The book's collectives as a backend of PyTorch, for CPU tensors of ranks on one node.

    torch.distributed.init_process_group("ddp_by_hand")

Where this package is installed, a script needs no more than that: `import torch` loads what is
registered under the entry point torch.backends (../pyproject.toml). Where it is only on Python's
path, `import ddp_by_hand` registers the backend. __main__.py puts a script that names another
backend over this one.
"""
import atexit
import sys
import weakref


def autoload():
    """Is what `import torch` calls; to call it, PyTorch has imported this module: nothing is left
    to do. It stands above that import, as a script may import this module first."""


import torch.distributed as dist  # noqa: E402

NAME = "ddp_by_hand"
groups = weakref.WeakSet()


def create(store, rank, size, timeout):
    """Makes the backend of a process group. Only here the book is loaded: few programs need it."""
    from . import _ddp_by_hand
    group = _ddp_by_hand.create(store, rank, size, timeout)
    groups.add(group)
    return group


def algorithm():
    """Returns, in words, whose all-reduce sums floats here."""
    from . import _ddp_by_hand
    return f"the {'reader' if _ddp_by_hand.sums_by_the_readers() else 'book'}'s all-reduce"


def leave():
    """Ends, while PyTorch is still there, what the script has not ended. After an exception the
    other ranks are told at once: they may be waiting for this one."""
    error = getattr(sys, "last_value", None)
    for group in list(groups):
        if error is not None:
            from . import _ddp_by_hand
            _ddp_by_hand.fail(group, f"its program has ended by {type(error).__name__}: {error}")
        group.shutdown()


if NAME not in dist.Backend.backend_list:
    dist.Backend.register_backend(NAME, create, devices=["cpu"])
    atexit.register(leave)
