#include "09_all_reduce/show/candidates.hpp"
#if defined(DDP_MPI)
#include <algorithm>

#include "09_all_reduce/hosts/placement.hpp"
#include "09_all_reduce/libraries/duplicate_world.hpp"
#include "common/report/bench.hpp"
#endif

namespace ddp {

#if defined(DDP_MPI)

namespace {

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

class MpiCandidate final : public MpiCaller {
  public:
    MpiCandidate(Rank& rank, std::size_t most) : MpiCaller(rank, "mpi", most) {}

  private:
    void call(MPI_Comm communicator, float* data, std::size_t count) override {
        MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                      communicator);
    }
};

// The bytes that every host has to send, and nothing else: the ranks with the same place on their
// hosts send an equal share of it to the next host. (Where hosts have different numbers of ranks,
// as many of each take part as the smallest has.)
//
//     host 0    rank 0   rank 1          each: 2 (H - 1) / H of the array, by L ranks
//                 │        │
//     host 1    rank 2   rank 3 ──▶ ... ──▶ host 0
class LinkLimit final : public MpiCaller {
  public:
    LinkLimit(Rank& rank, const Placement& placement, std::size_t most)
        : MpiCaller(rank, limit_name, most), is_even_(placement.is_even()), arriving_(2 * most) {
        const auto hosts = static_cast<int>(placement.sizes.size());
        std::vector<int> firsts{0};  // of each host, in by_host
        for (const int size : placement.sizes)
            firsts.push_back(firsts.back() + size);
        const int mine = static_cast<int>(std::ranges::upper_bound(firsts, placement.position) -
                                          firsts.begin()) -
                         1;
        const int place = placement.position - firsts[static_cast<std::size_t>(mine)];
        const int senders = *std::ranges::min_element(placement.sizes);
        if (place >= senders)
            return;  // this rank sends nothing
        const auto rank_on = [&](int host) {
            const int first = firsts[static_cast<std::size_t>(host % hosts)];
            return placement.by_host[static_cast<std::size_t>(first + place)];
        };
        to_ = rank_on(mine + 1);
        from_ = rank_on(mine + hosts - 1);
        share_ = 2.0 * (hosts - 1) / hosts / senders;
    }
    bool gives_sums() const override { return false; }

  private:
    // In slices that MPI sends without asking first, so that nothing waits for an answer that is
    // behind other data.
    void call(MPI_Comm communicator, float* data, std::size_t count) override {
        constexpr std::size_t slice = 8 << 10;  // floats
        const auto sent = static_cast<std::size_t>(share_ * static_cast<double>(count));
        std::vector<MPI_Request> requests;
        for (std::size_t at = 0; at < sent; at += slice)
            MPI_Irecv(arriving_.data() + at, static_cast<int>(std::min(slice, sent - at)),
                      MPI_FLOAT, from_, 0, communicator, &requests.emplace_back());
        for (std::size_t at = 0; at < sent; at += slice)
            MPI_Isend(data, static_cast<int>(std::min(slice, sent - at)), MPI_FLOAT, to_, 0,
                      communicator, &requests.emplace_back());
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        if (!is_even_)  // the mean over all ranks counts those that send nothing, too
            MPI_Barrier(communicator);
    }

    const bool is_even_;
    std::vector<float> arriving_;
    int to_ = 0, from_ = 0;
    double share_ = 0;  // of an array, which this rank sends
};

}  // namespace

std::shared_ptr<Candidate> make_mpi_candidate(Rank& rank, std::size_t most) {
    int is_started = 0;
    MPI_Initialized(&is_started);
    return is_started != 0 ? std::make_shared<MpiCandidate>(rank, most) : nullptr;
}

std::shared_ptr<Candidate> make_link_limit(Rank& rank, std::size_t most) {
    if (!rank.job().has_several_hosts())
        return nullptr;
    const Placement placement =
        placement_of(Group::all(rank.job()), rank.job(), rank.rank(), std::nullopt);
    return std::make_shared<LinkLimit>(rank, placement, most);
}

bool is_built_with_mpi() {
    return true;
}

#else

std::shared_ptr<Candidate> make_mpi_candidate(Rank&, std::size_t) {
    return nullptr;
}

std::shared_ptr<Candidate> make_link_limit(Rank&, std::size_t) {
    return nullptr;
}

bool is_built_with_mpi() {
    return false;
}

#endif

}  // namespace ddp
