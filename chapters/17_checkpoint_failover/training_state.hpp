#pragma once
// All that a training is made of between two steps. Whoever has it can go on as if nothing had
// happened, to the bit.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "03_network/layer.hpp"
#include "14_overlap/ddp.hpp"
#include "17_checkpoint_failover/safetensors.hpp"

namespace ddp {

// What is no tensor.
struct TrainingState {
    int step = 0;              // so many have been made
    std::int64_t samples = 0;  // so many have been learned from, by all ranks
    int epoch = 1;             // the running one
    std::int64_t taken = 0;    // of its samples, so many are behind
    std::string random;        // of the generator that all ranks share
    DdpState buckets;          // the bucket plan
    std::map<std::string, std::string> configuration;  // what must not change: model, batch, ...
    std::map<std::string, int> optimizer_numbers;

    bool operator==(const TrainingState&) const = default;
};

// As metadata of a checkpoint, and back. to_state throws DataError, in a sentence that begins with
// `name`, if something is missing or no number.
std::map<std::string, std::string> to_metadata(const TrainingState& state);
TrainingState to_state(const std::map<std::string, std::string>& metadata, const std::string& name);

// Throws OptionError naming what `configuration` has otherwise than the checkpoint.
void require_same_configuration(const TrainingState& state,
                                const std::map<std::string, std::string>& configuration);

// What a checkpoint keeps of a training, by names: parameters and buffers by their own, as PyTorch
// expects them, and the optimizer's behind "optimizer.".
struct TrainingTensors {
    std::vector<NamedTensor> fixed_in_forward;  // parameters and optimizer: step() changes them
    std::vector<NamedTensor> buffers;           // forward changes them
};
TrainingTensors tensors_of(const Module& model, Optimizer& optimizer);
inline const std::string optimizer_prefix = "optimizer.";

// The samples of epoch `epoch` that rank `rank` of `world_size` still has to learn from when
// `taken` are behind: what is left of the order that all share is dealt out anew, so that there may
// be another number of ranks than before.
std::vector<int> rest_of_epoch(int samples, std::uint64_t seed, int epoch, std::int64_t taken,
                               int rank, int world_size);

}  // namespace ddp
