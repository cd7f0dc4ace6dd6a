// The exercise narrow_wire: half of the bytes. Read exercises/09_all_reduce/README.md first.
#include "exercises/09_all_reduce/narrow_wire.hpp"

#include "07_broadcast/transfer.cuh"
#include "09_all_reduce/all_reduce.cuh"
#include "09_all_reduce/all_reduce.hpp"

namespace ddp {
namespace {

// Your kernels go here. What you need is in 09_all_reduce/all_reduce.cuh: handshake_all() waits
// until all ranks have begun the operation, and view.data_of(r, offsets_of(collective, r)) is the
// address of rank r's array. The kernel one_shot in one_shot.cu shows how a kernel that reads from
// all ranks begins and ends.

}  // namespace

void narrow_all_reduce(Peers& peers, float* data, std::size_t count, __nv_bfloat16* narrow,
                       Stream& stream) {
    // Task same_bits is solved here as well. Round everything into `narrow`. Sum this rank's chunk
    // with a kernel that launch_collective() launches. Bring the sums to all ranks with
    // all_gather() of 09_all_reduce. Convert back to float.
    throw NotImplemented("one_rounding");
}

double narrow_all_reduce_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    // message.alpha_s is what each message takes, message.beta_s_per_byte what each byte does.
    throw NotImplemented("seconds");
}

}  // namespace ddp
