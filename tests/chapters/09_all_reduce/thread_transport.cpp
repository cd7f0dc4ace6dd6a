#include "tests/chapters/09_all_reduce/thread_transport.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace ddp::test {

struct ThreadTransports::Payload {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t bytes = 0;
    bool is_done = false, is_given_up = false;
};

class ThreadTransports::End final : public Transport {
  public:
    End(ThreadTransports& transports, int rank) : transports_(transports), rank_(rank) {}

    std::unique_ptr<Transfer> send(int to, int channel, const std::byte* data,
                                   std::size_t bytes) override {
        return begin({rank_, to, channel}, &Waiting::sends, {data, nullptr, bytes});
    }
    std::unique_ptr<Transfer> receive(int from, int channel, std::byte* data,
                                      std::size_t most_bytes) override {
        return begin({from, rank_, channel}, &Waiting::receives, {nullptr, data, most_bytes});
    }

  private:
    class MemoryTransfer final : public Transfer {
      public:
        MemoryTransfer(ThreadTransports& transports, std::shared_ptr<Payload> payload)
            : transports_(transports), payload_(std::move(payload)) {}
        ~MemoryTransfer() override {
            std::lock_guard lock(transports_.mutex_);
            payload_->is_given_up = true;
        }
        bool is_done() override {
            std::lock_guard lock(transports_.mutex_);
            if (transports_.is_cut_)
                throw std::runtime_error("the connection is cut");
            return payload_->is_done;
        }
        std::size_t bytes() const override { return payload_->bytes; }

      private:
        ThreadTransports& transports_;
        std::shared_ptr<Payload> payload_;
    };

    std::unique_ptr<Transfer> begin(const ProxyChannel& channel,
                                    std::deque<std::shared_ptr<Payload>> Waiting::*queue,
                                    const Payload& payload) {
        auto shared = std::make_shared<Payload>(payload);
        std::lock_guard lock(transports_.mutex_);
        transports_.messages_ += queue == &Waiting::sends && payload.bytes > 0;
        Waiting& waiting = transports_.channels_[channel];
        (waiting.*queue).push_back(shared);
        transports_.match(waiting);
        return std::make_unique<MemoryTransfer>(transports_, shared);
    }

    ThreadTransports& transports_;
    const int rank_;
};

std::unique_ptr<Transport> ThreadTransports::of(int rank) {
    return std::make_unique<End>(*this, rank);
}

void ThreadTransports::cut() {
    std::lock_guard lock(mutex_);
    is_cut_ = true;
}

void ThreadTransports::match(Waiting& waiting) {
    std::erase_if(waiting.receives, [](const auto& payload) { return payload->is_given_up; });
    while (!waiting.sends.empty() && !waiting.receives.empty()) {
        Payload &send = *waiting.sends.front(), &receive = *waiting.receives.front();
        if (send.bytes > receive.bytes)
            throw std::logic_error("more bytes are sent than the receiver has room for");
        receive.bytes = send.bytes;
        if (send.bytes > 0)
            std::memcpy(receive.to, send.from, send.bytes);
        send.is_done = receive.is_done = true;
        waiting.sends.pop_front();
        waiting.receives.pop_front();
    }
}

Job job_on(const std::vector<std::string>& hosts, double timeout_s) {
    Job job;
    job.started_by = "a test";
    job.timeout_s = timeout_s;
    for (const std::string& host : hosts) {
        const auto local = std::ranges::count(job.members, host, &Member::host);
        job.members.push_back({host, getpid(), static_cast<int>(local), 0});
    }
    for (Member& member : job.members)
        member.local_world_size =
            static_cast<int>(std::ranges::count(job.members, member.host, &Member::host));
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

std::string failure_on_hosts(const std::vector<std::string>& hosts,
                             const std::function<void(Rank&)>& work, double timeout_s) {
    return failure_of(job_on(hosts, timeout_s), work);
}

}  // namespace ddp::test
