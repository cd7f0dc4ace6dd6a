# symptom: "unhandled system error", "Duplicate GPU detected", "Gloo connectFullMesh failed ...
#   Connection refused", "The client socket has timed out", "The IPv6 network addresses of (host,
#   port) cannot be retrieved", or a hang in `DistributedDataParallel(model)` or the first
#   collective
# cause: node 0 has not started, or `MASTER_ADDR` does not name it: `nc -zv HOST PORT` says
#   *refused* if no process listens, and nothing if a firewall drops the packets
# cause: the ranks use an interface that does not reach the others: `NCCL_SOCKET_IFNAME`,
#   `GLOO_SOCKET_IFNAME`
# cause: the nodes have one address on a second network, such as docker0, or a firewall drops what
#   comes to MPI's ports, and `MPI_Bcast` waits: `OMPI_MCA_btl_tcp_if_include=eth0`,
#   `OMPI_MCA_btl_tcp_port_min_v4=40000`
# cause: `getent hosts $(hostname)` says 127.0.0.1 or 127.0.1.1, where no other node can reach this
#   one: put its network address into `/etc/hosts`, or set `GLOO_SOCKET_IFNAME`
# cause: `getent` says nothing: even `torchrun --standalone` needs that line in `/etc/hosts`, or
#   `--local-addr 127.0.0.1`
# cause: two ranks share a GPU: call `torch.cuda.set_device(local_rank)` before the first
#   collective, give the wrapper that device, and start no more ranks per node than it has visible
#   GPUs
# cause: NCCL lacks shared memory (in a container: `--shm-size`) or a driver: `NCCL_DEBUG=INFO`
#   names the call that failed
# section: [environment](environment.md#which-network)
# decides: Does this node have the interface? `ddp_doctor.py` asks all ranks, and times the link.
import os
import socket

import torch.distributed as dist

os.environ["GLOO_SOCKET_IFNAME"] = "ib7"  # the fault
try:
    dist.init_process_group("gloo")
except RuntimeError:
    if os.environ["RANK"] == "0":
        print("it is there:", os.environ.get("GLOO_SOCKET_IFNAME")
              in [name for _, name in socket.if_nameindex()])  # decides
