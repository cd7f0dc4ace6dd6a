#include "14_overlap/ddp.hpp"

#include <stdexcept>

#include "common/report/units.hpp"

namespace ddp {
namespace {

FlatBuffers make_gradients(Communicator& communicator, Device& device, const Module& model,
                           const DdpOptions& options) {
    const Parameters parameters = learned_parameters(model.parameters());
    BucketPlan plan =
        first_plan(gradient_sizes(parameters), options.bucket_cap_bytes, !options.rebuild_buckets);
    const ArenaBuffer<float> memory =
        communicator.allocate<float>(plan.memory_bytes() / sizeof(float));
    return {device, parameters, std::move(plan), memory.share(), memory.size()};
}

}  // namespace

void average_bucket(Communicator& communicator, Tensor bucket, Stream& stream,
                    const std::string& name) {
    communicator.all_reduce(bucket.data(), bucket.data(), bucket.size(), ReduceOp::average, stream,
                            name);
}

// The gradients and the buffers, and at the beginning once more all that is copied from rank 0.
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
      buffers_(communicator.allocate<float>(buffer_elements(model))) {
    copy_from_rank_0(communicator, device, model);
}

// ---- Forward

Variable DistributedDataParallel::forward(Variable input) {
    const bool is_reduced = is_reducing_ && model_.is_training();
    if (hooks_.before_forward)
        hooks_.before_forward(is_reduced);
    begin_step();
    const Variable output = model_.forward(input);
    buffers_may_differ_ = expects_backward_ = is_reduced;
    if (is_reduced)
        prepare(hooks_.after_forward ? hooks_.after_forward(output) : Parameters());
    return output;
}

void DistributedDataParallel::begin_step() {
    if (options_.rebuild_buckets && model_.is_training() && !ready_order_.empty() && !is_rebuilt_)
        rebuild_buckets();
    if (buffers_may_differ_)
        share_buffers();
}

void DistributedDataParallel::share_buffers() {
    broadcast_buffers(communicator_, device_, model_, buffers_, buffers_root_);
    buffers_may_differ_ = false;
}

// Once: rank 0's order counts, because all must agree on one.
void DistributedDataParallel::rebuild_buckets() {
    const BucketPlan own =
        rebuilt_plan(gradients_.plan().gradients, options_.bucket_cap_bytes, ready_order_);
    const std::string plan = communicator_.rank().broadcast(encode_plan(own), 0);
    gradients_.arrange(decode_plan(plan, gradients_.plan().gradients));
    is_rebuilt_ = true;
}

DdpState DistributedDataParallel::state() const {
    if (is_rebuilt_)
        return {encode_plan(gradients_.plan()), {}};
    return {"", ready_order_};
}

void DistributedDataParallel::set_state(const DdpState& state) {
    is_rebuilt_ = !state.plan.empty();
    ready_order_ = state.ready_order;
    if (is_rebuilt_)
        gradients_.arrange(decode_plan(state.plan, gradients_.plan().gradients));
}

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
        throw std::logic_error(
            "a backward that is to be reduced needs a forward of its own, in training, outside of "
            "no_sync");
    const bool reduces = expects_backward_;
    expects_backward_ = false;
    if (reduces)
        for (const std::size_t gradient : unreached_)
            mark_zero(gradient);
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

// What backward does not reach adds zeros, or what no_sync has left.
void DistributedDataParallel::mark_zero(std::size_t gradient) {
    if (!gradients_.parameters()[gradient]->has_gradient())
        gradients_.zero_absent(gradient);
    mark_ready(gradient);
}

void DistributedDataParallel::mark_ready(std::size_t gradient) {
    if (is_ready_[gradient])
        throw std::logic_error("backward has reached '" +
                               gradients_.plan().gradients[gradient].name +
                               "', of which it was said that it would not");
    is_ready_[gradient] = true;
    if (options_.rebuild_buckets && !is_rebuilt_)
        ready_order_.push_back(gradient);
    pending_[gradients_.plan().places[gradient].bucket]--;
    if (options_.overlap)
        launch_ready_buckets();
}

// Strictly in order: if each rank launched its buckets as they come, two ranks could wait for each
// other's first one for ever.
void DistributedDataParallel::launch_ready_buckets() {
    while (next_bucket_ < pending_.size() && pending_[next_bucket_] == 0)
        launch(next_bucket_++);
}

// The communication stream waits for what backward has enqueued so far, and backward goes on.
void DistributedDataParallel::launch(std::size_t i) {
    if (options_.check_finite)
        gradients_.check_finite(i);
    computed_.record(device_.stream());
    communication_.wait(computed_);
    const Tensor bucket = gradients_.bucket(i);
    if (track_ != nullptr)
        track_->begin();
    hook_(communicator_, bucket, communication_, "bucket " + std::to_string(i));
    if (track_ != nullptr)
        track_->mark("bucket " + std::to_string(i) + ", " +
                     format_bytes(static_cast<double>(bucket.bytes())));
}

// Backward has ended: nothing more becomes ready by itself.
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
    launch_ready_buckets();
}

// Whoever comes next on the device's stream finds the reduced gradients.
void DistributedDataParallel::finalize() {
    if (hooks_.before_finalize)
        hooks_.before_finalize();
    reduced_.record(communication_);
    device_.stream().wait(reduced_);
    if (options_.check_finite)
        gradients_.require_finite();
}

// ---- Without data

void DistributedDataParallel::shadow_step(bool is_reduced) {
    begin_step();
    buffers_may_differ_ = is_reduced;
    if (!is_reduced)
        return;
    prepare({});
    for (std::size_t gradient = 0; gradient < is_ready_.size(); gradient++) {
        gradients_.zero_absent(gradient);
        mark_ready(gradient);
    }
    launch_ready_buckets();
    finalize();
}

}  // namespace ddp
