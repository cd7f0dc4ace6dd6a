"""A real torchrun starts the book's programs: torchrun_test.py RANKS_SCENARIO

In each of the forms in which people start it, with its store at MASTER_PORT and without; from two
agents, as on two nodes; and once more after a failure, when the store still has what the first
attempt left there.
"""
import os
import socket
import subprocess
import sys

scenario = sys.argv[1]
torchrun = [sys.executable, "-m", "torch.distributed.run", "--no-python"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def start(options, program, environment=None):
    command = torchrun + options.split() + program
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "DDP_NODE": "here", **(environment or {})})


def output_of(job):
    output, errors = job.communicate(timeout=120)
    assert job.returncode == 0, f"{job.args}: {job.returncode}\n{output}\n{errors}"
    return output


def met(ranks):
    return f"world size {ranks}, local" + "".join(f" {r}/{ranks}" for r in range(ranks)) + "\n"


def every_form_starts():
    apart = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    at_port = "--master-addr 127.0.0.1 --master-port"
    meeting = "--rdzv-backend c10d --rdzv-id mine --rdzv-endpoint localhost:"
    for form, store in (("", {}), ("--standalone", apart), (f"{at_port} {free_port()}", {}),
                        (f"{at_port} {free_port()}", apart), (meeting + free_port(), {})):
        output = output_of(start(f"--nproc-per-node 3 {form}", [scenario], store))
        assert output == met(3), f"{form} {store}: {output}"


def two_agents_start_one_job():
    common = f"--nnodes 2 --nproc-per-node 2 --master-addr 127.0.0.1 --master-port {free_port()}"
    agents = [start(f"{common} --node-rank {node}", [scenario]) for node in (1, 0)]
    outputs = [output_of(agent) for agent in agents]
    assert "".join(outputs) == met(4), outputs


def a_second_attempt_meets_anew():
    script = '((TORCHELASTIC_RESTART_COUNT)) || exec "$0" --what throw --victim 1; exec "$0"'
    output = output_of(start("--standalone --nproc-per-node 3 --max-restarts 1",
                             ["bash", "-c", script, scenario]))
    assert output == met(3), output


def one_failure_ends_all():
    job = start("--standalone --nproc-per-node 3", [scenario, "--what", "throw", "--victim", "1"])
    _, errors = job.communicate(timeout=120)
    assert job.returncode != 0
    assert errors.count("broken on purpose") == 1, errors


for test in (every_form_starts, two_agents_start_one_job, a_second_attempt_meets_anew,
             one_failure_ends_all):
    test()
    print(test.__name__.replace("_", " "), flush=True)
