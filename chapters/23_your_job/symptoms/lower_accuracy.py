# symptom: lower accuracy with 8 ranks than with 1
# cause: the batch is 8 times as large, and the learning rate is the old one: an eighth of the steps
# cause: the loss is a mean of means [20](20_transformer/README.md#the-mean-of-means)
# cause: BatchNorm has the statistics of a small batch
#   [18](18_sync_batch_norm/README.md#each-rank-has-a-mean-of-its-own)
# cause: all ranks draw the same augmentations and dropout masks: add the rank to the seed
#   [12](12_sampler/README.md#what-pytorch-does)
# cause: the learning rate falls 8 times as fast: accelerate steps a prepared scheduler once per
#   rank, unless it got `step_scheduler_with_optimizer=False`
# section: [11](11_data_parallel/README.md#the-learning-rate)
# decides: the batch of all ranks, and the steps of an epoch
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
