#!/usr/bin/env python3
"""What does this PyTorch do? Two processes with Gloo do what each question says; 0 prints JSON.

    PYTHON tests/golden/pytorch_questions.py

pytorch_versions.py holds a page to the answers, row by row. An answer is short, and the same in
every run: no times, no addresses. All weights and samples are counted, not drawn.
Each question has a process group of its own, so none inherits what another has left; what the ranks
tell each other about the answer goes past the group, which may have failed.
"""
import contextlib
import datetime
import inspect
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings

# Before PyTorch loads: one thread a rank, and all ranks are on this host.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
try:
    import torch
except ModuleNotFoundError:
    sys.exit(f"PyTorch is missing for {sys.executable}.")
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

RANKS = 2
TIME_LIMIT = datetime.timedelta(seconds=60)
TIME_LIMIT_OF_A_HANG = datetime.timedelta(seconds=6)

# ---- What the questions share --------------------------------------------------------------------


class TwoHeads(nn.Module):
    """A trunk, and two layers behind it; forward returns what `heads` names."""

    def __init__(self, heads="ab"):
        super().__init__()
        self.heads = heads
        self.trunk, self.a, self.b = nn.Linear(4, 3), nn.Linear(3, 2), nn.Linear(3, 2)
        count(self)

    def forward(self, x):
        outputs = [getattr(self, head)(self.trunk(x)) for head in self.heads]
        return outputs[0] if len(outputs) == 1 else outputs


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 3), nn.BatchNorm1d(3)
        count(self)

    def forward(self, x):
        return self.norm(self.linear(x))


def count(model):
    """Gives the weights values that are counted, and so the same in every version."""
    with torch.no_grad():
        for k, parameter in enumerate(model.parameters()):
            numbers = (torch.arange(parameter.numel()) * 3 + k) % 7 + 1
            parameter.copy_(numbers.reshape(parameter.shape) / 10)
    return model


def samples(rank, rows=3, columns=4):
    return torch.sin(torch.arange(rows * columns).reshape(rows, columns) + 10.0 * rank)


def mlp():
    return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                         nn.Linear(1024, 10))


class Meeting:
    """All ranks pass a value, and get those of all ranks: through files, not through the group."""

    def __init__(self, folder, rank):
        self.store = dist.FileStore(os.path.join(folder, "meeting"), RANKS)
        self.store.set_timeout(TIME_LIMIT)
        self.rank, self.number = rank, 0

    def everywhere(self, value):
        self.number += 1
        self.store.set(f"{self.number} {self.rank}", json.dumps(value))
        return [json.loads(self.store.get(f"{self.number} {rank}")) for rank in range(RANKS)]


def everywhere(value):
    return meeting.everywhere(value)


def are_equal(tensors):
    """Whether all ranks have the same, to the bit; None is a tensor that is not there."""
    values = everywhere([None if t is None else t.detach().tolist() for t in tensors])
    return all(each == values[0] for each in values)


def told_equal(model):
    equal = are_equal([parameter.grad for parameter in model.parameters()])
    return "equal gradients" if equal else "gradients differ by rank"


def error_of(work):
    """The kind of error and its first sentence, or None."""
    try:
        work()
    except Exception as error:  # whatever a version throws is its answer
        text = re.sub(r"\s+", " ", re.sub(r"\[rank\d+\]: ", "", str(error))).strip()
        if "Timed out" in text:
            return "waits until the time-out"
        if "ddress already in use" in text:
            return "the address is in use"
        return f"{type(error).__name__}: `{re.split(r'(?<=[.!]) ', text)[0].rstrip('.')}`"
    return None


def backward(ddp, rank, choose=lambda output: output):
    choose(ddp(samples(rank))).sum().backward()


def buckets_by_iteration(model, input, iterations=2, **arguments):
    """The bytes of each bucket that DistributedDataParallel hands to its hook."""
    ddp = DistributedDataParallel(model, **arguments)
    found = []

    def record(_, bucket):
        found[-1].append(bucket.buffer().numel() * 4)
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    ddp.register_comm_hook(None, record)
    for _ in range(iterations):
        found.append([])
        ddp(input).sum().backward()
    return found


