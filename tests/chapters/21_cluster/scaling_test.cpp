// Scaling: the prediction for known links, and a sleeping training on the ranks of one machine.
#include <cmath>

#include "21_cluster/simulated_all_reduce.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tools/cluster/scaling.hpp"

namespace ddp::test {
namespace {

const Program cluster_info(CLUSTER_INFO_PROGRAM,
                           {"--show", "scaling", "--quick", "--timeout", "30"});

Job job_on(const std::string& nodes) {
    Job job;
    for (const char node : nodes)
        job.members.push_back({std::string(1, node), 0, 0, 1});
    return job;
}

// A million bytes take a second within a node, and ten between nodes.
ClusterLinks known_links() {
    ClusterLinks links;
    for (const std::size_t bytes : {1'000'000, 2'000'000, 4'000'000}) {
        const double millions = static_cast<double>(bytes) / 1e6;
        links.inside.messages.push_back({bytes, millions});
        links.between.messages.push_back({bytes, 10 * millions});
    }
    return links;
}

// Returns the time of a message if the fit takes alpha from the first of them, and beta from the
// last.
double fitted(double alpha_s, double millions) {
    return alpha_s * (1 + 0.75 * millions);
}

}  // namespace

TEST_CASE("scaling: counts double, and end with all ranks") {
    REQUIRE(usual_counts(1) == std::vector<int>{1});
    REQUIRE(usual_counts(6) == std::vector<int>{1, 2, 4, 6});
    REQUIRE(usual_counts(8) == std::vector<int>{1, 2, 4, 8});
}

TEST_CASE("scaling: a sleeping step is as long as it should be, and can be shared") {
    const simulator::Step step = sleeping_step(0.4);
    REQUIRE(step.compute_s() == Approx(0.4));
    REQUIRE(step.forward_s == Approx(0.1));
    REQUIRE(step.buckets.size() == 8);
    REQUIRE(step.buckets[7].bytes == 512 << 10);
    simulator::Step half = shared_step(step, 0.5);
    REQUIRE(half.compute_s() == Approx(0.2));
    REQUIRE(half.buckets[3].bytes == 512 << 10);  // as many gradients as before
    half.optimizer_s = 0.3;
    REQUIRE(shared_step(half, 0.5).compute_s() == Approx(0.4));
}

TEST_CASE("scaling: predictions for links that are known") {
    const simulator::Step step{1, {{2, 4e6}}, 0.5};
    const ClusterLinks links = known_links();
    const auto predicted = [&](const std::string& nodes, int ranks, int levels = 2) {
        return predicted_step_s(step, job_on(nodes), ranks, links, levels);
    };
    REQUIRE(predicted("ab", 1) == Approx(3.5));
    // Two rounds of half of the bytes, behind backward.
    REQUIRE(predicted("aa", 2) == Approx(3.5 + 2 * fitted(1, 2)));
    REQUIRE(predicted("ab", 2) == Approx(3.5 + 2 * fitted(10, 2)));
    REQUIRE(predicted("abab", 2) == Approx(predicted("aa", 2)));  // node after node: ranks 0 and 2
    const simulator::Cluster cluster{2, 2, simulator::straight_link(1, 1 / 0.75e-6),
                                     simulator::straight_link(10, 1 / 7.5e-6)};
    const auto simulated = [&](simulator::Algorithm algorithm) {
        return simulator::all_reduce_s(algorithm, cluster, 4e6);
    };
    REQUIRE(predicted("aabb", 4, 1) == Approx(3.5 + simulated(simulator::Algorithm::flat)));
    REQUIRE(predicted("aabb", 4) == Approx(3.5 + simulated(simulator::Algorithm::two_level)));
    REQUIRE(std::isnan(predicted("aab", 3)));
}

TEST_CASE("scaling: sleeping ranks of one machine, weak and strong") {
    if (!processes_can_run_kernels(2))
        return;
    const ProgramRun run =
        cluster_info.run({"--ranks", "1,2", "--compute", "60ms", "--weak", "--strong"});
    REQUIRE(run.csv.rows.size() == 4);
    for (std::size_t row = 0; row < 4; row++) {
        const bool is_strong = row >= 2;
        const int ranks = row % 2 == 0 ? 1 : 2;
        const double ideal_s = is_strong ? 0.06 / ranks : 0.06;
        REQUIRE(run.csv.text(row, "scaling") == (is_strong ? "strong" : "weak"));
        REQUIRE(run.csv.text(row, "compute") == "sleep");
        REQUIRE(run.csv.number(row, "ranks") == ranks);
        REQUIRE(run.csv.number(row, "nodes") == 1);
        REQUIRE(run.csv.number(row, "ideal_s") == Approx(ideal_s));
        REQUIRE(run.csv.number(row, "step_s") >= ideal_s);
        REQUIRE(run.csv.number(row, "predicted_s") >= Approx(ideal_s));
    }
    REQUIRE(has(run.output, "Weak scaling: each rank sleeps for 60.0 ms in place of computing"));
    REQUIRE(has(run.output,
                "Strong scaling: the ranks share a sleep of 60.0 ms in place of computing"));
}

TEST_CASE("scaling: the network on two of three ranks") {
    if (!processes_can_run_kernels(3))
        return;
    const ProgramRun run = cluster_info.run({"--processes", "3", "--ranks", "2"});
    REQUIRE(run.csv.rows.size() == 1);
    REQUIRE(run.csv.text(0, "compute") == "network");
    REQUIRE(run.csv.text(0, "scaling") == "weak");
    REQUIRE(run.csv.number(0, "step_s") > 0);
    REQUIRE(run.csv.number(0, "predicted_s") >= run.csv.number(0, "ideal_s"));
}

TEST_CASE("scaling: what makes no sense is refused in one sentence") {
    REQUIRE(has(cluster_info.refusal({"--processes", "2", "--ranks", "1,4"}),
                "--ranks 4 are more than the 2 of this job: start more, or leave them out."));
    REQUIRE(has(cluster_info.refusal({"--ranks", "1,65"}),
                "--ranks 65 are more than the 64 that are started on one machine"));
    for (const char* wrong : {"40", "0ms", "1h", "11s"})
        REQUIRE(has(cluster_info.refusal({"--processes", "2", "--compute", wrong}),
                    "--compute needs a time from 1ms to 10s, such as 40ms, not '" +
                        std::string(wrong) + "'."));
}

}  // namespace ddp::test
