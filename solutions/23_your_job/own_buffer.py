"""A classifier that scales its inputs by what it has seen."""
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


class Scaled(nn.Module):
    """Divides the inputs by the largest value that it has seen so far, which is a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("largest", torch.ones(()))
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, inputs):
        if self.training:
            self.largest.copy_(torch.maximum(self.largest, inputs.abs().max()))
            dist.all_reduce(self.largest, op=dist.ReduceOp.MAX)
        return self.layers(inputs / self.largest)


model = DistributedDataParallel(Scaled(), broadcast_buffers=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

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
