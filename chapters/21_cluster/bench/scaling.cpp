#include "21_cluster/bench/scaling.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <memory>
#include <numeric>
#include <thread>

#include "03_network/models.hpp"
#include "10_nodes/make_communicator.hpp"
#include "10_nodes/placement.hpp"
#include "15_overlap/show/timed_training.hpp"
#include "21_cluster/simulator/all_reduce.hpp"
#include "common/report/bench.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr int sleeping_buckets = 8;
constexpr std::size_t sleeping_bucket_bytes = 512 << 10;
constexpr int weak_batch = 64, strong_batch = 256;  // of a rank, and of all together
constexpr std::size_t network_cap_bytes = 1 << 20;

// Returns the first `ranks` ranks of the job, host after host.
Group first_ranks(const Job& job, int ranks) {
    std::vector<int> members = placement_of(Group::all(job), job, 0, std::nullopt).by_host;
    members.resize(static_cast<std::size_t>(ranks));
    return Group(members);
}

int hosts_of_first(const Job& job, int ranks) {
    const Group group = first_ranks(job, ranks);
    return static_cast<int>(placement_of(group, job, group.rank(0), std::nullopt).sizes.size());
}

// A training on some of the job's ranks. All ranks of the job have one, and call its functions
// together; those that are not in `group` have one of their own, and only wait.
class GroupTraining {
  public:
    GroupTraining(Rank& rank, const Group& group)
        : rank_(rank),
          takes_part_(group.index_of(rank.rank()) >= 0),
          group_(takes_part_ ? group : Group({rank.rank()})) {}
    virtual ~GroupTraining() = default;
    GroupTraining(const GroupTraining&) = delete;
    GroupTraining& operator=(const GroupTraining&) = delete;

    // Returns the seconds of a step, from the moment when all begin until the last one ends.
    virtual double seconds_of_step() = 0;

  protected:
    Rank& rank_;
    const bool takes_part_;
    const Group group_;
};

// Computes by sleeping: as many ranks as wanted do that on one core.
class SleepingTraining final : public GroupTraining {
  public:
    SleepingTraining(Rank& rank, const Group& group, const AllReduceOrder& order,
                     const simulator::Step& step)
        : GroupTraining(rank, group),
          step_(step),
          communicator_(make_communicator(
              "native", rank, step.buckets.size() * (sleeping_bucket_bytes + SharedArena::unit),
              {.group = group_, .order = order})) {
        for (const simulator::Bucket& bucket : step.buckets) {
            buckets_.push_back(communicator_->allocate<float>(
                static_cast<std::size_t>(bucket.bytes) / sizeof(float)));
            buckets_.back().copy_from(std::vector<float>(buckets_.back().size()));
        }
    }

    double seconds_of_step() override {
        rank_.barrier();
        const Stopwatch watch;
        if (takes_part_)
            make_step();
        rank_.barrier();
        return rank_.max_over_ranks(watch.seconds());
    }

  private:
    // Sleeps until the times at which each part would be ready, however late it woke up before.
    void make_step() {
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

    const simulator::Step step_;
    std::unique_ptr<Communicator> communicator_;
    std::vector<ArenaBuffer<float>> buckets_;
    Stream stream_;
};

// Computes this book's network, with overlap.
class NetworkTraining final : public GroupTraining {
  public:
    NetworkTraining(Rank& rank, const Group& group, const AllReduceOrder& order, int batch)
        : GroupTraining(rank, group),
          device_(make_run_scoped<Device>(rank, rank_memory(rank))),
          model_(make_mlp(device_, random_)),
          communicator_(make_communicator("native", rank, ddp_arena_bytes(*model_),
                                          {.group = group_, .order = order})),
          training_(*communicator_, device_, *model_, random_,
                    {{784}, 10, batch, false, {.bucket_cap_bytes = network_cap_bytes}}) {
        training_.run(2);  // the second step has the buckets as they stay
    }

    double seconds_of_step() override {
        return rank_.max_over_ranks(training_.run(takes_part_ ? 1 : 0).whole);
    }

