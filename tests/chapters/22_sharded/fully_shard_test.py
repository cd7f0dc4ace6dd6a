"""PyTorch's fully_shard and the book's stage 3 train alike: fully_shard_test.py TEST_SHARDED

From the same weights, with the same sentences, 50 steps on two ranks have the same losses within
1e-4. PyTorch's ranks are two processes on Gloo. The model is that of the reference run
(tests/golden/transformer_reference.py), a unit for each of its layers.
"""
import math
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

try:
    from torch.distributed.fsdp import fully_shard
except ImportError:
    print(f"SKIPPED: the PyTorch here is {torch.__version__}, which has no fully_shard: "
          "`./book setup pytorch` fetches another into build/.")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "golden"))
from transformer_reference import BEGIN, END, PAD, Reference, read, rows

RANKS, STEPS, WITHIN = 2, 50, 1e-4


def sharded(plan, weights):
    model = Reference(plan, weights)
    for layer in [*model.transformer.encoder.layers, *model.transformer.decoder.layers]:
        fully_shard(layer)
    return fully_shard(model)


def train(rank, folder):
    """Writes the losses of all steps, the mean over the tokens of both ranks."""
    dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=RANKS)
    found = read(f"{folder}/input.txt")
    plan, losses, model = found.plan, [], sharded(found.plan, found.weights)
    optimizer = torch.optim.Adam(model.parameters(), lr=plan["learning_rate"])
    for step, batch in enumerate(found.epochs[0], 1):
        rising, falling = step / plan["warm_up"], math.sqrt(plan["warm_up"] / step)
        optimizer.param_groups[0]["lr"] = plan["learning_rate"] * min(rising, falling)
        mine = [found.pairs[i] for i in batch[rank::RANKS]]
        scores = model(rows([source + [END] for source, _ in mine]),
                       rows([[BEGIN] + target for _, target in mine]))
        wanted = rows([target + [END] for _, target in mine])
        # fully_shard takes the mean over the ranks, and the loss is one over all ranks' tokens.
        tokens = sum(len(found.pairs[i][1]) + 1 for i in batch)
        loss = nn.functional.cross_entropy(
            scores.flatten(0, 1), wanted.flatten(), ignore_index=PAD, reduction="sum",
            label_smoothing=plan["smoothing"]) / (tokens / RANKS)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), plan["clip"])
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / RANKS)
    if rank == 0:
        pathlib.Path(folder, "theirs").write_text("\n".join(map(str, losses)))
    dist.destroy_process_group()


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "REFERENCE_INPUT": f"{folder}/input.txt",
                       "SHARDED_LOSSES": f"{folder}/ours"}
        subprocess.run([program, "[.fully_shard]"], env=environment, check=True)
        torch.multiprocessing.spawn(train, (folder,), nprocs=RANKS)
        ours, theirs = ([float(line) for line in pathlib.Path(folder, name).read_text().split()]
                        for name in ("ours", "theirs"))
    assert len(ours) == len(theirs) == STEPS, (len(ours), len(theirs))
    assert theirs[-1] < 0.8 * theirs[0], f"nothing was learned: {theirs}"
    for step, (our, their) in enumerate(zip(ours, theirs), 1):
        assert abs(our - their) < WITHIN, (f"step {step}: stage 3 has the loss {our}, fully_shard "
                                           f"of PyTorch {torch.__version__} {their}")
    print(f"PyTorch {torch.__version__}, fully_shard on {RANKS} ranks: in {STEPS} steps no loss "
          f"differs by more than {max(abs(a - b) for a, b in zip(ours, theirs)):.1e}")


if __name__ == "__main__":
    main(sys.argv[1])