def listed(buckets):
    return "; then ".join(" and ".join(f"{n:,}" for n in sizes) for sizes in buckets) + " bytes"


def names_of(function):
    names = inspect.signature(function).parameters
    return [name for name in names if name not in ("self", "_ranks")]


# ---- The loss and the graph ----------------------------------------------------------------------


def nothing_unused_with_the_flag(rank):
    """The first question: PyTorch warns once in a process."""
    ddp = DistributedDataParallel(TwoHeads(), find_unused_parameters=True)
    with tempfile.TemporaryFile() as file, stderr_into(file):
        backward(ddp, rank, lambda outputs: outputs[0] + outputs[1])
        file.seek(0)
        text = file.read().decode()
    found = re.search(r"find_unused_parameters=True was specified.*?unused parameters", text)
    return f"warns once: `{found[0]}`" if found else "no warning"


@contextlib.contextmanager
def stderr_into(file):
    """C++ writes its warnings there, past Python's sys.stderr."""
    kept = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def loss_leaves_out_an_output(rank):
    ddp = DistributedDataParallel(TwoHeads(), find_unused_parameters=True)
    for _ in range(2):
        ddp.zero_grad()
        error = error_of(lambda: backward(ddp, rank, lambda outputs: outputs[0]))
    left_out = "stays None" if ddp.module.b.weight.grad is None else "is a tensor"
    return error or f"no error; {told_equal(ddp)}; the other head's `.grad` {left_out}"


def loss_leaves_out_an_output_on_one_rank(rank):
    ddp = DistributedDataParallel(TwoHeads(), find_unused_parameters=True)
    error = error_of(lambda: backward(
        ddp, rank, lambda outputs: outputs[0] + (outputs[1] if rank == 0 else 0)))
    if error:
        return error
    alone = TwoHeads()
    backward(alone, 0, lambda outputs: outputs[0] + outputs[1])
    is_half = torch.allclose(ddp.module.b.weight.grad, alone.b.weight.grad / RANKS)
    return (f"no error; {told_equal(ddp)}, half of rank 0's on both" if all(everywhere(is_half))
            else "other gradients")


def old_gradient_after(rank, heads):
    """What becomes of a gradient that was not cleared, in a step whose loss uses the other head."""
    ddp = DistributedDataParallel(TwoHeads(), find_unused_parameters=True)
    backward(ddp, rank, lambda outputs: outputs[0] + outputs[1])
    with torch.no_grad():
        ddp.module.b.bias.grad.copy_(torch.tensor([1.0, 2.0]) + rank)
    ddp.module.heads = heads
    backward(ddp, rank, lambda outputs: outputs[0])
    found = everywhere(ddp.module.b.bias.grad.tolist())
    if found == [[1.0, 2.0], [2.0, 3.0]]:
        return "stays as it was on each rank"
    return "becomes the mean of the ranks' old ones" if found == [[1.5, 2.5]] * 2 else f"{found}"


def old_gradient_that_no_forward_uses(rank):
    return old_gradient_after(rank, "a")


def old_gradient_that_no_loss_uses(rank):
    return old_gradient_after(rank, "ab")


def unused_parameter_without_the_flag(rank):
    ddp = DistributedDataParallel(TwoHeads("a"))
    first = error_of(lambda: backward(ddp, rank))
    second = error_of(lambda: backward(ddp, rank))
    return f"first step: {first or 'no error'}; second: {second or 'no error'}"


def unused_parameter_with_debug_info(rank):
    before = dist.get_debug_level()
    dist.set_debug_level(dist.DebugLevel.INFO)
    try:
        ddp = DistributedDataParallel(TwoHeads("a"))
        backward(ddp, rank)
        ddp(samples(rank))
        return "no error"
    except RuntimeError as error:
        found = re.search(r"Parameters which did not receive grad[^:]*: ([^\n]*)", str(error))
        return (f"the error of the second step names `{found[1]}`" if found
                else "the error has no names")
    finally:
        dist.set_debug_level(before)


