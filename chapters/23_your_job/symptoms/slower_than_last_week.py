# symptom: slower than last week, and nothing was changed
# cause: a debugging variable is still set, such as `TORCH_DISTRIBUTED_DEBUG=DETAIL` or
#   `CUDA_LAUNCH_BLOCKING=1`
# cause: the job has a different number of threads or cores
# cause: PyTorch is a different version, or a link fell back to TCP: `NCCL_DEBUG=INFO` names it
# section: [environment](environment.md)
# decides: Let each run log its settings when it starts.
import os

os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"  # left over
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 0:
    print(os.environ.get("TORCH_DISTRIBUTED_DEBUG"), torch.get_num_threads(), "of",
          len(os.sched_getaffinity(0)), "cores")  # decides
