# symptom: "Timed out waiting ... for recv operation" after a hang (Gloo)
# cause: a rank never came: an exception, an early `return`
# cause: a rank is slow: its first batch, a compilation, a file system
# cause: a firewall or the wrong interface is in the way: `GLOO_SOCKET_IFNAME`, `NCCL_SOCKET_IFNAME`
# section: [17](17_unused_parameters/README.md#the-report)
# decides: A barrier on rank 0 names the missing rank.
import datetime
import re
import time

import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 1:
    time.sleep(4)  # the fault: rank 1 does not come
else:
    try:
        dist.monitored_barrier(timeout=datetime.timedelta(seconds=2))  # decides
    except RuntimeError as error:
        print(re.search(r"Rank 1 failed to pass monitoredBarrier|[^\n]*", str(error)).group())
