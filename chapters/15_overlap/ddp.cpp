// One step, in the order of this file:
//
//                               time ->
//     compute stream    forward - loss - backward 8 - 7 - 6 - ... - 1 ----- (wait) - optimizer
//                                               |     |               |       ^
//                                               v     v               v       |
//     communication stream                   bucket 0 - bucket 1 - ... - bucket 3
//
//     forward       prepare: each bucket counts the gradients that it waits for
//     backward      mark_ready: a gradient is final; its bucket counts down
//                   launch_ready_buckets: strictly in order, those whose count is zero
//                   launch: the communication stream waits for backward so far, then reduces
//     finalize      the compute stream waits for the communication stream
//
// The host only enqueues. It waits once, at the beginning of backward: for the last bucket of the
// step before.
#include "15_overlap/ddp.hpp"

#include <algorithm>
#include <stdexcept>

#include "common/gpu/captured_graph.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

std::vector<std::size_t> limits_of(const DdpOptions& options) {
    return options.bucket_caps.empty() ? bucket_limits(options.bucket_cap_bytes)
                                       : options.bucket_caps;
}

// Plans the first buckets and places the gradients in the communicator's memory, so that the
// all-reduce reads and writes where backward and the optimizer do: nothing is copied.
FlatBuffers make_gradients(Communicator& communicator, Device& device, const Module& model,
                           const DdpOptions& options) {
    const Parameters parameters = learned_parameters(model.parameters());
    const GradientSizes sizes = gradient_sizes(parameters);
    const bool is_planned_later = options.rebuild_buckets && options.bucket_caps.empty();
    BucketPlan plan = is_planned_later ? first_plan(sizes) : first_plan(sizes, limits_of(options));
    const ArenaBuffer<float> memory =
        communicator.allocate<float>(plan.memory_bytes() / sizeof(float));
    return {device, parameters, std::move(plan), memory.share(), memory.size()};
}

// Returns a hook that searches this rank's own gradients for NaN and infinity before `inner` mixes
// them with other ranks'. finalize asks for the result.
BucketHook check_then(AnomalySearch& anomalies, BucketHook inner) {
    return [&anomalies, inner = std::move(inner)](Communicator& communicator, Tensor bucket,
                                                  Stream& stream, const std::string& name) {
        anomalies.search(bucket, stream);
        inner(communicator, bucket, stream, name);
    };
}

}  // namespace

void average_bucket(Communicator& communicator, Tensor bucket, Stream& stream,
                    const std::string& name) {
    communicator.all_reduce(bucket.data(), bucket.data(), bucket.size(), ReduceOp::average, stream,
                            name);
}

// Counts the gradients and the staging of the buffers, and once more all of the model: the
// constructor needs that for the copy from rank 0.
std::size_t ddp_arena_bytes(const Module& model) {
    std::size_t bytes = (1 << 20) + 2 * buffer_elements(model) * sizeof(float);
    for (const auto& parameter : model.parameters())
        bytes += 2 * (parameter->value.bytes() + BucketPlan::alignment);
    return bytes;
}

DistributedDataParallel::DistributedDataParallel(Communicator& communicator, Device& device,
                                                 Module& model, const DdpOptions& options)
    : communicator_(communicator),
      device_(device),
      model_(model),
      options_(options),
      gradients_(make_gradients(communicator, device, model, options)),
      order_(
          make_run_scoped<PinnedBuffer<int>>(communicator.rank(), gradients_.parameters().size())),
      buffers_(communicator.allocate<float>(buffer_elements(model))) {
    if (options.check_finite)
        anomalies_.emplace(device, gradients_);
    set_bucket_hook(average_bucket);
    copy_from_rank_0(communicator, device, model);
}

void DistributedDataParallel::set_bucket_hook(BucketHook hook) {
    hook_ = anomalies_ ? check_then(*anomalies_, std::move(hook)) : std::move(hook);
}

// ---- Forward

// The forward decides whether this step is reduced; the backward that follows only obeys. Whether
// the model is in training does not matter: one in evaluation may be fine-tuned.
Variable DistributedDataParallel::forward(const std::function<Variable()>& model_forward) {
    const bool is_reduced = is_reducing_;
    if (hooks_.before_forward)
        hooks_.before_forward(is_reduced);
    begin_step(is_reduced);
    const Variable output = model_forward();
    expects_backward_ = is_reduced && output.is_recorded();
    buffers_may_differ_ = expects_backward_;  // ranks see different samples
    if (expects_backward_)
        prepare(hooks_.after_forward ? hooks_.after_forward(output) : Parameters());
    return output;
}

void DistributedDataParallel::begin_step(bool is_reduced) {
    if (options_.rebuild_buckets && is_reduced && !ready_order_.empty() && !is_rebuilt_)
        rebuild_buckets();
    if (buffers_may_differ_ || is_captured(device_.stream()))  // in a graph: in every launch
        share_buffers();
}

void DistributedDataParallel::share_buffers() {
    broadcast_buffers(communicator_, device_, model_, buffers_, buffers_root_);
    buffers_may_differ_ = false;
    first_buffers_.wait_for_all_ranks(communicator_.rank(), device_.stream());
}

// Called once. The ranks may have seen different orders: their group's first rank decides.
void DistributedDataParallel::rebuild_buckets() {
    Stream& stream = device_.stream();
    ArenaBuffer<int> sent = communicator_.allocate<int>(order_.size());
    std::ranges::copy(ready_order_, order_.data());
    DDP_CHECK(cudaMemcpyAsync(sent.data(), order_.data(), sent.bytes(), cudaMemcpyDefault, stream));
    communicator_.broadcast(sent.data(), sent.size(), 0, stream, "order of the gradients");
    DDP_CHECK(cudaMemcpyAsync(order_.data(), sent.data(), sent.bytes(), cudaMemcpyDefault, stream));
    communicator_.synchronize(stream);
    gradients_.arrange(rebuilt_plan(gradients_.plan().gradients, limits_of(options_),
                                    {order_.span().begin(), order_.span().end()}));
    is_rebuilt_ = true;
}

