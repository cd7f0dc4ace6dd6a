#include "17_checkpoint_failover/saver.hpp"

#include "common/report/bench.hpp"

namespace ddp {

Saver::Saver(Communicator& communicator, Device& device, TrainingTensors tensors,
             Checkpoints& checkpoints, OnEvent on_event)
    : communicator_(communicator),
      device_(device),
      tensors_(std::move(tensors)),
      checkpoints_(checkpoints),
      on_event_(std::move(on_event)) {
    for (const auto* list : {&tensors_.fixed_in_forward, &tensors_.buffers})
        for (const NamedTensor& tensor : *list)
            layout_.add(tensor.name, {tensor.value.shape().begin(), tensor.value.shape().end()});
    host_ = PinnedBuffer<std::uint8_t>(layout_.data_bytes());
    writer_ = std::thread([this] { write_jobs(); });
}

Saver::~Saver() {
    end();
}

void Saver::end() {
    if (!writer_.joinable())
        return;
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    changed_.notify_all();
    writer_.join();
}

void Saver::finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !request_; });  // the writer ends, or throws
    if (error_)
        std::rethrow_exception(std::exchange(error_, nullptr));
}

void Saver::save(const TrainingState& state) {
    const Stopwatch watch;
    finish();
    seconds_waited_ += watch.seconds();
    // The next forward changes the buffers at once: they are copied before it, in its own stream.
    // Until the next step of the optimizer nothing changes the rest, which is much more.
    copy(tensors_.buffers, tensors_.fixed_in_forward.size(), device_.stream());
    computed_.record(device_.stream());
    copies_.wait(computed_);
    copy(tensors_.fixed_in_forward, 0, copies_);
    copied_.record(copies_);
    SaveRequest request{state.step, layout_};
    request.header.metadata = to_metadata(state);
    {
        const std::lock_guard lock(mutex_);
        request_ = std::move(request);
    }
    changed_.notify_all();
}

void Saver::copy(const std::vector<NamedTensor>& tensors, std::size_t first, Stream& stream) {
    for (std::size_t i = 0; i < tensors.size(); i++)
        if (const Tensor& value = tensors[i].value; value.size() > 0)
            DDP_CHECK(cudaMemcpyAsync(host_.data() + layout_.tensors[first + i].begin, value.data(),
                                      value.bytes(), cudaMemcpyDeviceToHost, stream));
}

// Where a rank is lost, the all-reduces that wait for it give up, and the optimizer behind them
// steps with gradients that are none. The copy of that must not become a checkpoint: the
// communicator knows, and throws.
void Saver::write(SaveRequest& request) {
    communicator_.synchronize(copies_);
    on_event_("saving", request.step);
    checkpoints_.save(request.step, std::move(request.header), host_.span());
    on_event_("saved", request.step);
}

void Saver::write_jobs() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return request_ || ends_; });
        if (!request_)
            return;
        lock.unlock();
        std::exception_ptr error;
        try {
            write(*request_);
        } catch (...) {
            error = std::current_exception();
        }
        lock.lock();
        error_ = error;
        request_.reset();
        changed_.notify_all();
    }
}

}  // namespace ddp
