#!/usr/bin/env python3
"""The twin of chapter 18's training, in PyTorch: the same weights, the same sentences, no dropout.

    TWIN_INPUT=input.txt build/cpu/bin/test_translation "[.twin_input]"
    PYTHON tests/golden/transformer_twin.py input.txt >tests/golden/twin/transformer_losses.txt

The test `translation` compares the book's losses with these. PYTHON is any interpreter with PyTorch, 1.13 or newer.
"""
import math
import sys

import torch
from torch import nn

torch.set_num_threads(1)
PAD = 0


def read(path):
    """The plan, the weights by name and the batches that the test has written."""
    plan, weights, batches = None, {}, []
    with open(path) as file:
        for line in file:
            kind, *words = line.split()
            if kind == "plan":
                names = "vocabulary width heads layers feed_forward learning_rate warm_up smoothing clip".split()
                plan = {name: float(word) if "." in word or "e" in word else int(word) for name, word in zip(names, words)}
            elif kind == "parameter":
                weights[words[0]] = torch.tensor([float(word) for word in words[1:]])
            else:
                batches.append(torch.tensor([int(word) for word in words[1:]]).view(3, int(words[0]), -1))
    return plan, weights, batches


def state_of(weights):
    """Our weights by the names of nn.Transformer, whose attention has query, key and value in one matrix."""
    state, stacked = {}, {}
    for name, value in weights.items():
        before, _, part = name.rpartition(".")
        layer, _, matrix = before.rpartition(".")
        if matrix in ("query", "key", "value"):
            stacked.setdefault(f"{layer}.in_proj_{part}", {})[matrix] = value
        elif name != "embedding.weight":
            state[name] = value
    for name, parts in stacked.items():
        state[name] = torch.cat([parts["query"], parts["key"], parts["value"]])
    return state


class Twin(nn.Module):
    def __init__(self, plan, weights):
        super().__init__()
        self.width = plan["width"]
        self.embedding = nn.Embedding(plan["vocabulary"], self.width)
        self.transformer = nn.Transformer(self.width, plan["heads"], plan["layers"], plan["layers"], plan["feed_forward"],
                                          dropout=0.0, batch_first=True, norm_first=True)
        with torch.no_grad():
            self.embedding.weight.copy_(weights["embedding.weight"].view_as(self.embedding.weight))
            state = state_of(weights)
            shapes = self.transformer.state_dict()
            self.transformer.load_state_dict({name: state[name].view_as(shapes[name]) for name in shapes})
        place = torch.arange(256.0)[:, None]
        speed = torch.exp(torch.arange(0, self.width, 2) * (-math.log(10000.0) / self.width))
        self.positions = torch.stack([torch.sin(place * speed), torch.cos(place * speed)], dim=2).view(256, self.width)

    def embed(self, tokens):
        return self.embedding(tokens) * math.sqrt(self.width) + self.positions[:tokens.shape[1]]

    def forward(self, source, target):
        later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        is_padding = source == PAD
        x = self.transformer(self.embed(source), self.embed(target), tgt_mask=later, src_key_padding_mask=is_padding,
                             memory_key_padding_mask=is_padding)
        return x @ self.embedding.weight.T


def main():
    if len(sys.argv) != 2:
        sys.exit("transformer_twin.py takes the file that the test has written.")
    plan, weights, batches = read(sys.argv[1])
    model = Twin(plan, weights)
    optimizer = torch.optim.Adam(model.parameters(), lr=plan["learning_rate"])
    print("# Losses of the first steps, by tests/golden/transformer_twin.py")
    for step, (source, target, wanted) in enumerate(batches, 1):
        warm_up = plan["warm_up"]
        for group in optimizer.param_groups:
            group["lr"] = plan["learning_rate"] * min(step / warm_up, math.sqrt(warm_up / step))
        scores = model(source, target)
        loss = nn.functional.cross_entropy(scores.view(-1, plan["vocabulary"]), wanted.reshape(-1), ignore_index=PAD,
                                           label_smoothing=plan["smoothing"])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), plan["clip"])
        optimizer.step()
        print(f"{loss.item():.7f}")


if __name__ == "__main__":
    main()
