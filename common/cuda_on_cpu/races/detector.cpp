#include "detector.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "lines.hpp"
#include "memory.hpp"

namespace cuda_on_cpu {
namespace {

struct Observed {
    std::mutex mutex;
    std::vector<ObservedArray> arrays;
};
Observed& observed() {
    static auto* instance = new Observed;
    return *instance;
}

std::string coordinates(std::uint64_t number, const dim3& shape) {
    return "(" + std::to_string(number % shape.x) + "," +
           std::to_string(number / shape.x % shape.y) + "," +
           std::to_string(number / shape.x / shape.y) + ")";
}

bool holds(std::span<const std::byte> bytes, std::uintptr_t address) {
    return address - reinterpret_cast<std::uintptr_t>(bytes.data()) < bytes.size();
}

}  // namespace

// ---- Launches

bool can_watch() {
    return true;
}

void observe_arrays(std::vector<ObservedArray> arrays) {
    const std::lock_guard lock(observed().mutex);
    observed().arrays = std::move(arrays);
}

std::unique_ptr<LaunchWatch> watch_launch(const KernelRun& run) {
    const dim3& block = run.kernel.shape.block;
    if (run.blocks() * block.x * block.y * block.z == 1)
        return nullptr;  // with whom?
    if (run.blocks() * block.x * block.y * block.z >= Access::nobody) {
        std::fprintf(stderr, "cuda_on_cpu: races: %s has too many threads to be watched\n",
                     run.name().c_str());
        return nullptr;
    }
    return std::make_unique<WatchedLaunch>(run);
}

WatchedLaunch::WatchedLaunch(const KernelRun& run)
    : shape(run.kernel.shape),
      has_blocks_at_once(shape.cooperative && run.blocks() > 1),
      threads_of_block(shape.block.x * shape.block.y * shape.block.z),
      arrays(run.blocks() * threads_of_block) {}

std::unique_ptr<BlockWatch> WatchedLaunch::block_begins(std::uint64_t block,
                                                        BlockExecutor& executor) {
    return std::make_unique<WatchedBlock>(*this, static_cast<std::uint32_t>(block), executor);
}

// ---- Who uses what

void ElementSet::add(std::size_t element) {
    words_[element / 64] |= std::uint64_t{1} << element % 64;
}

std::uint32_t ElementSet::size() const {
    int elements = 0;
    for (const auto& [number, bits] : words_)
        elements += std::popcount(bits);
    return static_cast<std::uint32_t>(elements);
}

ArrayUses::ArrayUses(std::size_t threads) : threads_(threads) {
    const std::lock_guard lock(observed().mutex);
    arrays_ = observed().arrays;
    uses_.resize(threads * arrays_.size());
    shared_reads_.resize(arrays_.empty() ? 0 : threads);
}

void ArrayUses::note(std::size_t thread, std::uintptr_t address, std::size_t bytes, bool is_write) {
    for (std::size_t a = 0; a < arrays_.size(); a++) {
        const ObservedArray& array = arrays_[a];
        const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(array.begin);
        if (offset >= array.elements * array.element_bytes)
            continue;
        OfThread& use = uses_[thread * arrays_.size() + a];
        ElementSet& elements = is_write ? use.written : use.read;
        for (std::size_t i = offset / array.element_bytes;
             i < array.elements && i * array.element_bytes < offset + bytes; i++) {
            elements.add(i);
            use.reads += is_write ? 0 : 1;
        }
    }
}

KernelUse ArrayUses::counted() const {
    KernelUse use{std::vector<ArrayUse>(arrays_.size()), shared_reads_};
    std::vector<ArrayUse>& all = use.arrays;
    for (std::size_t a = 0; a < arrays_.size(); a++)
        for (std::size_t t = 0; t < threads_; t++) {
            const OfThread& one = uses_[t * arrays_.size() + a];
            all[a].read.push_back(one.read.size());
            all[a].written.push_back(one.written.size());
            all[a].reads += one.reads;
        }
    return use;
}

// ---- Order

WatchedBlock::WatchedBlock(WatchedLaunch& launch, std::uint32_t block, BlockExecutor& executor)
    : launch_(launch),
      executor_(executor),
      first_thread_(block * launch.threads_of_block),
      thread_storage_(program_thread_storage()),
      dynamic_shared_(executor.dynamic_shared_bytes()),
      threads_(executor.threads()) {}

void WatchedBlock::block_meets() {
    Knowledge all;
    for (const Thread& thread : threads_)
        all = Known::join(all, thread.known);
    for (Thread& thread : threads_) {
        thread.known = all;
        thread.now.block_meets();
    }
}

// Lanes that are not all of their warp learn of each other one by one.
void WatchedBlock::lanes_meet(int warp, unsigned int mask) {
    const std::size_t first = static_cast<std::size_t>(warp) * warp_lanes;
    const std::size_t lanes = std::min<std::size_t>(warp_lanes, threads_.size() - first);
    const bool are_all = std::popcount(mask) == static_cast<int>(lanes);
    Knowledge all;
    for (std::size_t lane = 0; lane < lanes; lane++)
        if ((mask >> lane & 1u) != 0) {
            Thread& thread = threads_[first + lane];
            const auto number = number_of(static_cast<int>(first + lane));
            all = Known::join(all, are_all ? thread.known : publish(thread, number));
        }
    for (std::size_t lane = 0; lane < lanes; lane++)
        if ((mask >> lane & 1u) != 0) {
            threads_[first + lane].known = all;
            if (are_all)
                threads_[first + lane].now.warp_meets();
        }
}

void WatchedBlock::fence() {
    Thread& thread = running();
    thread.known = Known::join(thread.known, thread.found);
    thread.fenced = publish(thread, number_of(executor_.current_thread()));
}

// Returns what the thread knows, itself included. What it does from now on is not in it.
Knowledge WatchedBlock::publish(Thread& thread, std::uint32_t number) {
    auto known = thread.known ? std::make_shared<Known>(*thread.known) : std::make_shared<Known>();
    known->add(Party::thread, number, thread.now);
    if (thread.now.has_met_warp())
        known->add(Party::warp, warp_of(number), thread.now);
    if (thread.now.has_met_block())
        known->add(Party::block, number / launch_.threads_of_block, thread.now);
    thread.now.publish();
    return known;
}

std::uint64_t WatchedBlock::warp_of(std::uint32_t thread) const {
    const std::uint32_t block = thread / launch_.threads_of_block;
    const std::uint32_t warps = (launch_.threads_of_block + warp_lanes - 1u) / warp_lanes;
    return std::uint64_t{block} * warps + thread % launch_.threads_of_block / warp_lanes;
}

bool WatchedBlock::is_before_running(const Access& then) {
    const Thread& thread = running();
    const std::uint32_t number = number_of(executor_.current_thread());
    if (is_mine(then.thread) &&
        (then.when.is_before_block_of(thread.now) ||
         (warp_of(then.thread) == warp_of(number) && then.when.is_before_warp_of(thread.now))))
        return true;
    if (!thread.known)
        return false;
    const Known& known = *thread.known;
    const Moment* moment = known.of(Party::thread, then.thread);
    if (moment != nullptr && then.when <= *moment)
        return true;
    moment = known.of(Party::warp, warp_of(then.thread));
    if (moment != nullptr && then.when.is_before_warp_of(*moment))
        return true;
    moment = known.of(Party::block, then.thread / launch_.threads_of_block);
    return moment != nullptr && then.when.is_before_block_of(*moment);
}

// ---- Accesses

bool WatchedBlock::is_on_stack(std::uintptr_t address) const {
    return holds(executor_.stack_bytes(), address);
}

bool WatchedBlock::is_shared(std::uintptr_t address) const {
    return holds(thread_storage_, address) || holds(dynamic_shared_, address);
}

Access WatchedBlock::access_at(const void* at) {
    Access now;
    now.when = running().now;
    now.thread = number_of(executor_.current_thread());
    now.at = number_of_place(at);
    return now;
}

std::optional<Race> WatchedBlock::plain(std::uintptr_t address, std::size_t bytes, bool is_write,
                                        const void* at) {
    if (is_on_stack(address))
        return std::nullopt;
    Access now = access_at(at);
    now.is_write = is_write;
    return note(address, bytes, now);
}

std::optional<Race> WatchedBlock::note(std::uintptr_t address, std::size_t bytes,
                                       const Access& now) {
    const bool in_shared = is_shared(address);
    if (launch_.arrays.are_wanted()) {
        if (!in_shared)
            launch_.arrays.note(now.thread, address, bytes, now.is_write);
        else if (!now.is_write)
            launch_.arrays.note_shared_read(now.thread);
    }
    for (std::uintptr_t from = address, end = address + bytes; from < end;) {
        const std::uintptr_t number = from / Page::bytes;
        const std::uintptr_t next = std::min(end, (number + 1) * Page::bytes);
        UsedPage& used = used_pages_[number % used_pages_.size()];
        if (used.page == nullptr || used.number != number)
            used = {number, (in_shared ? shared_ : launch_.memory).page_of(from)};
        if (used.page == nullptr)
            return std::nullopt;
        std::unique_lock lock(used.page->mutex, std::defer_lock);
        if (launch_.has_blocks_at_once && !in_shared)
            lock.lock();
        const Access* then = used.page->note(
            from % Page::bytes, next - from, now,
            [&](const Access& other) { return is_before_running(other); },
            [&](const Access& other) {
                return !is_mine(other.thread)                         ? Also::block
                       : warp_of(other.thread) == warp_of(now.thread) ? Also::lane
                                                                      : Also::warp;
            });
        if (then != nullptr)
            return Race{now, *then, from, in_shared};
        from = next;
    }
    return std::nullopt;
}

// ---- Words

std::string WatchedBlock::to_string(const Race& race) const {
    const std::uint32_t threads = launch_.threads_of_block;
    const auto done = [](const Access& access, const char* reads, const char* writes) {
        return std::string(access.is_write ? writes : reads) +
               (access.is_atomic ? " by an atomic" : "");
    };
    const std::string line = line_of_place(race.now.at), before = line_of_place(race.then.at);
    const std::string place = race.is_in_shared_memory
                                  ? "shared memory"
                                  : describe_address(reinterpret_cast<const void*>(race.address));
    return done(race.now, "reads", "writes") + " at " + line + " what thread " +
           coordinates(race.then.thread % threads, launch_.shape.block) + " of block " +
           coordinates(race.then.thread / threads, launch_.shape.grid) + " " +
           done(race.then, "reads", "writes") + " at " +
           (line == before ? "the same line" : before) + " (" + place +
           "), and nothing puts one before the other: " + cure(race, line == before);
}

std::string WatchedBlock::cure(const Race& race, bool is_same_line) const {
    if (race.now.is_atomic != race.then.is_atomic)
        return "an atomic protects from other atomics only; make both of them atomic, or put a "
               "barrier between them";
    const bool is_one_block = is_mine(race.then.thread);
    if (is_same_line && is_one_block)
        return "put a __syncthreads() between two rounds of a loop; or, if several threads add to "
               "one place, use an atomic (atomicAdd) or give each thread a place of its own";
    if (is_same_line)
        return "use an atomic (atomicAdd), or give each block a place of its own and let a later "
               "launch put the results together";
    if (!is_one_block)
        return "the blocks of a launch run in any order; let a later launch read what this one "
               "writes, or pass it on by a flag, stored with release and loaded with acquire";
    if (warp_of(race.now.thread) == warp_of(race.then.thread))
        return "put a __syncthreads() between the two, or a __syncwarp() if both are lanes of one "
               "warp, or make it one access by an atomic (atomicAdd)";
    return "put a __syncthreads() between the two";
}

}  // namespace cuda_on_cpu
