# symptom: SIGTERM before a preemption, and the work since the last checkpoint is lost
# cause: no handler is installed
# cause: the handler saves inside a collective, and each rank saves at a different step
# cause: the shell or `srun` does not forward the signal
# section: [19](19_checkpoint_failover/README.md#told-to-end)
# decides: Who handles the signal?
import signal

import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 0:
    ends = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL  # decides
    print("SIGTERM ends the process at once" if ends else "a handler is installed")  # decides
