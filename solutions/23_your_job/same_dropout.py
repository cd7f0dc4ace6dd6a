"""A classifier with dropout."""
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
model = DistributedDataParallel(nn.Sequential(
    nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
torch.manual_seed(1 + rank)

for epoch in range(4):
    sampler.set_epoch(epoch)
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"epoch {epoch}  loss {loss.item():.4f}")

dist.destroy_process_group()
