#include "19_checkpoint_failover/training_state.hpp"

#include <charconv>
#include <sstream>

#include "11_data_parallel/replica.hpp"
#include "12_sampler/sampler.hpp"
#include "common/data/file.hpp"
#include "common/report/options.hpp"

namespace ddp {
namespace {

const std::string configuration_prefix = "configuration.", number_prefix = "optimizer.";

// Reads the entries of one checkpoint's metadata.
class MetadataReader {
  public:
    MetadataReader(const std::map<std::string, std::string>& metadata, const std::string& name)
        : metadata_(metadata), name_(name) {}

    const std::string& text(const std::string& key) const {
        const auto found = metadata_.find(key);
        if (found == metadata_.end())
            refuse(name_, "has no '" + key + "': it is not a checkpoint of a training.");
        return found->second;
    }
    template <class T>
    T number(const std::string& key) const {
        return parsed<T>(key, text(key));
    }
    std::vector<std::size_t> numbers(const std::string& key) const {
        std::vector<std::size_t> all;
        std::istringstream words(text(key));
        for (std::string word; words >> word;)
            all.push_back(parsed<std::size_t>(key, word));
        return all;
    }
    // Returns the entries whose names begin with `prefix`, without the prefix.
    std::map<std::string, std::string> group(const std::string& prefix) const {
        std::map<std::string, std::string> found;
        for (const auto& [key, value] : metadata_)
            if (key.starts_with(prefix))
                found[key.substr(prefix.size())] = value;
        return found;
    }
    template <class T>
    T parsed(const std::string& key, const std::string& word) const {
        T value{};
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (error != std::errc() || end != word.data() + word.size() || value < T{})
            refuse(name_, "has the value '" + word + "' for '" + key + "', which is not a number.");
        return value;
    }

  private:
    const std::map<std::string, std::string>& metadata_;
    const std::string& name_;
};

}  // namespace

std::map<std::string, std::string> to_metadata(const TrainingState& state) {
    std::string order;
    for (const std::size_t gradient : state.buckets.ready_order)
        order += (order.empty() ? "" : " ") + std::to_string(gradient);
    std::map<std::string, std::string> metadata{{"step", std::to_string(state.step)},
                                                {"samples", std::to_string(state.samples)},
                                                {"epoch", std::to_string(state.epoch)},
                                                {"taken", std::to_string(state.taken)},
                                                {"random", state.random},
                                                {"bucket_plan", state.buckets.plan},
                                                {"ready_order", order}};
    for (const auto& [key, value] : state.configuration)
        metadata[configuration_prefix + key] = value;
    for (const auto& [key, value] : state.optimizer_numbers)
        metadata[number_prefix + key] = std::to_string(value);
    return metadata;
}

TrainingState to_state(const std::map<std::string, std::string>& metadata,
                       const std::string& name) {
    const MetadataReader read(metadata, name);
    TrainingState state;
    state.step = read.number<int>("step");
    state.samples = read.number<std::int64_t>("samples");
    state.epoch = read.number<int>("epoch");
    state.taken = read.number<std::int64_t>("taken");
    state.random = read.text("random");
    state.buckets = {read.text("bucket_plan"), read.numbers("ready_order")};
    state.configuration = read.group(configuration_prefix);
    for (const auto& [key, value] : read.group(number_prefix))
        state.optimizer_numbers[key] = read.parsed<int>(key, value);
    return state;
}

void require_same_configuration(const TrainingState& state,
                                const std::map<std::string, std::string>& configuration) {
    for (const auto& [key, value] : configuration) {
        const auto found = state.configuration.find(key);
        const std::string before = found == state.configuration.end() ? "not given" : found->second;
        if (before != value)
            throw OptionError("The checkpoint is of a training whose " + key + " was " +
                              printable(before) + ", and now it is " + value +
                              ": go on with the same options, or give --folder another folder.");
    }
}

TrainingTensors tensors_of(const Module& model, Optimizer& optimizer) {
    TrainingTensors tensors;
    for (const auto& parameter : model.parameters())
        tensors.fixed_in_forward.push_back({parameter->name, parameter->value});
    for (const auto& [name, value] : optimizer.state().tensors)
        tensors.fixed_in_forward.push_back({optimizer_prefix + name, value});
    tensors.buffers = model.buffers();
    return tensors;
}

std::vector<int> rest_of_epoch(int samples, std::uint64_t seed, int epoch, std::int64_t taken,
                               int rank, int world_size) {
    std::vector<int> order = random_permutation(samples, seed + static_cast<std::uint64_t>(epoch));
    order.erase(order.begin(), order.begin() + std::min<std::int64_t>(taken, samples));
    return shard(order, rank, world_size);
}

}  // namespace ddp
