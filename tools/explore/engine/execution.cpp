#include "execution.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>

namespace cuda_on_cpu {
namespace {

// The execution that runs on this OS thread, while one of its streams does: part of the thread
// storage that each stream has of its own.
constinit thread_local Execution* running_execution = nullptr;

bool is_acquire(std::memory_order order) {
    return order != std::memory_order_relaxed && order != std::memory_order_release;
}
bool is_release(std::memory_order order) {
    return order == std::memory_order_release || order == std::memory_order_acq_rel ||
           order == std::memory_order_seq_cst;
}

void join(View& view, const View& other) {
    for (std::size_t i = 0; i < view.size(); i++)
        view[i] = std::max(view[i], other[i]);
}

std::uint64_t value_at(const std::byte* address, std::size_t bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, address, bytes);
    return value;
}

const std::byte* bytes_at(const volatile void* address) {
    return static_cast<const std::byte*>(const_cast<const void*>(address));
}

std::size_t index_of(int number) {
    return static_cast<std::size_t>(number);
}

int max_blocks(const std::vector<const PreparedKernel*>& kernels) {
    unsigned int most = 1;
    for (const PreparedKernel* kernel : kernels)
        most = std::max(most, kernel->shape.grid.x * kernel->shape.grid.y * kernel->shape.grid.z);
    return static_cast<int>(most);
}

}  // namespace

Execution* Execution::of_this_thread() {
    return running_execution;
}

Execution::RunningStream::RunningStream(Execution& of_execution, int its_number, int of_stream,
                                        int of_block)
    : execution(of_execution),
      number(its_number),
      of(of_stream),
      block(of_block),
      fiber(&Execution::run_kernels, this) {}

Execution::Execution(std::vector<std::vector<const PreparedKernel*>> kernels,
                     const ExplorationOptions& options)
    : kernels_(std::move(kernels)), options_(options), thread_storage_(program_thread_storage()) {
    own_thread_storage_.assign(thread_storage_.begin(), thread_storage_.end());
    std::size_t granules = 0;
    for (const std::span<std::byte>& part : options.memory) {
        granules += part.size() / granule_bytes + 1;
        at_first_.emplace_back(part.begin(), part.end());
    }
    granules_.resize(granules);
    users_.resize(granules, nobody);
    for (std::size_t i = 0; i < kernels_.size(); i++)
        for (int block = 0; block < max_blocks(kernels_[i]); block++)
            streams_.push_back(std::make_unique<RunningStream>(
                *this, static_cast<int>(streams_.size()), static_cast<int>(i), block));
}

Execution::~Execution() = default;

// ---- The beginning and the end

void Execution::begin() {
    take_back();
    number_++;
    step_ = -1;
    has_found_shared_ = false;
    released_.clear();
    for (const auto& stream : streams_) {
        stream->fiber.restart();
        stream->thread_storage = own_thread_storage_;
        stream->calls = 0;
        stream->state = State::ready;
        stream->view = stream->fenced = stream->unfenced = {};
        stream->view[index_of(stream->number)] = 1;
        stream->buffer.clear();
        stream->arrivals.clear();
        stream->ends.clear();
        stream->joins = 0;
        stream->sleeps = stream->rounds = 0;
        stream->stores = stream->fenced_stores = 0;
        stream->last_step = -1;
        stream->loads.clear();
        stream->awaited.clear();
        stream->woken_by.clear();
        stream->news.clear();
        stream->polled = nullptr;
    }
    for (const auto& stream : streams_)
        if (failure_ == ExploredFailure::none && !has_found_shared_)
            run_to_next_step(*stream);
}

void Execution::take_back() {
    for (auto kept = kept_.rbegin(); kept != kept_.rend(); ++kept)
        std::memcpy(kept->address, &kept_bytes_[kept->begin], kept->bytes);
    kept_.clear();
    kept_bytes_.clear();
    failure_ = ExploredFailure::none;
}

