# symptom: "Missing key(s) in state_dict", and every name in the file is unexpected
# cause: the file is the wrapped model's, and a bare model loads it: save
#   `model.module.state_dict()`
# cause: the file is a bare model's, and the wrapped model loads it: load into `model.module`
# cause: `torch.compile` put `_orig_mod.` in front of each name, or it is a different model
# section: [19](19_checkpoint_failover/README.md#the-file)
# decides: Compare the first name in the file and in the model.
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
checkpoint = {"model": DistributedDataParallel(model).state_dict()}  # the fault
try:
    model.load_state_dict(checkpoint["model"])
except RuntimeError:
    if dist.get_rank() == 0:
        print(next(iter(checkpoint["model"])), "in the file,",
              next(iter(model.state_dict())), "in the model")  # decides
