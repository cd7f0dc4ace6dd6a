#include "tests/chapters/09_all_reduce/thread_transport.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace ddp::test {

struct ThreadWires::Payload {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t bytes = 0;
    bool is_done = false, is_given_up = false;
};

class ThreadWires::End final : public Transport {
  public:
    End(ThreadWires& wires, int rank) : wires_(wires), rank_(rank) {}

    std::unique_ptr<Transfer> send(int to, int line, const std::byte* data,
                                   std::size_t bytes) override {
        return begin({rank_, to, line}, &Waiting::sends, {data, nullptr, bytes});
    }
    std::unique_ptr<Transfer> receive(int from, int line, std::byte* data,
                                      std::size_t most_bytes) override {
        return begin({from, rank_, line}, &Waiting::receives, {nullptr, data, most_bytes});
    }

  private:
    class Transfer_ final : public Transfer {
      public:
        Transfer_(ThreadWires& wires, std::shared_ptr<Payload> payload)
            : wires_(wires), parcel_(std::move(payload)) {}
        ~Transfer_() override {
            std::lock_guard lock(wires_.mutex_);
            parcel_->is_given_up = true;
        }
        bool is_done() override {
            std::lock_guard lock(wires_.mutex_);
            if (wires_.is_cut_)
                throw std::runtime_error("the wire is cut");
            return parcel_->is_done;
        }
        std::size_t bytes() const override { return parcel_->bytes; }

      private:
        ThreadWires& wires_;
        std::shared_ptr<Payload> parcel_;
    };

    std::unique_ptr<Transfer> begin(const ProxyChannel& line,
                                    std::deque<std::shared_ptr<Payload>> Waiting::*queue,
                                    const Payload& payload) {
        auto shared = std::make_shared<Payload>(payload);
        std::lock_guard lock(wires_.mutex_);
        Waiting& waiting = wires_.channels_[line];
        (waiting.*queue).push_back(shared);
        wires_.match(waiting);
        return std::make_unique<Transfer_>(wires_, shared);
    }

    ThreadWires& wires_;
    const int rank_;
};

std::unique_ptr<Transport> ThreadWires::of(int rank) {
    return std::make_unique<End>(*this, rank);
}

void ThreadWires::cut() {
    std::lock_guard lock(mutex_);
    is_cut_ = true;
}

void ThreadWires::match(Waiting& waiting) {
    std::erase_if(waiting.receives, [](const auto& payload) { return payload->is_given_up; });
    while (!waiting.sends.empty() && !waiting.receives.empty()) {
        Payload &send = *waiting.sends.front(), &receive = *waiting.receives.front();
        if (send.bytes > receive.bytes)
            throw std::logic_error("more is sent than there is room for");
        receive.bytes = send.bytes;
        if (send.bytes > 0)
            std::memcpy(receive.to, send.from, send.bytes);
        send.is_done = receive.is_done = true;
        waiting.sends.pop_front();
        waiting.receives.pop_front();
    }
}

namespace {

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

// Does what World::run_rank does.
RunResult take_part(CoordinatorServer& coordinator, const Job& job, int rank,
                    const std::function<void(Rank&)>& work) {
    std::string cause;
    Rank self(rank, 1, job, coordinator, coordinator.events(rank));
    try {
        work(self);
    } catch (const RunFailed&) {
        // Another rank has the cause.
    } catch (const std::exception& error) {
        cause = job.name(rank) + ": " + error.what();
    }
    coordinator.send(rank, {Message::Kind::end, 1, 0, cause, {}});
    const RunResult result = coordinator.events(rank).wait_for_result(1);
    self.end(result.is_last);
    return result;
}

}  // namespace

std::string failure_on_hosts(const std::vector<std::string>& hosts,
                             const std::function<void(Rank&)>& work, double timeout_s) {
    const Job job = job_on(hosts, timeout_s);
    CoordinatorServer coordinator(job, Connections(hosts.size()));
    std::vector<RunResult> verdicts(hosts.size());
    std::vector<std::thread> threads;
    for (int r = 0; r < job.world_size(); r++)
        threads.emplace_back([&, r] {
            verdicts[static_cast<std::size_t>(r)] = take_part(coordinator, job, r, work);
        });
    for (std::thread& thread : threads)
        thread.join();
    return verdicts[0].cause;
}

}  // namespace ddp::test
