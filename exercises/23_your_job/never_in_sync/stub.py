"""A classifier whose steps are of four micro-batches, and which communicates once a step."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
samples = TensorDataset(x, y)
sampler = DistributedSampler(samples)
loader = DataLoader(samples, batch_size=32, sampler=sampler)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

micro_batches = 4
for epoch in range(4):
    sampler.set_epoch(epoch)
    for index, (inputs, labels) in enumerate(loader):
        is_last = index % micro_batches == micro_batches - 1
        with model.no_sync():
            loss = F.cross_entropy(model(inputs), labels) / micro_batches
            loss.backward()
        if is_last:
            optimizer.step()
            optimizer.zero_grad()
    if rank == 0:
        print(f"epoch {epoch}  loss {loss.item() * micro_batches:.4f}")

dist.destroy_process_group()
