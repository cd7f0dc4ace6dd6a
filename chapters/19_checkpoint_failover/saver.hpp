#pragma once
// Saves checkpoints while training goes on: after a step, the device copies the state into pinned
// host memory, and a thread writes that copy to the disk.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "01_sgd/device.hpp"
#include "09_all_reduce/communicator.hpp"
#include "19_checkpoint_failover/state/checkpoints.hpp"
#include "19_checkpoint_failover/training_state.hpp"

namespace ddp {

class Saver {
  public:
    // Starts the writer thread, which calls `on_event` with "saving" and "saved" and the step.
    // `tensors` belong to this rank's model and optimizer; `more` goes into each checkpoint's
    // metadata, in addition to the state. Everything passed must outlive this object.
    using OnEvent = std::function<void(const std::string& what, int step)>;
    Saver(Communicator& communicator, Device& device, TrainingTensors tensors,
          Checkpoints& checkpoints, OnEvent on_event,
          const std::map<std::string, std::string>& more = {});
    ~Saver();
    Saver(const Saver&) = delete;
    Saver& operator=(const Saver&) = delete;

    // Saves `state` and the tensors, as they are after all work enqueued in the device's stream so
    // far. Only enqueues, unless the writer is still busy with the previous checkpoint: there is
    // one copy in host memory, so it waits. Throws that checkpoint's error, if it failed.
    void save(const TrainingState& state);
    // Makes the device's stream wait until the tensors are copied. Work enqueued after this call
    // may change parameters and optimizer.
    void wait_for_copy() { device_.stream().wait(copied_); }
    // Waits until the last checkpoint is on the disk. Throws its error, if it failed.
    void finish();
    // Ends the writer thread after the checkpoint that it has begun. Call it before the
    // communicator ends.
    void end();

    // Returns the seconds spent on all saves so far. Call it after finish().
    struct Seconds {
        double waited = 0;  // save() waited, for the previous checkpoint
        double copied = 0;  // on the device, from the step's end to the end of the copy
    };
    Seconds seconds() const { return seconds_; }

  private:
    // One checkpoint to be written; its data is in host_, the copy in the host's memory.
    struct SaveRequest {
        int step;
        SafetensorsHeader header;
    };

    void copy(const std::vector<NamedTensor>& tensors, std::size_t first, Stream& stream);
    void serve_requests();
    void write(SaveRequest& request);

    Communicator& communicator_;
    Device& device_;
    const TrainingTensors tensors_;
    Checkpoints& checkpoints_;
    const OnEvent on_event_;
    SafetensorsHeader layout_;         // names and places of all tensors, in order; `more`
    PinnedBuffer<std::uint8_t> host_;  // their values, in the host's memory
    Stream copies_;                    // the copy stream
    Event computed_, copied_;
    Seconds seconds_;

    std::mutex mutex_;  // guards all members below
    std::condition_variable changed_;
    std::optional<SaveRequest> request_;  // the current one, until it is on the disk
    std::exception_ptr error_;            // of the last one
    bool is_ending_ = false;
    std::thread writer_;
};

}  // namespace ddp
