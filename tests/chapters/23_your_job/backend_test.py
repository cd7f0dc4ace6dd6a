#!/usr/bin/env python3
"""The book under PyTorch: every operation of the backend ddp_by_hand on one to four ranks,
DistributedDataParallel beside Gloo, what fails and how that is told, and the reader's all-reduce.
backend_test.py FOLDER: FOLDER/by_hand and FOLDER/mine hold the modules, and are built first, the
latter with the solution of the exercise.
"""
import datetime
import functools
import hashlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

ROOT = pathlib.Path(__file__).resolve().parents[3]
CHAPTER = ROOT / "chapters" / "23_your_job"
MODULES = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(CHAPTER))
from support import ranks  # noqa: E402

failures = []
COUNTS = (0, 1, 17, 1000, 1_048_577, 2_100_001)  # the last two are more than a slice of the arena


def complain(words):
    failures.append(words)
    print(f"FAILED: {words}", flush=True)


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def build():
    if not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists():
        print("SKIPPED: Python's headers are not here: apt install python3-dev.")
        sys.exit(77)
    solution = ROOT / "solutions" / "09_all_reduce" / "halving_doubling.cu"
    for command in (["-S", CHAPTER / "backend", "-B", MODULES, f"-DDDP_PYTHON={sys.executable}",
                     f"-DDDP_ANSWER={solution}"],
                    ["--build", MODULES, "--parallel", "2", "--target", "_ddp_by_hand_by_hand",
                     "_ddp_by_hand_mine"]):
        result = run("cmake", *command)
        if result.returncode != 0:
            sys.exit("FAILED: the backend was not built:\n"
                     f"{result.stdout[-3000:]}{result.stderr[-3000:]}")
    module = MODULES / "by_hand" / "ddp_by_hand" / "_ddp_by_hand.so"
    symbols = run("nm", "-D", "--defined-only", module).stdout
    names = [line.split()[-1] for line in symbols.splitlines()]
    shown = [name for name in names if name.startswith(("cuda", "cublas"))]
    if shown or "PyInit__ddp_by_hand" not in symbols:
        complain(f"the module shows {shown} to PyTorch")


def start(module="by_hand", timeout_s=60):
    """Registers the backend in this process, and begins its default group."""
    sys.path.insert(0, str(MODULES / module))
    import ddp_by_hand  # noqa: F401
    dist.init_process_group("ddp_by_hand", timeout=datetime.timedelta(seconds=timeout_s))


