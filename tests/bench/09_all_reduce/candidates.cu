#include "tests/bench/09_all_reduce/candidates.hpp"

#include <algorithm>

#include "05_ranks/cores.hpp"
#include "09_all_reduce/communicator.hpp"
#include "09_all_reduce/support/algorithms.hpp"
#include "09_all_reduce/support/further_all_reduces.hpp"
#include "common/report/bench.hpp"

namespace ddp {
namespace {

__global__ void add_to_array(float* sum, const float* x, std::size_t count) {
    for (std::size_t i : grid_range(count))
        sum[i] += x[i];
}

__global__ void copy_array(float* to, const float* from, std::size_t count) {
    for (std::size_t i : grid_range(count))
        to[i] = from[i];
}

// One who sums on a stream, in device memory.
class StreamCandidate : public Candidate {
  public:
    using Run = std::function<void(float* data, std::size_t count, Stream& stream)>;
    using Synchronize = std::function<void(Stream& stream)>;

    // `data` has room for `most` floats.
    StreamCandidate(std::string name, std::size_t most, std::shared_ptr<Stream> stream,
                    std::shared_ptr<ArenaBuffer<float>> data, Run run, Synchronize synchronize)
        : Candidate(std::move(name), most),
          own_stream_(std::move(stream)),
          data_(std::move(data)),
          run_(std::move(run)),
          synchronize_(std::move(synchronize)) {}

    void load(const std::vector<float>& values) override {
        DDP_CHECK(cudaMemcpyAsync(data_->data(), values.data(), values.size() * sizeof(float),
                                  cudaMemcpyHostToDevice, stream_));
        stream_.synchronize();
    }
    std::vector<float> result(std::size_t count) override {
        std::vector<float> values(count);
        DDP_CHECK(cudaMemcpyAsync(values.data(), data_->data(), count * sizeof(float),
                                  cudaMemcpyDeviceToHost, stream_));
        stream_.synchronize();
        return values;
    }
    void run(std::size_t count, int times) override {
        used_ = static_cast<std::size_t>(times) + 1;
        while (marks_.size() < used_)
            marks_.emplace_back(EventFor::times);
        for (std::size_t i = 0; i + 1 < used_; i++) {
            marks_[i].record(stream_);
            run_(data_->data(), count, stream_);
        }
        marks_[used_ - 1].record(stream_);
        synchronize_(stream_);
    }
    std::vector<double> seconds_of_each() override {
        std::vector<double> seconds;
        for (std::size_t i = 0; i + 1 < used_; i++)
            seconds.push_back(marks_[i + 1].seconds_since(marks_[i]));
        return seconds;
    }

  private:
    std::shared_ptr<Stream> own_stream_;
    Stream& stream_ = *own_stream_;
    std::shared_ptr<ArenaBuffer<float>> data_;
    Run run_;
    Synchronize synchronize_;
    std::vector<Event> marks_;
    std::size_t used_ = 0;  // of them, in the last run
};

class Limit final : public StreamCandidate {
  public:
    using StreamCandidate::StreamCandidate;
    bool gives_sums() const override { return false; }
};

std::shared_ptr<Candidate> make_limit(const std::shared_ptr<Peers>& peers, std::size_t most,
                                      const std::shared_ptr<Stream>& stream) {
    const auto ranks = static_cast<std::size_t>(peers->rank().world_size());
    const auto share = [ranks](std::size_t count) { return count * (ranks - 1) / ranks; };
    const auto sum = std::make_shared<ArenaBuffer<float>>(peers->allocate<float>(most));
    const auto other = std::make_shared<ArenaBuffer<float>>(peers->allocate<float>(share(most)));
    const auto run = [share, other](float* data, std::size_t count, Stream& stream) {
        const std::size_t n = share(count);
        launch(stream, grid_for(n), add_to_array, data, other->data(), n);
        launch(stream, grid_for(n), copy_array, other->data(), data, n);
    };
    return std::make_shared<Limit>(limit_name, most, stream, sum, run,
                                   [peers](Stream& stream) { peers->synchronize(stream); });
}

// NCCL, where every rank has a GPU of its own and the program has NCCL.
std::shared_ptr<Candidate> make_nccl_candidate(Rank& rank, std::size_t most,
                                               const std::shared_ptr<Stream>& stream) try {
    return make_communicator_candidate(make_nccl_communicator(rank, most * sizeof(float)), most,
                                       stream);
} catch (const OptionError&) {
    return nullptr;
}

// ---- Measuring

class Comparison {
  public:
    Comparison(Rank& rank, std::size_t bytes, int rounds,
               const std::vector<std::shared_ptr<Candidate>>& all)
        : rank_(rank), bytes_(bytes), count_(bytes / sizeof(float)), rounds_(rounds) {
        // Whole numbers that tell rank and index, small enough for all sums to be exact.
        const auto me = static_cast<std::size_t>(rank.rank());
        const auto ranks = static_cast<std::size_t>(rank.world_size());
        for (std::size_t i = 0; i < count_; i++) {
            const std::size_t number = i % 4093;
            values_.push_back(static_cast<float>(number * (me + 1) + me));
            sums_.push_back(static_cast<float>((number * (ranks + 1) + ranks - 1) * ranks / 2));
        }
        for (const auto& candidate : all)
            if (count_ <= candidate->most())
                candidates_.push_back(candidate.get());
    }

