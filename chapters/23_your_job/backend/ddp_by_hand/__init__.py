"""The book's collectives as a backend of PyTorch, for CPU tensors of ranks on one node.

    torch.distributed.init_process_group("ddp_by_hand")

Where this package is installed, a script needs no more than that: `import torch` loads what is registered under the entry point
torch.backends (../pyproject.toml). Where it is only on Python's path, `import ddp_by_hand` registers the backend. __main__.py puts a script
that names another backend over this one.
"""
import atexit
import sys
import weakref


def autoload():
    """Is what `import torch` calls. There is nothing left to do: to call it, PyTorch has imported this module. It stands above the import of
    PyTorch, since a script that imports this module first gets here while that import is under way."""


import torch.distributed as dist  # noqa: E402

NAME = "ddp_by_hand"
groups = weakref.WeakSet()


def create(store, rank, size, timeout):
    """Makes the backend of a process group: what init_process_group calls. Only here the book itself is loaded, since most programs that
    import PyTorch never ask for it."""
    from . import _ddp_by_hand
    group = _ddp_by_hand.create(store, rank, size, timeout)
    groups.add(group)
    return group


def algorithm():
    """Returns, in words, whose all-reduce sums floats here."""
    from . import _ddp_by_hand
    return "the reader's all-reduce" if _ddp_by_hand.sums_by_the_readers() else "the book's all-reduce"


def leave():
    """Ends what the script has not ended by destroy_process_group, while PyTorch is still there. After an exception the other ranks are
    told at once: they may be waiting for this one."""
    error = getattr(sys, "last_value", None)
    for group in list(groups):
        if error is not None:
            from . import _ddp_by_hand
            _ddp_by_hand.fail(group, f"its program has ended by {type(error).__name__}: {error}")
        group.shutdown()


if NAME not in dist.Backend.backend_list:
    dist.Backend.register_backend(NAME, create, devices=["cpu"])
    atexit.register(leave)
