#pragma once
// The race detector. Two threads of one launch that touch one place, one of them to write, race
// unless something puts one access before the other: a __syncthreads(), a __syncwarp(), or a value
// that one stores with release and the other loads with acquire. (A shuffle is none of these: CUDA
// promises no order of memory there.) It looks at this order, and not at what happens to come
// first, so it finds races that do no harm in this run.
//
// The clocks are those of FastTrack (Flanagan and Freund, PLDI 2009), with one clock for a block
// and one for a warp beside those of threads. Accesses of two launches always count as ordered.
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "block.hpp"
#include "clocks.hpp"
#include "shadow.hpp"
#include "watch.hpp"

namespace cuda_on_cpu {

// Keeps what was released at the places of atomics.
class Releases {
  public:
    struct Shard {
        std::mutex mutex;
        std::unordered_map<std::uintptr_t, Knowledge> of;
    };
    // The mutex of its shard is held by whoever accesses an atomic.
    Shard& shard_of(std::uintptr_t address) { return shards_[address / 4 % shards_.size()]; }

  private:
    std::array<Shard, 64> shards_;
};

// A set of elements. Its size is that of what a thread uses, and not of the array: there may be
// very many threads.
class ElementSet {
  public:
    void add(std::size_t element);
    std::uint32_t size() const;

  private:
    std::unordered_map<std::size_t, std::uint64_t> words_;  // of 64 elements each
};

// Counts how the threads of a launch use the observed arrays.
class ArrayUses {
  public:
    explicit ArrayUses(std::size_t threads);
    bool are_wanted() const { return !arrays_.empty(); }
    void note(std::size_t thread, std::uintptr_t address, std::size_t bytes, bool is_write);
    void note_shared_read(std::size_t thread) { shared_reads_[thread]++; }
    KernelUse counted() const;

  private:
    struct OfThread {
        ElementSet read, written;
        std::uint64_t reads = 0;
    };
    const std::size_t threads_;
    std::vector<ObservedArray> arrays_;
    std::vector<std::uint64_t> shared_reads_;
    std::vector<OfThread> uses_;  // of thread t and array a at [t * arrays + a]
};

class WatchedLaunch final : public LaunchWatch {
  public:
    explicit WatchedLaunch(const KernelRun& run);
    std::unique_ptr<BlockWatch> block_begins(std::uint64_t block, BlockExecutor& executor) override;
    KernelUse use() override { return arrays.counted(); }

    const LaunchShape shape;
    const bool has_blocks_at_once;  // on several OS threads
    const std::uint32_t threads_of_block;
    Shadow memory;  // all but the blocks' own
    Releases releases;
    ArrayUses arrays;
};

// A race: an access, and the one before it.
struct Race {
    Access now, then;
    std::uintptr_t address;
    bool is_in_shared_memory;
};

class WatchedBlock final : public BlockWatch {
  public:
    WatchedBlock(WatchedLaunch& launch, std::uint32_t block, BlockExecutor& executor);
    void block_meets() override;
    void lanes_meet(int warp, unsigned int mask) override;

    // Notes a plain access of the running thread, which is about to happen.
    std::optional<Race> plain(std::uintptr_t address, std::size_t bytes, bool is_write,
                              const void* at);
    // Makes an atomic access: `access` returns whether it has written, and its order.
    struct Done {
        bool has_read, has_written;
        std::memory_order order;
    };
    template <class AccessAtomic>
    std::optional<Race> atomic(std::uintptr_t address, std::size_t bytes, const void* at,
                               AccessAtomic access);
    void fence();
    // Returns the race as what the running thread does: "reads at a.cu:12 what thread ...".
    std::string to_string(const Race& race) const;

  private:
    struct Thread {
        Moment now;
        Knowledge known;
        Knowledge found;   // at atomics that it has loaded without acquire: a fence makes it known
        Knowledge fenced;  // what its last fence has published
    };
    Thread& running() { return threads_[static_cast<std::size_t>(executor_.current_thread())]; }
    std::uint32_t number_of(int thread) const {
        return first_thread_ + static_cast<std::uint32_t>(thread);
    }
    bool is_mine(std::uint32_t thread) const { return thread - first_thread_ < threads_.size(); }
    std::uint64_t warp_of(std::uint32_t thread) const;
    bool is_on_stack(std::uintptr_t address) const;
    bool is_shared(std::uintptr_t address) const;
    bool is_before_running(const Access& then);
    Knowledge publish(Thread& thread, std::uint32_t number);
    Access access_at(const void* code);
    std::optional<Race> note(std::uintptr_t address, std::size_t bytes, const Access& now);
    std::string cure(const Race& race, bool is_same_line) const;

    WatchedLaunch& launch_;
    BlockExecutor& executor_;
    const std::uint32_t first_thread_;
    const std::span<const std::byte> thread_storage_, dynamic_shared_;
    Shadow shared_;
    std::vector<Thread> threads_;
    // The pages that it has used lately, by the last bits of their numbers: finding one in a Shadow
    // takes longer than all else.
    struct UsedPage {
        std::uintptr_t number = 0;
        Page* page = nullptr;
    };
    std::array<UsedPage, 256> used_pages_;
};

template <class AccessAtomic>
std::optional<Race> WatchedBlock::atomic(std::uintptr_t address, std::size_t bytes, const void* at,
                                         AccessAtomic access) {
    // A value and what was released with it change together, so who reads one finds the other.
    Releases::Shard& shard = launch_.releases.shard_of(address);
    const std::lock_guard lock(shard.mutex);
    const Done done = access();
    if (is_on_stack(address))
        return std::nullopt;
    Thread& thread = running();
    const auto released = shard.of.find(address);
    const auto order = done.order;
    const bool acquires = order != std::memory_order_relaxed && order != std::memory_order_release;
    const bool releases = order == std::memory_order_release ||
                          order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
    if (done.has_read && released != shard.of.end()) {
        Knowledge& to = acquires ? thread.known : thread.found;
        to = Known::join(to, released->second);
    }
    Access now = access_at(at);
    now.is_atomic = 1;
    now.is_write = done.has_written;
    std::optional<Race> race = note(address, bytes, now);
    if (done.has_written) {
        Knowledge left = releases ? publish(thread, now.thread) : thread.fenced;
        if (done.has_read && released != shard.of.end())  // it goes on what others have released
            left = Known::join(left, released->second);
        if (left)
            shard.of[address] = std::move(left);
        else if (released != shard.of.end())
            shard.of.erase(released);
    }
    return race;
}

}  // namespace cuda_on_cpu
