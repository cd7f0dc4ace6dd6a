"""Ranks of a PyTorch job, forked from this process, so that PyTorch is loaded once (seconds)."""
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
import warnings

TIME_LIMIT = 90  # seconds, of all ranks


def load():
    """Loads, before the first fork, what every rank would. One thread: none is lost by forking."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    import torch
    import torch._dynamo
    import torch.distributed.fsdp  # noqa: F401
    torch.set_num_threads(1)


def run(function, world_size=2, patience=TIME_LIMIT):
    """Calls function(rank) in a process for each rank, and returns what they return, as JSON has
    it. A rank that does not end in time is killed, and None stands in its place."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    sys.stdout.flush()
    sys.stderr.flush()
    children = [fork(function, rank, world_size, port) for rank in range(world_size)]
    end = time.monotonic() + patience
    return [collect(process, pipe, end) for process, pipe in children]


def fork(function, rank, world_size, port):
    from_rank, to_parent = os.pipe()
    process = os.fork()
    if process != 0:
        os.close(to_parent)
        return process, from_rank
    os.close(from_rank)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no rank outlives its parent
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world_size),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # Gloo says there whom it is connected to
    answer = b""
    try:
        answer = json.dumps(function(rank)).encode()
    finally:
        while answer:
            answer = answer[os.write(to_parent, answer):]
        os._exit(0)


def collect(process, pipe, end):
    answer = b""
    while select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
        part = os.read(pipe, 1 << 16)
        if not part:
            break
        answer += part
    else:
        answer = b""
        os.kill(process, signal.SIGKILL)
    os.close(pipe)
    os.waitpid(process, 0)
    return json.loads(answer) if answer else None
