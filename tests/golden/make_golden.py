#!/usr/bin/env python3
"""Makes the reference files under tests/golden/data with a real PyTorch.

    python3 tests/golden/make_golden.py           writes the files
    python3 tests/golden/make_golden.py --check   makes them again elsewhere and compares

python3 is any interpreter that has PyTorch 2.

ddp_eight_cap4.in_1.13.txt stays as PyTorch 1.13.1 made it, and --check leaves it out: there the
first bucket has 1 MiB whatever the cap.

A file is text that people can diff:

    golden 2 PyTorch 2.15.0            the format's number, and who made it
    # Linear(37, 21), batch 9          comments say what the case is
    lr = 0.1                           one number
    weight 21 37                       a tensor's name and dimensions, then its values in C order,
    0.0625 -1.5 ...                    the last dimension in one line, of four dimensions the last
                                       two (a picture); %.9g holds all of a float32

PyTorch computes in float32 on one thread. No number comes from PyTorch's random generator: all data
are a formula's (tests/support/golden.hpp has the same one), so every version starts from the same.

    mix(h): h ^= h >> 16; h *= 0x85ebca6b; h ^= h >> 13; h *= 0xc2b2ae35; h ^= h >> 16
            modulo 2^32 (the last step of MurmurHash3, by Austin Appleby, public domain)
    hash(stream, index) = mix(mix(stream) + index) modulo 2^32
    unit(stream, index) = (hash(stream, index) >> 8) * 2^-24, in [0, 1)

The training curves store neither data nor initial weights. Sample n has

    label(n)    = hash(1, n) mod 10
    pixel(n, p) = ((unit(2, label(n) * pixels + p) - 0.5) + (unit(3, n * pixels + p) - 0.5)) / 2

that is, half its class's picture and half noise; step s (from 0) trains on samples s * batch to
(s + 1) * batch - 1. Parameter k (from 0, in the model's order) starts with element i at

    float32(1 / sqrt(fan_in)) * (2 * unit(10 + k, i) - 1)

(a bias has the fan_in of its weight), except BatchNorm's weight 1 and bias 0. All of this is exact
in float32, except that the product rounds once.
"""
import argparse
import functools
import math
import os
import pathlib
import random
import sys
import tempfile

# Before PyTorch loads: its set_num_threads does not reach OpenBLAS.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # the bucket cases' one rank has no peers
import torch
import torch.utils.data.distributed
from golden_transformer import transformers
from pytorch_train import make_model

DATA = pathlib.Path(__file__).resolve().parent / "data"
CURVE_STEPS = 50
OPTIMIZER_STEPS = 10


# ---- The formula -------------------------------------------------------------------------------


def mix(h):
    h ^= h >> 16
    h = h * 0x85EBCA6B & 0xFFFFFFFF
    h ^= h >> 13
    h = h * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ h >> 16


def hash_of(stream, index):
    return mix(mix(stream) + index & 0xFFFFFFFF)


def unit(stream, index):
    return (hash_of(stream, index) >> 8) * 2.0**-24


def label(sample):
    return hash_of(1, sample) % 10


def pixel(sample, p, pixels):
    picture = unit(2, label(sample) * pixels + p) - 0.5
    noise = unit(3, sample * pixels + p) - 0.5
    return (picture + noise) / 2


def uniform(stream, *shape, low=-1.0, high=1.0):
    values = [low + (high - low) * unit(stream, i) for i in range(math.prod(shape))]
    return torch.tensor(values, dtype=torch.float32).reshape(shape)


# ---- Files -------------------------------------------------------------------------------------


def write(path, description, tensors):
    """tensors: name -> number, nested list or tensor (of no dimension: a number)."""
    lines = [f"golden 2 PyTorch {torch.__version__.split('+')[0]}"]
    lines += ["# " + line for line in description.splitlines()]
    for name, values in tensors.items():
        tensor = torch.as_tensor(values, dtype=torch.float64).detach()
        if tensor.dim() == 0:
            lines.append(f"{name} = {tensor.item():.9g}")
            continue
        lines.append(" ".join([name, *map(str, tensor.shape)]))
        rows = tensor.reshape(-1, math.prod(tensor.shape[2 if tensor.dim() == 4 else -1:])).tolist()
        lines += [" ".join("%.9g" % value for value in row) for row in rows]
    path.write_text("\n".join(lines) + "\n")


