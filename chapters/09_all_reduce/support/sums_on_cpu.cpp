// The sums of pack.cuh and all_ranks.cuh for a CPU, compiled once for all that call them.
#if !defined(DDP_CUDA)
#include "09_all_reduce/all_ranks.cuh"

namespace ddp {

DDP_ADD_ARRAYS()
DDP_REDUCE_CHUNKS()

}  // namespace ddp
#endif
