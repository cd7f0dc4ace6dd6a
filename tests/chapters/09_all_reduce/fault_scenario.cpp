// A program in which one rank fails in the way that a test asks for, in the middle of collectives.
// Then, in another run, all ranks make a fixed list of calls and print their bits.
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <iostream>

#include "09_all_reduce/communicator.hpp"
#include "tests/chapters/support/scenarios.hpp"

namespace {

using namespace ddp;

struct Fault {
    std::string what;
    int victim;
    int elements;
};

constexpr std::size_t arena_bytes = 8 << 20;

// Enqueues many calls, of which some are done when it returns and some are not.
void run_ahead(Communicator& communicator, ArenaBuffer<float>& data, Stream& stream) {
    for (int i = 0; i < 200; i++)
        communicator.all_reduce(data.data(), data.data(), data.size(), ReduceOp::average, stream,
                                "ahead");
    usleep(5000);
}

// Lets rank fault.victim fail before its second call. Returns false if it must make no further
// call.
bool do_wrong(const Fault& fault, Communicator& communicator, ArenaBuffer<float>& data,
              Stream& stream) {
    if (fault.what == "kill ahead" || fault.what == "stop ahead") {
        run_ahead(communicator, data, stream);
        raise(fault.what == "kill ahead" ? SIGKILL : SIGSTOP);
    }
    return ddp::test::misbehave(communicator.rank(), fault.what);
}

void act(Rank& rank, const Fault& fault) {
    rank.select_device();
    const auto own = make_native_communicator(rank, arena_bytes);
    Stream stream;
    const auto n = static_cast<std::size_t>(fault.elements);
    ArenaBuffer<float> data = own->allocate<float>(n), other = own->allocate<float>(10);
    data.copy_from(std::vector<float>(n, 1));
    other.copy_from(std::vector<float>(10, 1));
    rank.barrier();
    own->all_reduce(other.data(), other.data(), 10, ReduceOp::average, stream, "first");
    own->synchronize(stream);
    const bool is_victim = rank.rank() == fault.victim;
    if (is_victim && !do_wrong(fault, *own, data, stream))
        return;
    const std::string what = is_victim ? fault.what : "";
    if (!is_victim && fault.what.ends_with("ahead"))
        run_ahead(*own, data, stream);
    if (!is_victim && fault.what == "stop")
        usleep(300'000);  // the stopped rank must have been silent for longer than the time-out
    if (what == "order")
        own->all_reduce(other.data(), other.data(), 10, ReduceOp::sum, stream, "loss");
    own->all_reduce(data.data(), data.data(), what == "count" ? n - 1 : n,
                    what == "operation" ? ReduceOp::average : ReduceOp::sum, stream, "gradients");
    if (what != "order")
        own->all_reduce(other.data(), other.data(), 10, ReduceOp::sum, stream, "loss");
    own->synchronize(stream);
    rank.barrier();
}

// ---- The fixed list

// FNV-1a.
void add_bytes(std::uint64_t& hash, const void* data, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i++)
        hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1'099'511'628'211u;
}

template <class T>
std::vector<T> rounded_values(int rank, std::size_t count) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; i++)
        values[i] = static_cast<T>(
            static_cast<float>((i * 31 + static_cast<std::size_t>(rank) * 17) % 101) / 7);
    return values;
}

// Makes every call, one after the other, each on the results of those before, and hashes all
// results.
template <class T>
void add_calls(Communicator& communicator, std::size_t count, std::uint64_t& hash) {
    const int ranks = communicator.world_size();
    const auto all_count = count * static_cast<std::size_t>(ranks);
    Stream stream;
    ArenaBuffer<T> one = communicator.allocate<T>(count), two = communicator.allocate<T>(count);
    ArenaBuffer<T> all = communicator.allocate<T>(all_count);
    one.copy_from(rounded_values<T>(communicator.rank().rank(), count));
    two.copy_from(std::vector<T>(count));
    communicator.rank().barrier();
    communicator.all_gather(one.data(), all.data(), count, stream);
    communicator.all_reduce(one.data(), one.data(), count, ReduceOp::average, stream);
    communicator.reduce_scatter(all.data(), two.data(), count, ReduceOp::sum, stream);
    communicator.all_reduce(two.data(), two.data(), count, ReduceOp::sum, stream);
    communicator.reduce(two.data(), one.data(), count, ReduceOp::average, ranks - 1, stream);
    communicator.broadcast(one.data(), count, ranks - 1, stream);
    communicator.all_gather(one.data(), all.data(), count, stream);
    communicator.synchronize(stream);
    for (const ArenaBuffer<T>* result : {&one, &two, &all}) {
        const std::vector<T> host = result->to_host_now();
        add_bytes(hash, host.data(), host.size() * sizeof(T));
    }
}

void show_bits(Rank& rank) {
    const auto own = make_native_communicator(rank, arena_bytes);
    std::uint64_t hash = 14'695'981'039'346'656'037u;
    for (const std::size_t count : {10, 1009, 65'537}) {
        add_calls<float>(*own, count, hash);
        add_calls<__half>(*own, count, hash);
        add_calls<double>(*own, count, hash);
    }
    const std::vector<std::string> hashes = rank.all_gather(std::to_string(hash));
    if (rank.rank() != 0)
        return;
    for (const std::string& each : hashes)
        if (each != hashes[0])
            throw std::runtime_error("the ranks have different bits");
    std::cout << "bits of " << rank.world_size() << " ranks: " << hash << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
    ddp::test::ScenarioOptions asked{"nothing", 1};
    int elements = 5000;
    Options parser("fault_scenario", "Lets one rank fail, for the tests of faults.");
    asked.add_to(parser);
    parser.add_int("--elements", elements, {1, 100'000}, "in the call that goes wrong");
    const auto first = [&](Rank& rank) { act(rank, {asked.what, asked.victim, elements}); };
    return ddp::test::scenario_main(argc, argv, parser, asked, [&] {
        return ddp::test::ScenarioRuns{.first = first, .at_end = show_bits};
    });
}
