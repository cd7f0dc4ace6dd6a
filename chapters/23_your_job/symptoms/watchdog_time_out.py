# symptom: "Watchdog caught collective operation timeout" (NCCL)
# cause: a rank never came
# cause: a rank called a different collective, or passed a different size
# cause: all ranks came, and the link is broken or slow
# section: [23](23_your_job/README.md#a-hang)
# decides: Write each rank's recorded calls to a file, then let `./book read` compare them.
import os
import pathlib
import sys
import tempfile
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
for _ in range(3):
    dist.all_reduce(torch.ones(4))
if rank == 0:
    dist.all_reduce(torch.ones(4), async_op=True)  # the fault: rank 1 does not come
time.sleep(1)
folder = pathlib.Path(tempfile.gettempdir()) / f"dumps-{os.environ['MASTER_PORT']}"
folder.mkdir(exist_ok=True)
os.chdir(folder)
pathlib.Path(f"dump_rank_{rank}").write_bytes(
    torch._C._distributed_c10d._dump_fr_trace())  # decides
time.sleep(1)
if rank == 0:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
    import read_dumps
    print(read_dumps.report(read_dumps.load(sorted(folder.iterdir())))[-1])
