"""PyTorch's parallelize_module and the book's two parts train alike: parallelize_test.py TEST_MESH

From the same weights, with the same sentences, 40 steps on two ranks have the same losses within
1e-4. In step 42 the input of a ReLU is 0 but for rounding, and the BLAS of a processor decides its
side: on an AMD EPYC the book and PyTorch on one rank are on one side, PyTorch on two ranks and
PyTorch in float64 on the other (28 November 2026). The ten steps that follow are within 1e-2.
PyTorch's ranks are two processes on Gloo.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["OMP_NUM_THREADS"] = "1"  # before PyTorch is loaded
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

try:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module)
except ImportError:
    print(f"SKIPPED: the PyTorch here is {torch.__version__}, which has no parallelize_module on "
          "DTensors: `./book setup pytorch` fetches another into build/.")
    sys.exit(77)

PARTS, STEPS, STEPS_BEFORE_THE_KINK = 2, 50, 40
VOCABULARY, WIDTH, HEADS, BLOCKS, FEED_FORWARD, LENGTH, SENTENCES = 64, 32, 8, 4, 128, 16, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        for name in ("query", "key", "value", "out"):
            setattr(self, name, nn.Linear(WIDTH, WIDTH, bias=False))
        self.up = nn.Linear(WIDTH, FEED_FORWARD, bias=False)
        self.down = nn.Linear(FEED_FORWARD, WIDTH, bias=False)

    def forward(self, x):
        normed = self.norm1(x)
        # As many heads as this rank's columns hold.
        q, k, v = (layer(normed).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)
                   for layer in (self.query, self.key, self.value))
        heads = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(heads.transpose(1, 2).flatten(2))
        return x + self.down(functional.relu(self.up(self.norm2(x))))


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(WIDTH)
        self.scores = nn.Linear(WIDTH, VOCABULARY, bias=False)
        turns = 10000.0 ** (-torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)
        angles = torch.arange(LENGTH)[:, None] * turns
        self.places = torch.stack((angles.sin(), angles.cos()), -1).flatten(1).float()

    def forward(self, tokens):
        x = self.embedding(tokens) + self.places
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x))


def read_weights(path):
    """The book's parameters by the names of this model, which has its blocks in a list."""
    weights = {}
    for line in pathlib.Path(path).read_text().splitlines():
        name, *values = line.replace(".part0", "").split(" ")
        if name.startswith("block"):
            name = f"blocks.{name[5:]}"
        weights[name] = torch.tensor([float(value) for value in values])
    return weights


def batch(step):
    """Sentences that count, as in mesh_training.cpp."""
    words, tokens = VOCABULARY - 1, []
    for sentence in range(step * SENTENCES, (step + 1) * SENTENCES):
        first, stride = sentence * 7 % words, 1 + sentence % 5
        tokens.append([1 + (first + t * stride) % words for t in range(LENGTH + 1)])
    return torch.tensor(tokens)


def train(rank, folder):
    dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=PARTS)
    model, losses, weights = LanguageModel(), [], read_weights(f"{folder}/weights")
    model.load_state_dict({name: weights.pop(name).view_as(value)
                           for name, value in model.state_dict().items()})
    assert not weights, f"the model has no {list(weights)}"
    columns = {f"blocks.*.{name}": ColwiseParallel() for name in ("query", "key", "value", "up")}
    rows = {f"blocks.*.{name}": RowwiseParallel() for name in ("out", "down")}
    model = parallelize_module(model, init_device_mesh("cpu", (PARTS,)), {
        **columns, **rows, "embedding": RowwiseParallel(input_layouts=Replicate()),
        "scores": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)})
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003, eps=1e-5, foreach=False)
    for step in range(STEPS):
        tokens = batch(step)
        with loss_parallel():
            loss = functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1),
                                            tokens[:, 1:].flatten())
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.full_tensor().item())
    if rank == 0:
        pathlib.Path(folder, "theirs").write_text("\n".join(map(str, losses)))
    dist.destroy_process_group()


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "MESH_WEIGHTS": f"{folder}/weights",
                       "MESH_LOSSES": f"{folder}/ours"}
        subprocess.run([program, "[.parallelize]"], env=environment, check=True)
        torch.multiprocessing.spawn(train, (folder,), nprocs=PARTS)
        ours, theirs = ([float(line) for line in pathlib.Path(folder, name).read_text().split()]
                        for name in ("ours", "theirs"))
    assert len(ours) == len(theirs) == STEPS, (len(ours), len(theirs))
    assert theirs[-1] < 0.8 * theirs[0], f"nothing was learned: {theirs}"
    for step, (our, their) in enumerate(zip(ours, theirs), 1):
        within = 1e-4 if step <= STEPS_BEFORE_THE_KINK else 1e-2
        assert abs(our - their) < within, (f"step {step}: the book has the loss {our}, PyTorch "
                                           f"{torch.__version__} {their}")
    print(f"PyTorch {torch.__version__}, parallelize_module on {PARTS} ranks: in {STEPS} steps no "
          f"loss differs by more than {max(abs(a - b) for a, b in zip(ours, theirs)):.1e}")


if __name__ == "__main__":
    main(sys.argv[1])
