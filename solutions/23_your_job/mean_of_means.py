"""A tagger of sentences of many lengths. Label -100 is padding, and counts for nothing."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
words = torch.randint(0, 50, (256, 20))
tags = words % 3
lengths = torch.randint(1, 21, (256,))
tags[torch.arange(20) >= lengths[:, None]] = -100
samples = TensorDataset(words, tags)
sampler = DistributedSampler(samples)
loader = DataLoader(samples, batch_size=4, sampler=sampler)
model = DistributedDataParallel(nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

for epoch in range(2):
    sampler.set_epoch(epoch)
    for inputs, labels in loader:
        optimizer.zero_grad()
        count = (labels != -100).sum()
        dist.all_reduce(count)
        logits = model(inputs).transpose(1, 2)
        loss = F.cross_entropy(logits, labels, reduction="sum") * world_size / count
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"epoch {epoch}  loss {loss.item():.4f}")

dist.destroy_process_group()
