#include "17_unused_parameters/training/training_run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "03_network/cross_entropy.hpp"
#include "10_nodes/make_communicator.hpp"
#include "15_overlap/training.hpp"

namespace ddp {
namespace {

std::unique_ptr<Experts> make_experts(Device& device, int width, std::uint64_t seed) {
    Random random(seed);  // rank 0's weights replace those of all others
    return std::make_unique<Experts>(device, width, random);
}

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace

TrainingRun::TrainingRun(Rank& rank, const Training& training, std::uint64_t seed,
                         RecordedState& recorded)
    : rank_(rank),
      training_(training),
      seed_(seed),
      recorded_(recorded),
      device_(make_run_scoped<Device>(rank, expert_memory)),
      model_(make_experts(device_, training.width, seed + static_cast<std::uint64_t>(rank.rank()))),
      communicator_(make_communicator("native", rank,
                                      ddp_arena_bytes(*model_) + used_map_arena_bytes(*model_) +
                                          join_arena_bytes(rank.world_size()),
                                      {.timeout_s = training.timeout_s})),
      ddp_(*communicator_, device_, *model_,
           {.bucket_cap_bytes = training.cap_bytes,
            .rebuild_buckets = training.rebuilds_buckets && training.unused != Unused::searched}),
      recorder_(ddp_, recorded.state),
      optimizer_(model_->parameters(), expert_learning_rate),
      steps_(device_, optimizer_),
      compute_("compute", device_.stream()),
      communication_("communication", ddp_.communication_stream()) {
    recorded_.state = {};
    plug_in();
    for (std::size_t step = 0; step < training_.routes.size(); step++)
        batches_.push_back(
            drawn_batch(device_, seed, static_cast<int>(step), rank.rank(), expert_batch));
    rank.barrier();  // no kernel may wait while another rank still allocates memory
}

void TrainingRun::plug_in() {
    DdpHooks hooks;
    if (training_.unused == Unused::searched)
        find_unused_.emplace(*communicator_, device_, ddp_).plug_into(hooks);
    if (training_.unused == Unused::fixed)
        static_graph_.emplace(*communicator_, device_, ddp_).plug_into(hooks);
    if (training_.unused == Unused::searched)
        watch_map(hooks);
    if (training_.joins)
        join_.emplace(*communicator_, device_, *model_, ddp_).plug_into(hooks);
    recorder_.plug_into(hooks);
    ddp_.set_hooks(std::move(hooks));
}

// Draws the map's all-reduce into the timeline, behind the buckets: it is what the search costs.
void TrainingRun::watch_map(DdpHooks& hooks) {
    hooks.before_finalize = [this, reduce = hooks.before_finalize] {
        if (is_watched_)
            communication_.begin();
        reduce();
        if (is_watched_)
            communication_.mark("used map");
    };
}

void TrainingRun::learn(int watched) {
    try {
        for (std::size_t i = 0; i < batches_.size(); i++) {
            const Route& route = training_.routes[i][static_cast<std::size_t>(rank_.rank())];
            if (route.empty())
                break;
            model_->set_route(route);
            is_watched_ = static_cast<int>(i) == watched;
            ddp_.set_track(is_watched_ ? &communication_ : nullptr);
            step(batches_[i]);
        }
        end();
    } catch (...) {
        collect();
        throw;
    }
    collect();
}

void TrainingRun::step(const Batch& batch) {
    if (is_watched_)
        compute_.begin();
    const auto loss_of = [&](Tape& tape) {
        // Past DDP: PyTorch's ddp.module(x) in place of ddp(x).
        const Variable images = tape.constant(batch.images);
        const Variable loss = cross_entropy(
            training_.goes_past_ddp ? model_->forward(images) : ddp_.forward(images), batch.labels);
        mark("forward");
        return loss;
    };
    try {
        steps_.step(loss_of, [this](Variable loss) { backward(loss); });
        mark("optimizer");
    } catch (const GradientsMissing&) {  // PyTorch does not check here, and goes on
        recorded_.state.afterwards =
            "went on to the barrier after the steps as if nothing were missing";
    }
}

void TrainingRun::backward(Variable loss) {
    if (training_.goes_past_ddp)
        return loss.tape->backward(loss);
    if (training_.sends_when_ready)
        return send_when_ready(loss);
    ddp_.backward(loss, [this](Parameter& parameter) { mark("backward to " + parameter.name); });
    mark(waiting_for_gradients);
}

// Reduces each gradient as soon as it is ready: a DistributedDataParallel without ordered buckets.
void TrainingRun::send_when_ready(Variable loss) {
    loss.tape->backward(loss, [this](Parameter& parameter) {
        const Tensor& gradient = parameter.gradient();
        communicator_->all_reduce(gradient.data(), gradient.data(), gradient.size(),
                                  ReduceOp::average, device_.stream(), parameter.name);
    });
}

void TrainingRun::end() {
    if (join_)
        join_->shadow_others([this] { steps_.step([] {}); });  // its gradients are there already
    if (recorded_.state.afterwards.empty())
        recorded_.state.afterwards = "has no batch left and waits at the barrier after the steps";
    if (recorded_.state.missing.empty())
        communicator_->synchronize(device_.stream());
    rank_.barrier();
}

void TrainingRun::repeat_step() {
    step(batches_.at(0));
    communicator_->synchronize(device_.stream());
}

double TrainingRun::difference_from_one_rank() {
    double largest = 0;
    if (rank_.rank() == 0) {
        const auto expected = learn_on_one_rank(device_, training_.width, seed_, training_.routes);
        for (std::size_t p = 0; p < expected.size(); p++) {
            const std::vector<float> found = model_->parameters()[p]->value.to_host();
            double size = 0;
            for (const float value : expected[p])
                size = std::max(size, std::abs(double{value}));
            for (std::size_t i = 0; i < found.size(); i++)
                if (const double error = std::abs(double{found[i]} - expected[p][i]) / size;
                    error > largest || std::isnan(error))  // NaN, once found, stays
                    largest = error;
        }
    }
    require_equal_replicas(rank_, model_->parameters());
    return largest;
}

void TrainingRun::mark(const std::string& what) {
    if (is_watched_)
        compute_.mark(what);
}

// Records what the streams did, and the time that a rank spent elsewhere after it had gone on
// without the others.
void TrainingRun::collect() {
    recorded_.timeline = compute_.read(rank_.rank());
    if (!recorded_.state.missing.empty() && !recorded_.timeline.empty())
        recorded_.timeline.push_back(
            {rank_.rank(), "compute", "elsewhere", recorded_.timeline.back().end_s, now_s()});
    for (StreamSpan& span : communication_.read(rank_.rank()))
        recorded_.timeline.push_back(std::move(span));
}

}  // namespace ddp
