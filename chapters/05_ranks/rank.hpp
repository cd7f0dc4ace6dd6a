#pragma once
// A rank: its number, and how it exchanges small values with all other ranks, on the host.
// (06_messages sends large arrays, from device to device.)
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "05_ranks/coordinator/rank_events.hpp"
#include "05_ranks/job.hpp"

namespace ddp {

// A value that ranks exchange as its bytes: no pointer, and nothing that has one.
template <class T>
concept Exchangeable =
    std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_array_v<T>;

// One rank during one run. Only that rank's own thread uses it.
class Rank {
  public:
    // Rank `rank` of `job` in run `run_id`, which counts from 1. All arguments must outlive this
    // object.
    Rank(int rank, std::uint64_t run_id, const Job& job, ControlChannel& coordinator,
         RankEvents& events);
    Rank(const Rank&) = delete;
    Rank& operator=(const Rank&) = delete;

    int rank() const { return rank_; }
    int world_size() const { return job_.world_size(); }
    int local_rank() const { return member().local_rank; }
    int local_world_size() const { return member().local_world_size; }
    const std::string& node() const { return member().node; }
    std::uint64_t run_id() const { return run_id_; }
    const Job& job() const { return job_; }
    const Member& member() const { return job_.members[static_cast<std::size_t>(rank_)]; }

    // ---- Exchanges on the host

    // Waits until every rank is in its barrier. This and the other exchanges are calls that all
    // ranks make in the same order. Each returns when all ranks have made it. If a rank does not
    // within the job's time-out, or the run fails for another reason, each throws RunFailed with
    // the first cause.
    void barrier();
    // Returns every rank's `mine`, by rank.
    std::vector<std::string> all_gather(const std::string& mine);
    template <Exchangeable T>
    std::vector<T> all_gather(const T& mine);
    // Returns the value of rank `root`, and ignores the other ranks' values. Throws
    // std::invalid_argument if there is no rank `root`.
    std::string broadcast(const std::string& value, int root);
    template <Exchangeable T>
    T broadcast(const T& value, int root);
    // Return the mean or the largest of all ranks' numbers, the same bits on every rank.
    double mean_over_ranks(double mine);
    double max_over_ranks(double mine);

    // ---- Devices, memory and failures

    // Makes the device of this rank current, and returns its number: the ranks of a node take its
    // devices in turn, by local rank.
    int select_device() const;

    // Keeps `thing` until every rank has ended the run: device memory that other ranks may read
    // until then, for example.
    void keep_until_run_ends(std::shared_ptr<void> thing) { kept_.push_back(std::move(thing)); }

    // Calls `part`, one of several parts of the run, and frees the things that it kept when it has
    // ended on all ranks: each part needs its own memory and streams, and a GPU has few queues for
    // streams. All ranks call it together. If it throws, these things stay until the run ends.
    void run_part(const std::function<void()>& part);

    // Throws RunFailed if the run has failed. Long work between two exchanges should call it.
    void check() const;

    // Registers `abortable`, to be stopped when the run fails. remove() must be called before its
    // end.
    void add(Abortable& abortable) { events_.add(abortable, run_id_); }
    void remove(Abortable& abortable) { events_.remove(abortable); }

    // Takes SIGTERM as a request, for the rest of this run: it doesn't fail the run, but the rank
    // can ask for it between two steps, save, and end before the scheduler sends SIGKILL.
    void take_sigterm() { events_.take_sigterm(); }
    // Returns whether SIGTERM has arrived at this rank's process.
    bool sigterm_has_come() const { return events_.sigterm_has_come(); }

    // World calls it when the run is over. Kept things are destroyed then, and can ask whether a
    // rank was lost, from which they need not wait for anything.
    void end(bool has_lost_one) { has_lost_one_ = has_lost_one; }
    bool has_lost_one() const { return has_lost_one_; }

  private:
    std::vector<std::string> exchange(const std::string& operation, std::string mine);

    const int rank_;
    const std::uint64_t run_id_;
    const Job& job_;
    ControlChannel& coordinator_;
    RankEvents& events_;
    std::uint64_t calls_ = 0;
    bool has_lost_one_ = false;
    std::vector<std::shared_ptr<void>> kept_;
};

// Throws std::runtime_error for another number of bytes: then a rank runs a different program.
template <Exchangeable T>
T value_of_bytes(const std::string& bytes) {
    if (bytes.size() != sizeof(T))
        throw std::runtime_error("a rank has sent " + std::to_string(bytes.size()) +
                                 " bytes where " + std::to_string(sizeof(T)) +
                                 " were expected: start the same build on all ranks");
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
}

template <Exchangeable T>
std::vector<T> Rank::all_gather(const T& mine) {
    std::vector<T> all;
    for (const std::string& bytes :
         all_gather(std::string(reinterpret_cast<const char*>(&mine), sizeof(T))))
        all.push_back(value_of_bytes<T>(bytes));
    return all;
}

template <Exchangeable T>
T Rank::broadcast(const T& value, int root) {
    return value_of_bytes<T>(
        broadcast(std::string(reinterpret_cast<const char*>(&value), sizeof(T)), root));
}

}  // namespace ddp