def static_graph_that_changes(rank):
    ddp = DistributedDataParallel(TwoHeads("a"), static_graph=True)
    backward(ddp, rank)
    ddp.zero_grad()
    ddp.module.heads = "b"
    error = error_of(lambda: [backward(ddp, rank) for _ in range(2)])
    return error or f"no error; {told_equal(ddp)}"


def static_graph_with_another_loss(rank):
    ddp = DistributedDataParallel(TwoHeads(), static_graph=True)
    backward(ddp, rank, lambda outputs: outputs[0])
    ddp.zero_grad()
    error = error_of(lambda: backward(ddp, rank, lambda outputs: outputs[1]))
    return error or f"no error; {told_equal(ddp)}"


# ---- A step --------------------------------------------------------------------------------------


def backward_in_evaluation(rank):
    ddp = DistributedDataParallel(Normed()).eval()
    for _ in range(2):
        ddp.zero_grad()
        error = error_of(lambda: backward(ddp, rank))
    return error or f"no error; {told_equal(ddp)}"


def buffers_in_forward(rank):
    ddp = DistributedDataParallel(Normed())
    told = []
    for kind in ("training", "evaluation", "evaluation", "no_grad", "no_grad"):
        ddp.train(kind == "training")
        if rank == 1:
            ddp.module.norm.running_mean.fill_(1e6)
        with torch.no_grad() if kind == "no_grad" else contextlib.nullcontext():
            output = ddp(samples(rank))
        taken = everywhere(bool(ddp.module.norm.running_mean[0] < 1e5))[1]
        told.append(f"{kind} {'yes' if taken else 'no'}")
        if kind == "training":
            output.sum().backward()
    return ", ".join(told)


def two_forwards_then_two_backwards(rank):
    ddp = DistributedDataParallel(count(nn.Linear(4, 2)))
    losses = [ddp(samples(rank + 2 * i)).sum() for i in range(2)]
    told = []
    for loss in losses:
        error = error_of(loss.backward)
        told.append(error or told_equal(ddp))
    return "; ".join(f"{name}: {text}" for name, text in zip(("first", "second"), told))


def past_the_wrapper(rank):
    ddp = DistributedDataParallel(count(nn.Linear(4, 2)))
    error = error_of(lambda: ddp.module(samples(rank)).sum().backward())
    return error or f"no error; {told_equal(ddp)}"


def no_sync_around_backward_only(rank):
    ddp = DistributedDataParallel(count(nn.Linear(4, 2)))
    loss = ddp(samples(rank)).sum()
    with ddp.no_sync():
        loss.backward()
    around_backward = told_equal(ddp)
    ddp.zero_grad()
    with ddp.no_sync():
        ddp(samples(rank)).sum().backward()
    return f"{around_backward}; around both: {told_equal(ddp)}"


def not_a_number_on_one_rank(rank):
    ddp = DistributedDataParallel(count(nn.Linear(4, 2)))
    (ddp(samples(rank)).sum() * (float("nan") if rank == 1 else 1)).backward()
    found = everywhere(bool(torch.isnan(ddp.module.weight.grad).any()))
    return "NaN on all ranks" if all(found) else "NaN on one rank"


def cross_entropy_of_uneven_tokens(rank):
    """Rank 0 has one token and two of padding, rank 1 has three tokens."""
    padding = -100
    labels = {0: torch.tensor([1, padding, padding]), 1: torch.tensor([0, 1, 1])}
    ddp = DistributedDataParallel(count(nn.Linear(4, 2)))
    nn.CrossEntropyLoss(ignore_index=padding)(ddp(samples(rank)), labels[rank]).backward()
    alone = count(nn.Linear(4, 2))
    outputs = alone(torch.cat([samples(0), samples(1)]))
    nn.CrossEntropyLoss(ignore_index=padding)(outputs, torch.cat([labels[0], labels[1]])).backward()
    is_mean = torch.allclose(ddp.module.weight.grad, alone.weight.grad)
    return ("the mean over all tokens" if is_mean
            else f"no error; {told_equal(ddp)}, not those of the mean over all tokens")