    std::vector<AllReduceMeasurement> run() {
        std::vector<AllReduceMeasurement> measurements(candidates_.size());
        std::vector<Measurement> variants;
        for (std::size_t i = 0; i < candidates_.size(); i++) {
            Candidate& candidate = *candidates_[i];
            measurements[i] = {candidate.name(), bytes_, {}, {}, count_wrong(candidate)};
            variants.push_back([&, times = sums_of_batch(candidate), i] {
                return run_batch(candidate, times, measurements[i].sums);
            });
        }
        const std::vector<std::vector<double>> seconds = interleave(variants, 1, rounds_);
        for (std::size_t i = 0; i < candidates_.size(); i++) {
            measurements[i].batches = mean_of_ranks(seconds[i]);
            measurements[i].wrong += count_wrong(*candidates_[i]);
        }
        return measurements;
    }

  private:
    // Returns how many sums a batch has: enough for a few milliseconds, and no more than a batch
    // has time for. (Where many ranks share few cores, one sum may take that long.) Rank 0's clock
    // decides for all ranks.
    int sums_of_batch(Candidate& candidate) {
        constexpr int trial = 4;
        constexpr double max_seconds = 0.05;
        const auto most = std::clamp<std::size_t>((16 << 20) / bytes_, 2, 500);
        rank_.barrier();
        candidate.run(count_, 1);
        const Stopwatch watch;
        candidate.run(count_, trial);
        const double fitting = max_seconds / (watch.seconds() / trial);
        const auto times = static_cast<int>(std::clamp(fitting, 2.0, static_cast<double>(most)));
        return rank_.broadcast(times, 0);
    }

    // The first sum, which is not timed, is where the ranks meet.
    double run_batch(Candidate& candidate, int times, std::vector<double>& of_each) {
        rank_.barrier();
        candidate.run(count_, 1);
        const Stopwatch watch;
        candidate.run(count_, times);
        // Ranks that do not wait for each other must end together all the same where they share
        // cores. Each would measure its own turn only.
        if (!candidate.gives_sums() && rank_.local_world_size() > usable_cores())
            rank_.barrier();
        const double seconds = watch.seconds() / times;
        for (const double each : candidate.seconds_of_each())
            of_each.push_back(each);
        return seconds;
    }

    std::size_t count_wrong(Candidate& candidate) {
        if (!candidate.gives_sums())
            return 0;
        candidate.load(values_);
        rank_.barrier();
        candidate.run(count_, 1);
        const std::vector<float> result = candidate.result(count_);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count_; i++)
            wrong += result[i] != sums_[i];
        std::size_t all = 0;
        for (const std::size_t each : rank_.all_gather(wrong))
            all += each;
        return all;
    }

    std::vector<double> mean_of_ranks(const std::vector<double>& seconds) {
        std::vector<double> mean;
        for (const double each : seconds)
            mean.push_back(rank_.mean_over_ranks(each));
        return mean;
    }

