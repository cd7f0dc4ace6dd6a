#pragma once
// One execution of the explored streams: it goes on by one step at a time, of the process that is
// to take it. A process is a stream, or a place in its store buffer. (Where kernels have several
// blocks, each block is a stream here; the next kernel begins when all of them have ended.)
//
//     stream 0 ── data ───────────────────────────────▶ memory          plain accesses: at once
//         │ └──── load of a flag ◀──────────────────────── ▲            a step of the stream
//         ▼ store                                           │
//     buffer of stream 0: flag A = 1, flag B = 1 ── arrives ┘            a step of (stream 0, flag
//     A)
//
// A stream runs up to its next step and stops in front of it. Stores arrive in any order, except
// two to the same place, and except that all earlier stores arrive before one with release.
//
// The rules of who may read what are those of C++: an access must happen before each conflicting
// one, or after it. The clocks are those of FastTrack (Flanagan and Freund, PLDI 2009): each stream
// counts its releases, and its view says up to which release it has seen every other stream.
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "block.hpp"
#include "fiber.hpp"
#include "kernel_run.hpp"
#include "tools/explore/engine/explore.hpp"

namespace cuda_on_cpu {

__extension__ using ProcessSet = unsigned __int128;  // bit p: process p
inline constexpr int max_processes = 128;

// The next step of a process. Two steps depend on each other if they are at the same place, and
// one of them writes.
struct NextStep {
    enum class Kind { none, load, update, fence, join, arrival } kind = Kind::none;
    const std::byte* address = nullptr;
    std::uint64_t value = 0;  // that arrives, or that an update has left

    bool writes() const { return kind == Kind::update || kind == Kind::arrival; }
    bool depends_on(const NextStep& other) const {
        return address != nullptr && address == other.address && (writes() || other.writes());
    }
};

// By stream: the number of its releases that are known.
using View = std::array<std::uint16_t, max_explored_streams>;

class Execution {
  public:
    Execution(std::vector<std::vector<const PreparedKernel*>> kernels,
              const ExplorationOptions& options);
    ~Execution();
    Execution(const Execution&) = delete;
    Execution& operator=(const Execution&) = delete;

    // Begins anew: memory is as at first, and every stream stands in front of its first step.
    void begin();
    // Puts the memory back.
    void take_back();
    // Throws std::logic_error if that has not put all of it back: a kernel has written unseen.
    void require_unchanged() const;

    int streams() const { return static_cast<int>(streams_.size()); }
    // Returns the processes that can take a step now.
    ProcessSet enabled() const;
    // Returns the places in store buffers whose next arrival a stream waits for, or which come
    // before such a one.
    ProcessSet awaited() const;
    NextStep next(int process) const;
    // Takes the step, number `number` of this execution. Returns how many of the last steps have
    // turned out to be a poll in vain, all of this stream: they have changed nothing, and are taken
    // back.
    int step(int process, int number);
    // Returns the steps that have to come before the next one of a process, other than its own:
    // that after which its store was issued, and the arrivals that it had to wait for.
    std::vector<int> needed_by(int process) const;
    // Returns the steps that have ended a stream's last wait, if it has waited.
    const std::vector<int>& woken_by(int stream) const {
        return streams_[static_cast<std::size_t>(stream)]->woken_by;
    }
    // Returns whether a stream has a store on its way to the place of its next load.
    bool finds_own(int stream) const;
    // Returns which stream a process is, or has the store buffer of.
    int stream_of(std::size_t process) const;
    // Returns what the last step, an update, has left at its place.
    std::uint64_t updated() const { return updated_; }
    // Returns whether a stream's next load is the first one of a place that has ended its wait.
    bool ends_wait(int stream) const;

