#!/usr/bin/env python3
"""The reference run of chapter 20's training, in PyTorch: the same weights, the same sentences in \
the same batches.

The losses of 50 steps without dropout, with which the test `translation` compares the book's:

    REFERENCE_INPUT=input.txt build/cpu/bin/test_translation "[.reference_input]"
    PYTHON tests/golden/transformer_reference.py input.txt \
>tests/golden/reference_run/transformer_losses.txt

The BLEU of the held-out descriptions of packages after each epoch, to be laid beside that of
`./book run 20 --train-only --pairs debian` (dropout's random numbers are PyTorch's here):

    REFERENCE_INPUT=input.txt TWIN_TRANSLATIONS=build/translations TWIN_EPOCHS=5 \
build/cpu/bin/test_translation "[.reference_debian]"
    PYTHON tests/golden/transformer_reference.py --bleu --threads 2 --state reference.pt input.txt

PYTHON is any interpreter with PyTorch; for BLEU, with sacrebleu as well.
"""
import argparse
import collections
import math
import os
import time

import torch
from torch import nn

PAD, BEGIN, END = 0, 1, 2
LONGEST = 64  # tokens of a translation

# What the test has written. A pair is a source and a target, as tokens; a batch numbers of pairs,
# an epoch batches, a held-out sentence its tokens and its reference; spellings are tokens' bytes.
Input = collections.namedtuple("Input", "plan weights pairs epochs held_out spellings")


def numbers(word):
    return [int(number) for number in word.split(",") if number]


def read(path):
    found = Input({}, {}, [], [], [], {})
    names = ("vocabulary width heads layers feed_forward learning_rate warm_up smoothing clip "
             "dropout").split()
    with open(path, encoding="utf-8") as file:
        for line in file:
            kind, rest = line.rstrip("\n").split(" ", 1)
            words = rest.split(" ")
            if kind == "plan":
                found.plan.update((name, float(word) if "." in word or "e" in word else int(word))
                                  for name, word in zip(names, words))
            elif kind == "parameter":
                found.weights[words[0]] = torch.tensor([float(word) for word in words[1:]])
            elif kind == "pair":
                found.pairs.append((numbers(words[0]), numbers(words[1])))
            elif kind == "epoch":
                found.epochs.append([])
            elif kind == "batch":
                found.epochs[-1].append(numbers(words[0]))
            elif kind == "held_out":
                found.held_out.append((numbers(words[0]), rest.split(" ", 1)[1]))
            elif kind == "token":
                found.spellings[int(words[0])] = bytes.fromhex(words[1])
    return found


def rows(sentences):
    """One row for each list of tokens, padded to the longest."""
    longest = max(len(sentence) for sentence in sentences)
    return torch.tensor([sentence + [PAD] * (longest - len(sentence)) for sentence in sentences])


def state_of(weights):
    """Our weights by the names of nn.Transformer, which has query, key and value in one matrix."""
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


class Reference(nn.Module):
    def __init__(self, plan, weights):
        super().__init__()
        self.width = plan["width"]
        self.embedding = nn.Embedding(plan["vocabulary"], self.width)
        self.transformer = nn.Transformer(
            self.width, plan["heads"], plan["layers"], plan["layers"], plan["feed_forward"],
            dropout=float(plan["dropout"]), batch_first=True, norm_first=True)
        self.dropout = nn.Dropout(float(plan["dropout"]))
        with torch.no_grad():
            self.embedding.weight.copy_(weights["embedding.weight"].view_as(self.embedding.weight))
            state, shapes = state_of(weights), self.transformer.state_dict()
            self.transformer.load_state_dict({
                name: state[name].view_as(shapes[name]) for name in shapes})
        speed = torch.exp(torch.arange(0, self.width, 2) * (-math.log(10000.0) / self.width))
        angle = torch.arange(256.0)[:, None] * speed
        self.positions = torch.stack([angle.sin(), angle.cos()], dim=2).view(256, self.width)

    def embed(self, tokens):
        words = self.embedding(tokens) * math.sqrt(self.width)
        return self.dropout(words + self.positions[:tokens.shape[1]])

    def forward(self, source, target):
        later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        x = self.transformer(
            self.embed(source), self.embed(target), tgt_mask=later,
            src_key_padding_mask=source == PAD, memory_key_padding_mask=source == PAD)
        return x @ self.embedding.weight.T


