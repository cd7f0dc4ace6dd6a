# symptom: "Connection reset by peer", "ncclRemoteError" or "RendezvousConnectionError": a node is
#   gone
# cause: it lost its power or its network. Nothing closes its connections, so the other ranks
#   wait until their collectives time out. Slurm says NODE_FAIL, and starts a job with `--requeue`
#   again
# cause: it was the node of `--rdzv-endpoint`, which has the store: all other agents end with
#   RendezvousConnectionError, whatever `--max-restarts` says
# cause: it was a different node: the agents start their ranks again, without it if `--nnodes` is
#   a range such as 1:4. With a fixed number they wait ten minutes for a new node
# section: [19](19_checkpoint_failover/README.md#what-pytorch-does)
# decides: Has torchrun started the job again, and with how many ranks? Let each rank say so as it
#   begins.
import contextlib
import io
import multiprocessing
import os
import signal
import socket

import torch.distributed as dist
from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def train(dies):
    dist.init_process_group("gloo")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        print(f"restart {os.environ['TORCHELASTIC_RESTART_COUNT']}: "  # decides
              f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}")  # decides
    if dies:
        for process in (os.getppid(), os.getpid()):  # the fault: agent and rank of a node
            os.kill(process, signal.SIGKILL)
    if dist.get_world_size() == 2:
        dist.barrier()
    return said.getvalue()


def run_node(port, dies):
    settings = {"is_host": not dies, "last_call_timeout": 5}
    config = LaunchConfig(1, 2, 1, rdzv_backend="c10d", rdzv_endpoint=f"localhost:{port}",
                          run_id="job", rdzv_configs=settings, max_restarts=1,
                          start_method="fork")
    return elastic_launch(config, train)(dies)[0]


if os.environ["RANK"] == "0":
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    other = multiprocessing.get_context("fork").Process(target=run_node, args=(port, True))
    other.start()
    print(run_node(port, False))
    other.join()
