#!/usr/bin/env python3
"""How fast PyTorch trains: what the book's training is measured against.

    python3 tests/golden/pytorch_train.py --model mlp
    python3 tests/golden/pytorch_train.py --model mlp --ranks 2    with DDP on Gloo
    python3 tests/golden/pytorch_train.py --model deep --ranks 2 --wrapper fully_shard    with FSDP2
    python3 tests/golden/pytorch_train.py --device cuda            eager on one GPU, without TF32

    mlp   784-1024-1024-10 with ReLU
    cnn   1 x 28 x 28: Conv 32 3x3 padding 1, BatchNorm, ReLU, MaxPool 2,
          Conv 64 3x3 padding 1, BatchNorm, ReLU, MaxPool 2, Linear 3136-10
    deep  eight linear layers, 512 wide, with ReLU between them
    transformer128, transformer256
          nn.Transformer of that width, 2 + 2 layers, 4 heads, pre-norm, dropout 0.1, an embedding
          of 4,000 tokens for source, target and output; sentences of 10 to 14 tokens in rows of 14

Float32, cross entropy, SGD with lr 0.05 and momentum 0.9, one thread a rank, data in memory. (The
transformers: label smoothing 0.1, padding ignored, Adam with lr 0.0001.) After a warm-up it prints
PyTorch's version, then the median of five rounds of --steps steps as CSV:

    # PyTorch 2.15.0, one thread a rank
    model,ranks,batch_per_rank,samples_per_s,step_ms
    mlp,1,64,4192.3,15.266

With --rounds another program decides when a round runs, so that two things can be measured in
turn: after the version line each line `run STEPS` on stdin is answered by one line, the seconds
that these steps took. The end of stdin ends the program.
"""
import argparse
import datetime
import os
import statistics
import sys
import time

# Before PyTorch loads: its set_num_threads does not reach OpenBLAS, which would take every core.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
try:
    import torch
except ModuleNotFoundError:
    sys.exit(f"PyTorch is missing for {sys.executable}: `./book setup pytorch` fetches one.")
import torch.distributed as dist
from torch import nn

WARM_UP_STEPS = 20
ROUNDS = 5
BATCHES_IN_MEMORY = 16  # a rank walks round these
RENDEZVOUS_LIMIT = datetime.timedelta(seconds=60)
IDLE_LIMIT = datetime.timedelta(hours=1)  # how long the ranks may wait for the next round
VOCABULARY, LENGTH, PADDING = 4000, 14, 0  # of the transformers' sentences
DEEP_WIDTH = 512


class Transformer(nn.Module):
    """nn.Transformer between embeddings, as the tutorials have it."""

    def __init__(self, width):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.dropout = nn.Dropout(0.1)
        self.transformer = nn.Transformer(width, 4, 2, 2, 4 * width, 0.1, batch_first=True,
                                          norm_first=True)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        angle = torch.arange(LENGTH)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)
        # Constants: DistributedDataParallel would broadcast buffers before every forward.
        self.positions = torch.stack([angle.sin(), angle.cos()], dim=2).reshape(LENGTH, width)
        self.causal = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
        self.scale = width ** 0.5

    def embed(self, tokens):
        return self.dropout(self.embedding(tokens) * self.scale + self.positions)

    def forward(self, tokens):
        source, target = tokens[:, 0], tokens[:, 1]
        padding = source == PADDING
        y = self.transformer(
            self.embed(source), self.embed(target), tgt_mask=self.causal,
            src_key_padding_mask=padding, memory_key_padding_mask=padding,
            tgt_key_padding_mask=target == PADDING)
        return (y @ self.embedding.weight.T).flatten(0, 1)


def make_sentences(batch):
    """[batch, 2, LENGTH] and, for every row of logits, the token to come."""
    lengths = torch.arange(batch) % 5 + LENGTH - 4
    inside = torch.arange(LENGTH) < lengths[:, None]
    tokens = torch.randint(4, VOCABULARY, (batch, 2, LENGTH)) * inside[:, None]
    return tokens, (torch.randint(4, VOCABULARY, (batch, LENGTH)) * inside).flatten()


def make_model(name):
    if name.startswith("transformer"):
        return Transformer(int(name.removeprefix("transformer")))
    if name == "deep":
        layers = [nn.Linear(DEEP_WIDTH, DEEP_WIDTH) if i % 2 == 0 else nn.ReLU() for i in range(15)]
        return nn.Sequential(*layers)
    if name == "mlp":
        return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                             nn.Linear(1024, 10))
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(3136, 10))