# ---- Every operation -----------------------------------------------------------------------------
def operations(rank, world_size):
    """Returns what was wrong. Values encode rank and index; their sums are exact in every type."""
    start()
    wrong = []
    everybody = range(world_size)

    def data(of_rank, count, kind):
        return ((torch.arange(count) % 13) + 3 * of_rank + 1).to(kind)

    def of_all(count, kind=torch.float32):
        return [data(r, count, kind) for r in everybody]

    def check(what, found, right):
        if not torch.equal(found, right.to(found.dtype)):
            wrong.append(f"{what}: {found.flatten()[:8].tolist()} is not "
                         f"{right.flatten()[:8].tolist()}")

    ops = {"SUM": lambda all: all.sum(0), "MAX": lambda all: all.amax(0),
           "MIN": lambda all: all.amin(0), "PRODUCT": lambda all: all.prod(0)}
    for kind in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32,
                 torch.int64, torch.uint8):
        for count in COUNTS if kind == torch.float32 else COUNTS[:4]:
            all = torch.stack(of_all(count, torch.float64))
            for name, reduced in ops.items():
                if name == "PRODUCT" and kind not in (torch.float64, torch.int64):
                    continue
                mine = data(rank, count, kind)
                dist.all_reduce(mine, op=getattr(dist.ReduceOp, name))
                check(f"all_reduce {name} of {count} {kind}", mine, reduced(all))
            for root in everybody:
                mine = data(rank, count, kind)
                dist.broadcast(mine, root)
                check(f"broadcast of {count} {kind} from {root}", mine, data(root, count, kind))
                mine = data(rank, count, kind)
                dist.reduce(mine, root)
                check(f"reduce of {count} {kind} to {root}", mine, all.sum(0) if rank == root
                      else data(rank, count, kind))
                outputs = [torch.empty(count, dtype=kind) for _ in everybody]
                dist.gather(data(rank, count, kind), outputs if rank == root else None, root)
                for output, right in zip(outputs, of_all(count, kind) if rank == root else ()):
                    check(f"gather of {count} {kind} to {root}", output, right)
            outputs = [torch.empty(count, dtype=kind) for _ in everybody]
            dist.all_gather(outputs, data(rank, count, kind))
            for r, (output, right) in enumerate(zip(outputs, of_all(count, kind))):
                check(f"all_gather of {count} {kind}, part {r}", output, right)
            whole = torch.empty(world_size * count, dtype=kind)
            dist.all_gather_into_tensor(whole, data(rank, count, kind))
            check(f"all_gather_into_tensor of {count} {kind}", whole,
                  torch.cat(of_all(count, kind)))
            if kind in (torch.int64, torch.uint8):
                continue
            parts = [data(rank, count, kind) + part for part in everybody]
            expected = (all + rank).sum(0)
            mine = torch.empty(count, dtype=kind)
            dist.reduce_scatter(mine, parts)
            check(f"reduce_scatter of {count} {kind}", mine, expected)
            mine = torch.empty(count, dtype=kind)
            dist.reduce_scatter_tensor(mine, torch.cat(parts))
            check(f"reduce_scatter_tensor of {count} {kind}", mine, expected)
    mean = torch.full((1001,), float(rank))
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    check("all_reduce AVG", mean, torch.full((1001,), sum(everybody) / world_size))
    square = data(rank, 35, torch.float32).view(5, 7)
    column = square[:, 2]
    dist.all_reduce(column)
    check("all_reduce of a column", column, sum(of_all(35)).view(5, 7)[:, 2])
    check("... and what lies beside it", square[:, 3], of_all(35)[rank].view(5, 7)[:, 3])
    several = [data(rank, 1000 * (i + 1), torch.float32) for i in range(20)]
    works = [dist.all_reduce(each, async_op=True) for each in several]
    for i, (work, each) in enumerate(zip(works, several)):
        work.wait()
        if not work.is_completed():
            wrong.append("a work that was waited for is not completed")
        check(f"all_reduce {i} of 20 at once", each, sum(of_all(1000 * (i + 1))))
    future = dist.all_reduce(torch.ones(5), async_op=True).get_future()
    check("the future of a work", future.wait()[0], torch.full((5,), float(world_size)))
    objects = [None] * world_size
    dist.all_gather_object(objects, {"rank": rank})
    if objects != [{"rank": r} for r in everybody]:
        wrong.append(f"all_gather_object: {objects}")
    dist.barrier()
    parts, ones = [torch.empty(2) for _ in everybody], torch.ones(3 * world_size + 1)
    for call, words in (
            (lambda: dist.all_reduce(torch.ones(3).to_sparse()), "takes dense tensors"),
            (lambda: dist.all_gather(parts, torch.ones(3)), "differs from the input"),
            (lambda: dist.reduce_scatter_tensor(torch.empty(3), ones), "times the elements"),
            (lambda: dist.scatter(parts[0], parts if rank == 0 else None), "support scatter")):
        try:
            call()
            wrong.append(f"'{words}' was not said")
        except (RuntimeError, ValueError) as error:
            if words not in str(error):
                wrong.append(f"'{words}' is not in {error}")
    dist.destroy_process_group()
    return wrong


def look_at_operations():
    for world_size in (1, 2, 3, 4):
        answers = ranks.run(lambda rank, size=world_size: operations(rank, size), world_size)
        for rank, wrong in enumerate(answers):
            if wrong != []:
                complain(f"operations of {world_size} ranks, rank {rank}: {wrong and wrong[:5]}")


