#pragma once
// What we need of MPI: to be told who we are, and one message, so that the ranks find rank 0. All
// else they say to each other by our own means, the same as without MPI.
#include <string>

namespace ddp {

class MpiStart {
  public:
    // Starts MPI, for calls from any thread. Throws std::runtime_error if this program was built
    // without MPI.
    MpiStart();
    // Leaves MPI as it is: a process whose peers are gone would wait for them for ever. MPI_Abort
    // is never called: it would take the last words out of every rank's mouth.
    ~MpiStart() = default;
    MpiStart(const MpiStart&) = delete;
    MpiStart& operator=(const MpiStart&) = delete;

    int rank() const { return rank_; }
    int world_size() const { return world_size_; }
    // Rank 0's text, on every rank.
    std::string broadcast(const std::string& text) const;
    // Ends MPI. All ranks must come.
    void finish() noexcept;

  private:
    int rank_ = 0;
    int world_size_ = 1;
    bool started_here_ = false;
};

}  // namespace ddp
