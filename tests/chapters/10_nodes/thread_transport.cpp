#include "tests/chapters/10_nodes/thread_transport.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <stdexcept>
#include <thread>

namespace ddp::test {

// What goes along one channel.
struct ThreadTransports::Channel {
    struct Message {
        std::byte* data;
        std::size_t bytes;
    };
    std::deque<Message> sends, receives;  // that have not met yet
    std::uint64_t done = 0;
};

class ThreadTransports::End final : public Transport {
  public:
    End(ThreadTransports& transports, int rank) : transports_(transports), rank_(rank) {}

    Wire& wire_to(int rank, int channel, SendIsDone) override {
        return make_wire({rank_, rank, channel}, true);
    }
    Wire& wire_from(int rank, int channel) override {
        return make_wire({rank, rank_, channel}, false);
    }
    void wait(std::chrono::nanoseconds most) override { std::this_thread::sleep_for(most); }

  private:
    class MemoryWire final : public Wire {
      public:
        MemoryWire(ThreadTransports& transports, Channel& channel, bool is_to)
            : transports_(transports), channel_(channel), is_to_(is_to) {}
        void begin(std::byte* data, std::size_t bytes) override {
            std::lock_guard lock(transports_.mutex_);
            transports_.messages_ += is_to_;
            (is_to_ ? channel_.sends : channel_.receives).push_back({data, bytes});
            transports_.match(channel_);
        }
        std::uint64_t done() override {
            std::lock_guard lock(transports_.mutex_);
            if (transports_.is_cut_)
                throw std::runtime_error("the connection is cut");
            return channel_.done;
        }

      private:
        ThreadTransports& transports_;
        Channel& channel_;
        const bool is_to_;
    };

    Wire& make_wire(const Ends& ends, bool is_to) {
        std::lock_guard lock(transports_.mutex_);
        return wires_.emplace_back(transports_, transports_.channels_[ends], is_to);
    }

    ThreadTransports& transports_;
    const int rank_;
    std::list<MemoryWire> wires_;
};

ThreadTransports::ThreadTransports() = default;
ThreadTransports::~ThreadTransports() = default;

std::unique_ptr<Transport> ThreadTransports::of(int rank) {
    return std::make_unique<End>(*this, rank);
}

void ThreadTransports::cut() {
    std::lock_guard lock(mutex_);
    is_cut_ = true;
}

void ThreadTransports::match(Channel& channel) {
    while (!channel.sends.empty() && !channel.receives.empty()) {
        const Channel::Message send = channel.sends.front(), receive = channel.receives.front();
        if (send.bytes > receive.bytes)
            throw std::logic_error("more bytes are sent than the receiver has room for");
        std::memcpy(receive.data, send.data, send.bytes);
        channel.sends.pop_front();
        channel.receives.pop_front();
        channel.done++;
    }
}

Job job_on(const std::vector<std::string>& nodes, double timeout_s) {
    Job job;
    job.started_by = "a test";
    job.timeout_s = timeout_s;
    for (const std::string& node : nodes) {
        const auto local = std::ranges::count(job.members, node, &Member::node);
        job.members.push_back({node, getpid(), static_cast<int>(local), 0, "127.0.0.1"});
    }
    for (Member& member : job.members)
        member.local_world_size =
            static_cast<int>(std::ranges::count(job.members, member.node, &Member::node));
    return job;
}

namespace {

// Runs one rank, as World does.
RunResult run_rank(CoordinatorServer& coordinator, const Job& job, int rank,
                   const std::function<void(Rank&)>& work) {
    std::string cause;
    Rank self(rank, 1, job, coordinator, coordinator.events(rank));
    try {
        work(self);
    } catch (const RunFailed&) {
        // Another rank reports the cause.
    } catch (const std::exception& error) {
        cause = job.name(rank) + ": " + error.what();
    }
    coordinator.send(rank, {Message::Kind::end, 1, 0, cause, {}});
    const RunResult result = coordinator.events(rank).wait_for_result(1);
    self.end(result.is_last);
    return result;
}

}  // namespace

std::string failure_of(const Job& job, const std::function<void(Rank&)>& work) {
    CoordinatorServer coordinator(job, Connections(job.members.size()));
    std::vector<RunResult> results(job.members.size());
    std::vector<std::thread> threads;
    for (int r = 0; r < job.world_size(); r++)
        threads.emplace_back(
            [&, r] { results[static_cast<std::size_t>(r)] = run_rank(coordinator, job, r, work); });
    for (std::thread& thread : threads)
        thread.join();
    return results[0].cause;
}

std::string failure_on_nodes(const std::vector<std::string>& nodes,
                             const std::function<void(Rank&)>& work, double timeout_s) {
    return failure_of(job_on(nodes, timeout_s), work);
}

}  // namespace ddp::test
