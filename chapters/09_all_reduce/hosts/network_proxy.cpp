#include "09_all_reduce/hosts/network_proxy.hpp"

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
constexpr double patience_s = 5;

// For a thread that may not come back.
constexpr auto farewell = 100ms;

std::uint64_t read_flag(Flag& flag) {
    return std::atomic_ref(flag.value).load(std::memory_order_acquire);
}
void write_flag(Flag& flag, std::uint64_t value) {
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
class ProxyChannels {
  public:
    explicit ProxyChannels(std::unique_ptr<Transport> transport)
        : transport_(std::move(transport)) {}

    Fifo* add(bool is_to, int peer, int number);
    void retire() { is_retired_ = true; }
    void end() { is_ending_ = true; }
    std::string error();

    // The thread's work, until the end, or until all is gone after retire().
    void run();
    // After that. False where another rank has not come to its end of a line.
    bool exit_barrier(const Rank& rank);

  private:
    // One end of a line, and what is under way along it.
    struct ProxyChannel {
        bool is_to;  // it leads to the peer, not from it
        int peer, number;
        PinnedBuffer<Fifo> fifo;
        std::deque<std::unique_ptr<Transfer>> under_way;
        std::uint64_t started = 0, done = 0;  // slots, so far
        bool has_parted = false;              // nothing more comes, or is to be sent
    };

    bool move_all();
    bool move(ProxyChannel& line);
    void begin_transfer(ProxyChannel& line);
    void end_transfers(ProxyChannel& line);
    bool is_quiet();
    void part(ProxyChannel& line);

    std::unique_ptr<Transport> transport_;
    std::list<ProxyChannel> channels_;
    std::atomic<bool> is_retired_ = false, is_ending_ = false;
    std::mutex mutex_;
    std::string error_;
};

Fifo* ProxyChannels::add(bool is_to, int peer, int number) {
    ProxyChannel& added =
        channels_.emplace_back(ProxyChannel{is_to, peer, number, PinnedBuffer<Fifo>(1), {}});
    static_cast<FifoHead&>(added.fifo[0]) = FifoHead{};
    return added.fifo.data();
}

std::string ProxyChannels::error() {
    std::lock_guard lock(mutex_);
    return error_;
}

void ProxyChannels::run() try {
    for (int idle = 0; !is_ending_ && !(is_retired_ && is_quiet());) {
        idle = move_all() ? 0 : idle + 1;
        if (idle > 0)
            back_off(idle);
    }
} catch (const std::exception& error) {
    std::lock_guard lock(mutex_);
    error_ = error.what();
}

bool ProxyChannels::move_all() {
    bool has_moved = false;
    for (ProxyChannel& line : channels_)
        has_moved = move(line) || has_moved;
    return has_moved;
}

// Begins what can begin, and ends what is done: slots are filled and emptied in their order. A slot
// waits for its bytes only when a kernel has asked for them, so at a good end nothing is waited
// for.
bool ProxyChannels::move(ProxyChannel& line) {
    Fifo& fifo = line.fifo[0];
    const std::uint64_t limit =
        line.is_to ? read_flag(fifo.filled)
                   : std::min(read_flag(fifo.wanted), read_flag(fifo.emptied) + fifo_slots);
    const std::uint64_t before = line.started + line.done;
    while (line.started < limit && !line.has_parted)
        begin_transfer(line);
    end_transfers(line);
    return line.started + line.done > before;
}

void ProxyChannels::begin_transfer(ProxyChannel& line) {
    Fifo& fifo = line.fifo[0];
    std::byte* slot = fifo.slot(line.started);
    line.under_way.push_back(
        line.is_to
            ? transport_->send(line.peer, line.number, slot, fifo.bytes[line.started % fifo_slots])
            : transport_->receive(line.peer, line.number, slot, slot_bytes));
    line.started++;
}

// Ends the transfers that are done.
void ProxyChannels::end_transfers(ProxyChannel& line) {
    Fifo& fifo = line.fifo[0];
    while (!line.under_way.empty() && line.under_way.front()->is_done()) {
        line.has_parted = !line.is_to && line.under_way.front()->bytes() == 0;
        line.under_way.pop_front();
        if (line.has_parted)
            return line.under_way.clear();
        write_flag(line.is_to ? fifo.emptied : fifo.filled, ++line.done);
    }
}

bool ProxyChannels::is_quiet() {
    return std::ranges::all_of(channels_, [](ProxyChannel& line) {
        return line.under_way.empty() &&
               (!line.is_to || read_flag(line.fifo[0].filled) == line.started);
    });
}

// ---- The end

// Empties all channels. A run that has failed leaves slices in flight that no rank waits for. So
// the last transfer along each channel is an empty one, and everything before it is read and
// dropped.
bool ProxyChannels::exit_barrier(const Rank& rank) try {
    const Stopwatch waited;
    for (ProxyChannel& line : channels_)
        if (line.is_to)
            line.under_way.push_back(transport_->send(line.peer, line.number, nullptr, 0));
    while (!std::ranges::all_of(channels_, &ProxyChannel::has_parted)) {
        if (rank.has_lost_one() || waited.seconds() > patience_s)
            return false;
        for (ProxyChannel& line : channels_)
            part(line);
        std::this_thread::sleep_for(50us);
    }
    return true;
} catch (const std::exception&) {
    return false;  // the wire has broken
}

void ProxyChannels::part(ProxyChannel& line) {
    end_transfers(line);
    if (line.is_to)
        line.has_parted = line.under_way.empty();
    else if (!line.has_parted && line.under_way.empty())
        begin_transfer(line);
}

// ---- NetworkProxy

NetworkProxy::NetworkProxy(Rank& rank, std::unique_ptr<Transport> transport)
    : rank_(rank), channels_(std::make_shared<ProxyChannels>(std::move(transport))) {}

NetworkProxy::~NetworkProxy() {
    channels_->end();
    if (thread_.joinable()) {
        rank_.remove(*this);
        // Open MPI does not always come back from a connection to a process that has died.
        if (rank_.has_lost_one() && ended_.wait_for(farewell) != std::future_status::ready) {
            thread_.detach();
            new auto(channels_);  // if it comes back after all, it must find what it uses
            return;
        }
        thread_.join();
    }
    // Where another rank has not come to the end, the wire may still read and write: that must
    // stay.
    if (!channels_->exit_barrier(rank_))
        new auto(channels_);
}

Fifo* NetworkProxy::channel_to(int peer, int line) {
    return channels_->add(true, peer, line);
}
Fifo* NetworkProxy::channel_from(int peer, int line) {
    return channels_->add(false, peer, line);
}

void NetworkProxy::start() {
    rank_.add(*this);
    std::promise<void> end;
    ended_ = end.get_future();
    thread_ = std::thread([lines = channels_, end = std::move(end)]() mutable {
        lines->run();
        end.set_value();
    });
}

void NetworkProxy::retire() {
    channels_->retire();
}

std::string NetworkProxy::error() {
    return channels_->error();
}

}  // namespace ddp
