#include "tests/chapters/09_all_reduce/thread_wire.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace ddp::test {

struct ThreadWires::Parcel {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t bytes = 0;
    bool is_done = false, is_given_up = false;
};

class ThreadWires::End final : public Wire {
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
        Transfer_(ThreadWires& wires, std::shared_ptr<Parcel> parcel)
            : wires_(wires), parcel_(std::move(parcel)) {}
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
        std::shared_ptr<Parcel> parcel_;
    };

    std::unique_ptr<Transfer> begin(const Line& line,
                                    std::deque<std::shared_ptr<Parcel>> Waiting::*queue,
                                    const Parcel& parcel) {
        auto shared = std::make_shared<Parcel>(parcel);
        std::lock_guard lock(wires_.mutex_);
        Waiting& waiting = wires_.lines_[line];
        (waiting.*queue).push_back(shared);
        wires_.match(waiting);
        return std::make_unique<Transfer_>(wires_, shared);
    }

    ThreadWires& wires_;
    const int rank_;
};

std::unique_ptr<Wire> ThreadWires::of(int rank) {
    return std::make_unique<End>(*this, rank);
}

void ThreadWires::cut() {
    std::lock_guard lock(mutex_);
    is_cut_ = true;
}

void ThreadWires::match(Waiting& waiting) {
    std::erase_if(waiting.receives, [](const auto& parcel) { return parcel->is_given_up; });
    while (!waiting.sends.empty() && !waiting.receives.empty()) {
        Parcel &send = *waiting.sends.front(), &receive = *waiting.receives.front();
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

// As World::take_part.
Verdict take_part(MeetingHost& meeting, const Job& job, int rank,
                  const std::function<void(Rank&)>& work) {
    std::string cause;
    Rank self(rank, 1, job, meeting, meeting.inbox(rank));
    try {
        work(self);
    } catch (const RunFailed&) {
        // Another rank has the cause.
    } catch (const std::exception& error) {
        cause = job.name(rank) + ": " + error.what();
    }
    meeting.say(rank, {Message::Kind::end, 1, 0, cause, {}});
    const Verdict verdict = meeting.inbox(rank).wait_for_verdict(1);
    self.end(verdict.is_last);
    return verdict;
}

}  // namespace

std::string failure_on_hosts(const std::vector<std::string>& hosts,
                             const std::function<void(Rank&)>& work, double timeout_s) {
    const Job job = job_on(hosts, timeout_s);
    MeetingHost meeting(job, Connections(hosts.size()));
    std::vector<Verdict> verdicts(hosts.size());
    std::vector<std::thread> threads;
    for (int r = 0; r < job.world_size(); r++)
        threads.emplace_back(
            [&, r] { verdicts[static_cast<std::size_t>(r)] = take_part(meeting, job, r, work); });
    for (std::thread& thread : threads)
        thread.join();
    return verdicts[0].cause;
}

}  // namespace ddp::test
