#!/usr/bin/env python3
"""Opens a checkpoint with PyTorch, as its users would, and gives the model back.

    open_in_pytorch.py CHECKPOINT EXAMPLE ANSWER

CHECKPOINT is one of the chapter's; EXAMPLE has `images`, and the `logits` that the chapter's model
gives for them. PyTorch's model must give the same. ANSWER is then written as PyTorch's
DistributedDataParallel would have it, with `module.` before each name. Files are read by the
package safetensors, or by the lines below.
"""
import collections
import json
import struct
import sys

import torch


def load_by_hand(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = bytearray(file.read())
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F32", entry
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(data, dtype=torch.float32, count=(end - begin) // 4, offset=begin)
        tensors[name] = flat.reshape(entry["shape"]).clone()
    return tensors


def save_by_hand(tensors, path):
    header, data = {}, b""
    for name, tensor in tensors.items():
        data_of = struct.pack(f"<{tensor.numel()}f", *tensor.reshape(-1).tolist())
        header[name] = {"data_offsets": [len(data), len(data) + len(data_of)],
                        "shape": list(tensor.shape), "dtype": "F32"}
        data += data_of
    text = json.dumps(header, indent=1).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


try:
    from safetensors.torch import load_file as load, save_file as save
except ImportError:
    load, save = load_by_hand, save_by_hand

checkpoint, example, answer = sys.argv[1:]
tensors = load(checkpoint)
layers = collections.OrderedDict(flatten=torch.nn.Flatten())
for i, (inputs, outputs) in enumerate(((784, 256), (256, 256), (256, 10)), start=1):
    layers[f"linear{i}"] = torch.nn.Linear(inputs, outputs)
    if i < 3:
        layers[f"relu{i}"] = torch.nn.ReLU()
model = torch.nn.Sequential(layers)
named = {name: value for name, value in tensors.items() if not name.startswith("optimizer.")}
model.load_state_dict(named)

optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for name, parameter in model.named_parameters():
    optimizer.state[parameter]["momentum_buffer"] = tensors[f"optimizer.{name}.momentum_buffer"]
    assert optimizer.state[parameter]["momentum_buffer"].shape == parameter.shape

expected = load(example)
with torch.no_grad():
    logits = model(expected["images"])
difference = (logits - expected["logits"]).abs().max().item()
print(f"PyTorch {torch.__version__}: the largest difference of a logit is {difference:.3g}")
assert expected["logits"].abs().max() > 0.1, "an example that would not notice"
assert difference < 1e-5 * expected["logits"].abs().max().item() + 1e-6
save({f"module.{name}": value for name, value in reversed(model.state_dict().items())}, answer)