void Execution::require_unchanged() const {
    for (std::size_t i = 0; i < at_first_.size(); i++)
        if (!std::ranges::equal(options_.memory[i], at_first_[i]))
            throw std::logic_error(
                "a kernel has written to memory in a way that the explorer does not see: compile "
                "all of it with -fsanitize=thread, and let it copy by plain assignments");
}

// ---- Streams, as fibers of this OS thread

// Runs a stream's kernels in its fiber, one after the other.
void Execution::run_kernels(Fiber& fiber) {
    auto& stream = *static_cast<RunningStream*>(fiber.owner);
    Execution& execution = stream.execution;
    running_execution = &execution;
    const std::vector<const PreparedKernel*>& kernels = execution.kernels_[index_of(stream.of)];
    for (const PreparedKernel* kernel : kernels) {
        stream.run.emplace(*kernel, Settings{});
        const std::uint64_t blocks = stream.run->blocks();
        stream.executor.run(*stream.run, static_cast<std::uint64_t>(stream.block), blocks);
        if (max_blocks(kernels) > 1)
            execution.join_blocks(stream);
    }
    stream.state = State::ended;
    execution.pause(stream);
}

std::vector<Execution::RunningStream*> Execution::blocks_of(const RunningStream& stream) const {
    std::vector<RunningStream*> blocks;
    for (const auto& other : streams_)
        if (other->of == stream.of)
            blocks.push_back(other.get());
    return blocks;
}

// Waits until all blocks of the kernel have ended, and all that they have stored has arrived: the
// next kernel of the stream sees it.
void Execution::join_blocks(RunningStream& stream) {
    stream.ends.push_back({stream.view, stream.stores, stream.last_step});
    release(stream);
    stop_before(stream, {NextStep::Kind::join, nullptr});
    for (const RunningStream* block : blocks_of(stream))
        join(stream.view, block->ends[stream.joins].view);
    stream.joins++;
}

bool Execution::can_join(const RunningStream& stream) const {
    return std::ranges::all_of(blocks_of(stream), [&](const RunningStream* block) {
        return block->joins > stream.joins ||
               (block->ends.size() > stream.joins && block->buffer.empty());
    });
}

// Runs the stream until it pauses. All that is thread-local, such as shared memory, is its own.
void Execution::resume(RunningStream& stream) {
    running_ = &stream;
    std::ranges::copy(stream.thread_storage, thread_storage_.begin());
    Fiber::switch_between(main_, stream.fiber);
    std::ranges::copy(thread_storage_, stream.thread_storage.begin());
    std::ranges::copy(own_thread_storage_, thread_storage_.begin());
}

void Execution::pause(RunningStream& stream) {
    Fiber::switch_between(stream.fiber, main_);
}

// Runs the stream until it stands in front of a step, waits, or has ended. Where it sleeps, it has
// polled in vain, but how long was the poll? One more round shows which loads belong to it: nothing
// has changed in between. (Unless the poll has several loads, and what the first one looked at was
// written before the last one. Then the next round may be the end, and is one of usual steps.)
int Execution::run_to_next_step(RunningStream& stream) {
    int in_vain = 0;
    for (;;) {
        stream.next = {};
        stream.has_slept = false;
        resume(stream);
        if (is_to_be_left() || !stream.has_slept)
            return in_vain;
        const View view = stream.view, unfenced = stream.unfenced;
        const Moment behind_poll = moment_of(stream.number);
        if (has_news_for(stream, behind_poll))
            continue;
        stream.probe.clear();
        stream.has_slept = false;
        stream.is_probing = true;
        resume(stream);
        stream.is_probing = false;
        stream.view = view;
        stream.unfenced = unfenced;
        if (is_to_be_left())
            return in_vain;
        in_vain += take_back_poll(stream, behind_poll);
        if (std::ranges::none_of(stream.probe, &Load::is_step))
            return in_vain;
    }
}

