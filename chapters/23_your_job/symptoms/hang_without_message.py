# symptom: a hang without a message
# cause: one rank left the loop, or waits in a different place
# cause: the ranks call collectives in different orders
# cause: one rank was stopped, which mpirun does not notice (`ps -o pid,stat` says T; `kill -CONT`
#   lets it go on), or is swapping
# section: [17](17_unused_parameters/README.md#the-hang)
# decides: Where is each rank after a while?
import datetime
import faulthandler
import re
import sys
import tempfile

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=4))
sys.stderr = tempfile.TemporaryFile("w+")  # to read it below
faulthandler.dump_traceback_later(2)  # decides


def train(rank):
    if rank == 1:
        return  # the fault
    dist.all_reduce(torch.ones(1))


def validate():
    dist.barrier()


try:
    train(dist.get_rank())
    validate()
    dist.all_reduce(torch.ones(1))
except RuntimeError:
    pass
sys.stderr.seek(0)
print("stands in", *re.findall(r"in (train|validate)\b", sys.stderr.read()))
