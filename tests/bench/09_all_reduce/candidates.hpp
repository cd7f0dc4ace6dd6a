#pragma once
// The candidates in the comparison of all-reduces: the algorithms of this chapter, the
// Communicator's choice of them, MPI, NCCL, and a loop that only does the work that the ring cannot
// avoid.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"
#include "common/gpu/stream.hpp"

namespace ddp {

class Communicator;
class Peers;

// Sums an array of floats over all ranks, in place, in an array of its own.
class Candidate {
  public:
    Candidate(std::string name, std::size_t most) : name_(std::move(name)), most_(most) {}
    virtual ~Candidate() = default;
    Candidate(const Candidate&) = delete;
    Candidate& operator=(const Candidate&) = delete;

    const std::string& name() const { return name_; }
    std::size_t most() const { return most_; }  // elements that it takes
    // False for one that only takes the time that a sum would.
    virtual bool gives_sums() const { return true; }

    // Sets the numbers that it sums next.
    virtual void load(const std::vector<float>& values) = 0;
    // Returns the beginning of its array.
    virtual std::vector<float> result(std::size_t count) = 0;
    // So many sums of `count` elements, begun at once, until the last of them is done.
    virtual void run(std::size_t count, int times) = 0;
    // Returns the seconds of each of them.
    virtual std::vector<double> seconds_of_each() = 0;

  private:
    const std::string name_;
    const std::size_t most_;
};

// The name of what no all-reduce can do without. Here it is a loop: every rank, without waiting for
// any other, adds (N - 1) / N of an array to another one and copies as much.
inline constexpr const char* limit_name = "limit";
// Returns these words for a reader.
std::string limit_text();

// All that can be had here, for up to `most` elements. They live until the run ends. All ranks call
// it together.
std::vector<std::shared_ptr<Candidate>> make_candidates(Rank& rank, std::size_t most);

// MPI_Allreduce itself on plain host memory, which is its best case; null where MPI has not started
// the ranks.
std::shared_ptr<Candidate> make_mpi_candidate(Rank& rank, std::size_t most);

// Makes a candidate of the all-reduce of a communicator, which is called on `stream`.
std::shared_ptr<Candidate> make_communicator_candidate(
    std::shared_ptr<Communicator> communicator, std::size_t most,
    std::shared_ptr<Stream> stream = std::make_shared<Stream>());

// Returns whether this program could be started by mpirun, and would know it.
bool is_built_with_mpi();

// The measurements of one candidate at one size.
struct AllReduceMeasurement {
    std::string algorithm;
    std::size_t bytes = 0;
    std::vector<double> batches;  // seconds of a sum: the mean of a batch and of all ranks
    std::vector<double> sums;     // seconds of each sum, on rank 0
    std::size_t wrong = 0;        // elements that were not exactly right, of all ranks
};

// Measures all candidates at all sizes (bytes), in turn; `rounds` batches of each. All ranks call
// it together; rank 0 is told.
std::vector<AllReduceMeasurement> compare(Rank& rank, const std::vector<std::size_t>& sizes,
                                          int rounds,
                                          const std::vector<std::shared_ptr<Candidate>>& all);

// Compares those of make_candidates(). `algorithm`: "all" or a further one, which is measured
// beside all others; with any other name it and those that are only references.
std::vector<AllReduceMeasurement> compare_all_reduces(Rank& rank,
                                                      const std::vector<std::size_t>& sizes,
                                                      int rounds, const std::string& algorithm);

}  // namespace ddp
