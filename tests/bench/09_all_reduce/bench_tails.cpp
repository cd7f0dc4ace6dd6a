// Which calls of an all-reduce take long, and what keeps them: notes after each call who has had
// the core, on every rank, and lets every rank's host look at nothing but the clock for as long.
//
//     calls    │ 3 us │ 3 us │ 3 us │      60 us: own host      │ 3 us │ 3 us │
//     clock    │......................... 20 us: a pause ...................... │
//
// Other programs, interrupts and the hypervisor interrupt both: such pauses are the machine's.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <limits>

#include "05_ranks/rendezvous.hpp"
#include "05_ranks/world.hpp"
#include "09_all_reduce/communicator.hpp"
#include "common/report/csv.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"
#include "tests/bench/09_all_reduce/call_times.hpp"

namespace {

using namespace ddp;

constexpr double slow = 8;  // times the median

struct Settings {
    std::vector<int> sizes{4, 16, 64, 256, 1024};  // KiB
    int calls = 500;                               // in a row
    int rounds = 20;
};

// Returns the seconds that the hypervisor has taken from this machine's cores (proc(5), steal).
double stolen_s() {
    std::ifstream file("/proc/stat");
    std::string name;
    file >> name;
    double hundredths = 0;
    for (int column = 0; column < 8; column++)
        file >> hundredths;
    return hundredths / 100;
}

// Returns the pauses, in microseconds, of a loop that only reads the clock for as long as `us`.
std::vector<double> pauses_of_clock(double us) {
    using Clock = std::chrono::steady_clock;
    std::vector<double> pauses;
    const Clock::time_point begin = Clock::now();
    for (Clock::time_point last = begin;
         last - begin < std::chrono::duration<double, std::micro>(us);) {
        const Clock::time_point now = Clock::now();
        if (const double pause = std::chrono::duration<double, std::micro>(now - last).count();
            pause > 1)
            pauses.push_back(pause);
        last = now;
    }
    return pauses;
}

// Returns what each rank has, by rank.
template <class T>
std::vector<std::vector<T>> gather(Rank& rank, const std::vector<T>& options) {
    std::vector<std::vector<T>> all;
    for (const std::string& bytes : rank.all_gather(std::string(
             reinterpret_cast<const char*>(options.data()), options.size() * sizeof(T)))) {
        all.emplace_back(bytes.size() / sizeof(T));
        std::memcpy(all.back().data(), bytes.data(), bytes.size());
    }
    return all;
}

class Tails {
  public:
    Tails(Rank& rank, const Settings& options)
        : rank_(rank),
          mine_(options),
          most_(static_cast<std::size_t>(*std::ranges::max_element(options.sizes)) * 1024 /
                sizeof(float)),
          communicator_(make_native_communicator(rank, most_ * sizeof(float))),
          data_(communicator_->allocate<float>(most_)),
          ends_(static_cast<std::size_t>(options.calls) + 1) {}

    // All ranks call it; all get the same.
    CallTimes measure(std::size_t bytes) {
        CallTimes times;
        for (int round = 0; round <= mine_.rounds; round++) {
            const std::vector<std::vector<ThreadUse>> calls =
                gather(rank_, run_calls(bytes / sizeof(float)));
            if (round == 0)
                continue;  // first touches
            const double batch_us = add_calls(times, calls);
            rank_.barrier();
            times.clock_us += batch_us * rank_.world_size();
            for (const std::vector<double>& pauses : gather(rank_, pauses_of_clock(batch_us)))
                for (const double pause : pauses) {
                    times.pauses[bucket_of(pause)]++;
                    times.pauses_us += pause;
                }
        }
        return times;
    }

  private:
    // The end of the first call is where the others begin.
    std::vector<ThreadUse> run_calls(std::size_t count) {
        rank_.barrier();
        ends_.restart();
        for (int call = 0; call <= mine_.calls; call++)
            communicator_->all_reduce(data_.data(), data_.data(), count, ReduceOp::sum, stream_);
        communicator_->synchronize(stream_);
        return ends_.between();
    }

    // Returns the time of all of them.
    double add_calls(CallTimes& times, const std::vector<std::vector<ThreadUse>>& calls) {
        double sum_us = 0;
        for (std::size_t call = 0; call < calls[0].size(); call++) {
            std::vector<ThreadUse> ranks;
            for (const std::vector<ThreadUse>& rank : calls)
                ranks.push_back(rank.at(call));
            times.us.push_back(static_cast<double>(ranks[0].clock_ns) * 1e-3);
            times.causes.push_back(cause_of(ranks));
            sum_us += times.us.back();
        }
        return sum_us;
    }

