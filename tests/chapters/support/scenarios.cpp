#include "tests/chapters/support/scenarios.hpp"

#include <csignal>
#include <iostream>

#include "tests/chapters/support/worlds.hpp"

namespace ddp::test {

void ScenarioOptions::add_to(Options& parser) {
    parser.add_text("--what", what, "what the ranks do");
    parser.add_int("--victim", victim, {0, 64}, "which rank does something else");
    parser.add_flag("--catch", catches, "the failure is shown on purpose");
}

int scenario_main(int argc, char** argv, Options& parser, ScenarioOptions& asked,
                  const std::function<ScenarioRuns()>& runs) {
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions&) {
        const ScenarioRuns all = runs();
        const auto run = [&world](const std::function<void(Rank&)>& work) {
            world.run([&work](Rank& rank) {
                rank.select_device();
                work(rank);
            });
        };
        for (int i = 0; i < all.repeat; i++) {
            try {
                run(all.first);
            } catch (const RunFailed& failure) {
                if (!asked.catches)
                    throw;
                if (world.has_rank_0())
                    std::cout << "caught: " << failure.what() << std::endl;
                if (all.after_failure)
                    run(all.after_failure);
            }
        }
        if (all.at_end)
            run(all.at_end);
        return 0;
    });
}

bool misbehave(Rank& rank, const std::string& what) {
    if (what == "throw")
        throw std::runtime_error("broken on purpose");
    if (what == "kill")
        raise(SIGKILL);
    if (what == "stop")
        raise(SIGSTOP);
    if (what == "late")
        wait_for_failure(rank);
    return what != "absent";
}

void show_all(Rank& rank, const std::string& label, const std::string& mine) {
    std::string all;
    for (const std::string& each : rank.all_gather(mine))
        all += " " + each;
    if (rank.rank() == 0)
        std::cout << label << all << std::endl;
}

}  // namespace ddp::test