    // Returns what the last step of rank 0, alone in its group, was made of.
    simulator::Step parts() {
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

  private:
    Random random_{1};
    Device& device_;
    std::unique_ptr<Sequential> model_;
    std::unique_ptr<Communicator> communicator_;
    TimedTraining training_;
};

// Returns the median of the rounds, after one to warm up.
double median_of_steps(GroupTraining& training, int rounds) {
    std::vector<double> seconds;
    for (int round = -1; round < rounds; round++) {
        const double each = training.seconds_of_step();
        if (round >= 0)
            seconds.push_back(each);
    }
    return median(seconds);
}

int batch_on(int ranks, bool is_strong) {
    return is_strong ? std::max(1, strong_batch / ranks) : weak_batch;
}

// A step of one rank alone.
struct AloneStep {
    simulator::Step parts;
    double seconds = 0;
};

AloneStep measure_alone(Rank& rank, const ScalingOptions& options) {
    if (options.sleep_s > 0)
        return {sleeping_step(options.sleep_s), options.sleep_s};
    NetworkTraining alone(rank, first_ranks(rank.job(), 1), options.order,
                          batch_on(1, options.is_strong));
    const double seconds = median_of_steps(alone, options.rounds);
    // The last step says what a step is made of, and the median how long it takes.
    const simulator::Step parts = alone.parts();
    return {shared_step(parts, seconds / parts.compute_s()), seconds};
}

double measure_step(Rank& rank, const ScalingOptions& options, int ranks) {
    const Group group = first_ranks(rank.job(), ranks);
    if (options.sleep_s > 0) {
        const simulator::Step alone = sleeping_step(options.sleep_s);
        SleepingTraining training(rank, group, options.order,
                                  shared_step(alone, options.share_of(ranks)));
        return median_of_steps(training, options.rounds);
    }
    NetworkTraining training(rank, group, options.order, batch_on(ranks, options.is_strong));
    return median_of_steps(training, options.rounds);
}

// Returns "Weak scaling: ..." with what each rank computes.
std::string scaling_title(const ScalingOptions& options) {
    const std::string title = options.is_strong ? "Strong scaling: " : "Weak scaling: ";
    if (options.sleep_s > 0)
        return title +
               (options.is_strong ? "the ranks share a compute of " : "each rank computes for ") +
               format_seconds(options.sleep_s) + ", asleep";
    return title + (options.is_strong
                        ? "the ranks share " + std::to_string(strong_batch) + " samples"
                        : "each rank has " + std::to_string(weak_batch) + " samples");
}

}  // namespace

simulator::Step sleeping_step(double sleep_s) {
    return {sleep_s / 4,
            std::vector<simulator::Bucket>(
                sleeping_buckets,
                {sleep_s * 3 / 4 / sleeping_buckets, static_cast<double>(sleeping_bucket_bytes)}),
            0};
}

simulator::Step shared_step(simulator::Step step, double share) {
    step.forward_s *= share;
    for (simulator::Bucket& bucket : step.buckets)
        bucket.backward_s *= share;
    return step;
}

double predicted_step_s(const simulator::Step& step, const Job& job, int ranks,
                        const ClusterLinks& links, int levels) {
    if (ranks == 1)
        return step.compute_s();
    const Group group = first_ranks(job, ranks);
    const Placement placement = placement_of(group, job, group.rank(0), std::nullopt);
    if (!placement.is_even())
        return NAN;
    const auto straight = [](const LinkTimes& link) {
        if (!link.is_there())
            return simulator::Link();  // no message takes it
        const CostModel cost = link.cost();
        return simulator::straight_link(cost.alpha_s, 1 / cost.beta_s_per_byte);
    };
    const simulator::Cluster cluster{static_cast<int>(placement.sizes.size()), placement.sizes[0],
                                     straight(links.inside), straight(links.between)};
    const auto algorithm = goes_on_two_levels(placement, levels) ? simulator::Algorithm::two_level
                                                                 : simulator::Algorithm::flat;
    return simulator::step_s(
        step, [&](double bytes) { return simulator::all_reduce_s(algorithm, cluster, bytes); },
        true);
}

std::vector<int> usual_counts(int world_size) {
    std::vector<int> counts;
    for (int ranks = 1; ranks < world_size; ranks *= 2)
        counts.push_back(ranks);
    counts.push_back(world_size);
    return counts;
}

std::vector<ScalingPoint> measure_scaling(World& world, const ScalingOptions& options,
                                          const ClusterLinks& links) {
    AloneStep alone;
    world.run([&](Rank& rank) {
        rank.select_device();
        const AloneStep measured = measure_alone(rank, options);
        if (rank.rank() == 0)
            alone = measured;
    });
    std::vector<ScalingPoint> points;
    for (const int ranks : options.counts)
        // A run of its own: what it takes of a device's memory is free again when it ends.
        world.run([&](Rank& rank) {
            rank.select_device();
            // One rank was measured already.
            const double seconds = ranks == 1 && options.sleep_s == 0
                                       ? alone.seconds
                                       : measure_step(rank, options, ranks);
            if (rank.rank() != 0)
                return;
            const double share = options.share_of(ranks);
            const Job& job = rank.job();
            points.push_back({ranks, hosts_of_first(job, ranks), seconds,
                              predicted_step_s(shared_step(alone.parts, share), job, ranks, links,
                                               options.order.levels),
                              alone.seconds * share});
        });
    return points;
}

std::vector<std::string> scaling_columns() {
    return {"scaling", "compute", "ranks", "hosts", "step_s", "predicted_s", "ideal_s"};
}

void report_scaling(const ScalingOptions& options, const std::vector<ScalingPoint>& points,
                    CsvWriter& file) {
    Table table(scaling_title(options),
                {"ranks", "hosts", "a step", "predicted", "off by", "ideal", "efficiency"});
    for (const ScalingPoint& point : points) {
        const bool is_predicted = !std::isnan(point.predicted_s);
        table.row({std::to_string(point.ranks), std::to_string(point.hosts),
                   format_seconds(point.measured_s),
                   is_predicted ? format_seconds(point.predicted_s) : "-",
                   is_predicted ? format_percent(point.predicted_s / point.measured_s - 1) : "-",
                   format_seconds(point.ideal_s), format_fixed(point.efficiency(), 2)});
        file.row({options.is_strong ? "strong" : "weak", options.sleep_s > 0 ? "asleep" : "network",
                  point.ranks, point.hosts, point.measured_s,
                  is_predicted ? CsvCell(point.predicted_s) : CsvCell(""), point.ideal_s});
    }
    table.note(
        "predicted: by the simulator, from the links above and the compute of one rank. "
        "efficiency: ideal / a step.");
    std::cout << table << "\n";
}

}  // namespace ddp
