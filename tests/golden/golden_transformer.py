"""The reference files of the transformer's layers, for make_golden.py, which describes the format.

A file's parameters have the book's names. PyTorch's in_proj_weight is the book's query, key and
value, stacked. Values come from the formula: parameter k of the file (from 0) starts with element i
at centre + unit(200 + k, i) - 0.5, where centre is 1 for the weight of a norm and 0 otherwise; so
files of whole models need not store them.
"""
import torch

PADDING = 0
SENTENCES, LENGTH, WIDTH, HEADS, HIDDEN, VOCABULARY = 3, 5, 6, 2, 5, 9
LENGTHS = [5, 2, 4]


# ---- Parameters by the book's names


def book_names(module, prefix=""):
    """(the book's name, a view of PyTorch's parameter), in PyTorch's order."""
    found = []
    for name, parameter in module.named_parameters():
        name = prefix + name
        if "in_proj_" in name:
            stem, kind = name.split("in_proj_")
            found += [(f"{stem}{part}.{kind}", rows)
                      for part, rows in zip(("query", "key", "value"), parameter.data.chunk(3))]
        else:
            found.append((name, parameter.data))
    return found


def gradients(module, prefix=""):
    named = {}
    for name, parameter in module.named_parameters():
        name = prefix + name
        if "in_proj_" in name:
            stem, kind = name.split("in_proj_")
            for part, rows in zip(("query", "key", "value"), parameter.grad.chunk(3)):
                named[f"{stem}{part}.{kind}_gradient"] = rows
        else:
            named[name + "_gradient"] = parameter.grad
    return named


def set_by_formula(named, uniform):
    """In the order of the names, so that no side needs to know the other's order."""
    for k, (name, values) in enumerate(sorted(named)):
        centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        values.copy_(uniform(200 + k, *values.shape, low=centre - 0.5, high=centre + 0.5))


def padding_of(lengths):
    """True where a key is padding."""
    return torch.arange(LENGTH)[None, :] >= torch.tensor(lengths)[:, None]


def causal_mask():
    return torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)


def rows(tensor):
    return tensor.reshape(-1, tensor.shape[-1])


# ---- Layers


def run(module, inputs, forward, uniform, prefix=""):
    """Runs both ways from a given gradient; returns tensors by the names of the files."""
    inputs = {name: tensor.requires_grad_() for name, tensor in inputs.items()}
    output = forward(**inputs)
    output_gradient = uniform(90, *output.shape)
    output.backward(output_gradient)
    tensors = {name: rows(tensor) for name, tensor in inputs.items()}
    tensors.update(output=rows(output), output_gradient=rows(output_gradient))
    tensors.update({name + "_gradient": rows(tensor.grad) for name, tensor in inputs.items()})
    tensors.update(gradients(module, prefix))
    return tensors


def layer_norm(folder, uniform, write):
    norm = torch.nn.LayerNorm(37)
    set_by_formula([("norm." + n, p) for n, p in book_names(norm)], uniform)
    x = uniform(1, 5, 37) + torch.tensor([-2.0, 0.0, 30.0, 0.5, 1.0])[:, None]
    write(folder / "layer_norm.txt", "LayerNorm(37), 5 rows",
          run(norm, {"input": x}, norm, uniform, "norm."))


def attention(folder, uniform, write):
    """Self-attention under each mask, and attention to a memory of another length."""
    for name, mask, lengths in (("padding", None, LENGTHS),
                                ("causal", causal_mask(), [LENGTH] * SENTENCES)):
        layer = torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        set_by_formula(book_names(layer), uniform)
        weights = []

        def forward(input, layer=layer, mask=mask, lengths=lengths, weights=weights):
            output, weight = layer(input, input, input, key_padding_mask=padding_of(lengths),
                                   attn_mask=mask, average_attn_weights=False)
            weights.append(weight)
            return output

        tensors = run(layer, {"input": uniform(1, SENTENCES, LENGTH, WIDTH)}, forward, uniform)
        write(folder / f"attention_{name}.txt",
              f"MultiheadAttention({WIDTH}, {HEADS}), {SENTENCES} sentences of {LENGTH} tokens; "
              f"keys that are not padding: {lengths}; causal: {mask is not None}\n"
              "weights: [sentences * heads * queries, keys]",
              {**tensors, "weights": rows(weights[0])})
    layer = torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    set_by_formula(book_names(layer), uniform)
    inputs = {"input": uniform(1, SENTENCES, 3, WIDTH),
              "memory": uniform(2, SENTENCES, LENGTH, WIDTH)}
    write(folder / "attention_memory.txt",
          f"MultiheadAttention({WIDTH}, {HEADS}): 3 queries, {LENGTH} keys, of which not padding: "
          f"{LENGTHS}",
          run(layer, inputs, lambda input, memory: layer(
              input, memory, memory, key_padding_mask=padding_of(LENGTHS))[0], uniform))


