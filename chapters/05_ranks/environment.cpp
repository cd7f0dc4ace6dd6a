#include "05_ranks/environment.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>

#include "common/report/process.hpp"

namespace ddp {
namespace {

bool is_set(const char* name) {
    return std::getenv(name) != nullptr;
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

// Returns the word of a job that was given none: two jobs whose ranks are the same program with the
// same options have the same one.
std::string word_of_command() {
    std::ifstream file("/proc/self/cmdline");
    std::string command(std::istreambuf_iterator<char>(file), {});
    command.erase(0, command.rfind('/', command.find('\0')) + 1);  // its folder may differ by node
    return std::to_string(std::hash<std::string>()(command));
}

// Returns the variable as a number. Throws OptionError if it is not one from `least` to `most`.
int number_of(const char* name, int least, int most) {
    const std::string text = variable(name);
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
        throw OptionError("The environment variable " + std::string(name) + " is '" + text +
                          "'; it must be a whole number from " + std::to_string(least) + " to " +
                          std::to_string(most) + ".");
    return value;
}

// Returns whether srun started several processes without PMIx, by which they would find each other.
// (A batch script, and a shell of one task, have variables of Slurm too, but are alone.)
bool srun_forgot_pmix() {
    const bool is_alone = variable("SLURM_STEP_NUM_TASKS") == "1" ||
                          (is_set("SLURM_JOB_ID") && !is_set("SLURM_STEP_ID"));
    return is_set("SLURM_PROCID") && !is_alone;
}

// Throws if the options ask for a number of ranks where `starter` has set one.
void refuse_numbers(const CommonOptions& options, const std::string& starter) {
    if (options.ranks || options.processes)
        throw OptionError((options.ranks ? "--ranks" : "--processes") +
                          std::string(" contradicts ") + starter +
                          ", which has already decided how many ranks there are: leave it out.");
}

}  // namespace

StartedBy find_starter(const CommonOptions& options) {
    const int ranks = options.ranks.value_or(options.processes.value_or(1));
    if (ranks < 1 || ranks > max_ranks)
        throw OptionError((options.ranks ? "--ranks " : "--processes ") + std::to_string(ranks) +
                          " is out of range: one machine takes 1 to " + std::to_string(max_ranks) +
                          " ranks.");
    if (is_set("OMPI_COMM_WORLD_SIZE") || is_set("PMIX_RANK")) {
        refuse_numbers(options, is_set("OMPI_COMM_WORLD_SIZE") ? "mpirun" : "srun");
        return StartedBy::mpi;
    }
    if (is_set("RANK") || is_set("WORLD_SIZE")) {
        const int world_size = read_launch_variables().world_size;
        if (options.processes != world_size)  // ranks of our launcher have its --processes
            refuse_numbers(options, "the environment variable WORLD_SIZE");
        return StartedBy::variables;
    }
    if (srun_forgot_pmix())
        throw OptionError(
            "srun has started this process without a way to find the others: use "
            "srun --mpi=pmix.");
    return StartedBy::none;
}

LaunchVariables read_launch_variables() {
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
        if (!is_set(name))
            throw OptionError("The environment variable " + std::string(name) +
                              " is not set, but others of RANK, WORLD_SIZE, MASTER_ADDR and "
                              "MASTER_PORT are: a process of a job needs all four.");
    LaunchVariables variables;
    variables.world_size = number_of("WORLD_SIZE", 1, 1'000'000);
    variables.rank = number_of("RANK", 0, variables.world_size - 1);
    const std::string word = variable("TORCHELASTIC_RUN_ID");
    variables.endpoint = {{variable("MASTER_ADDR")},
                          static_cast<std::uint16_t>(number_of("MASTER_PORT", 1, 65535)),
                          word.empty() ? word_of_command() : word};
    // A node's own name does not count: there it may stand for 127.0.1.1, and elsewhere for another
    // address.
    const std::string& address = variables.endpoint.addresses.front();
    if (address == "localhost" || address.starts_with("127."))
        variables.loopback = address == "localhost" ? "127.0.0.1" : address;
    if (is_set("DDP_LISTENER"))
        variables.listener = number_of("DDP_LISTENER", 0, 1'000'000);
    // With --max-restarts the same store serves every attempt: each has a key of its own.
    if (variable("TORCHELASTIC_USE_AGENT_STORE") == "True")
        variables.store_key = "ddp_by_hand/" + word + "/attempt_" +
                              variable("TORCHELASTIC_RESTART_COUNT") + "/rank_0";
    return variables;
}

// 64 random bits: two jobs on the same machine will not get the same ones.
std::string new_job_name() {
    std::random_device random;
    std::string name;
    for (int i = 0; i < 16; i++)
        name += "0123456789abcdef"[random() % 16];
    return name;
}

bool prints_refusals() {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"})
        if (is_set(name))
            return variable(name) == "0";
    if (is_set("RANK") || is_set("WORLD_SIZE"))
        try {
            return read_launch_variables().rank == 0;
        } catch (const OptionError&) {
            return true;
        }
    return !is_set("SLURM_PROCID") || variable("SLURM_PROCID") == "0";
}

std::string node_name() {
    if (const char* given = std::getenv("DDP_NODE"))
        return given;
    return host_name();
}

}  // namespace ddp
