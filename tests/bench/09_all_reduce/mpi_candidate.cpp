#include "tests/bench/09_all_reduce/candidates.hpp"
#if defined(DDP_MPI)
#include "tests/bench/09_all_reduce/mpi_caller.hpp"
#endif

namespace ddp {

#if defined(DDP_MPI)

namespace {

class MpiCandidate final : public MpiCaller {
  public:
    MpiCandidate(Rank& rank, std::size_t most) : MpiCaller(rank, "mpi", most) {}

  private:
    void call(MPI_Comm communicator, float* data, std::size_t count) override {
        MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                      communicator);
    }
};

}  // namespace

std::shared_ptr<Candidate> make_mpi_candidate(Rank& rank, std::size_t most) {
    int is_started = 0;
    MPI_Initialized(&is_started);
    return is_started != 0 ? std::make_shared<MpiCandidate>(rank, most) : nullptr;
}

bool is_built_with_mpi() {
    return true;
}

#else

std::shared_ptr<Candidate> make_mpi_candidate(Rank&, std::size_t) {
    return nullptr;
}

bool is_built_with_mpi() {
    return false;
}

#endif

}  // namespace ddp
