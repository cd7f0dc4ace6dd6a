# symptom: `DistributedDataParallel(model)` or the first collective hangs, or ends with NCCL's
#   "unhandled system error", "Duplicate GPU detected", "Gloo connectFullMesh failed ... Connection
#   refused", "The client socket has timed out" or "The IPv6 network addresses of (host, port)
#   cannot be retrieved"
# cause: node 0 has not started, or `MASTER_ADDR` does not name it: `nc -zv HOST PORT` says
#   *refused* where nobody listens, and nothing where a firewall is between
# cause: the ranks talk by an interface that does not lead to the others: `NCCL_SOCKET_IFNAME`,
#   `GLOO_SOCKET_IFNAME`
# cause: `getent hosts $(hostname)` says 127.0.0.1 or 127.0.1.1, where no other node finds this one:
#   put its address in the network into `/etc/hosts`, or set `GLOO_SOCKET_IFNAME`
# cause: it says nothing: `torchrun --standalone` needs that line in `/etc/hosts`, too, or
#   `--local-addr 127.0.0.1`
# cause: two ranks took one GPU: `torch.cuda.set_device(local_rank)` must come before the first
#   collective, the wrapper gets that device, and a node has as many ranks as it may see GPUs
# cause: NCCL lacks shared memory (in a container: `--shm-size`) or a driver: `NCCL_DEBUG=INFO`
#   names the call that has failed
# section: [environment](environment.md#which-network)
# decides: is the interface one of this node's? `ddp_doctor.py` asks all ranks, and times the link
import os
import socket

import torch.distributed as dist

os.environ["GLOO_SOCKET_IFNAME"] = "ib7"  # the fault
try:
    dist.init_process_group("gloo")
except RuntimeError:
    if os.environ["RANK"] == "0":
        print("it is there:", os.environ["GLOO_SOCKET_IFNAME"]
              in [name for _, name in socket.if_nameindex()])  # decides