    Rank& rank_;
    const std::size_t bytes_, count_;
    const int rounds_;
    std::vector<float> values_, sums_;
    std::vector<Candidate*> candidates_;
};

bool is_reference(const Candidate& candidate) {
    return !candidate.gives_sums() || candidate.name() == "mpi" || candidate.name() == "nccl";
}

}  // namespace

std::string limit_text() {
    return "all ranks at once, without waiting for each other, add (N - 1) / N of an array to "
           "another one and copy as much. That is what the ring cannot do without; an algorithm "
           "that moves less may beat it.";
}

std::shared_ptr<Candidate> make_communicator_candidate(std::shared_ptr<Communicator> communicator,
                                                       std::size_t most,
                                                       std::shared_ptr<Stream> stream) {
    const auto data = std::make_shared<ArenaBuffer<float>>(communicator->allocate<float>(most));
    return std::make_shared<StreamCandidate>(
        communicator->kind(), most, std::move(stream), data,
        [communicator](float* values, std::size_t count, Stream& stream) {
            communicator->all_reduce(values, values, count, ReduceOp::sum, stream);
        },
        [communicator](Stream& stream) { communicator->synchronize(stream); });
}

std::vector<std::shared_ptr<Candidate>> make_candidates(Rank& rank, std::size_t most) {
    // Two arrays for the limit, one for all ways, and a chunk for the ring that the host drives.
    const auto peers = std::make_shared<Peers>(rank, 4 * most * sizeof(float) + (1 << 20));
    const auto stream = std::make_shared<Stream>();  // one for all: a GPU has 32 queues
    std::vector<std::shared_ptr<Candidate>> all{make_limit(peers, most, stream)};
    if (auto mpi = make_mpi_candidate(rank, most))
        all.push_back(std::move(mpi));
    if (auto nccl = make_nccl_candidate(rank, most, stream))
        all.push_back(std::move(nccl));
    all.push_back(make_communicator_candidate(make_native_communicator(rank, most * sizeof(float)),
                                              most, stream));
    rank.barrier();
    const auto data = std::make_shared<ArenaBuffer<float>>(peers->allocate<float>(most));
    for (const AllReduceAlgorithm<float>& algorithm : all_reduce_algorithms<float>(*peers, most))
        all.push_back(std::make_shared<StreamCandidate>(
            algorithm.name, algorithm.most, stream, data,
            [peers, algorithm](float* values, std::size_t count, Stream& stream) {
                algorithm.run(values, values, count, ReduceOp::sum, stream, "");
            },
            [peers](Stream& stream) { peers->synchronize(stream); }));
    for (const FurtherAllReduce& algorithm : further_all_reduces())
        all.push_back(std::make_shared<StreamCandidate>(
            algorithm.name, most, stream, data,
            [peers, algorithm](float* values, std::size_t count, Stream& stream) {
                algorithm.run(*peers, values, count, stream);
            },
            [peers](Stream& stream) { peers->synchronize(stream); }));
    return all;
}

std::vector<AllReduceMeasurement> compare(Rank& rank, const std::vector<std::size_t>& sizes,
                                          int rounds,
                                          const std::vector<std::shared_ptr<Candidate>>& all) {
    std::vector<AllReduceMeasurement> measurements;
    for (const std::size_t bytes : sizes)
        for (AllReduceMeasurement& measurement : Comparison(rank, bytes, rounds, all).run())
            measurements.push_back(std::move(measurement));
    rank.barrier();  // nobody frees what another one still reads
    return measurements;
}

std::vector<AllReduceMeasurement> compare_all_reduces(Rank& rank,
                                                      const std::vector<std::size_t>& sizes,
                                                      int rounds, const std::string& algorithm) {
    const std::size_t most = *std::ranges::max_element(sizes) / sizeof(float);
    std::vector<std::shared_ptr<Candidate>> candidates = make_candidates(rank, most);
    const bool all = algorithm == "all" || std::ranges::count(further_all_reduces(), algorithm,
                                                              &FurtherAllReduce::name) > 0;
    std::erase_if(candidates, [&](const auto& candidate) {
        return !all && candidate->name() != algorithm && !is_reference(*candidate);
    });
    return compare(rank, sizes, rounds, candidates);
}

}  // namespace ddp
