#include "10_nodes/network/network_proxy.hpp"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>

#include "10_nodes/network/proxy_side.hpp"
#include "common/gpu/thread_name.hpp"
#include "common/report/bench.hpp"

namespace ddp {
namespace {

using namespace std::chrono_literals;

// Returns how long to wait for the network where nothing has moved for `idle_s`. At first not at
// all: what is waited for may need this core. Later the network wakes this thread, and from time to
// time it polls for slots that kernels have filled or asked for: a kernel cannot wake a thread.
std::chrono::nanoseconds patience(double idle_s) {
    constexpr double spin_s = 200e-6, short_s = 0.1;
    if (idle_s < spin_s)
        return 0us;
    return idle_s < short_s ? 50us : 500us;
}

}  // namespace

NetworkProxy::NetworkProxy(Rank& rank, std::unique_ptr<Transport> transport)
    : rank_(rank), transport_(std::move(transport)) {}

NetworkProxy::~NetworkProxy() {
    is_ending_ = true;
    if (!thread_.joinable())
        return;
    rank_.remove(*this);
    thread_.join();
}

Fifo* NetworkProxy::channel_to(int peer, int channel, SendIsDone when) {
    return add(true, transport_->wire_to(peer, channel, when));
}
Fifo* NetworkProxy::channel_from(int peer, int channel) {
    return add(false, transport_->wire_from(peer, channel));
}

Fifo* NetworkProxy::add(bool is_to, Wire& wire) {
    ProxyChannel& added = channels_.emplace_back(ProxyChannel{is_to, &wire, PinnedBuffer<Fifo>(1)});
    static_cast<FifoHead&>(added.fifo[0]) = FifoHead{};
    return added.fifo.data();
}

void NetworkProxy::start() {
    if (channels_.empty())
        return;
    rank_.add(*this);
    thread_ = std::thread([this] {
        name_thread_by_role("network");
        run();
    });
}

std::string NetworkProxy::error() {
    std::lock_guard lock(mutex_);
    return error_;
}

// ---- The thread

void NetworkProxy::run() try {
    prctl(PR_SET_TIMERSLACK, 1000UL);  // ns: the sleeps of this thread end when they should
    for (Stopwatch idle; !is_ending_ && !(is_retired_ && is_quiet());) {
        if (move_all()) {
            idle.restart();
            continue;
        }
        const std::chrono::nanoseconds most = patience(idle.seconds());
        transport_->wait(most);
        if (most == 0ns)
            sched_yield();
    }
} catch (const std::exception& error) {
    std::lock_guard lock(mutex_);
    error_ = error.what();
}

// Begins what can begin, and ends what is done, for slots in their order. False if there was
// nothing. A slot waits for its bytes only when a kernel has asked for them.
bool NetworkProxy::move_all() {
    bool has_moved = false;
    for (ProxyChannel& channel : channels_) {
        Fifo& fifo = channel.fifo[0];
        for (; can_begin(fifo, channel.is_to, channel.begun); channel.begun++, has_moved = true)
            channel.wire->begin(
                fifo.slot(channel.begun),
                channel.is_to ? fifo.bytes[channel.begun % fifo_slots] : slot_bytes);
        if (channel.done == channel.begun)
            continue;
        const std::uint64_t done = channel.wire->done();
        if (done == channel.done)
            continue;
        say_done(fifo, channel.is_to, done);
        channel.done = done;
        has_moved = true;
    }
    return has_moved;
}

bool NetworkProxy::is_quiet() {
    return std::ranges::all_of(channels_, [](ProxyChannel& channel) {
        return channel.done == channel.begun &&
               (!channel.is_to || read_flag(channel.fifo[0].filled) == channel.begun);
    });
}

}  // namespace ddp