def uneven_inputs_with_join(rank):
    ddp = DistributedDataParallel(count(nn.Linear(4, 2)))

    def train():
        with ddp.join():
            for step in range(2 + rank):
                ddp(samples(rank + 2 * step)).sum().backward()

    return error_of(train) or "no error; " + (
        "equal" if are_equal(list(ddp.parameters())) else "different") + " parameters"


# ---- The model -----------------------------------------------------------------------------------


class Pair(nn.Module):
    """Two weights of one shape, listed in either order."""

    def __init__(self, names):
        super().__init__()
        for name in names:
            self.register_parameter(name, nn.Parameter(torch.full((2, 2), float(name[1:]))))

    def forward(self, x):
        return x @ self.w1 @ self.w2


def another_order_of_parameters(rank):
    made, names = [], ("w1", "w2") if rank == 0 else ("w2", "w1")
    error = error_of(lambda: made.append(DistributedDataParallel(Pair(names))))
    if any(everywhere(error)):
        return error
    w1 = everywhere(made[0].module.w1[0, 0].item())
    return "no error; w1 is " + " and ".join(f"{value:g}" for value in w1) + " on ranks 0 and 1"


def error_by_rank(work):
    told = [error or "no error" for error in everywhere(error_of(work))]
    return "; ".join(f"rank {rank}: {text}" for rank, text in enumerate(told))


def another_shape_on_one_rank(rank):
    return error_by_rank(lambda: DistributedDataParallel(nn.Linear(4, 2 + rank)))


def another_number_of_parameters(rank):
    return error_by_rank(lambda: DistributedDataParallel(nn.Linear(4, 2, bias=rank == 0)))


def wrapped_names(rank):
    bare = TwoHeads()
    state = DistributedDataParallel(TwoHeads()).state_dict()
    name = next(iter(state))
    error = error_of(lambda: bare.load_state_dict(state))
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    again = error_of(lambda: bare.load_state_dict(state))
    kind = error.split(":")[0] if error else "no error"
    return f"`{name}`; {kind}; without the prefix: {again or 'loads'}"


def sync_batch_norm_on_a_cpu(rank):
    model = nn.SyncBatchNorm.convert_sync_batchnorm(Normed())
    return error_of(lambda: DistributedDataParallel(model)(samples(rank))) or "runs"


# ---- Buckets -------------------------------------------------------------------------------------


def buckets_by_default(rank):
    return listed(buckets_by_iteration(mlp(), torch.ones(1, 784)))


def buckets_with_25(rank):
    return listed(buckets_by_iteration(mlp(), torch.ones(1, 784), bucket_cap_mb=25))


def buckets_with_a_list(rank):
    return listed(buckets_by_iteration(mlp(), torch.ones(1, 784), bucket_cap_mb_list=[1, 4]))


def buckets_with_find_unused(rank):
    return listed(buckets_by_iteration(mlp(), torch.ones(1, 784), find_unused_parameters=True))


def gradients_as_views(rank):
    told = []
    for set_to_none in (True, False):
        ddp = DistributedDataParallel(count(nn.Linear(4, 2)), gradient_as_bucket_view=True)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        for _ in range(3):  # the buckets are rebuilt before the second
            optimizer.zero_grad(set_to_none=set_to_none)
            before = ddp.module.weight.grad
            backward(ddp, rank)
        told.append("kept" if before is ddp.module.weight.grad else "made anew")
    default = inspect.signature(torch.optim.SGD.zero_grad).parameters["set_to_none"].default
    return f"`.grad` is {told[0]} with True and {told[1]} with False; the default is {default}"


# ---- Data ----------------------------------------------------------------------------------------


def epochs_without_set_epoch(rank):
    sampler = DistributedSampler(range(24), RANKS, rank)
    first, second = list(sampler), list(sampler)
    sampler.set_epoch(1)
    return f"{'the same order' if first == second else 'another order'}; with set_epoch(1): " + (
        "the same order" if list(sampler) == first else "another order")


def loader_with_sampler_and_shuffle(rank):
    sampler = DistributedSampler(range(24), RANKS, rank)
    return error_of(lambda: DataLoader(range(24), sampler=sampler, shuffle=True)) or "no error"


