# symptom: lower accuracy with 8 ranks than with 1, or a validation too good to be true
# cause: the batch is 8 times as large and the learning rate is unchanged, so an epoch has an eighth
#   of the steps
# cause: the loss is a mean of means [20](20_transformer/README.md#the-mean-of-means)
# cause: BatchNorm sees only its own rank's small batch
#   [18](18_sync_batch_norm/README.md#each-rank-has-a-mean-of-its-own)
# cause: all ranks draw the same augmentations and dropout masks: add the rank to the seed
#   [12](12_sampler/README.md#workers)
# cause: the learning rate decays 8 times as fast: accelerate steps a prepared scheduler once per
#   rank, unless it was given `step_scheduler_with_optimizer=False`
# cause: each rank draws its own train/validation split, so it validates on samples that other ranks
#   train on: give `random_split` a generator with one seed for all
# section: [11](11_data_parallel/README.md#the-learning-rate)
# decides: How large is the global batch, and how many steps does an epoch have?
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
samples = TensorDataset(torch.randn(1024, 4))
loader = DataLoader(samples, batch_size=32, sampler=DistributedSampler(samples))
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if rank == 0:
    print(f"batch {loader.batch_size * dist.get_world_size()}, {len(loader)} steps an epoch, "
          f"rate {optimizer.param_groups[0]['lr']}")  # decides
