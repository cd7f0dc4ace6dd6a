// The sums of all_reduce.cuh for a CPU, compiled once for all that call them.
#if !defined(DDP_CUDA)
#include "09_all_reduce/all_reduce.cuh"

namespace ddp {

DDP_SUMS()

}  // namespace ddp
#endif
