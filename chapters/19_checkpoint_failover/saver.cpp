// A save, after step 50:
//
//     compute stream   ... step 50 | 1 | forward -- backward -- 3 -- optimizer | step 52 ...
//                                    |                          ^
//     copy stream                    +-- 2 ---------------------+
//     writer thread                                             +-- 4 -- 5
//
//     1. save           copy the buffers, which the next forward changes; they are small
//     2. save           copy parameters and optimizer, while the next step computes
//     3. wait_for_copy  the optimizer is the first to change them, and waits for 2
//     4. write          ask the communicator whether all work before the copy has succeeded
//     5. write          checksum, write, fsync, rename, fsync (save_atomically)
#include "19_checkpoint_failover/saver.hpp"

#include <iostream>

#include "common/gpu/thread_name.hpp"
#include "common/report/bench.hpp"

namespace ddp {

Saver::Saver(Communicator& communicator, Device& device, TrainingTensors tensors,
             Checkpoints& checkpoints, OnEvent on_event,
             const std::map<std::string, std::string>& more)
    : communicator_(communicator),
      device_(device),
      tensors_(std::move(tensors)),
      checkpoints_(checkpoints),
      on_event_(std::move(on_event)) {
    // The tensors have the same order in the file and in the host's memory.
    for (const auto* list : {&tensors_.fixed_in_forward, &tensors_.buffers})
        for (const NamedTensor& tensor : *list)
            layout_.add(tensor.name, {tensor.value.shape().begin(), tensor.value.shape().end()});
    layout_.metadata = more;
    host_ = PinnedBuffer<std::uint8_t>(layout_.data_bytes());
    int own_device = 0;
    DDP_CHECK(cudaGetDevice(&own_device));
    writer_ = std::thread([this, own_device] {
        name_thread_by_role("saver");
        cudaSetDevice(own_device);  // or its calls would make a context on device 0
        serve_requests();
    });
}

Saver::~Saver() {
    end();
}

void Saver::end() {
    if (!writer_.joinable())
        return;
    {
        const std::lock_guard lock(mutex_);
        is_ending_ = true;
    }
    changed_.notify_all();
    writer_.join();
}

void Saver::finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !request_; });  // the writer is done, or has failed
    if (error_)
        std::rethrow_exception(std::exchange(error_, nullptr));
}

void Saver::save(const TrainingState& state) {
    // The host memory is free once the previous checkpoint is on the disk.
    const Stopwatch watch;
    finish();
    seconds_.waited += watch.seconds();
    // 1. The next forward changes the buffers at once: copy them before it, in its own stream.
    copy(tensors_.buffers, tensors_.fixed_in_forward.size(), device_.stream());
    // 2. Parameters and optimizer, which are much larger, stay as they are until the next step of
    // the optimizer: copy them during forward and backward.
    computed_.record(device_.stream());
    copies_.wait(computed_);
    copy(tensors_.fixed_in_forward, 0, copies_);
    copied_.record(copies_);
    // The host goes on; the writer waits for the copy itself.
    SaveRequest request{state.step, layout_};
    request.header.metadata.merge(to_metadata(state));
    {
        const std::lock_guard lock(mutex_);
        request_ = std::move(request);
    }
    changed_.notify_all();
}

// Enqueues copies of the tensors to their places; the first one is tensor `first` of the layout.
void Saver::copy(const std::vector<NamedTensor>& tensors, std::size_t first, Stream& stream) {
    for (std::size_t i = 0; i < tensors.size(); i++)
        if (const Tensor& value = tensors[i].value; value.size() > 0)
            DDP_CHECK(cudaMemcpyAsync(host_.data() + layout_.tensors[first + i].begin, value.data(),
                                      value.bytes(), cudaMemcpyDeviceToHost, stream));
}

// Writes one checkpoint. When a rank is lost, the all-reduces that wait for it return without a
// sum. The optimizer and the copy, enqueued after them, still run, on gradients that mean nothing.
// Such a copy must not become a checkpoint: synchronize throws if a collective before it failed.
void Saver::write(SaveRequest& request) {
    communicator_.synchronize(copies_);
    seconds_.copied += copied_.seconds_since(computed_);
    on_event_("saving", request.step);
    if (checkpoints_.save(request.step, std::move(request.header), host_.span()))
        std::cerr << "note: the folder of the checkpoints had been removed: it was made again for "
                     "that of step "
                  << request.step << "." << std::endl;
    on_event_("saved", request.step);
}

// Serves one request after another, as the writer thread. It writes without the lock.
void Saver::serve_requests() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return request_ || is_ending_; });
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
        error_ = error;  // finish() throws it
        request_.reset();
        changed_.notify_all();
    }
}

}  // namespace ddp