class Training:
    def __init__(self, found):
        self.found, self.plan = found, found.plan
        self.model = Reference(found.plan, found.weights)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=self.plan["learning_rate"])
        self.step = 0

    def learn(self, batch):
        self.step += 1
        warm_up = self.plan["warm_up"]
        pace = min(self.step / warm_up, math.sqrt(warm_up / self.step))
        for group in self.optimizer.param_groups:
            group["lr"] = self.plan["learning_rate"] * pace
        pairs = [self.found.pairs[i] for i in batch]
        scores = self.model(rows([source + [END] for source, _ in pairs]),
                            rows([[BEGIN] + target for _, target in pairs]))
        wanted = rows([target + [END] for _, target in pairs])
        loss = nn.functional.cross_entropy(
            scores.view(-1, self.plan["vocabulary"]), wanted.reshape(-1), ignore_index=PAD,
            label_smoothing=self.plan["smoothing"])
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.plan["clip"])
        self.optimizer.step()
        return loss.item()

    def save(self, path):
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                    "step": self.step, "random": torch.get_rng_state()}, path + ".new")
        os.replace(path + ".new", path)

    def resume(self, path):
        saved = torch.load(path)
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.step = saved["step"]
        torch.set_rng_state(saved["random"])

    @torch.no_grad()
    def translate(self, sources):
        """The likeliest next token, again and again."""
        source = rows([tokens + [END] for tokens in sources])
        target = torch.full((len(sources), 1), BEGIN)
        has_ended = torch.zeros(len(sources), dtype=torch.bool)
        while target.shape[1] < LONGEST and not has_ended.all():
            following = self.model(source, target)[:, -1].argmax(dim=1).masked_fill(has_ended, PAD)
            target = torch.cat([target, following[:, None]], dim=1)
            has_ended |= following == END
        spelled = [b"".join(self.found.spellings[token] for token in row if token > END)
                   for row in target.tolist()]
        return [words.decode(errors="replace").strip() for words in spelled]

    def bleu(self):
        import sacrebleu
        self.model.eval()
        translations, (sources, references) = [], zip(*self.found.held_out)
        for first in range(0, len(sources), 100):
            translations += self.translate(sources[first:first + 100])
        self.model.train()
        return sacrebleu.corpus_bleu(translations, [list(references)]).score


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", help="the file that the test has written")
    parser.add_argument("--bleu", action="store_true",
                        help="print the BLEU after each epoch, and not the losses")
    parser.add_argument("--state", metavar="FILE",
                        help="with --bleu: save here after each epoch, and go on from there")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch (1)")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    training = Training(read(arguments.input))
    if not arguments.bleu:
        print("# Losses of the first steps, by tests/golden/transformer_reference.py")
        for batch in training.found.epochs[0]:
            print(f"{training.learn(batch):.7f}")
        return
    if arguments.state and os.path.exists(arguments.state):
        training.resume(arguments.state)
    print("epoch,step,loss,bleu,seconds")
    start, steps_before = time.monotonic(), 0
    for epoch, batches in enumerate(training.found.epochs, 1):
        steps_before += len(batches)
        if steps_before <= training.step:
            continue  # learned by the run that is resumed
        losses = [training.learn(batch) for batch in batches]
        if arguments.state:
            training.save(arguments.state)
        loss = sum(losses[-100:]) / len(losses[-100:])
        print(f"{epoch},{training.step},{loss:.4f},{training.bleu():.2f},"
              f"{time.monotonic() - start:.0f}", flush=True)


if __name__ == "__main__":
    main()
