#pragma once
// A process's end of the coordination of its job. CoordinatorServer holds the Coordinator itself:
// in the one process of a job of threads, and in rank 0's. CoordinatorClient is connected to it, in
// every other process.
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "05_ranks/coordinator/coordinator.hpp"
#include "05_ranks/coordinator/rank_events.hpp"
#include "05_ranks/coordinator/watchdog.hpp"
#include "05_ranks/job.hpp"
#include "05_ranks/rendezvous.hpp"

namespace ddp {

class CoordinatorEndpoint : public ControlChannel {
  public:
    // `job` must outlive this object.
    explicit CoordinatorEndpoint(const Job& job);

    // Returns the events of a rank of this process.
    virtual RankEvents& events(int rank) = 0;

  protected:
    using Clock = std::chrono::steady_clock;

    // Notices that this process was stopped for a while, with all that should have polled.
    void poll_clock();
    // Sends the coordinator an error of the work beside rank `rank`, if there is one. Ends this
    // process if the rank does not come back from a run that has failed long ago.
    void poll_rank(int rank);
    // Returns true every 50 ms. (A heartbeat whenever something arrives would make two processes
    // keep each other awake.)
    bool is_heartbeat_due();
    // Returns `descriptors` and that of SIGTERM: the watchdog wakes for it too.
    std::vector<int> with_signal(std::vector<int> descriptors) const;
    // Passes SIGTERM on to rank `rank` if it takes it. Otherwise reports and obeys it in the
    // process of that rank, and only obeys it in a job of threads. The watchdog calls it last:
    // mpirun ends all processes when one has died, and by then the connections have told which one.
    void poll_sigterm(int rank);

    const Job& job_;
    Clock::time_point awake_from_;  // the end of the last time that this process was stopped
    bool has_overslept_ = false;    // it was stopped for so long that the others have given it up

  private:
    void poll_overdue(int rank);
    void tell_overdue(int rank, const RunFailed& failure, std::chrono::duration<double> overdue);

    std::optional<Sigterm> sigterm_;  // where every rank is a process, or a rank takes SIGTERM
    std::optional<Clock::time_point> sigterm_at_;
    bool has_told_overdue_ = false;
    Clock::time_point heartbeat_at_;
    Clock::time_point polled_at_ = Clock::now();
};

// Holds the coordinator. `connections[r]` leads to rank r; ranks without one are threads of this
// process. Where ranks are processes, their `reception` refuses all that come later.
class CoordinatorServer final : public CoordinatorEndpoint {
  public:
    CoordinatorServer(const Job& job, Connections connections,
                      std::optional<Reception> reception = {});
    ~CoordinatorServer() override;

    void send(int rank, const Message& message) override { coordinator_.receive(rank, message); }
    RankEvents& events(int rank) override { return events_[static_cast<std::size_t>(rank)]; }

  private:
    // The messages of a process since the last poll, and whether its connection then broke.
    struct Received {
        int rank;
        std::vector<Message> messages;
        bool is_lost = false;
    };
    std::vector<int> descriptors() const;
    void poll();
    Received receive_from(int rank, bool heartbeat);
    void send_over(Connection& connection, const Message& message) const;

    std::vector<RankEvents> events_;
    Connections connections_;
    std::optional<Reception> reception_;
    std::vector<bool> broken_;  // connections from which nothing more comes; the watchdog's
    Coordinator coordinator_;
    Watchdog watchdog_;
};

// Connects rank `rank`, a process of its own, to the coordinator by `connection`.
class CoordinatorClient final : public CoordinatorEndpoint {
  public:
    CoordinatorClient(const Job& job, int rank, std::unique_ptr<Connection> connection);
    ~CoordinatorClient() override;

    void send(int rank, const Message& message) override;
    RankEvents& events(int) override { return events_; }

  private:
    std::vector<int> descriptors() const;
    void poll();
    void close(const std::string& how);
    void record_error(const std::string& text);
    std::string take_error();

    const int rank_;
    RankEvents events_;
    std::unique_ptr<Connection> connection_;
    bool closed_ = false;                           // the watchdog's
    Clock::time_point received_at_ = Clock::now();  // the watchdog's
    std::mutex mutex_;
    std::string error_;  // the first error in this run that this rank has sent
    Watchdog watchdog_;
};

}  // namespace ddp