def samplers_of_one_process(rank):
    def alone(samples, **options):
        sampler = DistributedSampler(range(samples), 1, 0, **options)
        sampler.set_epoch(3)
        return list(sampler)

    def shuffled(samples, seed):
        generator = torch.Generator().manual_seed(seed + 3)
        return list(RandomSampler(range(samples), generator=generator))

    cases = [(samples, seed) for samples in (1, 7, 100) for seed in (0, 5)]
    is_shuffled = all(alone(samples, seed=seed) == shuffled(samples, seed)
                      for samples, seed in cases)
    in_order = all(alone(samples, shuffle=False) == list(SequentialSampler(range(samples)))
                   for samples, _ in cases)
    return ("`RandomSampler` with a generator of `seed + epoch`: "
            f"{'equal' if is_shuffled else 'other orders'}; "
            f"`SequentialSampler` with `shuffle=False`: {'equal' if in_order else 'other orders'}")


def next_of_a_new_iterator(rank):
    sampler = DistributedSampler(range(24), RANKS, rank)
    loader = DataLoader(range(24), batch_size=4, sampler=sampler)
    new = [next(iter(loader)).tolist() for _ in range(4)]
    iterator = iter(loader)
    error = error_of(lambda: [next(iterator) for _ in range(4)])
    same = all(each == new[0] for each in new)
    return f"{'the same batch' if same else 'other batches'} four times; " + (
        f"one iterator ends with {error.split(':')[0]}" if error else "one iterator goes on")


# ---- Signatures and defaults ---------------------------------------------------------------------


def seconds(limit):
    return f"{int(limit.total_seconds()) // 60} minutes" if limit else "none"


def time_outs(rank):
    constants = torch.distributed.constants
    return f"{seconds(constants.default_pg_timeout)}; NCCL: " + seconds(
        constants.default_pg_nccl_timeout)


def port_that_is_in_use(rank):
    first = dist.TCPStore("127.0.0.1", 0, 1, True, TIME_LIMIT, wait_for_workers=False)
    with tempfile.TemporaryFile() as file, stderr_into(file):
        error = error_of(lambda: dist.TCPStore("127.0.0.1", first.port, 1, True, TIME_LIMIT,
                                               wait_for_workers=False))
    return f"an error: {error}"


def post_accumulate_hook(rank):
    return "yes" if hasattr(torch.Tensor, "register_post_accumulate_grad_hook") else "no"


def load_weights_only(rank):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file.pt")
        torch.save({"function": print}, path)
        error = error_of(lambda: torch.load(path))
    return f"refused: {error.split(':')[0]}" if error else "runs what the file says"


def power_sgd_start(rank):
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    parameters = inspect.signature(powerSGD_hook.PowerSGDState).parameters

    def at_1(**options):
        refused = error_of(lambda: powerSGD_hook.PowerSGDState(
            None, start_powerSGD_iter=1, **options))
        return "refused" if refused else "accepted"

    return (f"iteration {parameters['start_powerSGD_iter'].default}; 1 is {at_1()}, and "
            f"{at_1(use_error_feedback=False, warm_start=False)} without error feedback and warm "
            "start")


def worker_of(module, ranks, *options):
    """The variables that this launcher adds, and the arguments of its first worker."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "worker.py")
        with open(path, "w") as worker:
            worker.write("import json, os, sys\nif os.environ['RANK'] == '0': json.dump("
                         f"[dict(os.environ), sys.argv[1:]], open({path + '.json'!r}, 'w'))\n")
        before = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        subprocess.run([sys.executable, "-m", module, "--nproc_per_node", str(ranks),
                        "--master_port", "0", *options, path],
                       env=before, check=True, capture_output=True, timeout=60)
        with open(path + ".json") as file:
            variables, arguments = json.load(file)
    return {name: value for name, value in variables.items() if name not in before}, arguments


def variables_of_torchrun(rank):
    if rank != 0:
        return None
    variables, _ = worker_of("torch.distributed.run", RANKS)
    values = {name: f"={value}" for name, value in variables.items()
              if re.search("OMP_NUM|RUN_ID|ASYNC_ERROR", name)}
    return ", ".join(f"`{name}{values.get(name, '')}`" for name in sorted(variables))


def arguments_of_launch(rank):
    if rank != 0:
        return None
    told = []
    for options in ((), ("--use_env",)):
        _, arguments = worker_of("torch.distributed.launch", 1, *options)
        told.append(f"`{arguments[0]}`" if arguments else "nothing")
    return f"{told[0]}; with `--use_env`: {told[1]}"


def said_of(work):
    """What this version says of an old way: "refused", "deprecated" or "works"."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            work()
        except Exception:  # whatever a version throws
            return "refused"
    words = [str(warning.message) for warning in said]
    return "deprecated" if any("deprecated" in each for each in words) else "works"