    // A stream in front of a load: what it is asked again with another value.
    struct Moment {
        Fiber::Moment fiber;
        std::vector<std::byte> thread_storage;
        int calls = 0;
    };
    Moment moment_of(int stream) const;
    // Asks a stream that stands there what it would do if the place had this value, or the one that
    // it had at first. Returns whether it would go on; false if it would poll again.
    bool would_go_on(int stream, const Moment& there, std::optional<std::uint64_t> value);

    // Returns whether a stream has not ended.
    bool is_under_way() const;
    // Returns whether the streams turned out to share a place that only one of them seemed to use:
    // then what was explored so far took too few steps, and is to be done again.
    bool has_found_shared() const { return has_found_shared_; }
    // Returns whether there is no use in going on.
    bool is_to_be_left() const { return has_found_shared_ || failure_ != ExploredFailure::none; }
    ExploredFailure failure() const { return failure_; }
    const Race& race() const { return race_; }

    // ---- Called by the running stream (hooks.cpp)

    static Execution* of_this_thread();
    bool is_shared_memory(const volatile void* address) const { return granule_of(address) >= 0; }
    void access(const volatile void* address, std::size_t bytes, bool is_write);
    std::uint64_t load(const volatile void* address, std::size_t bytes, std::memory_order order);
    void store(volatile void* address, std::size_t bytes, std::uint64_t value,
               std::memory_order order);
    // Returns what was at `address`; puts there what change() returns for it, if it returns
    // something.
    std::uint64_t update(volatile void* address, std::size_t bytes, std::memory_order order,
                         const std::function<std::optional<std::uint64_t>(std::uint64_t)>& change);
    void fence(std::memory_order order);
    void sleep();
    // The stream enters a function, and leaves it.
    void enter() { running_->calls++; }
    void leave();

  private:
    static constexpr std::size_t granule_bytes = 4;
    static constexpr std::size_t max_loads_in_a_row = 100'000;
    // The last accesses of four bytes of shared memory. The numbers are those of streams and of
    // their releases.
    struct Granule {
        struct Write {
            std::int16_t stream = -1;
            std::uint16_t release = 0;
        };
        std::uint32_t execution = 0;  // what follows is of this one
        Write plain_write, atomic_write;
        View plain_reads{}, atomic_reads{};  // 0: none
    };
    // Who uses a place by atomic accesses.
    static constexpr std::int8_t nobody = -1, several = -2;

    struct Store {
        std::byte* address;
        std::size_t bytes;
        std::uint64_t value;
        View view;             // what a load of it with acquire will have seen
        std::uint64_t number;  // among the stores of the stream, from 1
        std::uint64_t behind;  // earlier stores with lower numbers arrive first
        int issued_after;
    };
    struct Arrival {
        std::uint64_t number;  // of the store
        int step;
    };
    struct Load {
        const std::byte* address;
        bool is_step;
        int round;
        View view, unfenced;  // before it
    };
    // While a stream is asked: nothing that it does counts, and its first act is its answer.
    struct Question {
        std::optional<std::uint64_t> value = std::nullopt;
        const std::byte* address = nullptr;
        bool is_of_whole_poll = false;  // its other loads are no answer
        bool is_before_poll = false;    // nor is a sleep
        bool would_go_on = false;
    };
    // The end of a kernel of several blocks, as one of them sees it: what it knows, and has done.
    struct KernelEnd {
        View view;
        std::uint64_t stores;
        int last_step;
    };
    enum class State { ready, waiting, ended };
    struct RunningStream {
        RunningStream(Execution& of_execution, int number, int of_stream, int of_block);

        Execution& execution;
        const int number, of, block;
        Fiber fiber;
        BlockExecutor executor;
        std::optional<KernelRun> run;
        std::vector<std::byte> thread_storage;  // while it does not run
        int calls = 0;                          // of functions that it is in