def layers_of_encoder_and_decoder(folder, uniform, write):
    for norm_first in (True, False):
        settings = dict(d_model=WIDTH, nhead=HEADS, dim_feedforward=HIDDEN, dropout=0.0,
                        batch_first=True, norm_first=norm_first)
        kind = "pre" if norm_first else "post"
        layer = torch.nn.TransformerEncoderLayer(**settings)
        set_by_formula(book_names(layer), uniform)
        write(folder / f"encoder_layer_{kind}.txt",
              f"TransformerEncoderLayer, norm_first={norm_first}; keys that are not padding: "
              f"{LENGTHS}",
              run(layer, {"input": uniform(1, SENTENCES, LENGTH, WIDTH)},
                  lambda input, layer=layer: layer(
                      input, src_key_padding_mask=padding_of(LENGTHS)), uniform))
        layer = torch.nn.TransformerDecoderLayer(**settings)
        set_by_formula(book_names(layer), uniform)
        inputs = {"input": uniform(1, SENTENCES, LENGTH, WIDTH),
                  "memory": uniform(2, SENTENCES, LENGTH, WIDTH)}
        write(folder / f"decoder_layer_{kind}.txt",
              f"TransformerDecoderLayer, norm_first={norm_first}, causal; keys of the memory that "
              f"are not padding: {LENGTHS}",
              run(layer, inputs, lambda input, memory, layer=layer: layer(
                  input, memory, tgt_mask=causal_mask(),
                  memory_key_padding_mask=padding_of(LENGTHS)), uniform))


# ---- The loss


def token_losses(folder, uniform, write):
    target = torch.tensor([3, PADDING, 8, 1, PADDING, 5, 5])
    tensors = {"input": 3 * uniform(1, 7, VOCABULARY), "target": target}
    tensors["input"][2] *= 1e3  # exp of such a number overflows a float
    for smoothing in (0.0, 0.1):
        for reduction in ("sum", "mean"):
            logits = tensors["input"].clone().requires_grad_()
            loss = torch.nn.CrossEntropyLoss(ignore_index=PADDING, label_smoothing=smoothing,
                                             reduction=reduction)(logits, target)
            loss.backward()
            name = f"{reduction}_{round(100 * smoothing)}"
            tensors[name] = loss
            tensors[name + "_gradient"] = logits.grad
    write(folder / "token_loss.txt",
          f"CrossEntropyLoss(ignore_index={PADDING}); NAME_S: that reduction with label_smoothing "
          "S / 100", tensors)


# ---- The whole model


class Model(torch.nn.Module):
    """The tutorials' translation model: torch.nn.Transformer between embeddings."""

    def __init__(self, norm_first, tied, layers=2):
        super().__init__()
        names = ["embedding"] if tied else ["source_embedding", "target_embedding", "output"]
        self.tables = torch.nn.ModuleDict({
            name: torch.nn.Embedding(VOCABULARY, WIDTH) for name in names})
        self.transformer = torch.nn.Transformer(
            WIDTH, HEADS, layers, layers, HIDDEN, 0.0, batch_first=True, norm_first=norm_first)
        position = torch.arange(LENGTH, dtype=torch.float64)[:, None]
        angle = position * 10000.0 ** (-torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)
        angle = torch.stack([angle.sin(), angle.cos()], dim=2)
        self.positions = angle.reshape(LENGTH, WIDTH).float()

    def forward(self, source, target):
        tables = list(self.tables.values())
        x = tables[0](source) * WIDTH**0.5 + self.positions
        y = tables[1 % len(tables)](target) * WIDTH**0.5 + self.positions
        y = self.transformer(
            x, y, tgt_mask=causal_mask(), src_key_padding_mask=source == PADDING,
            tgt_key_padding_mask=target == PADDING, memory_key_padding_mask=source == PADDING)
        return y @ tables[2 % len(tables)].weight.T

    def parts(self):
        return (self.tables, ""), (self.transformer, "")


def whole_models(folder, uniform, write):
    source = torch.tensor([[4, 7, 5, 8, 2], [8, 2, 0, 0, 0], [5, 5, 6, 2, 0]])
    target = torch.tensor([[1, 6, 8, 0, 0], [1, 4, 4, 5, 7], [1, 3, 7, 0, 0]])
    wanted = torch.tensor([[6, 8, 2, 0, 0], [4, 4, 5, 7, 2], [3, 7, 2, 0, 0]])
    for norm_first, tied in ((True, True), (False, False)):
        model = Model(norm_first, tied)
        set_by_formula([pair for part, prefix in model.parts()
                        for pair in book_names(part, prefix)], uniform)
        logits = model(source, target)
        loss = torch.nn.functional.cross_entropy(
            rows(logits), wanted.reshape(-1), ignore_index=PADDING, label_smoothing=0.1)
        loss.backward()
        tensors = {"source": source, "target": target, "wanted": wanted, "loss": loss,
                   "logits": rows(logits)[wanted.reshape(-1) != PADDING]}
        for part, prefix in model.parts():
            tensors.update(gradients(part, prefix))
        write(folder / f"transformer_{'pre_tied' if norm_first else 'post'}.txt",
              f"nn.Transformer with 2 + 2 layers, norm_first={norm_first}, one table for source, "
              f"target and\noutput: {tied}; CrossEntropyLoss(ignore_index={PADDING}, "
              "label_smoothing=0.1)\n"
              "logits: of the target's tokens that are not padding",
              tensors)


def transformers(folder, uniform, write):
    for cases in (layer_norm, attention, layers_of_encoder_and_decoder, token_losses, whole_models):
        cases(folder, uniform, write)
