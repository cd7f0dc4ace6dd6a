// Alone in its file: the linker takes it only for a program that has no other one.
#include "15_overlap/hooks_by_name.hpp"

namespace ddp {

BucketHook further_average(Communicator&, const FlatBuffers&) {
    return average_bucket;
}

}  // namespace ddp