# ---- DistributedDataParallel ---------------------------------------------------------------------
def train(rank, backend, module="by_hand", steps=100):
    if backend == "gloo":
        dist.init_process_group("gloo")
    else:
        start(module)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(31, 300), nn.BatchNorm1d(300), nn.ReLU(), nn.Linear(300, 300),
                          nn.ReLU(), nn.Linear(300, 7))
    model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    torch.manual_seed(1 + rank)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(torch.randn(16, 31)), torch.randint(7, (16,))).backward()
        optimizer.step()
    bits = b"".join(each.detach().numpy().tobytes() for each in model.parameters())
    dist.destroy_process_group()
    return hashlib.sha256(bits).hexdigest()


def compress(rank):
    """Returns the hash of a step's gradients by PowerSGD, whose hook waits inside of callbacks."""
    start()
    torch.manual_seed(0)
    layers = [torch.nn.Linear(64, 64) for _ in range(4)]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers),
                                                      bucket_cap_mb=0.02)
    state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    for _ in range(6):
        model.zero_grad()
        model(torch.randn(6, 64) + rank).sum().backward()
    bits = b"".join(each.grad.numpy().tobytes() for each in model.parameters())
    dist.destroy_process_group()
    return hashlib.sha256(bits).hexdigest()


def look_at_training():
    hashes = ranks.run(compress)
    if None in hashes or len(set(hashes)) != 1:
        complain(f"PowerSGD's hook, in several buckets: {hashes}")
    gloo = ranks.run(lambda rank: train(rank, "gloo"))
    for module in ("by_hand", "mine"):
        ours = ranks.run(functools.partial(train, backend="ddp_by_hand", module=module))
        if None in gloo or len(set(gloo + ours)) != 1:
            complain(f"100 steps on 2 ranks, {module}: {ours}, and by Gloo {gloo}")
        for world_size in (3, 4):
            ours = ranks.run(functools.partial(train, backend="ddp_by_hand", module=module,
                                               steps=20), world_size)
            if None in ours or len(set(ours)) != 1:
                complain(f"steps on {world_size} ranks, {module}: {ours}")


# ---- What fails ----------------------------------------------------------------------------------
def fail(rank, how):
    """Returns the words of the exception that ends an all-reduce, and after how many seconds."""
    start()
    dist.all_reduce(torch.ones(10))
    dist.barrier()
    begin = time.monotonic()
    try:
        if how == "kill":
            if rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            dist.all_reduce(torch.ones(5000))
        elif how == "size":
            dist.all_reduce(torch.ones(1000 + rank))
        elif how == "size of the last slice":
            dist.all_reduce(torch.ones((3 << 20) + rank))
        elif how == "operation":
            dist.barrier() if rank == 1 else dist.broadcast(torch.ones(1000), 0)
    except RuntimeError as error:
        words, seconds = str(error), time.monotonic() - begin
        try:
            dist.all_reduce(torch.ones(3))
            words += " ... but the next call succeeds"
        except RuntimeError as error:
            words += "" if "all_reduce sum of 3 float: " in str(error) else f" ... and then {error}"
        dist.destroy_process_group()
        return words, seconds
    return "no exception", 0


FAILURES = {"kill": (0, ["all_reduce sum of 5000 float: rank 1 (process ",
                         "ended without saying why: was it killed?"]),
            "size": (1, ["all_reduce sum of 1001 float: rank ", ": in operation ", ", but rank ",
                         "all_reduce sum of 1000 float", "all ranks must do the same"]),
            "size of the last slice": (0, ["all_reduce sum of 3145728 float: ", "of 3145729"]),
            "operation": (0, ["broadcast of 4000 byte from rank 0", "barrier"])}


def look_at_failures():
    for how, (rank, words) in FAILURES.items():
        answer = ranks.run(functools.partial(fail, how=how))[rank]
        if answer is None or not all(part in answer[0] for part in words) or " ... " in answer[0]:
            complain(f"{how}: rank {rank} says {answer}")
        else:
            print(f"{how}: told after {answer[1]:.2f} s", flush=True)


