#pragma once
// The state of a training between two steps: everything that the next step depends on. A training
// that is resumed from it ends with the same bits as one that was never interrupted.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "03_network/layer.hpp"
#include "15_overlap/ddp.hpp"
#include "19_checkpoint_failover/safetensors.hpp"

namespace ddp {

// The part of the state that is not in tensors. The same on all ranks.
struct TrainingState {
    int step = 0;              // the number of steps made
    std::int64_t samples = 0;  // the number of samples learned from, by all ranks
    int epoch = 1;             // the current epoch
    std::int64_t taken = 0;    // how many of its samples all ranks have learned from
    std::string random;        // the generator that all ranks share
    DdpState buckets;          // the bucket plan
    std::map<std::string, std::string> configuration;  // batch, seed, ...
    std::map<std::string, int> optimizer_numbers;

    bool operator==(const TrainingState&) const = default;
};

// Convert the state to a checkpoint's metadata and back. to_state throws DataError, with a sentence
// that begins with `name`, if an entry is missing or is not a number.
std::map<std::string, std::string> to_metadata(const TrainingState& state);
TrainingState to_state(const std::map<std::string, std::string>& metadata, const std::string& name);

// Throws OptionError, with the first option that differs, if the checkpoint is of a training with
// another configuration.
void require_same_configuration(const TrainingState& state,
                                const std::map<std::string, std::string>& configuration);

// The tensors of a checkpoint, with their names: parameters and buffers have their own, which
// PyTorch expects; the optimizer's begin with "optimizer.".
struct TrainingTensors {
    std::vector<NamedTensor> fixed_in_forward;  // parameters, optimizer: changed by its step()
    std::vector<NamedTensor> buffers;           // changed by forward
};
TrainingTensors tensors_of(const Module& model, Optimizer& optimizer);
inline const std::string optimizer_prefix = "optimizer.";

// Returns the samples that rank `rank` of `world_size` still has to learn from in epoch `epoch`,
// when `taken` are done: the rest of the common order is dealt out again, to however many ranks
// there are.
std::vector<int> rest_of_epoch(int samples, std::uint64_t seed, int epoch, std::int64_t taken,
                               int rank, int world_size);

}  // namespace ddp
