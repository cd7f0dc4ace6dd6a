#include "tools/cluster/group_training.hpp"

#include <chrono>
#include <numeric>
#include <thread>

#include "03_network/models.hpp"
#include "common/report/bench.hpp"
#include "common/report/stats.hpp"

namespace ddp {
namespace {

constexpr std::size_t network_cap_bytes = 1 << 20;

}  // namespace

GroupTraining::GroupTraining(Rank& rank, const Group& group)
    : rank_(rank),
      takes_part_(group.index_of(rank.rank()) >= 0),
      group_(takes_part_ ? group : Group({rank.rank()})) {}

// ---- A rank that sleeps

SleepingTraining::SleepingTraining(Rank& rank, const Group& group, const AllReduceOrder& order,
                                   const simulator::Step& step)
    : GroupTraining(rank, group),
      step_(step),
      communicator_(make_communicator(
          "native", rank, step.buckets.size() * (sleeping_bucket_bytes + SharedArena::unit),
          {.group = group_, .order = order})) {
    for (const simulator::Bucket& bucket : step.buckets) {
        buckets_.push_back(
            communicator_->allocate<float>(static_cast<std::size_t>(bucket.bytes) / sizeof(float)));
        buckets_.back().copy_from(std::vector<float>(buckets_.back().size()));
    }
}

double SleepingTraining::seconds_of_step() {
    rank_.barrier();
    const Stopwatch watch;
    if (takes_part_)
        make_step();
    rank_.barrier();
    return rank_.max_over_ranks(watch.seconds());
}

// Sleeps until the times at which each part would be ready, however late it woke up before.
void SleepingTraining::make_step() {
    const auto begin = std::chrono::steady_clock::now();
    double ready_s = step_.forward_s;
    for (std::size_t i = 0; i < buckets_.size(); i++) {
        ready_s += step_.buckets[i].backward_s;
        std::this_thread::sleep_until(begin + std::chrono::duration<double>(ready_s));
        communicator_->all_reduce(buckets_[i].data(), buckets_[i].data(), buckets_[i].size(),
                                  ReduceOp::average, stream_, "bucket");
    }
    communicator_->synchronize(stream_);
}

// ---- A rank that computes

NetworkTraining::NetworkTraining(Rank& rank, const Group& group, const AllReduceOrder& order,
                                 int batch)
    : GroupTraining(rank, group),
      device_(make_run_scoped<Device>(rank, rank_memory(rank))),
      model_(make_mlp(device_, random_)),
      communicator_(make_communicator("native", rank, ddp_arena_bytes(*model_),
                                      {.group = group_, .order = order})),
      training_(*communicator_, device_, *model_, random_,
                {{784}, 10, batch, false, {.bucket_cap_bytes = network_cap_bytes}}) {
    training_.run(2);  // the second step has the buckets as they stay
}

double NetworkTraining::seconds_of_step() {
    return rank_.max_over_ranks(training_.run(takes_part_ ? 1 : 0).whole);
}

simulator::Step NetworkTraining::parts() {
    double backward_s = 0, others_s = 0;
    for (const StreamSpan& span : training_.spans())
        if (span.track == "compute")
            (span.what.starts_with("backward") ? backward_s : others_s) +=
                span.end_s - span.begin_s;
    simulator::Step step{rank_.broadcast(others_s, 0), {}, 0};
    backward_s = rank_.broadcast(backward_s, 0);
    // Backward takes as long for a bucket as its bytes: that is so in layers of one kind.
    const std::vector<double> bytes = training_.bucket_bytes();
    const double all = std::accumulate(bytes.begin(), bytes.end(), 0.0);
    for (const double each : bytes)
        step.buckets.push_back({backward_s * each / all, each});
    return step;
}

double median_of_steps(GroupTraining& training, int rounds) {
    std::vector<double> seconds;
    for (int round = -1; round < rounds; round++) {
        const double each = training.seconds_of_step();
        if (round >= 0)
            seconds.push_back(each);
    }
    return median(seconds);
}

}  // namespace ddp
