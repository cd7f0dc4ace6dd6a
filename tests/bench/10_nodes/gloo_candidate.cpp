#include "tests/bench/10_nodes/gloo_candidate.hpp"

#include <algorithm>
#include <limits>

#include "05_ranks/coordinator/connection.hpp"
#include "05_ranks/support/interfaces.hpp"
#include "common/report/options.hpp"
#include "common/report/process.hpp"
#include "tests/bench/10_nodes/benchmark_subprocess.hpp"

namespace ddp {
namespace {

// Returns the interface at whose address the other nodes reach this one: Gloo would take the one of
// the node's name, which may be the loopback.
std::string interface_of(const std::string& address) {
    for (const Interface& interface : interfaces_of_node())
        if (std::ranges::count(interface.addresses, address) > 0)
            return interface.name;
    return "lo";
}

class Gloo final : public Candidate {
  public:
    explicit Gloo(BenchmarkSubprocess subprocess)
        : Candidate("gloo", std::numeric_limits<std::size_t>::max()),
          subprocess_(std::move(subprocess)) {}

    // gloo.py has checked a sum of its own.
    bool gives_sums() const override { return false; }
    void load(const std::vector<float>&) override {}
    std::vector<float> result(std::size_t) override { return {}; }

    void run(std::size_t count, int times) override {
        seconds_ = subprocess_.ask("run " + std::to_string(count) + " " + std::to_string(times));
    }
    std::vector<double> seconds_of_each() override { return seconds_; }

  private:
    BenchmarkSubprocess subprocess_;
    std::vector<double> seconds_;
};

}  // namespace

std::shared_ptr<Candidate> make_gloo_candidate(Rank& rank, const std::string& python) {
    const std::vector<Member>& members = rank.job().members;
    // Where rank 0 is, a rank of another node knows, which has called it.
    const auto elsewhere = std::ranges::find_if(
        members, [&](const Member& member) { return member.node != members[0].node; });
    const std::string first =
        rank.broadcast(members[0].address, static_cast<int>(elsewhere - members.begin()));
    const std::string mine =
        rank.rank() == 0 ? first : members[static_cast<std::size_t>(rank.rank())].address;
    // A port that is free now: PyTorch's own store takes it.
    const std::uint16_t port =
        rank.broadcast(rank.rank() == 0 ? port_of(listen_at("", 0)) : std::uint16_t{0}, 0);
    std::optional<BenchmarkSubprocess> gloo = BenchmarkSubprocess::start(
        {python, find_in_book("tests/bench/10_nodes/gloo.py").value_or("gloo.py")},
        environment_with({"RANK=" + std::to_string(rank.rank()),
                          "WORLD_SIZE=" + std::to_string(rank.world_size()), "MASTER_ADDR=" + first,
                          "MASTER_PORT=" + std::to_string(port),
                          "GLOO_SOCKET_IFNAME=" + interface_of(mine), "OMP_NUM_THREADS=1",
                          "TORCH_CPP_LOG_LEVEL=ERROR"}),
        false);
    if (!gloo)
        throw OptionError("--gloo " + python +
                          ": the ranks of Gloo have not met; what it says stands above. It takes "
                          "a Python that has PyTorch, such as the one that ./book setup pytorch "
                          "fetches.");
    return std::make_shared<Gloo>(std::move(*gloo));
}

}  // namespace ddp
