// A program that calls a communicator as a test asks for, and prints the results.
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <iostream>
#include <limits>

#include "10_nodes/make_communicator.hpp"
#include "tests/chapters/09_all_reduce/all_calls.hpp"
#include "tests/chapters/09_all_reduce/late_kernel.hpp"
#include "tests/chapters/support/collective_values.hpp"
#include "tests/chapters/support/scenarios.hpp"

namespace {

using namespace ddp;
using ddp::test::number_of, ddp::test::numbers_of;

// All ranks sum, but rank `victim` does something else.
void act(Rank& rank, const std::string& kind, const std::string& what, int victim) {
    const std::unique_ptr<Communicator> communicator = make_communicator(kind, rank, 16 << 20);
    Stream stream;
    constexpr std::size_t count = 3'000'000;  // cut into several slices
    ArenaBuffer<float> data = communicator->allocate<float>(count);
    const auto sum = [&](std::size_t size, ReduceOp op, const std::string& name) {
        communicator->all_reduce(data.data(), data.data(), size, op, stream, name);
    };
    sum(count, ReduceOp::sum, "first");
    communicator->synchronize(stream);
    if (rank.rank() == victim) {
        if (what == "absent")
            sleep(3);
        if (what == "throw") {
            sum(count, ReduceOp::sum, "weights");
            throw std::runtime_error("broken on purpose");
        }
        ddp::test::misbehave(rank, what == "kill" || what == "stop" ? what : "");
        if (what == "kill inside") {
            for (int i = 0; i < 50; i++)
                sum(count, ReduceOp::sum, "weights");
            usleep(20'000);
            raise(SIGKILL);
        }
        if (what == "count")
            sum(count - 1, ReduceOp::sum, "weights");
        if (what == "op")
            sum(count, ReduceOp::average, "weights");
        if (what == "name")
            sum(count, ReduceOp::sum, "biases");
        if (what == "message")
            communicator->send(data.data(), 5, victim == 0 ? 1 : 0, stream, "mine");
    } else {
        for (int i = 0; i < (what == "kill inside" ? 50 : 1); i++)
            sum(count, ReduceOp::sum, "weights");
    }
    communicator->synchronize(stream);
    rank.barrier();
}

// Two ranks send to each other; the others have nothing to do.
void send_both(Rank& rank, const std::string& kind) {
    const std::unique_ptr<Communicator> communicator = make_communicator(kind, rank, 1 << 16);
    Stream stream;
    ArenaBuffer<float> data = communicator->allocate<float>(100);
    if (rank.rank() < 2)
        communicator->send(data.data(), 100, 1 - rank.rank(), stream, "mine");
    communicator->synchronize(stream);
    rank.barrier();
}

// Each rank sends to the next one and receives from the one before, on two streams, in the order
// that communicator.hpp gives. Returns how many numbers are wrong.
int wrong_of_shift(Rank& rank, const std::string& kind) {
    const std::unique_ptr<Communicator> communicator = make_communicator(kind, rank, 1 << 16);
    const int ranks = rank.world_size(), before = (rank.rank() + ranks - 1) % ranks;
    const auto number = [](int r, std::size_t i) {
        return 1000 * static_cast<float>(r) + static_cast<float>(i);
    };
    constexpr std::size_t count = 100;
    ArenaBuffer<float> mine = communicator->allocate<float>(count);
    ArenaBuffer<float> theirs = communicator->allocate<float>(count);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; i++)
        values[i] = number(rank.rank(), i);
    mine.copy_from(values);
    Stream sends, receives;
    for (const bool is_send : {rank.rank() == 0, rank.rank() != 0})
        if (is_send)
            communicator->send(mine.data(), count, (rank.rank() + 1) % ranks, sends, "shift");
        else
            communicator->receive(theirs.data(), count, before, receives, "shift");
    communicator->synchronize(sends);
    communicator->synchronize(receives);
    values = theirs.to_host_now();
    int wrong = 0;
    for (std::size_t i = 0; i < count; i++)
        wrong += values[i] != number(before, i);
    return wrong;
}

// Makes calls that make no sense; rank 0 prints their errors.
void show_refusals(Rank& rank, const std::string& kind) {
    const std::unique_ptr<Communicator> communicator = make_communicator(kind, rank, 1 << 16);
    Stream stream;
    ArenaBuffer<unsigned char> bytes = communicator->allocate<unsigned char>(100);
    Buffer<float> elsewhere(10);
    const auto refused = [&](const auto& call) {
        try {
            call();
        } catch (const std::invalid_argument& error) {
            if (rank.rank() == 0)
                std::cout << "refused: " << error.what() << std::endl;
        }
    };
    refused(
        [&] { communicator->all_reduce(bytes.data(), bytes.data(), 100, ReduceOp::sum, stream); });
    refused([&] {
        communicator->all_reduce(elsewhere.data(), elsewhere.data(), 10, ReduceOp::sum, stream,
                                 "mine");
    });
    refused([&] { communicator->all_gather(bytes.data(), bytes.data(), 100'000, stream); });
    refused([&] { communicator->send(bytes.data(), 1, rank.rank(), stream); });
    refused([&] { communicator->broadcast(bytes.data(), 1, rank.world_size(), stream); });
}

// A NaN on one rank reaches every rank, whatever the other ranks have. Returns how many elements
// are wrong on this rank, as the functions below do.
int wrong_of_nan(Communicator& communicator, Stream& stream) {
    const int ranks = communicator.world_size();
    std::vector<float> values = numbers_of<float>(communicator.rank().rank(), 0, 0, 100);
    if (communicator.rank().rank() == ranks - 1)
        values[42] = std::numeric_limits<float>::quiet_NaN();
    int wrong = 0;
    for (const ReduceOp op : ddp::test::all_ops) {
        ArenaBuffer<float> data = communicator.allocate<float>(values.size());
        data.copy_from(values);
        communicator.all_reduce(data.data(), data.data(), values.size(), op, stream);
        communicator.synchronize(stream);
        const std::vector<float> result = data.to_host_now();
        for (std::size_t i = 0; i < values.size(); i++)
            wrong += std::isnan(result[i]) != (i == 42);
    }
    return wrong;
}

// Makes all calls, which MPI may sum in any order.
int wrong_of_all_calls(Rank& rank, const std::string& kind, const std::vector<std::size_t>& counts,
                       std::size_t large) {
    const int ranks = rank.world_size();
    const std::unique_ptr<Communicator> communicator =
        make_communicator(kind, rank, ddp::test::arena_bytes_for(ranks, counts, large));
    std::size_t wrong = communicator->kind() != kind;
    for (const ddp::test::CallResult& result :
         ddp::test::make_all_calls(*communicator, counts, large, ddp::test::any_order(ranks)))
        wrong += result.wrong;
    Stream stream;
    return static_cast<int>(wrong) + wrong_of_nan(*communicator, stream);
}

// Checks that a collective waits for the kernel that writes its input, that a kernel enqueued after
// the collective waits for it, and that the host waits for neither.
int wrong_of_order(Rank& rank, const std::string& kind) {
    const std::unique_ptr<Communicator> communicator = make_communicator(kind, rank, 16 << 20);
    Stream stream, other;
    constexpr std::size_t count = 600'000;
    ArenaBuffer<float> data = communicator->allocate<float>(count);
    data.copy_from(numbers_of<float>(rank.rank(), 0, 0, count));
    ddp::test::add_late(data.data(), count, 1, stream);
    communicator->all_reduce(data.data(), data.data(), count, ReduceOp::sum, stream);
    ddp::test::add_late(data.data(), count, 100, stream);
    // On another stream, but after all of that.
    Event event;
    event.record(stream);
    other.wait(event);
    communicator->all_reduce(data.data(), data.data(), count, ReduceOp::maximum, other);
    communicator->synchronize(other);
    const std::vector<float> sums =
        ddp::test::reduced_numbers<float>(rank.world_size(), 0, 0, count, ReduceOp::sum);
    const std::vector<float> values = data.to_host_now();
    int wrong = 0;
    for (std::size_t i = 0; i < count; i++)
        wrong += values[i] != sums[i] + static_cast<float>(rank.world_size()) + 100;
    return wrong;
}

// Calls two communicators, in one order on half of the ranks and in the other order on the rest:
// the two must not wait for each other. (One is over a group of all ranks in another order.)
int wrong_of_two(Rank& rank, const std::string& kind) {
    std::vector<int> exchanged = Group::all(rank.job()).ranks();  // the last rank keeps its index
    std::swap(exchanged[0], exchanged[1]);
    const std::unique_ptr<Communicator> communicators[] = {
        make_communicator(kind, rank, 8 << 20),
        make_communicator(kind, rank, 8 << 20, {.group = Group(exchanged)})};
    Stream streams[2];
    ArenaBuffer<int> data[2];
    constexpr std::size_t count = 800'000;
    for (const std::size_t i : {0, 1}) {
        data[i] = communicators[i]->allocate<int>(count);
        data[i].copy_from(numbers_of<int>(rank.rank() + static_cast<int>(i), 0, 0, count));
    }
    for (int round = 0; round < 3; round++)
        for (const std::size_t turn : {0, 1}) {
            const std::size_t i = rank.rank() % 2 == 0 ? turn : 1 - turn;
            communicators[i]->all_reduce(data[i].data(), data[i].data(), count, ReduceOp::sum,
                                         streams[i]);
        }
    int wrong = 0;
    const int ranks = rank.world_size();
    for (const std::size_t i : {0, 1}) {
        communicators[i]->synchronize(streams[i]);
        const std::vector<int> values = data[i].to_host_now();
        for (std::size_t k = 0; k < count; k++) {
            int sum = 0;
            for (int r = 0; r < ranks; r++)
                sum += number_of<int>(r + static_cast<int>(i), 0, k);
            wrong += values[k] != sum * ranks * ranks;  // summed three times
        }
    }
    return wrong;
}

void show_wrong(Rank& rank, int wrong) {
    ddp::test::show_all(rank, "wrong:", std::to_string(wrong));
}

}  // namespace

int main(int argc, char** argv) {
    ddp::test::ScenarioOptions asked{"calls"};
    std::string kind = "mpi";
    Options parser("mpi_scenario",
                   "Calls and failures for the tests of the communicator over MPI.");
    asked.add_to(parser);
    parser.add_text("--kind", kind, "which communicator");
    const auto first = [&](Rank& rank) {
        const auto n = static_cast<std::size_t>(rank.world_size());
        if (asked.what == "calls")  // large arrays are cut into several slices, the last is short
            show_wrong(rank, wrong_of_all_calls(rank, kind, {0, 1, n - 1, n, n + 1, 127, 10'007},
                                                600'011));
        else if (asked.what == "order")
            show_wrong(rank, wrong_of_order(rank, kind));
        else if (asked.what == "two")
            show_wrong(rank, wrong_of_two(rank, kind));
        else if (asked.what == "shift")
            show_wrong(rank, wrong_of_shift(rank, kind));
        else if (asked.what == "refusals")
            show_refusals(rank, kind);
        else if (asked.what == "sends")
            send_both(rank, kind);
        else
            act(rank, kind, asked.what, asked.victim);
    };
    const auto anew = [&](Rank& rank) {
        const auto n = static_cast<std::size_t>(rank.world_size());
        // Large arrays take long: they follow one kind of failure.
        const std::size_t large = asked.what == "count" ? 600'011 : n;
        show_wrong(rank, wrong_of_all_calls(rank, kind, {n + 1}, large));
    };
    return ddp::test::scenario_main(argc, argv, parser, asked, [&] {
        return ddp::test::ScenarioRuns{.first = first, .after_failure = anew};
    });
}
