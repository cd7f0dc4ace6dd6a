# symptom: "Missing key(s) in state_dict", and every name of the file is unexpected
# cause: the wrapped model was saved, and a bare one loads the file: save
#   `model.module.state_dict()`
# cause: the other way round: the wrapped model loads a file of a bare one: load into `model.module`
# cause: `torch.compile` has put `_orig_mod.` in front of each name, or it is another model
# section: [19](19_checkpoint_failover/README.md#the-file)
# decides: the first name in the file, and the first one in the model
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
checkpoint = {"model": model.state_dict()}  # the fault: the wrapper's names

bare = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
try:
    bare.load_state_dict(checkpoint["model"])
except RuntimeError:
    if dist.get_rank() == 0:
        print(next(iter(checkpoint["model"])), "in the file,",
              next(iter(bare.state_dict())), "in the model")  # decides
