# symptom: "ChildFailedError" and "exitcode: -9", or "Signal 9 (SIGKILL)", from torchrun
# cause: exitcode -9: memory ran out, and the kernel or the job's limit killed a rank: see `dmesg`
#   or `sacct`. Each rank and each of its loader's workers holds a copy of the data that it loads
# cause: exitcode 1: an exception. Its traceback is further up, and `@record` repeats it here
# cause: exitcode -11: a crash in compiled code (`PYTHONFAULTHANDLER=1` prints its stack); exitcode
#   -15: torchrun or the cluster ended this rank, so look for an earlier failure on another one
# section: [environment](environment.md#who-am-i-and-where-are-the-others)
# decides: Which rank failed first? The others only lost a peer. torchrun prints it under "Root
#   Cause"; a launcher of your own asks.
import os
import signal

from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def train():
    if os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)  # the fault: as where memory has run out
    signal.pause()


if os.environ["RANK"] == "0":
    try:  # decides
        elastic_launch(LaunchConfig(1, 1, 2, rdzv_backend="c10d", rdzv_endpoint="localhost:0",
                                    start_method="fork"), train)()
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        print(f"rank {rank}: {failure.signal_name()}")  # decides