def read(path):
    """The numbers and tensors of a file: name -> (dimensions, values)."""
    tensors = {}
    for line in path.read_text().splitlines()[1:]:
        words = line.split()
        if words[1:2] == ["="]:
            tensors[words[0]] = ([], [float(words[2])])
        elif words[0][0].isalpha():
            values = []
            tensors[words[0]] = (words[1:], values)
        elif words[0] != "#":
            values += map(float, words)
    return tensors


# ---- Layers ------------------------------------------------------------------------------------


def set_parameters(layer):
    """Weights around 1 for BatchNorm, within +-0.5 otherwise."""
    for stream, (_, parameter) in enumerate(layer.named_parameters(), start=50):
        centre = 1.0 if isinstance(layer, torch.nn.BatchNorm2d) else 0.0
        parameter.data = uniform(stream, *parameter.shape, low=centre - 0.5, high=centre + 0.5)


def forward_backward(layer, input, stream=90):
    """Runs the layer once each way; returns the tensors by the names used in the files."""
    layer.zero_grad()
    input = input.clone().requires_grad_()
    output = layer(input)
    output_gradient = uniform(stream, *output.shape)
    output.backward(output_gradient.to(output.dtype))
    tensors = {"input": input, "output": output, "output_gradient": output_gradient,
               "input_gradient": input.grad}
    for name, parameter in layer.named_parameters():
        tensors[name + "_gradient"] = parameter.grad.clone()
    return tensors


def layer_case(path, layer, input, description, **settings):
    set_parameters(layer)
    tensors = dict(settings)
    tensors.update(layer.named_parameters())
    tensors.update(forward_backward(layer, input))
    write(path, description, tensors)


def simple_layers(folder):
    for name, bias in ("linear", True), ("linear_no_bias", False):
        layer_case(folder / f"{name}.txt", torch.nn.Linear(37, 21, bias=bias), uniform(1, 9, 37),
                   f"Linear(37, 21, bias={bias}), batch 9; weight is out x in")
    input = uniform(1, 5, 13)
    input[:, ::4] = 0.0  # the derivative at exactly 0 is 0
    layer_case(folder / "relu.txt", torch.nn.ReLU(), input,
               "ReLU; every fourth column is exactly 0")
    layer_case(folder / "flatten.txt", torch.nn.Flatten(), uniform(1, 2, 3, 4, 5),
               "Flatten: everything behind the batch becomes one dimension")


def convolutions(folder):
    for kernel in (3, 5):
        for stride in (1, 2):
            for padding in (0, 2):
                layer_case(
                    folder / f"conv2d_k{kernel}_s{stride}_p{padding}.txt",
                    torch.nn.Conv2d(3, 4, kernel, stride, padding), uniform(1, 2, 3, 7, 8),
                    f"Conv2d(3, 4), kernel {kernel}, stride {stride}, padding {padding}, batch 2",
                    kernel=kernel, stride=stride, padding=padding)


def poolings(folder):
    # Few different values: most windows hold a tie, and the first of the equals takes the gradient.
    input = torch.floor(2 * uniform(1, 2, 3, 8, 11))
    for kernel in (2, 3):
        layer_case(folder / f"max_pool2d_k{kernel}_s2.txt", torch.nn.MaxPool2d(kernel, 2), input,
                   f"MaxPool2d, kernel {kernel}, stride 2, batch 2; of equal values the first wins",
                   kernel=kernel, stride=2)


