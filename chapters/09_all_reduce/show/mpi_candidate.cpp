#include "09_all_reduce/show/candidates.hpp"
#if defined(DDP_MPI)
#include "09_all_reduce/libraries/duplicate_world.hpp"
#include "common/report/bench.hpp"
#endif

namespace ddp {

#if defined(DDP_MPI)

namespace {

class MpiCandidate final : public Candidate {
  public:
    MpiCandidate(Rank& rank, std::size_t most)
        : Candidate("mpi", most), communicator_(duplicate_world(rank)), data_(most) {}
    ~MpiCandidate() override { MPI_Comm_free(&communicator_); }

    void load(const std::vector<float>& values) override {
        std::copy(values.begin(), values.end(), data_.begin());
    }
    std::vector<float> result(std::size_t count) override {
        return {data_.begin(), data_.begin() + static_cast<std::ptrdiff_t>(count)};
    }
    void run(std::size_t count, int times) override {
        seconds_.clear();
        for (int i = 0; i < times; i++) {
            const Stopwatch watch;
            MPI_Allreduce(MPI_IN_PLACE, data_.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                          communicator_);
            seconds_.push_back(watch.seconds());
        }
    }
    std::vector<double> seconds_of_each() override { return seconds_; }

  private:
    MPI_Comm communicator_;
    std::vector<float> data_;
    std::vector<double> seconds_;
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
