#pragma once
// The little that is needed of MPI: this rank's number, and one broadcast, by which the ranks learn
// where rank 0 listens. Everything else works without MPI, as with the other starters.
#include <sys/types.h>

#include <string>

namespace ddp {

class MpiStart {
  public:
    // Starts MPI, for calls from any thread. Ends this process where another rank does not come
    // within `limit_s` (0: no limit), here or in a call below. Throws std::runtime_error if this
    // program was built without MPI.
    explicit MpiStart(double limit_s);
    // Does not end MPI: MPI_Finalize would wait forever for a process that is gone. MPI_Abort is
    // never called: it ends all processes before they can report the cause.
    ~MpiStart() = default;
    MpiStart(const MpiStart&) = delete;
    MpiStart& operator=(const MpiStart&) = delete;

    int rank() const { return rank_; }
    int world_size() const { return world_size_; }
    // Returns rank 0's text on every rank. All ranks must call it.
    std::string broadcast(const std::string& text) const;
    // Ends MPI. All ranks must call it.
    void finish() noexcept;

  private:
    const double limit_s_;
    int rank_ = 0;
    int world_size_ = 1;
    bool started_here_ = false;
};

// Waits until the process of rank `rank`, on this node, has ended, for `limit_s` at most. Ends this
// process, with one sentence, if it is stopped then: mpirun, which ends it then, would wait for it
// forever. 0: does not wait.
void wait_until_ended(int rank, pid_t process, double limit_s);

// ---- For programs that start ranks by mpirun themselves (mpirun.cpp)

// Returns whether a program of this name is in one of the folders of PATH.
bool is_on_path(const std::string& program);

// Let this user start mpirun from this process, also if it is root; and let mpirun print nothing
// but what the ranks print, also where a job has failed. (For the second there is no option:
// mpirun -q, up to Open MPI 4, is a mistake in Open MPI 5.) Variables that the user has set are
// kept.
void allow_mpirun();
void keep_mpirun_quiet();

}  // namespace ddp
