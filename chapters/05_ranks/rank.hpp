#pragma once
// What a rank knows of itself and of the others, and how they exchange small things on the host.
#include <sys/types.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "05_ranks/coordinator/rank_events.hpp"
#include "common/report/options.hpp"

namespace ddp {

// One rank of a job, as all ranks know it.
struct Member {
    std::string host;
    pid_t process = 0;
    int local_rank = 0;  // among the ranks of its host
    int local_world_size = 1;
};

// What all ranks of a job know.
struct Job {
    std::vector<Member> members;  // by rank
    std::string started_by;       // "threads of one process", "mpirun", ...
    bool has_processes = false;   // every rank is a process of its own
    double timeout_s = 30;        // of every wait for another rank; 0: for ever
    std::optional<LinkSpeed> link;

    int world_size() const { return static_cast<int>(members.size()); }
    bool has_several_hosts() const;
    // How messages name rank `rank`: with its process where ranks are processes.
    std::string name(int rank) const;
};

// How a rank reaches the meeting of its job.
class ControlChannel {
  public:
    virtual ~ControlChannel() = default;
    virtual void send(int rank, const Message& message) = 0;
};

// A value that ranks exchange as its bytes: no pointer, and nothing that has one.
template <class T>
concept Exchangeable =
    std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_array_v<T>;

// Lives as long as one rank takes part in one run, and is used by that rank's own thread.
class Rank {
  public:
    // All of them must outlive the rank. `run_id` is the run's number, from 1.
    Rank(int rank, std::uint64_t run_id, const Job& job, ControlChannel& control,
         RankEvents& events);
    Rank(const Rank&) = delete;
    Rank& operator=(const Rank&) = delete;

    int rank() const { return rank_; }
    int world_size() const { return job_.world_size(); }
    int local_rank() const { return member().local_rank; }
    int local_world_size() const { return member().local_world_size; }
    const std::string& host() const { return member().host; }
    std::uint64_t run_id() const { return run_id_; }
    const Job& job() const { return job_; }
    const Member& member() const { return job_.members[static_cast<std::size_t>(rank_)]; }

    // Exchanges on the host. Every rank must make the same calls in the same order. Each returns
    // when all ranks have come; where one does not within the job's time-out, or the run fails for
    // another reason, each throws RunFailed with the first cause.
    void barrier();
    // Returns what every rank has passed, by rank.
    std::vector<std::string> all_gather(const std::string& mine);
    template <Exchangeable T>
    std::vector<T> all_gather(const T& mine);
    // Returns what rank `root` has passed; the value of the others is ignored. Throws
    // std::invalid_argument if there is no such rank.
    std::string broadcast(const std::string& message, int root);
    template <Exchangeable T>
    T broadcast(const T& value, int root);
    // Return the mean or the largest of all ranks' numbers, the same bits on every rank.
    double mean_over_ranks(double mine);
    double max_over_ranks(double mine);

    // Throws RunFailed if the run has failed: for long work between two calls.
    void check() const;

    // Makes the device of this rank current: the ranks of a host take its devices in turn, by local
    // rank. Returns its number.
    int select_device() const;

    // `thing` is dropped once every rank has ended the run: device memory that others may read
    // until then, for example.
    void keep_until_run_ends(std::shared_ptr<void> thing) { kept_.push_back(std::move(thing)); }

    // The end of the run, of which World tells; and for what was kept: whether a rank was lost on
    // the way, from which nothing more can be expected.
    void end(bool has_lost_one) { has_lost_one_ = has_lost_one; }
    bool has_lost_one() const { return has_lost_one_; }

    // Has the watchdog look after `guarded` until it is removed, which must be before its end.
    void add(Abortable& abortable) { events_.add(abortable, run_id_); }
    void remove(Abortable& abortable) { events_.remove(abortable); }

  private:
    std::vector<std::string> exchange(const std::string& operation, std::string mine);

    const int rank_;
    const std::uint64_t run_id_;
    const Job& job_;
    ControlChannel& control_;
    RankEvents& events_;
    std::uint64_t calls_ = 0;
    bool has_lost_one_ = false;
    std::vector<std::shared_ptr<void>> kept_;
};

template <Exchangeable T>
std::vector<T> Rank::all_gather(const T& mine) {
    std::vector<T> all;
    for (const std::string& bytes :
         all_gather(std::string(reinterpret_cast<const char*>(&mine), sizeof(T))))
        std::memcpy(&all.emplace_back(), bytes.data(), sizeof(T));
    return all;
}

template <Exchangeable T>
T Rank::broadcast(const T& value, int root) {
    T result;
    const std::string bytes =
        broadcast(std::string(reinterpret_cast<const char*>(&value), sizeof(T)), root);
    std::memcpy(&result, bytes.data(), sizeof(T));
    return result;
}

}  // namespace ddp