def batch_norms(folder):
    centre = torch.tensor([-2.0, 0.25, 5.0]).reshape(1, 3, 1, 1)
    inputs = [uniform(1, 2, 3, 4, 5) + centre, 2 * uniform(2, 2, 3, 4, 5) - centre]

    layer = torch.nn.BatchNorm2d(3)
    set_parameters(layer)
    tensors = {"eps": layer.eps, "momentum": layer.momentum}
    tensors.update(layer.named_parameters())
    for step, input in enumerate(inputs, start=1):
        for name, tensor in forward_backward(layer, input, stream=90 + step).items():
            tensors[f"step{step}.{name}"] = tensor
        tensors[f"step{step}.running_mean"] = layer.running_mean.clone()
        tensors[f"step{step}.running_var"] = layer.running_var.clone()
    write(folder / "batch_norm2d_train.txt",
          "BatchNorm2d(3) in training, batch 2, two steps with the same weight and bias.\n"
          "The batch is normalised by its biased variance, running_var takes the unbiased one.",
          tensors)

    layer = torch.nn.BatchNorm2d(3).eval()
    layer.running_mean = uniform(3, 3, low=-1.0, high=1.0)
    layer.running_var = uniform(4, 3, low=0.5, high=2.0)
    layer_case(folder / "batch_norm2d_eval.txt", layer, inputs[0],
               "BatchNorm2d(3) in evaluation, batch 2: the running statistics are constants",
               eps=layer.eps, running_mean=layer.running_mean, running_var=layer.running_var)


# ---- Losses ------------------------------------------------------------------------------------


def loss_case(path, loss_function, input, target, description):
    input.requires_grad_()
    loss = loss_function(input, target)
    loss.backward()
    write(path, description,
          {"input": input, "target": target, "loss": loss, "input_gradient": input.grad})


def losses(folder):
    cross_entropy = torch.nn.CrossEntropyLoss()
    target = torch.tensor([3, 0, 9, 9, 5, 1, 7])
    loss_case(folder / "cross_entropy.txt", cross_entropy, 3 * uniform(1, 7, 10), target,
              "CrossEntropyLoss, mean over a batch of 7; input holds logits, target classes")
    large = 1e4 * uniform(2, 7, 10)
    large[4] = 1e4  # ten equal logits: the loss of this row is log(10)
    large[5] = -1e4
    loss_case(folder / "cross_entropy_large.txt", cross_entropy, large, target,
              "CrossEntropyLoss with logits of +-1e4: exp of such a number overflows a float")


# ---- Optimizers --------------------------------------------------------------------------------


def optimizer_case(path, make, description, **settings):
    """Two parameters, ten steps with given gradients: every step's values are recorded."""
    shapes = [(7,), (2, 3)]
    parameters = [torch.nn.Parameter(uniform(k, *shape)) for k, shape in enumerate(shapes, start=1)]
    gradients = [uniform(k, OPTIMIZER_STEPS, *shape) for k, shape in enumerate(shapes, start=11)]
    gradients[0][:, 2] = 0.0  # never a gradient
    gradients[0][:, 3] *= 1e-8  # as small as Adam's eps
    gradients[1][4:] *= 100.0
    tensors = dict(settings)
    tensors.update({f"parameter{k}": p.detach().clone() for k, p in enumerate(parameters)})
    tensors.update({f"gradients{k}": gradient for k, gradient in enumerate(gradients)})
    optimizer = make(parameters)
    after = [[] for _ in shapes]
    for step in range(OPTIMIZER_STEPS):
        for k, parameter in enumerate(parameters):
            parameter.grad = gradients[k][step].clone()
        optimizer.step()
        for k, parameter in enumerate(parameters):
            after[k].append(parameter.detach().clone())
    tensors.update({f"after{k}": torch.stack(steps) for k, steps in enumerate(after)})
    write(path, description + "\ngradientsK and afterK: one row for each of ten steps", tensors)


def optimizers(folder):
    for name, momentum, decay in (("sgd", 0.0, 0.0), ("sgd_momentum", 0.9, 0.0),
                                  ("sgd_momentum_decay", 0.9, 5e-4)):
        settings = dict(lr=0.1, momentum=momentum, weight_decay=decay)
        optimizer_case(folder / f"{name}.txt", functools.partial(torch.optim.SGD, **settings),
                       "SGD without dampening, not Nesterov's", **settings)
    for name, decay in ("adam", 0.0), ("adam_decay", 5e-4):
        settings = dict(lr=1e-3, eps=1e-8, weight_decay=decay)
        optimizer_case(folder / f"{name}.txt",
                       functools.partial(torch.optim.Adam, betas=(0.9, 0.999), **settings),
                       "Adam; weight_decay times the parameter is added to the gradient",
                       beta1=0.9, beta2=0.999, **settings)