        State state = State::ready;
        bool has_slept = false, is_probing = false;
        int sleeps = 0;  // since it last loaded
        int rounds = 0;  // of polls, so far
        NextStep next;
        View view{}, fenced{}, unfenced{};  // unfenced: seen by loads, until a fence with acquire
        std::vector<Store> buffer;
        std::vector<Arrival> arrivals;  // of its stores, so far
        std::uint64_t stores = 0, fenced_stores = 0;
        std::vector<KernelEnd> ends;
        std::size_t joins = 0;  // of its blocks that are behind it
        int last_step = -1;
        std::vector<Load> loads, probe;         // since it last wrote
        std::vector<const std::byte*> awaited;  // what it polls
        std::vector<int> woken_by;
        std::vector<const std::byte*> news;  // what was written there, and not loaded since
        const std::byte* polled = nullptr;   // by the stream's latest step, a relaxed load
    };

    static void run_kernels(Fiber& fiber);
    std::vector<RunningStream*> blocks_of(const RunningStream& stream) const;
    void join_blocks(RunningStream& stream);
    bool can_join(const RunningStream& stream) const;
    void resume(RunningStream& stream);
    void pause(RunningStream& stream);
    int run_to_next_step(RunningStream& stream);
    bool has_news_for(RunningStream& stream, const Moment& behind_poll);
    int take_back_poll(RunningStream& stream, const Moment& behind_poll);
    bool could_end_by_several(RunningStream& stream, const Moment& behind_poll);
    bool ask(RunningStream& asked, const Moment& there, const Question& question);
    std::uint64_t asked_value_at(const std::byte* address, std::size_t bytes);
    static bool has_just_polled(const RunningStream& stream, const std::byte* address);
    void stop_before(RunningStream& stream, NextStep next);
    void answer(bool would_go_on);
    std::uint64_t first_value_at(const std::byte* address, std::size_t bytes) const;
    void arrive(int process);
    const Store* next_arrival(int process) const;
    static const Store* own_store_at(const RunningStream& stream, const std::byte* address);
    bool is_awaited(const std::byte* address) const;
    int process_of(int stream, const std::byte* address);
    bool is_shared_place(RunningStream& stream, const std::byte* address);
    bool begin_atomic(RunningStream& stream, const std::byte* address, NextStep::Kind kind);
    std::memory_order changed(std::memory_order order) const {
        return order == options_.without ? std::memory_order_relaxed : order;
    }

    std::ptrdiff_t granule_of(const volatile void* address) const;
    Granule& fresh(std::ptrdiff_t granule);
    void check(RunningStream& stream, const std::byte* address, std::size_t bytes, bool is_write,
               bool is_atomic);
    void write_memory(std::byte* address, std::size_t bytes, std::uint64_t value);
    void keep(const std::byte* address, std::size_t bytes);
    void release(RunningStream& stream);
    void acquire(RunningStream& stream, const std::byte* address, std::memory_order order);

    const std::vector<std::vector<const PreparedKernel*>> kernels_;
    const ExplorationOptions& options_;
    std::span<std::byte> thread_storage_;  // of this OS thread: __shared__, threadIdx and the like
    std::vector<std::byte> own_thread_storage_;
    Fiber main_;
    std::vector<std::unique_ptr<RunningStream>> streams_;
    RunningStream* running_ = nullptr;

    std::uint32_t number_ = 0;  // of this execution
    int step_ = -1;
    std::uint64_t updated_ = 0;
    std::vector<Granule> granules_;
    std::vector<std::int8_t> users_;
    std::map<const std::byte*, View> released_;  // what the value there brings along
    std::map<std::pair<int, const std::byte*>, int> processes_;  // of the buffers: stream, flag
    std::vector<std::pair<int, const std::byte*>> places_;       // the same, by process
    bool has_found_shared_ = false;
    ExploredFailure failure_ = ExploredFailure::none;
    Race race_;

    std::optional<Question> question_;

    struct Kept {
        std::byte* address;
        std::size_t bytes, begin;
    };
    std::vector<Kept> kept_;
    std::vector<std::byte> kept_bytes_;
    std::vector<std::vector<std::byte>> at_first_;
};

}  // namespace cuda_on_cpu
