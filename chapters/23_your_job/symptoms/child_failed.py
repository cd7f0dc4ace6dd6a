# symptom: torchrun ends with "ChildFailedError" and "exitcode: -9", or "Signal 9 (SIGKILL)"
# cause: -9: memory ran out, and the kernel or the job's limit killed a rank: `dmesg`, `sacct`; what
#   each rank and each loader's worker loads counts that many times
# cause: exitcode 1: an exception, whose traceback is further up: `@record` repeats it here
# cause: -11: a crash in compiled code: `PYTHONFAULTHANDLER=1` prints its stack; -15: torchrun or
#   the cluster has ended it, so look at another rank, or above
# section: [environment](environment.md#who-am-i-and-where-are-the-others)
# decides: who was the first? The others only lost a peer. torchrun prints it as "Root Cause"
import os
import signal

from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def train():
    if os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)  # the fault: as where memory has run out
    signal.pause()


if os.environ["RANK"] == "0":
    try:
        elastic_launch(LaunchConfig(1, 1, 2, rdzv_backend="c10d", rdzv_endpoint="localhost:0",
                                    start_method="fork"), train)()
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()  # decides
        print(f"rank {rank}: {failure.signal_name()}")
