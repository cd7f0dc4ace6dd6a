# symptom: "The server socket has failed to listen ... address already in use"
# cause: two jobs on one node share a MASTER_PORT: use `torchrun --standalone`, or give each its own
#   `--master-port`
# cause: ranks of a killed job still run: `pgrep -af torchrun`
# cause: the script starts processes itself, and torchrun starts it, too
# section: [environment](environment.md#who-am-i-and-where-are-the-others)
# decides: Before the job starts (later, torchrun itself listens), does a process listen there?
import datetime
import os
import socket

import torch.distributed as dist

dist.init_process_group("gloo")  # another job, on the same port
if dist.get_rank() == 0:
    host = os.environ.get("MASTER_ADDR", "localhost")  # decides
    port = int(os.environ.get("MASTER_PORT", 29500))
    print("in use" if socket.socket().connect_ex((host, port)) == 0 else "free")  # decides
    try:
        dist.TCPStore(host, port, 1, True, timeout=datetime.timedelta(seconds=2))  # the fault
    except RuntimeError as error:
        print("address already in use" if "EADDRINUSE" in str(error) else error)
dist.barrier()