# ---- Clipping and loss scaling -----------------------------------------------------------------


def clipping_case(path, gradients, most, description):
    tensors = {"max_norms": most, **{f"gradient{k}": g for k, g in enumerate(gradients)}}
    norms = []
    for case, max_norm in enumerate(most):
        parameters = [torch.nn.Parameter(torch.zeros_like(g)) for g in gradients]
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient.clone()
        parameters.insert(1, torch.nn.Parameter(torch.zeros(3)))  # without a gradient: left out
        norms.append(torch.nn.utils.clip_grad_norm_(parameters, max_norm))
        kept = [p.grad for p in parameters if p.grad is not None]
        tensors.update({f"clipped{case}.{k}": grad for k, grad in enumerate(kept)})
    write(path, "torch.nn.utils.clip_grad_norm_: " + description + "\n"
          "norms: before clipping; clippedC.K: gradient K, clipped to max_norms[C]",
          {**tensors, "norms": norms})


def clipping(folder):
    gradients = [uniform(k, *shape) for k, shape in enumerate([(7,), (2, 3), (501,)], start=21)]
    gradients[1] *= 30.0
    clipping_case(folder / "clip_grad_norm.txt", gradients, [0.25, 1.0, 1000.0],
                  "norms below and above max_norm")
    clipping_case(folder / "clip_grad_norm_small.txt", [g * 2.0**-25 for g in gradients],
                  [1e-6, 1e-3], "a norm about as small as the 1e-6 that is added to it")


def scaler_case(path, overflows, description, **settings):
    """One parameter of 3 numbers, SGD, and gradients that overflow where `overflows` is 1 or 2."""
    scaler = torch.amp.GradScaler("cpu", **settings)
    parameter = torch.nn.Parameter(uniform(31, 3))
    optimizer = torch.optim.SGD([parameter], lr=0.5)
    gradients = uniform(32, len(overflows), 3)
    tensors = {**settings, "overflows": overflows, "parameter": parameter.detach().clone(),
               "gradients": gradients}
    scales, values = [], []
    for gradient, overflow in zip(gradients, overflows):
        parameter.grad = scaler.scale(gradient)  # what a backward from the scaled loss leaves
        if overflow:
            parameter.grad[1] = [math.inf, math.nan][overflow - 1]
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        values.append(parameter.detach().clone())
    write(path, f"{description}\noverflows: 1 where the step's gradient holds an infinity, 2 a NaN"
          "\nscales, after: the scale and the parameter after each step",
          {**tensors, "scales": scales, "after": torch.stack(values)})


def loss_scaling(folder):
    overflows = [0, 0, 0, 1, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 2, 0]
    scaler_case(folder / "grad_scaler.txt", overflows, "torch.amp.GradScaler, interval 3",
                init_scale=1024.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=3)
    scaler_case(folder / "grad_scaler_factors.txt", overflows,
                "torch.amp.GradScaler with other factors, interval 2",
                init_scale=96.0, growth_factor=3.0, backoff_factor=0.25, growth_interval=2)
    scaler_case(folder / "grad_scaler_largest.txt", [0, 0, 0, 0],
                "torch.amp.GradScaler: a scale of 2^126 doubles once, and does not become infinite",
                init_scale=2.0**126, growth_factor=2.0, backoff_factor=0.5, growth_interval=1)


def mixed_layers(folder):
    """Linear under autocast."""
    for dtype in (torch.bfloat16, torch.float16):
        name = str(dtype).split(".")[1]
        with torch.autocast("cpu", dtype=dtype):
            layer_case(folder / f"linear_{name}.txt", torch.nn.Linear(37, 21), uniform(1, 9, 37),
                       f"Linear(37, 21), batch 9, under torch.autocast to {name}")