// Returns whether the next round of a poll would be another than the one in vain before.
bool Execution::has_news_for(RunningStream& stream, const Moment& behind_poll) {
    return !stream.loads.empty() &&
           ask(stream, behind_poll, {.is_of_whole_poll = true, .is_before_poll = true});
}

int Execution::take_back_poll(RunningStream& stream, const Moment& behind_poll) {
    const std::size_t polls = stream.probe.size();
    const bool is_poll =
        stream.has_slept && polls > 0 && stream.loads.size() >= polls &&
        std::equal(stream.probe.begin(), stream.probe.end(),
                   stream.loads.end() - static_cast<std::ptrdiff_t>(polls),
                   [](const Load& a, const Load& b) { return a.address == b.address; });
    if (!is_poll)
        throw std::runtime_error(
            "the explorer cannot follow a loop with __nanosleep() that does not read the same "
            "places, and nothing else, each time");
    stream.state = State::waiting;
    stream.woken_by.clear();
    stream.news.clear();
    stream.awaited.clear();
    for (const Load& load : stream.probe)
        stream.awaited.push_back(load.address);
    if (could_end_by_several(stream, behind_poll))
        return 0;
    const auto first = stream.loads.end() - static_cast<std::ptrdiff_t>(polls);
    const auto steps =
        std::count_if(first, stream.loads.end(), [](const Load& l) { return l.is_step; });
    stream.view = first->view;
    stream.unfenced = first->unfenced;
    stream.loads.erase(first, stream.loads.end());
    return static_cast<int>(steps);
}

// Returns whether a wait that polls several flags is for any of them, and not for all. Then it
// makes a difference which of them is up first, and the poll in vain stays: its loads are steps
// that could have come behind a store to their places. Each flag is asked alone, with a value that
// it never has. A wait of which exactly one flag could be the end waits for that one now, and
// behind it for others.
bool Execution::could_end_by_several(RunningStream& stream, const Moment& behind_poll) {
    constexpr std::uint64_t more_than_any = 0x3fff'ffff'3fff'ffff;  // in 4 bytes, too
    std::set<const std::byte*> places;
    for (const Load& load : stream.probe)
        if (load.is_step)
            places.insert(load.address);
    return places.size() > 1 && std::ranges::count_if(places, [&](const std::byte* place) {
                                    return ask(stream, behind_poll,
                                               {.value = more_than_any,
                                                .address = place,
                                                .is_of_whole_poll = true,
                                                .is_before_poll = true});
                                }) != 1;
}

void Execution::stop_before(RunningStream& stream, NextStep next) {
    stream.next = next;
    pause(stream);
    stream.next = {};
}

void Execution::sleep() {
    if (question_ && question_->is_before_poll)  // the second sleep behind the poll before
        question_->is_before_poll = false;
    else if (question_)
        answer(false);
    if (question_ || ++running_->sleeps == 2)  // a poll that sleeps twice is one
        return;
    running_->has_slept = true;
    running_->rounds++;
    running_->polled = nullptr;
    pause(*running_);
}

// ---- What a wait would do

Execution::Moment Execution::moment_of(int stream) const {
    const RunningStream& of = *streams_[index_of(stream)];
    return {of.fiber.moment(), of.thread_storage, of.calls};
}

bool Execution::would_go_on(int stream, const Moment& there, std::optional<std::uint64_t> value) {
    return ask(*streams_[index_of(stream)], there, {.value = value});
}

bool Execution::ask(RunningStream& asked, const Moment& there, const Question& question) {
    const Moment now = moment_of(asked.number);
    const NextStep next = asked.next;
    asked.fiber.set_back(there.fiber);
    asked.thread_storage = there.thread_storage;
    asked.calls = there.calls;
    question_ = question;
    resume(asked);
    const bool would_go_on = question_->would_go_on;
    question_.reset();
    asked.fiber.set_back(now.fiber);
    asked.thread_storage = now.thread_storage;
    asked.calls = now.calls;
    asked.next = next;
    return would_go_on;
}

