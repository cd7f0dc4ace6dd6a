#include "15_overlap/hooks_by_name.hpp"

#include <algorithm>
#include <stdexcept>

#include "15_overlap/compression.hpp"

namespace ddp {

std::vector<std::string> hook_names() {
    return {"average", "float16", "bfloat16", "power_sgd"};
}

BucketHook make_hook(const std::string& name, Rank& rank, Communicator& communicator,
                     const FlatBuffers& gradients, int start_step) {
    if (name == "average")
        return further_average(communicator, gradients);
    if (name == "noop")
        return noop_bucket;
    if (name == "float16")
        return compressed_average<__half>(communicator, gradients);
    if (name == "bfloat16")
        return compressed_average<__nv_bfloat16>(communicator, gradients);
    const PowerSgdOptions options{.matrix_rank = name == "power_sgd" ? 1 : larger_matrix_rank,
                                  .start_step = start_step,
                                  .feeds_errors_back = !name.ends_with("no feedback")};
    if (name.starts_with("power_sgd"))
        return make_run_scoped<PowerSgd>(rank, communicator, gradients, options).hook();
    throw std::invalid_argument("there is no bucket hook '" + name + "'");
}

std::size_t hook_arena_bytes(const Module& model) {
    return std::max(compressed_arena_bytes(model),
                    power_sgd_arena_bytes(model, larger_matrix_rank));
}

}  // namespace ddp
