#include "09_all_reduce/carrier.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <list>
#include <mutex>

#include "common/report/bench.hpp"

namespace ddp {
namespace {

using namespace std::chrono_literals;

// All ranks hear at the same time that the run is over.
constexpr double kPatience_s = 5;

// For a thread that may not come back.
constexpr auto kFarewell = 100ms;

std::uint64_t read(Flag& flag) {
    return std::atomic_ref(flag.value).load(std::memory_order_acquire);
}
void write(Flag& flag, std::uint64_t value) {
    std::atomic_ref(flag.value).store(value, std::memory_order_release);
}

// Nothing has moved the last `idle` times. What is waited for may need this core: give way, and
// after a while sleep.
void back_off(int idle) {
    if (idle < 50)
        sched_yield();
    else
        std::this_thread::sleep_for(idle < 2000 ? 50us : 500us);
}

}  // namespace

// The ends of all lines on this host, and what is under way along them.
class Lines {
  public:
    explicit Lines(std::unique_ptr<Wire> wire) : wire_(std::move(wire)) {}

    Fifo* add(bool is_to, int peer, int number);
    void retire() { is_retired_ = true; }
    void end() { is_ending_ = true; }
    std::string complaint();

    // The thread's work, until the end, or until all is gone after retire().
    void run();
    // After that. False where another rank has not come to its end of a line.
    bool part_from_all(const Rank& rank);

  private:
    // One end of a line, and what is under way along it.
    struct Line {
        bool is_to;  // it leads to the peer, not from it
        int peer, number;
        PinnedBuffer<Fifo> fifo;
        std::deque<std::unique_ptr<Transfer>> under_way;
        std::uint64_t begun = 0, done = 0;  // slots, so far
        bool has_parted = false;            // nothing more comes, or is to be sent
    };

    bool move_all();
    bool move(Line& line);
    void begin_transfer(Line& line);
    void end_transfers(Line& line);
    bool is_quiet();
    void part(Line& line);

    std::unique_ptr<Wire> wire_;
    std::list<Line> lines_;
    std::atomic<bool> is_retired_ = false, is_ending_ = false;
    std::mutex mutex_;
    std::string complaint_;
};

Fifo* Lines::add(bool is_to, int peer, int number) {
    Line& added = lines_.emplace_back(Line{is_to, peer, number, PinnedBuffer<Fifo>(1), {}});
    static_cast<FifoHead&>(added.fifo[0]) = FifoHead{};
    return added.fifo.data();
}

std::string Lines::complaint() {
    std::lock_guard lock(mutex_);
    return complaint_;
}

void Lines::run() try {
    for (int idle = 0; !is_ending_ && !(is_retired_ && is_quiet());) {
        idle = move_all() ? 0 : idle + 1;
        if (idle > 0)
            back_off(idle);
    }
} catch (const std::exception& error) {
    std::lock_guard lock(mutex_);
    complaint_ = error.what();
}

bool Lines::move_all() {
    bool has_moved = false;
    for (Line& line : lines_)
        has_moved = move(line) || has_moved;
    return has_moved;
}

// Begins what can begin, and ends what is done: slots are filled and emptied in their order. A slot
// waits for its bytes only when a kernel has asked for them, so at a good end nothing is waited
// for.
bool Lines::move(Line& line) {
    Fifo& fifo = line.fifo[0];
    const std::uint64_t limit = line.is_to
                                    ? read(fifo.filled)
                                    : std::min(read(fifo.wanted), read(fifo.emptied) + fifo_slots);
    const std::uint64_t before = line.begun + line.done;
    while (line.begun < limit && !line.has_parted)
        begin_transfer(line);
    end_transfers(line);
    return line.begun + line.done > before;
}

void Lines::begin_transfer(Line& line) {
    Fifo& fifo = line.fifo[0];
    std::byte* slot = fifo.slot(line.begun);
    line.under_way.push_back(
        line.is_to ? wire_->send(line.peer, line.number, slot, fifo.bytes[line.begun % fifo_slots])
                   : wire_->receive(line.peer, line.number, slot, slot_bytes));
    line.begun++;
}

// Of those that are done.
void Lines::end_transfers(Line& line) {
    Fifo& fifo = line.fifo[0];
    while (!line.under_way.empty() && line.under_way.front()->is_done()) {
        line.has_parted = !line.is_to && line.under_way.front()->bytes() == 0;
        line.under_way.pop_front();
        if (line.has_parted)
            return line.under_way.clear();
        write(line.is_to ? fifo.emptied : fifo.filled, ++line.done);
    }
}

bool Lines::is_quiet() {
    return std::ranges::all_of(lines_, [](Line& line) {
        return line.under_way.empty() && (!line.is_to || read(line.fifo[0].filled) == line.begun);
    });
}

// ---- The end. A run that has failed leaves slices on their way that nobody waits for. So the last
// word along each line is an empty one, and everything before it is read, and forgotten.

bool Lines::part_from_all(const Rank& rank) try {
    const Stopwatch waited;
    for (Line& line : lines_)
        if (line.is_to)
            line.under_way.push_back(wire_->send(line.peer, line.number, nullptr, 0));
    while (!std::ranges::all_of(lines_, &Line::has_parted)) {
        if (rank.has_lost_one() || waited.seconds() > kPatience_s)
            return false;
        for (Line& line : lines_)
            part(line);
        std::this_thread::sleep_for(50us);
    }
    return true;
} catch (const std::exception&) {
    return false;  // the wire has broken
}

void Lines::part(Line& line) {
    end_transfers(line);
    if (line.is_to)
        line.has_parted = line.under_way.empty();
    else if (!line.has_parted && line.under_way.empty())
        begin_transfer(line);
}

// ---- Carrier

Carrier::Carrier(Rank& rank, std::unique_ptr<Wire> wire)
    : rank_(rank), lines_(std::make_shared<Lines>(std::move(wire))) {}

Carrier::~Carrier() {
    lines_->end();
    if (thread_.joinable()) {
        rank_.remove(*this);
        // Open MPI does not always come back from a connection to a process that has died.
        if (rank_.has_lost_one() && ended_.wait_for(kFarewell) != std::future_status::ready) {
            thread_.detach();
            new auto(lines_);  // if it comes back after all, it must find what it uses
            return;
        }
        thread_.join();
    }
    // Where another rank has not come to the end, the wire may still read and write: that must
    // stay.
    if (!lines_->part_from_all(rank_))
        new auto(lines_);
}

Fifo* Carrier::line_to(int peer, int line) {
    return lines_->add(true, peer, line);
}
Fifo* Carrier::line_from(int peer, int line) {
    return lines_->add(false, peer, line);
}

void Carrier::start() {
    rank_.add(*this);
    std::promise<void> end;
    ended_ = end.get_future();
    thread_ = std::thread([lines = lines_, end = std::move(end)]() mutable {
        lines->run();
        end.set_value();
    });
}

void Carrier::retire() {
    lines_->retire();
}

std::string Carrier::complaint() {
    return lines_->complaint();
}

}  // namespace ddp
