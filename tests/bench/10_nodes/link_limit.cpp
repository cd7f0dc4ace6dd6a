#include "tests/bench/10_nodes/link_limit.hpp"

#include "10_nodes/make_communicator.hpp"
#include "10_nodes/placement.hpp"
#if defined(DDP_MPI)
#include "tests/bench/09_all_reduce/mpi_caller.hpp"
#endif

namespace ddp {

#if defined(DDP_MPI)

namespace {

// The bytes that every node has to send, and nothing else: the ranks with the same place on their
// nodes send an equal share of it to the next node. (Where nodes have different numbers of ranks,
// as many of each take part as the smallest has.)
//
//     node 0    rank 0   rank 1          each: 2 (H - 1) / H of the array, by L ranks
//                 │        │
//     node 1    rank 2   rank 3 ──▶ ... ──▶ node 0
class LinkLimit final : public MpiCaller {
  public:
    LinkLimit(Rank& rank, const Placement& placement, std::size_t most)
        : MpiCaller(rank, limit_name, most), is_even_(placement.is_even()), arriving_(2 * most) {
        const auto nodes = static_cast<int>(placement.sizes.size());
        std::vector<int> firsts{0};  // of each node, in by_node
        for (const int size : placement.sizes)
            firsts.push_back(firsts.back() + size);
        const int mine = static_cast<int>(std::ranges::upper_bound(firsts, placement.position) -
                                          firsts.begin()) -
                         1;
        const int place = placement.position - firsts[static_cast<std::size_t>(mine)];
        const int senders = *std::ranges::min_element(placement.sizes);
        if (place >= senders)
            return;  // this rank sends nothing
        const auto rank_on = [&](int node) {
            const int first = firsts[static_cast<std::size_t>(node % nodes)];
            return placement.by_node[static_cast<std::size_t>(first + place)];
        };
        to_ = rank_on(mine + 1);
        from_ = rank_on(mine + nodes - 1);
        share_ = 2.0 * (nodes - 1) / nodes / senders;
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

std::shared_ptr<Candidate> make_link_limit(Rank& rank, std::size_t most) {
    int is_started = 0;
    MPI_Initialized(&is_started);
    if (is_started == 0 || !rank.job().has_several_nodes())
        return nullptr;
    const Placement placement =
        placement_of(Group::all(rank.job()), rank.job(), rank.rank(), std::nullopt);
    return std::make_shared<LinkLimit>(rank, placement, most);
}

#else

std::shared_ptr<Candidate> make_link_limit(Rank&, std::size_t) {
    return nullptr;
}

#endif

std::string link_limit_text() {
    return "every node sends 2 (H - 1) / H of an array to the next of the H nodes, all at once, "
           "and "
           "nothing is added. Fewer bytes cannot leave a node.";
}

std::vector<std::shared_ptr<Candidate>> make_candidates_over_nodes(Rank& rank, std::size_t most,
                                                                   const AllReduceOrder& order) {
    std::vector<std::shared_ptr<Candidate>> all;
    if (auto link = make_link_limit(rank, most))
        all.push_back(std::move(link));
    if (auto mpi = make_mpi_candidate(rank, most))
        all.push_back(std::move(mpi));
    all.push_back(make_communicator_candidate(
        make_communicator("native", rank, most * sizeof(float), {.order = order}), most));
    rank.barrier();
    return all;
}

}  // namespace ddp