def initialisers(folder):
    """The bounds that PyTorch's own functions give for what Linear and Conv2d do by default."""
    layers = [torch.nn.Linear(784, 32), torch.nn.Linear(7, 5), torch.nn.Conv2d(1, 8, 3),
              torch.nn.Conv2d(8, 16, 5), torch.nn.Conv2d(3, 4, (3, 5))]
    shapes, bounds = [], []
    for layer in layers:
        fan_in = torch.nn.init._calculate_correct_fan(layer.weight, "fan_in")
        gain = torch.nn.init.calculate_gain("leaky_relu", math.sqrt(5))
        bounds.append([math.sqrt(3) * gain / math.sqrt(fan_in), 1 / math.sqrt(fan_in)])
        shapes.append([*layer.weight.shape, 1, 1][:4])
        for parameter, bound in zip((layer.weight, layer.bias), bounds[-1]):
            assert parameter.abs().max() <= bound, "PyTorch initialises otherwise"
    write(folder / "initialisers.txt",
          "Linear's and Conv2d's default: uniform within +-1/sqrt(fan_in),\n"
          "which for the weight is PyTorch's kaiming_uniform with a = sqrt(5).\n"
          "shapes: a weight's out, in, kernel height, kernel width (1 x 1 for Linear)\n"
          "bounds: the weight's, the bias's",
          {"shapes": shapes, "bounds": bounds})


# ---- Training curves ---------------------------------------------------------------------------


def named_layers(**layers):
    model = torch.nn.Sequential()
    for name, layer in layers.items():
        model.add_module(name, layer)
    return model


def make_mlp():
    return named_layers(linear1=torch.nn.Linear(784, 32), relu1=torch.nn.ReLU(),
                        linear2=torch.nn.Linear(32, 16), relu2=torch.nn.ReLU(),
                        linear3=torch.nn.Linear(16, 10))


def make_cnn():
    """For pictures of 15 x 13: both poolings drop a row or a column."""
    return named_layers(conv1=torch.nn.Conv2d(1, 8, 3, padding=1), norm1=torch.nn.BatchNorm2d(8),
                        relu1=torch.nn.ReLU(), pool1=torch.nn.MaxPool2d(2),
                        conv2=torch.nn.Conv2d(8, 16, 3), relu2=torch.nn.ReLU(),
                        pool2=torch.nn.MaxPool2d(2), flatten=torch.nn.Flatten(),
                        linear=torch.nn.Linear(16 * 2 * 2, 10))


def weight_bound(fan_in):
    return torch.tensor(1 / math.sqrt(fan_in), dtype=torch.float32)


def set_initial_weights(model):
    stream = 10
    for layer in model:
        weight = getattr(layer, "weight", None)
        if weight is None:
            continue
        if isinstance(layer, torch.nn.BatchNorm2d):
            stream += 2  # keeps its 1 and 0; streams count all parameters
            continue
        bound = weight_bound(weight[0].numel())
        for parameter in layer.parameters():
            parameter.data = bound * uniform(stream, *parameter.shape)
            stream += 1


def batch_of(step, batch, shape):
    pixels = math.prod(shape)
    samples = range(step * batch, (step + 1) * batch)
    images = [[pixel(n, p, pixels) for p in range(pixels)] for n in samples]
    return (torch.tensor(images, dtype=torch.float32).reshape(batch, *shape),
            torch.tensor([label(n) for n in samples]))


def sums(tensor):
    tensor = tensor.detach().double()
    return [tensor.sum().item(), tensor.abs().sum().item()]


def train(make_model, batches, dtype):
    """Returns the loss before each step, and the sums of what the file names."""
    model = make_model()
    set_initial_weights(model)
    model.to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    record = {f"initial.{name}": sums(p) for name, p in model.named_parameters()}
    curve = []
    for images, labels in batches:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images.to(dtype)), labels)
        loss.backward()
        if not curve:
            record.update({f"first_gradient.{name}": sums(p.grad)
                           for name, p in model.named_parameters()})
        optimizer.step()
        curve.append(loss.item())
    record.update({f"final.{name}": sums(tensor) for name, tensor in model.state_dict().items()
                   if tensor.is_floating_point()})
    return curve, record


