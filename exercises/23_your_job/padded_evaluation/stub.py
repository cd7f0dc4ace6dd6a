"""A classifier that is tested on all ranks, each with its part of the test samples."""
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

for epoch in range(4):
    sampler.set_epoch(epoch)
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"epoch {epoch}  loss {loss.item():.4f}")

test_inputs = torch.randn(333, 8)
test_labels = (test_inputs[:, 0] * test_inputs[:, 1] > 0).long()
test_samples = TensorDataset(test_inputs, test_labels)
test_sampler = DistributedSampler(test_samples, shuffle=False)
test_loader = DataLoader(test_samples, batch_size=32, sampler=test_sampler)
model.eval()
right = torch.zeros(2)
with torch.no_grad():
    for inputs, labels in test_loader:
        right += torch.tensor([(model(inputs).argmax(1) == labels).sum(), len(labels)])
dist.all_reduce(right)
accuracy = (right[0] / right[1]).item()
if rank == 0:
    print(f"test accuracy {accuracy:.4f} of {int(right[1])} samples")

dist.destroy_process_group()