// A kernel that would end goes on, too.
void Execution::leave() {
    if (--running_->calls == 0 && question_)
        answer(true);
}

// Does not come back: the stream is set back to where it stood.
void Execution::answer(bool would_go_on) {
    question_->would_go_on = would_go_on;
    pause(*running_);
}

// Returns what a load finds while its stream is asked: at the place of the question the value that
// this is about, and at others that it has just polled what is there.
std::uint64_t Execution::asked_value_at(const std::byte* address, std::size_t bytes) {
    question_->is_before_poll = false;
    if (address == question_->address)
        return question_->value.value_or(first_value_at(address, bytes));
    if (!question_->is_of_whole_poll || !has_just_polled(*running_, address))
        answer(true);
    const Store* own = own_store_at(*running_, address);
    return own != nullptr ? own->value : value_at(address, bytes);
}

bool Execution::has_just_polled(const RunningStream& stream, const std::byte* address) {
    return std::ranges::any_of(stream.loads, [&](const Load& load) {
        return load.address == address && load.round == stream.loads.back().round;
    });
}

std::uint64_t Execution::first_value_at(const std::byte* address, std::size_t bytes) const {
    for (std::size_t i = 0; i < at_first_.size(); i++) {
        const std::span<std::byte>& part = options_.memory[i];
        if (address >= part.data() && address < part.data() + part.size())
            return value_at(at_first_[i].data() + (address - part.data()), bytes);
    }
    return 0;
}

bool Execution::is_under_way() const {
    return std::ranges::any_of(streams_, [](const auto& s) { return s->state != State::ended; });
}

// ---- Processes and their steps

ProcessSet Execution::enabled() const {
    ProcessSet set = 0;
    for (const auto& stream : streams_) {
        const NextStep::Kind kind = stream->next.kind;
        const bool waits_for_buffer =
            kind == NextStep::Kind::update || kind == NextStep::Kind::fence;
        if (stream->state == State::ready && kind != NextStep::Kind::none &&
            !(waits_for_buffer && !stream->buffer.empty()) &&
            (kind != NextStep::Kind::join || can_join(*stream)))
            set |= ProcessSet{1} << stream->number;
    }
    for (const auto& [place, process] : processes_)
        if (next_arrival(process) != nullptr)
            set |= ProcessSet{1} << process;
    return set;
}

bool Execution::is_awaited(const std::byte* address) const {
    return std::ranges::any_of(streams_, [&](const auto& stream) {
        return stream->state == State::waiting && std::ranges::count(stream->awaited, address) > 0;
    });
}

ProcessSet Execution::awaited() const {
    std::array<std::uint64_t, max_explored_streams> last{};  // by stream: its last such store
    for (const auto& stream : streams_)
        for (const Store& store : stream->buffer)
            if (is_awaited(store.address))
                last[index_of(stream->number)] = store.number;
    ProcessSet set = 0;
    for (const auto& [place, process] : processes_)
        if (const Store* store = next_arrival(process);
            store != nullptr && store->number <= last[index_of(place.first)])
            set |= ProcessSet{1} << process;
    return set;
}

NextStep Execution::next(int process) const {
    if (process < streams())
        return streams_[index_of(process)]->next;
    const Store* store = next_arrival(process);
    return {NextStep::Kind::arrival, places_[index_of(process - streams())].second,
            store == nullptr ? 0 : store->value};
}

bool Execution::ends_wait(int stream) const {
    const RunningStream& of = *streams_[index_of(stream)];
    return std::ranges::count(of.news, of.next.address) > 0;
}

bool Execution::finds_own(int stream) const {
    const RunningStream& of = *streams_[index_of(stream)];
    return std::ranges::count(of.buffer, of.next.address, &Store::address) > 0;
}

int Execution::stream_of(std::size_t process) const {
    return process < streams_.size() ? static_cast<int>(process)
                                     : places_[process - streams_.size()].first;
}