def curve_case(path, make_model, batch, shape, description):
    batches = [batch_of(step, batch, shape) for step in range(CURVE_STEPS)]
    curve, record = train(make_model, batches, torch.float32)
    exact_curve, _ = train(make_model, batches, torch.float64)
    write(path, description + "\n"
          "Cross entropy, SGD with lr 0.05 and momentum 0.9, data and weights by the formula.\n"
          "loss: before each step; exact_loss: the same in float64, so what differs is rounding\n"
          "initial, first_gradient, final: the sum and the sum of absolute values",
          {"batch": batch, "image": shape, "loss": curve, "exact_loss": exact_curve, **record})


def curves(folder):
    curve_case(folder / "train_mlp.txt", make_mlp, 16, (784,),
               "Linear 784-32, ReLU, Linear 32-16, ReLU, Linear 16-10; batch 16, pictures of 784")
    curve_case(folder / "train_cnn.txt", make_cnn, 16, (1, 15, 13),
               "Conv2d 1-8 3x3 padding 1, BatchNorm2d, ReLU, MaxPool2d 2, Conv2d 8-16 3x3, ReLU,\n"
               "MaxPool2d 2, Flatten, Linear 64-10; batch 16, pictures of 1 x 15 x 13")


def formula(folder):
    """Lets a test tell a wrong formula from wrong training."""
    write(folder / "formula.txt",
          "The formula's first values. unit: streams 1 to 3; pixel: samples 0 to 3 of 195 pixels",
          {"unit": [[unit(stream, i) for i in range(8)] for stream in (1, 2, 3)],
           "label": [label(n) for n in range(32)],
           "pixel": [[pixel(n, p, 195) for p in range(195)] for n in range(4)],
           "weight_fan_in_37": weight_bound(37) * uniform(10, 16)})


# ---- Buckets -----------------------------------------------------------------------------------


MIB = 1 << 20
ELEMENT_TYPES = ("float32", "float64", "float16", "bfloat16")  # as the book numbers them
MLP = [784 * 1024, 1024, 1024 * 1024, 1024, 1024 * 10, 10]
CNN = [1 * 9 * 32, 32, 32, 32, 32 * 9 * 64, 64, 64, 64, 3136 * 10, 10]
EIGHT_LAYERS = [512 * 512, 512] * 8


def flat(buckets):
    return [index for bucket in buckets for index in bucket]


def sizes(buckets):
    return [len(bucket) for bucket in buckets]


def assignment_case(path, elements, limit_lists, description, types=None, ready_order=None):
    """What _compute_bucket_assignment_by_size makes of these gradients, in both orders."""
    types = types or [0] * len(elements)
    ready_order = ready_order or list(reversed(range(len(elements))))
    gradients = [torch.empty(1, dtype=getattr(torch, ELEMENT_TYPES[t])).expand(n)
                 for t, n in zip(types, elements)]
    tensors = {"elements": elements, "types": types, "ready_order": ready_order,
               "limit_lists": len(limit_lists)}
    assign = torch.distributed._compute_bucket_assignment_by_size
    for k, limits in enumerate(limit_lists):
        tensors[f"limits{k}"] = [-1 if limit == sys.maxsize else limit for limit in limits]
        by_model, _ = assign(gradients, limits)
        by_ready, _ = assign([gradients[i] for i in ready_order], limits, [], ready_order)
        for order, buckets in ("model", by_model), ("ready", by_ready):
            tensors[f"{order}{k}.sizes"] = sizes(buckets)
            tensors[f"{order}{k}.gradients"] = flat(buckets)
    write(path, description + "\n"
          "types: 0 float32, 1 float64, 2 float16, 3 bfloat16; limitsK: bytes, -1 for no limit\n"
          "modelK, readyK: how many gradients each bucket has, and which, bucket after bucket,\n"
          "with limitsK, in the order of the model or in ready_order", tensors)


