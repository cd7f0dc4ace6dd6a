#pragma once
// Checkpoints while training goes on: the device copies the state into pinned host memory behind
// the step that made it, and a thread writes that to the disk.
//
//     compute stream   ... step 99 | step 100 | forward ── backward ── wait ── optimizer ...
//                                             │                          ▲
//     copy stream                             └ copy to the host ────────┘
//     writer thread                                              └ checksum, write, fsync, rename
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "01_sgd/device.hpp"
#include "09_all_reduce/communicator.hpp"
#include "17_checkpoint_failover/state/checkpoints.hpp"
#include "17_checkpoint_failover/training_state.hpp"

namespace ddp {

class Saver {
  public:
    // `on_event` is called by the writer with "saving" and "saved" and the step. Everything passed
    // must live longer; the tensors are those of the rank's model and optimizer.
    using OnEvent = std::function<void(const std::string& what, int step)>;
    Saver(Communicator& communicator, Device& device, TrainingTensors tensors,
          Checkpoints& checkpoints, OnEvent on_event);
    ~Saver();
    Saver(const Saver&) = delete;
    Saver& operator=(const Saver&) = delete;

    // The state after what the device's stream has been given so far. Enqueues; waits only while
    // the writer still has the one before, so that there is never more than one copy. Throws what
    // went wrong with that.
    void save(const TrainingState& state);
    // What the device's stream is given from now on may change parameters and optimizer.
    void let_change() { device_.stream().wait(copied_); }
    // Until the last one is on the disk. Throws what went wrong with it.
    void finish();
    // The writer ends, with what it has begun; before the communicator does.
    void end();

    // In save, for the one before.
    double seconds_waited() const { return seconds_waited_; }

  private:
    struct SaveRequest {
        int step;
        SafetensorsHeader header;
    };

    void copy(const std::vector<NamedTensor>& tensors, std::size_t first, Stream& stream);
    void write_jobs();
    void write(SaveRequest& request);

    Communicator& communicator_;
    Device& device_;
    const TrainingTensors tensors_;
    Checkpoints& checkpoints_;
    const OnEvent on_event_;
    SafetensorsHeader layout_;  // of all tensors, in order
    PinnedBuffer<std::uint8_t> host_;
    Stream copies_;
    Event computed_, copied_;
    double seconds_waited_ = 0;

    std::mutex mutex_;  // of what follows
    std::condition_variable changed_;
    std::optional<SaveRequest> request_;  // until it is on the disk
    std::exception_ptr error_;
    bool ends_ = false;
    std::thread writer_;
};

}  // namespace ddp