// Sets every bucket's counter to the number of its gradients.
void DistributedDataParallel::prepare(const Parameters& unreached) {
    const BucketPlan& plan = gradients_.plan();
    pending_.clear();
    for (const BucketPlan::Bucket& bucket : plan.buckets)
        pending_.push_back(static_cast<int>(bucket.gradients.size()));
    is_ready_.assign(plan.gradients.size(), false);
    next_bucket_ = 0;
    unreached_.clear();
    for (const auto& parameter : unreached)
        unreached_.push_back(gradients_.index_of(*parameter));
}

// ---- Backward

void DistributedDataParallel::backward(Variable loss, const Tape::Visitor& is_final, float scale) {
    if (is_reducing_ && !expects_backward_)
        throw std::logic_error("a reduced backward needs its own forward, outside of no_sync");
    const bool reduces = expects_backward_;
    expects_backward_ = false;
    wait_for_last_step();
    // Gradients that will not come are ready now: no bucket has to wait for them.
    if (reduces)
        for (const std::size_t gradient : unreached_)
            mark_zero(gradient);
    // The tape calls this visitor whenever a parameter's gradient is final. Buckets are launched
    // from within, while the rest of backward is still to come.
    loss.tape->backward(
        loss,
        [&](Parameter& parameter) {
            if (is_final)
                is_final(parameter);
            if (hooks_.after_gradient)
                hooks_.after_gradient(parameter);
            if (reduces)
                mark_ready(gradients_.index_of(parameter));
        },
        scale);
    if (!reduces)
        return;
    complete();
    finalize();
}

// A GPU's queue takes about a thousand operations. A launch that finds it full waits in the driver,
// where it may keep out the very rank for which this one's buckets wait. So no host fills the queue
// any further before its last step is reduced. The forward already there keeps the device busy.
void DistributedDataParallel::wait_for_last_step() {
    if (!is_captured(device_.stream()))  // the graph's launcher waits instead
        reduced_.synchronize();
}

// Counts a gradient that backward does not compute as ready: with the sum that no_sync has left in
// it, or with zeros.
void DistributedDataParallel::mark_zero(std::size_t gradient) {
    if (!gradients_.parameters()[gradient]->has_gradient())
        gradients_.zero_absent(gradient);
    mark_ready(gradient);
}

// Counts down the bucket of a gradient that is final, and launches the buckets that are ready now.
void DistributedDataParallel::mark_ready(std::size_t gradient) {
    if (is_ready_[gradient])
        throw std::logic_error("backward computed a gradient for '" +
                               gradients_.plan().gradients[gradient].name +
                               "', but after_forward had listed it as unused in this step");
    is_ready_[gradient] = true;
    if (options_.rebuild_buckets && !is_rebuilt_)
        ready_order_.push_back(gradient);
    pending_[gradients_.plan().places[gradient].bucket]--;
    if (options_.overlap && first_backward_.is_over())
        launch_ready_buckets();
}

// Launches buckets strictly in order: bucket k + 1 never before bucket k, however early it is
// ready. If each rank launched its buckets as they become ready, rank 0 could wait in bucket 1 for
// rank 1 while rank 1 waits in bucket 2 for rank 0.
void DistributedDataParallel::launch_ready_buckets() {
    while (next_bucket_ < pending_.size() && pending_[next_bucket_] == 0)
        launch(next_bucket_++);
}

// Enqueues the reduction of one bucket after all that backward has enqueued so far. Backward goes
// on at once.
void DistributedDataParallel::launch(std::size_t i) {
    const Tensor bucket = gradients_.bucket(i);
    const std::string name = "bucket " + std::to_string(i);
    computed_.record(device_.stream());  // all gradients of this bucket are computed here ...
    communication_.wait(computed_);      // ... and not sent before
    track_.begin();
    hook_(communicator_, bucket, communication_, name);
    track_.mark(name + ", " + format_bytes(static_cast<double>(bucket.bytes())));
}

// Deals with the gradients that are still missing when backward has ended, and launches the buckets
// that are left: those that waited for them, or all of them without overlap.
void DistributedDataParallel::complete() {
    Parameters missing;
    std::string names;
    for (std::size_t i = 0; i < is_ready_.size(); i++)
        if (!is_ready_[i]) {
            missing.push_back(gradients_.parameters()[i]);
            names += (names.empty() ? "" : ", ") + gradients_.plan().gradients[i].name;
        }
    if (!missing.empty() && !hooks_.after_backward)
        throw std::runtime_error(
            "backward has ended, and these parameters got no gradient: " + names +
            "; the loss must depend on every parameter, or the others wait for ever");
    if (!missing.empty())
        hooks_.after_backward(missing);
    for (const auto& parameter : missing)
        mark_zero(gradients_.index_of(*parameter));
    first_backward_.wait_for_all_ranks(communicator_.rank(), device_.stream());
    launch_ready_buckets();
}

// Makes the compute stream wait for the last reduction: the optimizer, enqueued next, finds the
// reduced gradients.
void DistributedDataParallel::finalize() {
    if (hooks_.before_finalize)
        hooks_.before_finalize();
    reduced_.record(communication_);
    device_.stream().wait(reduced_);
    if (anomalies_)
        anomalies_->require_finite();
}

}  // namespace ddp