def bucket_assignments(folder):
    networks = [[sys.maxsize], [MIB, 25 * MIB], [MIB, 4 * MIB], [MIB], [MIB // 20], [0]]
    assignment_case(folder / "buckets_mlp.txt", MLP, networks, "784-1024-1024-10")
    assignment_case(folder / "buckets_cnn.txt", CNN, networks, "The book's CNN",
                    ready_order=[9, 8, 6, 7, 4, 5, 2, 3, 0, 1])
    assignment_case(folder / "buckets_eight.txt", EIGHT_LAYERS, networks,
                    "Eight layers of 512: a weight alone is 1 MiB exactly")
    assignment_case(folder / "buckets_exact.txt", [10, 10, 5, 15, 20, 1, 19, 20],
                    [[40], [80], [81], [79], [40, 80], [80, 40]], "Limits that are hit exactly")
    assignment_case(folder / "buckets_oversize.txt", [3, 1000, 2, 1, 5000, 1],
                    [[16], [16, 4000], [20, 24000, 4]], "Gradients larger than the limit")
    assignment_case(folder / "buckets_empty.txt", [0, 4, 0, 0, 4, 0],
                    [[16], [0], [sys.maxsize], [16, 32]], "Gradients without elements")
    tiny = [1 + int(7 * unit(70, i)) for i in range(200)]
    assignment_case(folder / "buckets_tiny.txt", tiny, [[256], [64, 512], [4], [1000]],
                    "Two hundred gradients of 1 to 7 elements")
    types = [int(4 * unit(71, i)) for i in range(40)]
    elements = [int(50 * unit(72, i)) for i in range(40)]
    jumbled = sorted(range(40), key=lambda i: unit(73, i))
    assignment_case(folder / "buckets_types.txt", elements,
                    [[sys.maxsize], [100], [100, 400], [40, 80, 200], [8, 1000]],
                    "Four types, jumbled", types=types, ready_order=jumbled)


def ddp_case(path, model, input, description, cap_mb=None, find_unused=False):
    """Which buckets a real DistributedDataParallel hands to its hook, in three iterations."""
    ddp = torch.nn.parallel.DistributedDataParallel(
        model, find_unused_parameters=find_unused,
        **({} if cap_mb is None else {"bucket_cap_mb": cap_mb}))
    index_of = {id(parameter): i for i, parameter in enumerate(model.parameters())}
    buckets = []

    def record(_, bucket):
        buckets.append([index_of[id(parameter)] for parameter in bucket.parameters()])
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    ddp.register_comm_hook(None, record)
    tensors = {"cap_mb": -1 if cap_mb is None else cap_mb, "find_unused_parameters": find_unused,
               "elements": [parameter.numel() for parameter in model.parameters()]}
    for iteration in range(1, 4):
        ddp(input).sum().backward()
        tensors[f"iteration{iteration}.sizes"] = sizes(buckets)
        tensors[f"iteration{iteration}.gradients"] = flat(buckets)
        buckets.clear()
    if not find_unused:
        order = ddp._get_ddp_logging_data()["prev_iteration_grad_ready_order_indices"]
        tensors["ready_order"] = [int(i) for i in order.split(",")]
    write(path, description + "\n"
          "cap_mb: bucket_cap_mb, -1 if it was not given\n"
          "iterationK: how many gradients each bucket has, and which, as they were reduced\n"
          "ready_order: in which the gradients were ready in iteration 1", tensors)


def make_eight_layers():
    layers = [layer for _ in range(8) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers)


def make_mlp_with_unused():
    model = make_model("mlp")
    model.register_parameter("unused", torch.nn.Parameter(torch.zeros(3010)))
    return model


def ddp_buckets(folder):
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0,
                                         world_size=1)
    vector, wide = uniform(1, 2, 784), uniform(1, 2, 512)
    ddp_case(folder / "ddp_mlp.txt", make_model("mlp"), vector, "DDP: 784-1024-1024-10")
    ddp_case(folder / "ddp_cnn.txt", make_model("cnn"), uniform(1, 2, 1, 28, 28),
             "DDP: the book's CNN")
    for name, cap_mb in ("", None), ("_cap1", 1), ("_cap4", 4):
        ddp_case(folder / f"ddp_eight{name}.txt", make_eight_layers(), wide,
                 "DDP: eight layers of 512", cap_mb)
    for name, cap_mb in ("", None), ("_cap1", 1):
        ddp_case(folder / f"ddp_unused{name}.txt", make_mlp_with_unused(), vector,
                 "DDP with find_unused_parameters: 784-1024-1024-10, and 3010 numbers that "
                 "nothing\nuses, listed first", cap_mb, find_unused=True)
    torch.distributed.destroy_process_group()


# ---- The sampler -------------------------------------------------------------------------------


def samplers(folder):
    """200 samplers; of the last ones, as large as a data set, what identifies a list."""
    choose = random.Random(9)
    settings, all_indices, large = [], [], []
    for case in range(200):
        samples = choose.randint(1, 40) if case < 180 else choose.randint(10_000, 60_000)
        ranks, seed, epoch = choose.randint(1, 9), choose.randint(0, 2**31), choose.randint(0, 30)
        drop_last, shuffle = choose.random() < 0.4, choose.random() < 0.8
        rank = choose.randrange(ranks)
        sampler = torch.utils.data.distributed.DistributedSampler(
            range(samples), ranks, rank, shuffle, seed, drop_last)
        sampler.set_epoch(epoch)
        indices = list(sampler) if samples >= ranks or not drop_last else []  # PyTorch would assert
        settings.append([samples, ranks, rank, seed // 65536, seed % 65536, epoch, drop_last,
                         shuffle, len(indices)])
        if case >= 180:
            total = sum(place * index for place, index in enumerate(indices, 1))
            large.append([case, *indices[:8], total % 65521])
        else:
            all_indices += indices
    write(folder / "samplers.txt",
          "torch.utils.data.distributed.DistributedSampler\nsettings: samples, ranks, rank, "
          "seed / 65536, seed % 65536, epoch, drop_last, shuffle, indices\n"
          "indices: those of the small ones, one after the other; large: the case, its first 8 "
          "indices, and the\nsum of (i + 1) * indices[i], % 65521",
          {"settings": settings, "large": large, "indices": all_indices})


# ---- Making and checking -----------------------------------------------------------------------


def make(folder):
    torch.set_num_threads(1)
    torch.manual_seed(1)  # for initialisers only: elsewhere the formula replaces the layers' own
    for cases in (formula, simple_layers, convolutions, poolings, batch_norms, losses, optimizers,
                  clipping, loss_scaling, mixed_layers, initialisers, curves, bucket_assignments,
                  ddp_buckets, samplers):
        cases(folder)
    transformers(folder, uniform, write)


def differences(fresh, kept):
    """Equal means to 1e-4 of a tensor's largest value: another processor may sum in another order.

    A gradient that is 0 but for rounding (that of a bias before BatchNorm) is held to 1e-6. Sums
    that are rounded to 16 bits may round to the neighbour.
    """
    tolerance = {"linear_bfloat16": 2**-7, "linear_float16": 2**-10}.get(fresh.stem, 1e-4)
    fresh, kept = read(fresh), read(kept)
    if list(fresh) != list(kept):
        return ["its tensors are others"]
    found = []
    for name, (dimensions, values) in fresh.items():
        if dimensions != kept[name][0]:
            found.append(f"{name} has other dimensions")
            continue
        scale = max(0.01, *map(abs, values))
        worst = max(abs(a - b) for a, b in zip(values, kept[name][1]))
        if not worst <= tolerance * scale:
            found.append(f"{name} differs by {worst:.3g} where its largest value is {scale:.3g}")
    return found


def check():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        make(folder)
        names = {path.name for path in folder.iterdir()}
        kept = {path.name for path in DATA.iterdir() if ".in_" not in path.name}
        found = [f"{name}: only on one side" for name in sorted(names ^ kept)]
        for name in sorted(names & kept):
            found += [f"{name}: {text}" for text in differences(folder / name, DATA / name)]
    for text in found:
        print(text)
    if found:
        sys.exit("tests/golden/data is not what this script makes: run it without --check.")
    print(f"{len(names)} files are what PyTorch {torch.__version__.split('+')[0]} makes.")


def main():
    parser = argparse.ArgumentParser(description="Makes tests/golden/data with a real PyTorch.")
    parser.add_argument("--check", action="store_true", help="make them elsewhere and compare")
    if parser.parse_args().check:
        check()
    else:
        DATA.mkdir(exist_ok=True)
        make(DATA)


if __name__ == "__main__":
    main()
