// Three ranks; rank 2 leaves out expert 0, and no rank uses expert 1:
//
//                      trunk  expert0  expert1
//     rank 0   used_     1       1        0
//     rank 1   used_     1       1        0
//     rank 2   used_     1       0        0
//     all      sums_     3       2        0      one all-reduce, after the last bucket
//
//     here      anywhere   gradient after the step
//     used                 the mean
//     not used  used       the mean, which is in the bucket already
//     not used  not used   as before the step: absent, or the bits of an old one
#include "17_unused_parameters/used_map.hpp"

#include <algorithm>

namespace ddp {
namespace {

void copy(const Tensor& from, const Tensor& to, Stream& stream) {
    if (from.size() > 0)
        DDP_CHECK(cudaMemcpyAsync(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice,
                                  stream));
}

}  // namespace

std::size_t used_map_arena_bytes(const Module& model) {
    return model.parameters().size() * sizeof(int) + SharedArena::unit;
}

UsedMap::UsedMap(Communicator& communicator, Device& device, DistributedDataParallel& ddp)
    : communicator_(communicator),
      device_(device),
      ddp_(ddp),
      used_(ddp.gradients().parameters().size(), 0),
      old_(used_.size()),
      counts_(communicator.allocate<int>(used_.size())),
      upload_(make_run_scoped<PinnedBuffer<int>>(communicator.rank(), used_.size())),
      sums_(make_run_scoped<PinnedBuffer<int>>(communicator.rank(), used_.size())) {
    communicator.rank().barrier();  // no kernel may wait while another rank allocates memory
}

void UsedMap::mark(const Parameter& parameter) {
    used_[index_of(parameter)] = 1;
}

void UsedMap::keep_old_gradients(const Parameters& unreached) {
    for (const auto& parameter : unreached) {
        const std::size_t i = index_of(*parameter);
        old_[i] = Tensor();
        if (used_[i] == 1 || !parameter->has_gradient())  // used within no_sync, or nothing to keep
            continue;
        old_[i] = Tensor(device_, parameter->value.shape());
        copy(parameter->gradient(), old_[i], device_.stream());
    }
}

void UsedMap::reduce() {
    Stream& stream = ddp_.communication_stream();
    // The pinned buffer is free again: its last upload was a whole step ago.
    uploaded_.synchronize();
    std::ranges::copy(used_, upload_.data());
    DDP_CHECK(cudaMemcpyAsync(counts_.data(), upload_.data(), upload_.bytes(),
                              cudaMemcpyHostToDevice, stream));
    uploaded_.record(stream);
    communicator_.all_reduce(counts_.data(), counts_.data(), counts_.size(), ReduceOp::sum, stream,
                             "used map");
}

Parameters UsedMap::settle() {
    Parameters used_elsewhere;
    // A rank that has used everything knows its result without the sum, and does not wait for it.
    if (std::ranges::count(used_, 0) > 0) {
        Stream& stream = ddp_.communication_stream();
        DDP_CHECK(cudaMemcpyAsync(sums_.data(), counts_.data(), sums_.bytes(),
                                  cudaMemcpyDeviceToHost, stream));
        communicator_.synchronize(stream);
        for (std::size_t i = 0; i < used_.size(); i++) {
            const auto& parameter = ddp_.gradients().parameters()[i];
            if (used_[i] == 0 && sums_[i] > 0) {  // used elsewhere only
                parameter->gradient_for_writing();
                used_elsewhere.push_back(parameter);
            } else if (sums_[i] == 0 && !old_[i].is_empty()) {  // used nowhere
                copy(old_[i], parameter->gradient(), stream);
            }
        }
    }
    std::ranges::fill(used_, 0);
    std::ranges::fill(old_, Tensor());
    return used_elsewhere;
}

}  // namespace ddp
