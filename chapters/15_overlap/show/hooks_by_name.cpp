#include "15_overlap/show/hooks_by_name.hpp"

#include <algorithm>
#include <stdexcept>

#include "15_overlap/compression.hpp"

namespace ddp {
namespace {

BucketHook power_sgd(Rank& rank, Communicator& communicator, const FlatBuffers& gradients,
                     const PowerSgdOptions& options) {
    return make_run_scoped<PowerSgd>(rank, communicator, gradients, options).hook();
}

}  // namespace

std::vector<std::string> hook_names() {
    return {"average", "float16", "bfloat16", "power_sgd"};
}

BucketHook make_hook(const std::string& name, Rank& rank, Communicator& communicator,
                     const FlatBuffers& gradients, int start_step) {
    if (name == "average")
        return average_bucket;
    if (name == "float16")
        return compressed_average<__half>(communicator, gradients);
    if (name == "bfloat16")
        return compressed_average<__nv_bfloat16>(communicator, gradients);
    if (name == "power_sgd")
        return power_sgd(rank, communicator, gradients, {.start_step = start_step});
    if (name == "power_sgd 4")
        return power_sgd(rank, communicator, gradients,
                         {.matrix_rank = larger_matrix_rank, .start_step = start_step});
    if (name == "power_sgd 4, no feedback")
        return power_sgd(rank, communicator, gradients,
                         {.matrix_rank = larger_matrix_rank,
                          .start_step = start_step,
                          .feeds_errors_back = false});
    throw std::invalid_argument("there is no bucket hook '" + name + "'");
}

std::size_t hook_arena_bytes(const Module& model) {
    return std::max(compressed_arena_bytes(model),
                    power_sgd_arena_bytes(model, larger_matrix_rank));
}

}  // namespace ddp
