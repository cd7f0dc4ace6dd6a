#pragma once
// A stream that stands still until the test says so: for contracts that say that the host does not
// wait. On a GPU and on a CPU alike.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "common/gpu/gpu.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {

// Holds back everything that is enqueued on a stream after it, until open() or for three seconds:
// longer than any call takes that only enqueues work, even on a busy machine.
class Gate {
  public:
    explicit Gate(Stream& stream) {
        DDP_CHECK(cudaLaunchHostFunc(stream, wait, new std::shared_ptr<State>(state_)));
    }
    ~Gate() { open(); }
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

    // Lets the stream go on. Returns false if it has done so before, because nobody had called.
    bool open() {
        const std::lock_guard lock(state_->mutex);
        state_->is_open = true;
        state_->opened.notify_all();
        return !state_->has_given_up;
    }

  private:
    using Clock = std::chrono::steady_clock;
    struct State {
        std::mutex mutex;
        std::condition_variable opened;
        bool is_open = false, has_given_up = false;
        const Clock::time_point end = Clock::now() + std::chrono::seconds(3);
    };
    static void wait(void* data) {
        const std::unique_ptr<std::shared_ptr<State>> own(
            static_cast<std::shared_ptr<State>*>(data));
        State& state = **own;
        std::unique_lock lock(state.mutex);
        state.has_given_up =
            !state.opened.wait_until(lock, state.end, [&] { return state.is_open; });
    }

    std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Makes `call`, which should only enqueue work on `stream`, while the stream stands still. Returns
// what is wrong if the call waited for the stream, or "".
inline std::string wrong_if_host_waits(Stream& stream, const std::function<void()>& call) {
    Gate gate(stream);
    call();
    if (gate.open())
        return "";
    return "your function returned only after the work on the stream was done: it waits for the "
           "device. By the contract it enqueues its work, and the host does not wait. Look for a "
           "synchronize, or for a copy to the host." +
           may_be_busy;
}

}  // namespace ddp::test
