# symptom: all ranks print "rank 0", and the epoch has as many steps as before: every GPU does the
#   whole job
# cause: the job was started without torchrun, or by srun, whose variables PyTorch does not read,
#   and the script or a library falls back to rank 0 of 1. PyTorch itself stops: "environment
#   variable RANK expected, but not set"
# cause: there is no DistributedSampler, so every rank trains on all samples
#   [12](12_sampler/README.md#five-mistakes-without-a-message)
# cause: nothing is wrong: the ranks share the samples, but each prints its own lines. Print on rank
#   0 only
# section: [05](05_ranks/README.md#who-is-who)
# decides: Who does each process think it is?
import torch
import torch.distributed as dist

# The fault: `os.environ.get("RANK", 0)` and `("WORLD_SIZE", 1)` under `python train.py`.
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
sampler = torch.utils.data.DistributedSampler(range(64))
loader = torch.utils.data.DataLoader(range(64), batch_size=8, sampler=sampler)
print(f"{dist.get_rank()} of {dist.get_world_size()}, {len(loader)} steps an epoch")  # decides