int Execution::step(int process, int number) {
    step_ = number;
    if (process >= streams()) {
        arrive(process);
        return 0;
    }
    RunningStream& stream = *streams_[index_of(process)];
    stream.last_step = number;
    stream.awaited.clear();
    return run_to_next_step(stream);
}

std::vector<int> Execution::needed_by(int process) const {
    std::vector<int> steps;
    if (process >= streams()) {
        const Store& store = *next_arrival(process);
        steps.push_back(store.issued_after);
        const int stream = places_[index_of(process - streams())].first;
        for (const Arrival& arrival : streams_[index_of(stream)]->arrivals)
            if (arrival.number < store.behind)
                steps.push_back(arrival.step);
    } else if (const NextStep::Kind kind = streams_[index_of(process)]->next.kind;
               kind == NextStep::Kind::update || kind == NextStep::Kind::fence) {
        for (const Arrival& arrival : streams_[index_of(process)]->arrivals)
            steps.push_back(arrival.step);
    } else if (kind == NextStep::Kind::join) {
        const RunningStream& stream = *streams_[index_of(process)];
        for (const RunningStream* block : blocks_of(stream)) {
            const KernelEnd& end = block->ends[stream.joins];
            steps.push_back(end.last_step);
            for (const Arrival& arrival : block->arrivals)
                if (arrival.number <= end.stores)
                    steps.push_back(arrival.step);
        }
    }
    return steps;
}

int Execution::process_of(int stream, const std::byte* address) {
    const auto [place, is_new] =
        processes_.try_emplace({stream, address}, streams() + static_cast<int>(processes_.size()));
    if (is_new)
        places_.push_back(place->first);
    if (place->second >= max_processes)
        throw std::runtime_error("the explorer can follow " +
                                 std::to_string(max_processes - streams()) +
                                 " flags, each by its writer: explore a smaller case");
    return place->second;
}

// Returns the store that is to arrive next at the process's place; null if none can.
const Execution::Store* Execution::next_arrival(int process) const {
    const auto& [stream, address] = places_[index_of(process - streams())];
    const std::vector<Store>& buffer = streams_[index_of(stream)]->buffer;
    const auto store = std::ranges::find(buffer, address, &Store::address);
    return store == buffer.end() || buffer.front().number < store->behind ? nullptr : &*store;
}

void Execution::arrive(int process) {
    const Store store = *next_arrival(process);
    const int number = places_[index_of(process - streams())].first;
    std::erase_if(streams_[index_of(number)]->buffer,
                  [&](const Store& other) { return other.number == store.number; });
    streams_[index_of(number)]->arrivals.push_back({store.number, step_});
    write_memory(store.address, store.bytes, store.value);
    released_[store.address] = store.view;
}

// ---- What a stream does

void Execution::access(const volatile void* address, std::size_t bytes, bool is_write) {
    if (question_)
        return answer(true);
    RunningStream& stream = *running_;
    const std::byte* place = bytes_at(address);
    stream.polled = nullptr;
    check(stream, place, bytes, is_write, false);
    if (is_write) {
        keep(place, bytes);
        stream.loads.clear();
    }
}

// Returns the stream's own latest store there if it has not arrived; null if there is none.
const Execution::Store* Execution::own_store_at(const RunningStream& stream,
                                                const std::byte* address) {
    const auto own =
        std::ranges::find(stream.buffer.rbegin(), stream.buffer.rend(), address, &Store::address);
    return own == stream.buffer.rend() ? nullptr : &*own;
}

