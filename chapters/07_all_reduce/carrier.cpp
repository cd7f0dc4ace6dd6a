#include "07_all_reduce/carrier.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "common/report/bench.hpp"

namespace ddp {
namespace {

using namespace std::chrono_literals;

// All ranks hear at the same time that the run is over.
constexpr double kPatience_s = 5;

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

Fifo* Carrier::add_line(bool is_to, int peer, int line) {
    Line& added = lines_.emplace_back(Line{is_to, peer, line, PinnedBuffer<Fifo>(1), {}});
    static_cast<FifoHead&>(added.fifo[0]) = FifoHead{};
    return added.fifo.data();
}

void Carrier::start() {
    rank_.add(*this);
    thread_ = std::thread([this] { run(); });
}

// Where another rank has not come to the end, the wire may still read and write: that must stay.
Carrier::~Carrier() {
    is_ending_ = true;
    if (thread_.joinable()) {
        thread_.join();
        rank_.remove(*this);
    }
    if (!part_from_all())
        new auto(std::make_pair(std::move(wire_), std::move(lines_)));
}

std::string Carrier::complaint() {
    std::lock_guard lock(mutex_);
    return complaint_;
}

void Carrier::run() try {
    for (int idle = 0; !is_ending_ && !(is_retired_ && is_quiet());) {
        idle = move_all() ? 0 : idle + 1;
        if (idle > 0)
            back_off(idle);
    }
} catch (const std::exception& error) {
    std::lock_guard lock(mutex_);
    complaint_ = error.what();
}

bool Carrier::move_all() {
    bool has_moved = false;
    for (Line& line : lines_)
        has_moved = move(line) || has_moved;
    return has_moved;
}

// Begins what can begin, and ends what is done: slots are filled and emptied in their order. A slot
// waits for its bytes only when a kernel has asked for them, so at a good end nothing is waited
// for.
bool Carrier::move(Line& line) {
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

void Carrier::begin_transfer(Line& line) {
    Fifo& fifo = line.fifo[0];
    std::byte* slot = fifo.slot(line.begun);
    line.under_way.push_back(
        line.is_to ? wire_->send(line.peer, line.number, slot, fifo.bytes[line.begun % fifo_slots])
                   : wire_->receive(line.peer, line.number, slot, slot_bytes));
    line.begun++;
}

// Of those that are done.
void Carrier::end_transfers(Line& line) {
    Fifo& fifo = line.fifo[0];
    while (!line.under_way.empty() && line.under_way.front()->is_done()) {
        line.has_parted = !line.is_to && line.under_way.front()->bytes() == 0;
        line.under_way.pop_front();
        if (line.has_parted)
            return line.under_way.clear();
        write(line.is_to ? fifo.emptied : fifo.filled, ++line.done);
    }
}

bool Carrier::is_quiet() {
    return std::ranges::all_of(lines_, [](Line& line) {
        return line.under_way.empty() && (!line.is_to || read(line.fifo[0].filled) == line.begun);
    });
}

// ---- The end. A run that has failed leaves slices on their way that nobody waits for. So the last
// word along each line is an empty one, and everything before it is read, and forgotten.

bool Carrier::part_from_all() try {
    const Stopwatch waited;
    for (Line& line : lines_)
        if (line.is_to)
            line.under_way.push_back(wire_->send(line.peer, line.number, nullptr, 0));
    while (!std::ranges::all_of(lines_, &Line::has_parted)) {
        if (rank_.has_lost_one() || waited.seconds() > kPatience_s)
            return false;
        for (Line& line : lines_)
            part(line);
        std::this_thread::sleep_for(50us);
    }
    return true;
} catch (const std::exception&) {
    return false;  // the wire has broken
}

void Carrier::part(Line& line) {
    end_transfers(line);
    if (line.is_to)
        line.has_parted = line.under_way.empty();
    else if (!line.has_parted && line.under_way.empty())
        begin_transfer(line);
}

}  // namespace ddp