def wrapped(model, wrapper):
    if wrapper == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    from torch.distributed.fsdp import fully_shard  # no PyTorch before 2.6 has it
    layers = ((nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
              if isinstance(model, Transformer) else (nn.Linear, nn.Conv2d))
    for module in model.modules():
        if isinstance(module, layers):
            fully_shard(module)
    return fully_shard(model)


class Training:
    """One rank's model, optimizer and data."""

    def __init__(self, options, rank):
        torch.set_num_threads(1)
        torch.manual_seed(1 + rank)
        self.device = options.device
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        self.is_transformer = options.model.startswith("transformer")
        if self.is_transformer:
            self.batches = [make_sentences(options.batch) for _ in range(BATCHES_IN_MEMORY)]
            self.loss = nn.CrossEntropyLoss(ignore_index=PADDING, label_smoothing=0.1)
        else:
            shape, classes = {"mlp": ((784,), 10), "cnn": ((1, 28, 28), 10),
                              "deep": ((DEEP_WIDTH,), DEEP_WIDTH)}[options.model]
            self.batches = [(torch.rand(options.batch, *shape),
                             torch.randint(classes, (options.batch,)))
                            for _ in range(BATCHES_IN_MEMORY)]
            self.loss = nn.CrossEntropyLoss()
        self.batches = [tuple(part.to(self.device) for part in batch) for batch in self.batches]
        self.model = make_model(options.model).to(self.device)
        if options.ranks > 1:
            self.model = wrapped(self.model, options.wrapper)
        parameters = self.model.parameters()
        self.optimizer = (torch.optim.Adam(parameters, lr=1e-4) if self.is_transformer else
                          torch.optim.SGD(parameters, lr=0.05, momentum=0.9))
        self.ranks = options.ranks
        self.step = 0
        self.graph = self.capture() if options.graph else None

    def train(self, samples, labels):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.model(samples), labels).backward()
        self.optimizer.step()

    def capture(self):
        """A step as one launch, of the batch that has been copied into self.slot."""
        self.slot = tuple(part.clone() for part in self.batches[0])
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):  # allocates what may not be allocated in a capture
                self.train(*self.slot)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            self.train(*self.slot)
        return graph

    def replay(self, samples, labels):
        for slot, part in zip(self.slot, (samples, labels)):
            slot.copy_(part)
        self.graph.replay()

    def run(self, steps):
        """Trains; returns the seconds from when all ranks started until all were ready."""
        self.barrier()
        start = time.perf_counter()
        for _ in range(steps):
            batch = self.batches[self.step % BATCHES_IN_MEMORY]
            (self.replay if self.graph else self.train)(*batch)
            self.step += 1
        if self.device == "cuda":
            torch.cuda.synchronize()  # steps are only enqueued until then
        self.barrier()
        return time.perf_counter() - start

    def barrier(self):
        if self.ranks > 1:
            dist.barrier()


def announce(steps):
    """Rank 0 tells the others how many steps the next round has; 0 ends them."""
    if dist.is_initialized():
        dist.broadcast(torch.tensor(steps), src=0)


def join(store, rank, ranks):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all ranks are on this host
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=IDLE_LIMIT)


def other_rank(rank, port, options):
    store = dist.TCPStore("127.0.0.1", port, options.ranks, False, RENDEZVOUS_LIMIT)
    join(store, rank, options.ranks)
    training = Training(options, rank)
    steps = torch.tensor(0)
    while True:
        dist.broadcast(steps, src=0)
        if steps == 0:
            return
        training.run(int(steps))


def start_other_ranks(options):
    """This process is rank 0. Port 0: the store takes a free one itself, so no other can."""
    store = dist.TCPStore("127.0.0.1", 0, options.ranks, True, RENDEZVOUS_LIMIT,
                          wait_for_workers=False)
    processes = torch.multiprocessing.get_context("spawn")
    for rank in range(1, options.ranks):
        processes.Process(target=other_rank, args=(rank, store.port, options), daemon=True).start()
    join(store, 0, options.ranks)


def serve_rounds(run):
    for line in sys.stdin:
        words = line.split()
        if len(words) != 2 or words[0] != "run" or not words[1].isdecimal() or int(words[1]) == 0:
            sys.exit(f"A line must be 'run STEPS' with at least one step, not '{line.strip()}'.")
        print(f"{run(int(words[1])):.6f}", flush=True)


def report(options, run):
    seconds = statistics.median(run(options.steps) for _ in range(ROUNDS)) / options.steps
    samples = options.ranks * options.batch
    print("model,ranks,batch_per_rank,samples_per_s,step_ms")
    print(f"{options.model},{options.ranks},{options.batch},"
          f"{samples / seconds:.1f},{seconds * 1e3:.3f}")


def positive(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


def main():
    parser = argparse.ArgumentParser(
        description="How fast PyTorch trains on this CPU, or on one GPU.")
    parser.add_argument("--model", default="mlp",
                        choices=("mlp", "cnn", "deep", "transformer128", "transformer256"))
    parser.add_argument("--batch", type=positive, default=64,
                        help="samples a rank and step (default 64)")
    parser.add_argument("--ranks", type=positive, default=1,
                        help="processes on Gloo (default 1: nothing is wrapped)")
    parser.add_argument("--wrapper", choices=("ddp", "fully_shard"), default="ddp",
                        help="what several ranks have around the model")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu",
                        help="where it trains (default cpu)")
    parser.add_argument("--graph", action="store_true",
                        help="with --device cuda: make one launch of a step, a CUDA graph")
    parser.add_argument("--steps", type=positive, default=50, help="steps of a round (default 50)")
    parser.add_argument("--rounds", action="store_true",
                        help="run a round for each line `run STEPS` of stdin")
    options = parser.parse_args()
    if options.device == "cuda" and options.ranks > 1:
        parser.error("one GPU is one rank's: take --ranks 1 with --device cuda")
    if options.device == "cuda" and options.model.startswith("transformer"):
        parser.error("the transformers' constants stay on the CPU: take the mlp or the cnn with "
                     "--device cuda")
    if options.graph and options.device != "cuda":
        parser.error("only a GPU has CUDA graphs: take --device cuda with --graph")
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit(f"PyTorch {torch.__version__} sees no GPU: take --device cpu.")
    if options.ranks > 1:
        start_other_ranks(options)
    training = Training(options, rank=0)

    def run(steps):
        announce(steps)
        return training.run(steps)

    run(WARM_UP_STEPS)
    print(f"# PyTorch {torch.__version__.split('+')[0]}, one thread a rank", flush=True)
    if options.rounds:
        serve_rounds(run)
    else:
        report(options, run)
    announce(0)


if __name__ == "__main__":
    main()
