# symptom: slower than last week, and nothing was changed
# cause: a variable for debugging that somebody left on
# cause: another number of threads, or of cores that the job may use
# cause: another PyTorch, or a link that fell back to TCP: `NCCL_DEBUG=INFO` names it
# section: [environment](environment.md)
# decides: what a run writes into its log at its start
import os

os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"  # left over
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
names = ("TORCH_", "NCCL_", "OMP_", "CUDA_LAUNCH")
if rank == 0:
    settings = {name: value for name, value in os.environ.items() if name.startswith(names)}
    print(settings.get("TORCH_DISTRIBUTED_DEBUG"), torch.get_num_threads(), "of",
          len(os.sched_getaffinity(0)), "cores")  # decides
