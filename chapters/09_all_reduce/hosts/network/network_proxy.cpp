#include "09_all_reduce/hosts/network/network_proxy.hpp"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <list>
#include <mutex>

#include "09_all_reduce/hosts/network/host_flag.hpp"
#include "common/report/bench.hpp"

namespace ddp {
namespace {

using namespace std::chrono_literals;

// All ranks hear at the same time that the run is over.
constexpr double patience_s = 5;

// For a thread that may not come back.
constexpr auto farewell = 100ms;

// Gives way to other threads where nothing has moved for `idle_s`: what is waited for may need this
// core. After a while, sleeps.
void back_off(double idle_s) {
    constexpr double spin_s = 200e-6, short_s = 0.1;
    if (idle_s < spin_s)
        sched_yield();
    else
        std::this_thread::sleep_for(idle_s < short_s ? 50us : 500us);
}

}  // namespace

// The ends of all channels on this host, and what is under way along them.
class ProxyChannels {
  public:
    explicit ProxyChannels(std::unique_ptr<Transport> transport)
        : transport_(std::move(transport)) {}

    Fifo* add(bool is_to, int peer, int number);
    bool is_empty() const { return channels_.empty(); }
    void retire() { is_retired_ = true; }
    void end() { is_ending_ = true; }
    std::string error();

    // The thread's work, until the end, or until all is gone after retire().
    void run();
    // After that. False where another rank has not come to its end of a channel.
    bool exit_barrier(const Rank& rank);

  private:
    // One end of a channel, and what is under way along it.
    struct ProxyChannel {
        bool is_to;  // it leads to the peer, not from it
        int peer, number;
        PinnedBuffer<Fifo> fifo;
        std::deque<std::unique_ptr<Transfer>> under_way;
        std::uint64_t started = 0, done = 0;  // slots, so far
        bool has_ended = false;               // nothing more comes, or is to be sent
    };

    bool move_all();
    bool move(ProxyChannel& channel);
    void begin_transfer(ProxyChannel& channel);
    void end_transfers(ProxyChannel& channel);
    bool is_quiet();
    void drain(ProxyChannel& channel);

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
    prctl(PR_SET_TIMERSLACK, 1000UL);  // ns: the sleeps of this thread end when they should
    for (Stopwatch idle; !is_ending_ && !(is_retired_ && is_quiet());) {
        if (move_all())
            idle.restart();
        else
            back_off(idle.seconds());
    }
} catch (const std::exception& error) {
    std::lock_guard lock(mutex_);
    error_ = error.what();
}

bool ProxyChannels::move_all() {
    bool has_moved = false;
    for (ProxyChannel& channel : channels_)
        has_moved = move(channel) || has_moved;
    return has_moved;
}

// Begins what can begin, and ends what is done: slots are filled and emptied in their order. A slot
// waits for its bytes only when a kernel has asked for them, so at a good end nothing is waited
// for.
bool ProxyChannels::move(ProxyChannel& channel) {
    Fifo& fifo = channel.fifo[0];
    const std::uint64_t limit =
        channel.is_to ? read_flag(fifo.filled)
                      : std::min(read_flag(fifo.wanted), read_flag(fifo.emptied) + fifo_slots);
    const std::uint64_t before = channel.started + channel.done;
    while (channel.started < limit && !channel.has_ended)
        begin_transfer(channel);
    end_transfers(channel);
    return channel.started + channel.done > before;
}

void ProxyChannels::begin_transfer(ProxyChannel& channel) {
    Fifo& fifo = channel.fifo[0];
    std::byte* slot = fifo.slot(channel.started);
    channel.under_way.push_back(
        channel.is_to ? transport_->send(channel.peer, channel.number, slot,
                                         fifo.bytes[channel.started % fifo_slots])
                      : transport_->receive(channel.peer, channel.number, slot, slot_bytes));
    channel.started++;
}

// Ends the transfers that are done.
void ProxyChannels::end_transfers(ProxyChannel& channel) {
    Fifo& fifo = channel.fifo[0];
    while (!channel.under_way.empty() && channel.under_way.front()->is_done()) {
        channel.has_ended = !channel.is_to && channel.under_way.front()->bytes() == 0;
        channel.under_way.pop_front();
        if (channel.has_ended)
            return channel.under_way.clear();
        write_flag(channel.is_to ? fifo.emptied : fifo.filled, ++channel.done);
    }
}

bool ProxyChannels::is_quiet() {
    return std::ranges::all_of(channels_, [](ProxyChannel& channel) {
        return channel.under_way.empty() &&
               (!channel.is_to || read_flag(channel.fifo[0].filled) == channel.started);
    });
}

// ---- The end

// Empties all channels. A run that has failed leaves slices in flight that no rank waits for. So
// the last transfer along each channel is an empty one, and everything before it is read and
// dropped.
bool ProxyChannels::exit_barrier(const Rank& rank) try {
    const Stopwatch waited;
    for (ProxyChannel& channel : channels_)
        if (channel.is_to)
            channel.under_way.push_back(transport_->send(channel.peer, channel.number, nullptr, 0));
    while (!std::ranges::all_of(channels_, &ProxyChannel::has_ended)) {
        if (rank.has_lost_one() || waited.seconds() > patience_s)
            return false;
        for (ProxyChannel& channel : channels_)
            drain(channel);
        std::this_thread::sleep_for(50us);
    }
    return true;
} catch (const std::exception&) {
    return false;  // the transport has failed
}

void ProxyChannels::drain(ProxyChannel& channel) {
    end_transfers(channel);
    if (channel.is_to)
        channel.has_ended = channel.under_way.empty();
    else if (!channel.has_ended && channel.under_way.empty())
        begin_transfer(channel);
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
    // Where another rank has not come to the end, the transport may still read and write: that must
    // stay.
    if (!channels_->exit_barrier(rank_))
        new auto(channels_);
}

Fifo* NetworkProxy::channel_to(int peer, int channel) {
    return channels_->add(true, peer, channel);
}
Fifo* NetworkProxy::channel_from(int peer, int channel) {
    return channels_->add(false, peer, channel);
}

void NetworkProxy::start() {
    if (channels_->is_empty())
        return;
    rank_.add(*this);
    std::promise<void> end;
    ended_ = end.get_future();
    thread_ = std::thread([channels = channels_, end = std::move(end)]() mutable {
        channels->run();
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