    Rank& rank_;
    const Settings& mine_;
    const std::size_t most_;
    const std::unique_ptr<Communicator> communicator_;
    ArenaBuffer<float> data_;
    Stream stream_;
    KernelEnds ends_;
};

std::string per_thousand(std::size_t count, std::size_t of) {
    return format_fixed(1000.0 * static_cast<double>(count) / static_cast<double>(of), 2);
}

void add_row(Table& table, std::size_t bytes, const CallTimes& times) {
    const double middle = median(times.us), p99 = quantile(times.us, 0.99);
    std::vector<std::string> row{format_bytes(static_cast<double>(bytes)), format_fixed(middle, 1),
                                 format_fixed(p99, 1), format_fixed(p99 / middle, 1)};
    for (const Cause cause : all_causes)
        row.push_back(per_thousand(times.longer_than(slow * middle, cause), times.us.size()));
    row.push_back(format_fixed(100 * times.pauses_us / times.clock_us, 2) + " %");
    table.row(row);
}

void write_rows(CsvWriter& csv, int ranks, std::size_t bytes, const CallTimes& times) {
    const auto write = [&](const std::string& what, const Histogram& histogram) {
        for (const auto& [bucket, count] : histogram)
            csv.row({ranks, bytes, what, begin_us(bucket), begin_us(bucket + 1), count});
    };
    for (const Cause cause : all_causes) {
        Histogram histogram;
        for (std::size_t i = 0; i < times.us.size(); i++)
            if (times.causes[i] == cause)
                histogram[bucket_of(times.us[i])]++;
        write(to_string(cause), histogram);
    }
    write("clock", times.pauses);
}

void report(World& world, const Settings& options, const CommonOptions& common) {
    CsvWriter csv(world.has_rank_0() ? common.csv : "",
                  {"ranks", "bytes", "what", "from_us", "to_us", "count"});
    std::vector<std::string> header{"size", "median (us)", "p99 (us)", "p99 / median"};
    for (const Cause cause : all_causes)
        header.push_back(to_string(cause));
    header.push_back("clock");
    Table table("All-reduces on " + format_count(world.world_size(), "rank") +
                    ": slow calls of a thousand, by what kept them",
                header);
    const double stolen = stolen_s();
    world.run([&](Rank& rank) {
        rank.select_device();
        Tails tails(rank, options);
        for (const int size : options.sizes) {
            const std::size_t bytes = static_cast<std::size_t>(size) << 10;
            const CallTimes times = tails.measure(bytes);
            if (rank.rank() == 0) {
                add_row(table, bytes, times);
                write_rows(csv, rank.world_size(), bytes, times);
            }
        }
        rank.barrier();  // nobody frees what another one still reads
    });
    table.note("Slow: longer than " + format_fixed(slow, 0) +
               " medians. own host: the rank's host thread enqueued the next calls on the kernel's "
               "core; others: another program had it; nothing: the kernel had it.");
    table.note(
        "clock: the time that a loop loses which only reads the clock, on the same cores in "
        "the same minutes. The hypervisor took " +
        format_seconds(stolen_s() - stolen) + ".");
    if (world.has_rank_0())
        std::cout << table << std::endl;
}

int run(int argc, char** argv) {
    Settings options;
    Options parser("bench_tails", "Which calls of an all-reduce take long, and what keeps them?");
    parser.add_ints("--sizes", options.sizes, {1, 1 << 16}, "KiB of the arrays");
    parser.add_int("--calls", options.calls, {1, 100'000}, "in a row");
    parser.add_int("--rounds", options.rounds, {1, 1000}, "such rows of each size");
    parser.with_quick("--rounds", [&] { options.rounds = 2; });
    parser.refuse({"--ranks", "--link", "--seed", "--data", "--trace"},
                  "each rank is a process here, as many as --processes says, whose threads the "
                  "system counts; nothing is random, read or simulated");
    parser.example("--processes 4 --sizes 4,1024", "four ranks, a short and a long array");
    CommonOptions common = parser.parse(argc, argv);
    if (find_starter(common) == StartedBy::none) {
        if (!common.processes)
            common.processes = 2;
        return launch_processes(common, argv).value();
    }
    World world(common);
    report(world, options, common);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