def call(main, *options):
    """Calls a launcher's main function. With --help it starts nothing, nor with what it refuses."""
    try:
        nowhere = io.StringIO()
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            main(list(options))
    except SystemExit as end:
        if end.code:
            raise ValueError(end.code) from None


def old_ways(rank):
    import torch.distributed.launch
    import torch.distributed.run
    model = nn.Linear(2, 2)
    ways = {
        "python -m torch.distributed.launch":
            lambda: call(torch.distributed.launch.main, "--help"),
        "torchrun --use_env": lambda: call(torch.distributed.run.main, "--use_env", "worker.py"),
        'backend="tcp"': lambda: dist.new_group([0, 1], backend="tcp"),
        "DataParallel": lambda: nn.DataParallel(model),
        "dist.reduce_op": lambda: dist.reduce_op.SUM,
        "all_reduce_multigpu": lambda: dist.all_reduce_multigpu,
        "check_reduction=True": lambda: DistributedDataParallel(model, check_reduction=True),
        "broadcast_buffers=False": lambda: DistributedDataParallel(model, broadcast_buffers=False),
        "torch.cuda.amp.autocast()": lambda: torch.cuda.amp.autocast(),
        "torch.cuda.amp.GradScaler()": lambda: torch.cuda.amp.GradScaler(),
    }
    said = {name: said_of(way) for name, way in ways.items()}
    return "; ".join(
        f"{kind}: " + ", ".join(f"`{name}`" for name, what in said.items() if what == kind)
        for kind in ("refused", "deprecated", "works"))


def constructor_arguments(rank):
    return ", ".join(f"`{name}`" for name in names_of(DistributedDataParallel.__init__))


def init_process_group_arguments(rank):
    return ", ".join(f"`{name}`" for name in names_of(dist.init_process_group))


# ---- Asking --------------------------------------------------------------------------------------

QUESTIONS = [value for value in list(globals().values()) if inspect.isfunction(value)
             and value.__module__ == __name__
             and list(inspect.signature(value).parameters) == ["rank"]]


def answer_all(rank, folder):
    global meeting
    torch.set_num_threads(1)
    meeting = Meeting(folder, rank)
    answers = {}
    for ask in QUESTIONS:
        name = ask.__name__
        store = dist.FileStore(os.path.join(folder, name), RANKS)
        limit = TIME_LIMIT_OF_A_HANG if ask is another_shape_on_one_rank else TIME_LIMIT
        dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS, timeout=limit)
        try:
            answers[name] = ask(rank)
        except Exception as error:
            answers[name] = f"ERROR {type(error).__name__}: {error}"
        if "-v" in sys.argv:
            print(rank, name, answers[name], file=sys.stderr)
        everywhere(None)
        dist.destroy_process_group()
    return answers


def main():
    if "RANK_OF_QUESTION" in os.environ:
        answer_all(int(os.environ["RANK_OF_QUESTION"]), sys.argv[-1])
        return
    with tempfile.TemporaryDirectory() as folder:
        other = subprocess.Popen([sys.executable, "-B", __file__, *sys.argv[1:], folder],
                                 env={**os.environ, "RANK_OF_QUESTION": "1"})
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                answers = answer_all(0, folder)
            other.wait(60)
        finally:
            other.kill()
    print(json.dumps({"version": torch.__version__.split("+")[0], "answers": answers}, indent=1))


if __name__ == "__main__":
    main()
