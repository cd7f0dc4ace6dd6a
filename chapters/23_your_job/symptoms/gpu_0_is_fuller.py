# symptom: GPU 0 uses more memory than the others
# cause: `torch.load` puts every tensor back on rank 0's device: `map_location`
# cause: a tensor was made on `cuda` before `torch.cuda.set_device(local_rank)`
# cause: rank 0 evaluates or collects results
# section: [19](19_checkpoint_failover/README.md#what-pytorch-does)
# decides: Where does the file say its tensors belong?
import io

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
# A CPU plays the GPU: what is saved here says that it belongs to cuda:0, as rank 0's file does.
torch.serialization.register_package(0, lambda storage: "cuda:0", lambda storage, place: None)
file = io.BytesIO()
torch.save(nn.Linear(4, 1, bias=False).state_dict(), file)
file.seek(0)
if rank == 0:
    torch.load(file, map_location=lambda storage, place:
               print("belongs to", place) or storage)  # decides
