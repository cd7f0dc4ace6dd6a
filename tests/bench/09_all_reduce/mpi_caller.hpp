#pragma once
// A candidate that calls MPI itself. Only where the program is built with it.
#include <algorithm>

#include "09_all_reduce/libraries/duplicate_world.hpp"
#include "common/report/bench.hpp"
#include "tests/bench/09_all_reduce/candidates.hpp"

namespace ddp {

// One who sums by calls of MPI, on plain host memory.
class MpiCaller : public Candidate {
  public:
    MpiCaller(Rank& rank, std::string name, std::size_t most)
        : Candidate(std::move(name), most), communicator_(duplicate_world(rank)), data_(most) {}
    ~MpiCaller() override { MPI_Comm_free(&communicator_); }

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
            call(communicator_, data_.data(), count);
            seconds_.push_back(watch.seconds());
        }
    }
    std::vector<double> seconds_of_each() override { return seconds_; }

  private:
    virtual void call(MPI_Comm communicator, float* data, std::size_t count) = 0;

    MPI_Comm communicator_;
    std::vector<float> data_;
    std::vector<double> seconds_;
};

}  // namespace ddp
