// A program that calls a communicator as a test asks for, and prints the results.
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "10_nodes/make_communicator.hpp"
#include "tests/chapters/09_all_reduce/exact_calls.hpp"
#include "tests/chapters/support/scenarios.hpp"

namespace {

using namespace ddp;

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
        if (asked.what == "calls")
            show_wrong(rank, ddp::test::wrong_of_all_calls(rank, kind, false) +
                                 ddp::test::wrong_of_large_calls(rank, kind));
        else if (asked.what == "order")
            show_wrong(rank, ddp::test::wrong_of_order(rank, kind));
        else if (asked.what == "two")
            show_wrong(rank, ddp::test::wrong_of_two(rank, kind));
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
        int wrong = ddp::test::wrong_of_all_calls(rank, kind, true);
        if (asked.what == "count")  // large arrays take long: they follow one kind of failure
            wrong += ddp::test::wrong_of_large_calls(rank, kind);
        show_wrong(rank, wrong);
    };
    return ddp::test::scenario_main(argc, argv, parser, asked, [&] {
        return ddp::test::ScenarioRuns{.first = first, .after_failure = anew};
    });
}