std::uint64_t Execution::load(const volatile void* address, std::size_t bytes,
                              std::memory_order order) {
    RunningStream& stream = *running_;
    const std::byte* place = bytes_at(address);
    if (question_)
        return asked_value_at(place, bytes);
    // A load with acquire right behind a relaxed one ends a wait that polls. Both are one step: a
    // value of later would only tell the stream more of the others.
    const bool is_end_of_poll = is_acquire(order) && stream.polled == place;
    const bool is_step = !is_end_of_poll && begin_atomic(stream, place, NextStep::Kind::load);
    if (question_) {
        question_->address = place;
        return asked_value_at(place, bytes);
    }
    stream.polled = is_step && !is_acquire(order) ? place : nullptr;
    stream.sleeps = 0;
    check(stream, place, bytes, false, true);
    (stream.is_probing ? stream.probe : stream.loads)
        .push_back({place, is_step, stream.rounds, stream.view, stream.unfenced});
    if (stream.loads.size() > max_loads_in_a_row) {
        failure_ = ExploredFailure::endless;
        pause(stream);
    }
    std::erase(stream.news, place);
    const Store* own = own_store_at(stream, place);
    const std::uint64_t value = own != nullptr ? own->value : value_at(place, bytes);
    if (own == nullptr)
        acquire(stream, place, changed(order));
    return value;
}

void Execution::store(volatile void* address, std::size_t bytes, std::uint64_t value,
                      std::memory_order order) {
    if (question_)
        answer(true);
    RunningStream& stream = *running_;
    auto* place = const_cast<std::byte*>(bytes_at(address));
    stream.polled = nullptr;
    order = changed(order);
    check(stream, place, bytes, true, true);
    const View view = is_release(order) ? stream.view : stream.fenced;
    if (!is_shared_place(stream, place)) {
        write_memory(place, bytes, value);
        released_[place] = view;
    } else {
        process_of(stream.number, place);
        const std::uint64_t number = ++stream.stores;
        stream.buffer.push_back({place, bytes, value, view, number,
                                 is_release(order) ? number : stream.fenced_stores + 1,
                                 stream.last_step});
    }
    stream.loads.clear();
    if (is_release(order))
        release(stream);
    if (order == std::memory_order_seq_cst && !stream.buffer.empty())
        stop_before(stream, {NextStep::Kind::fence, nullptr});
}

std::uint64_t Execution::update(
    volatile void* address, std::size_t bytes, std::memory_order order,
    const std::function<std::optional<std::uint64_t>(std::uint64_t)>& change) {
    if (question_)
        answer(true);
    RunningStream& stream = *running_;
    auto* place = const_cast<std::byte*>(bytes_at(address));
    stream.polled = nullptr;
    const bool is_step = begin_atomic(stream, place, NextStep::Kind::update);
    check(stream, place, bytes, true, true);
    const std::uint64_t before = value_at(place, bytes);
    acquire(stream, place, order);
    const std::optional<std::uint64_t> value = change(before);
    if (value) {
        write_memory(place, bytes, *value);
        // It goes on with the release of the value before: a release sequence.
        join(released_[place], is_release(order) ? stream.view : stream.fenced);
        if (is_release(order))
            release(stream);
    }
    stream.loads.clear();
    if (is_step)
        updated_ = value.value_or(before);
    return before;
}

void Execution::fence(std::memory_order order) {
    if (question_)
        answer(true);
    RunningStream& stream = *running_;
    if (order == std::memory_order_seq_cst && !stream.buffer.empty())
        stop_before(stream, {NextStep::Kind::fence, nullptr});
    if (is_acquire(order))
        join(stream.view, stream.unfenced);
    if (is_release(order)) {
        stream.fenced = stream.view;
        stream.fenced_stores = stream.stores;
        release(stream);
    }
}

// Returns whether several streams use a place by atomic accesses. Only then it matters who comes
// first.
bool Execution::is_shared_place(RunningStream& stream, const std::byte* address) {
    if (options_.is_indifferent && options_.is_indifferent(address))
        return false;
    std::int8_t& user = users_[index_of(static_cast<int>(granule_of(address)))];
    if (user == nobody) {
        user = static_cast<std::int8_t>(stream.number);
    } else if (user != several && user != stream.number) {
        user = several;
        has_found_shared_ = true;
        pause(stream);
    }
    return user == several;
}