SCRIPT = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
data = torch.arange(5.) + rank
dist.all_reduce(data)
assert dist.get_backend() == "ddp_by_hand", dist.get_backend()
assert data.tolist() == [1., 3., 5., 7., 9.]
HOW
print("rank", rank, "ends")
"""
ENDS = {"dist.destroy_process_group()": (0, []), "": (0, []),
        "if rank == 1: raise ValueError('no such file')\ntry: dist.all_reduce(data)\n"
        "except RuntimeError as error: print(error)":
            (1, ["all_reduce sum of 5 float: rank 1 (process ",
                 "its program has ended by ValueError: no such file"])}


def look_at_scripts():
    environment = {**os.environ, "PYTHONPATH": str(MODULES / "by_hand"), "OMP_NUM_THREADS": "1",
                   "PYTHONWARNINGS": "ignore", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                   "MASTER_PORT": PORT}
    with tempfile.TemporaryDirectory() as folder:
        for how, (status, words) in ENDS.items():
            script = pathlib.Path(folder) / "train.py"
            script.write_text(SCRIPT.replace("HOW", how))
            # torchrun ends a rank when another one has failed: these are started by hand.
            command = [sys.executable, "-B", "-m", "ddp_by_hand", str(script)]
            children = [subprocess.Popen(
                command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env={**environment, "RANK": rank, "LOCAL_RANK": rank}) for rank in "01"]
            outputs = [child.communicate(timeout=300)[0] for child in children]
            codes = [child.returncode for child in children]
            if codes != [0, status] or not all(part in outputs[0] for part in words):
                complain(f"a script that ends by '{how}': {codes} {outputs}")
            if status == 0 and outputs != [f"rank {rank} ends\n" for rank in range(2)]:
                complain(f"a script that ends by '{how}' prints {outputs}")


PLAIN_SCRIPT = """
import sys, torch, torch.distributed as dist
dist.init_process_group("ddp_by_hand")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
model(torch.full((2, 3), float(rank))).sum().backward()
assert [*model.module.parameters()][0].grad.tolist() == [[1., 1., 1.]]
sys.stdout.write(f"rank {rank} trains over {dist.get_backend()}\\n")  # in one piece
dist.destroy_process_group()
"""


def look_at_torchrun():
    """Installs the package into a folder, as pip does anywhere, and starts a plain script there."""
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "train.py"
        script.write_text(PLAIN_SCRIPT)
        torchrun = [pathlib.Path(sys.executable).with_name("torchrun"), "--nproc-per-node", "2",
                    "--master-port", PORT]
        target = f"{folder}/site"
        options = {"timeout": 300,
                   "env": {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": target}}
        result = run(sys.executable, "-m", "pip", "install", "--quiet",
                     "--disable-pip-version-check", "--no-deps", "--no-build-isolation",
                     "--no-index", "--target", target, MODULES / "by_hand")
        if result.returncode != 0:
            complain(f"the package is not installed: {result.stdout}{result.stderr}")
            return
        result = run(*torchrun, script, **options)
        lines = [f"rank {rank} trains over ddp_by_hand" for rank in range(2)]
        if result.returncode != 0 or sorted(result.stdout.splitlines()) != lines:
            complain(f"a plain script: {result.returncode} {result.stdout}{result.stderr}")
        # What `import torch` loads is small: the book itself comes with the first group. And either
        # may be imported first.
        for first, second in (("sys", "torch"), ("torch", "ddp_by_hand"), ("ddp_by_hand", "torch")):
            shows = (f"import sys, {first}, {second}, torch.distributed as dist; "
                     "print([name for name in sys.modules if 'ddp_by_hand' in name], "
                     "'ddp_by_hand' in dist.Backend.backend_list)")
            result = run(sys.executable, "-c", shows, **options)
            if result.stdout != "['ddp_by_hand'] True\n":
                complain(f"`import {first}, {second}` loads {result.stdout}{result.stderr}")
        result = run(*torchrun, "-m", "ddp_by_hand", script, **options)
        if result.returncode != 0 or result.stdout.count("trains over ddp_by_hand") != 2:
            complain(f"torchrun -m ddp_by_hand: {result.returncode} {result.stdout}{result.stderr}")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


PORT = free_port()


def main():
    build()
    ranks.load()
    look_at_operations()
    look_at_training()
    look_at_failures()
    look_at_scripts()
    look_at_torchrun()
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
