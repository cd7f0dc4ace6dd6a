// The sums of all_ranks.cuh for a CPU, compiled once for all that call them.
#if !defined(DDP_CUDA)
#include "09_all_reduce/all_ranks.cuh"

namespace ddp {

DDP_REDUCE_CHUNKS()

}  // namespace ddp
#endif