// Waits for the stream's turn if the access is a step, and returns whether it is.
bool Execution::begin_atomic(RunningStream& stream, const std::byte* address, NextStep::Kind kind) {
    if (!is_shared_place(stream, address))
        return false;
    if (!stream.is_probing)
        stop_before(stream, {kind, address});
    return true;
}

// ---- Happens before

std::ptrdiff_t Execution::granule_of(const volatile void* address) const {
    const std::byte* byte = bytes_at(address);
    std::size_t first = 0;
    for (const std::span<std::byte>& part : options_.memory) {
        if (byte >= part.data() && byte < part.data() + part.size())
            return static_cast<std::ptrdiff_t>(
                first + static_cast<std::size_t>(byte - part.data()) / granule_bytes);
        first += part.size() / granule_bytes + 1;
    }
    return -1;
}

Execution::Granule& Execution::fresh(std::ptrdiff_t granule) {
    Granule& found = granules_[static_cast<std::size_t>(granule)];
    if (found.execution != number_) {
        found = Granule{};
        found.execution = number_;
    }
    return found;
}

// Fails if another stream has accessed one of the bytes, one of both writes, one of both is not
// atomic, and this stream has not seen that the other one was done. Then notes this access.
void Execution::check(RunningStream& stream, const std::byte* address, std::size_t bytes,
                      bool is_write, bool is_atomic) {
    const auto me = index_of(stream.number);
    const auto require_seen = [&](int number, std::uint16_t release, bool has_written) {
        if (number < 0 || number == stream.number || release <= stream.view[index_of(number)])
            return;
        const RunningStream& other = *streams_[index_of(number)];
        failure_ = ExploredFailure::race;
        race_ = {address,
                 bytes,
                 {other.of, other.block, has_written},
                 {stream.of, stream.block, is_write}};
        pause(stream);
    };
    const std::ptrdiff_t first = granule_of(address);
    const auto last = first + static_cast<std::ptrdiff_t>((bytes - 1) / granule_bytes);
    for (std::ptrdiff_t i = first; i <= last; i++) {
        Granule& granule = fresh(i);
        require_seen(granule.plain_write.stream, granule.plain_write.release, true);
        if (!is_atomic)
            require_seen(granule.atomic_write.stream, granule.atomic_write.release, true);
        for (int other = 0; is_write && other < streams(); other++) {
            require_seen(other, granule.plain_reads[index_of(other)], false);
            if (!is_atomic)
                require_seen(other, granule.atomic_reads[index_of(other)], false);
        }
        const std::uint16_t release = stream.view[me];
        if (is_write)
            (is_atomic ? granule.atomic_write : granule.plain_write) = {
                static_cast<std::int16_t>(stream.number), release};
        else
            (is_atomic ? granule.atomic_reads : granule.plain_reads)[me] = release;
    }
}

// Begins what is behind the release.
void Execution::release(RunningStream& stream) {
    stream.view[index_of(stream.number)]++;
}

void Execution::acquire(RunningStream& stream, const std::byte* address, std::memory_order order) {
    const auto released = released_.find(address);
    if (released != released_.end())
        join(is_acquire(order) ? stream.view : stream.unfenced, released->second);
}

// ---- Memory

void Execution::write_memory(std::byte* address, std::size_t bytes, std::uint64_t value) {
    keep(address, bytes);
    std::memcpy(address, &value, bytes);
    for (const auto& stream : streams_)
        if (std::ranges::count(stream->awaited, address) > 0) {
            stream->woken_by.push_back(step_);
            stream->news.push_back(address);
            if (stream->state == State::waiting)
                stream->state = State::ready;
        }
}

void Execution::keep(const std::byte* address, std::size_t bytes) {
    kept_.push_back({const_cast<std::byte*>(address), bytes, kept_bytes_.size()});
    kept_bytes_.insert(kept_bytes_.end(), address, address + bytes);
}

}  // namespace cuda_on_cpu
