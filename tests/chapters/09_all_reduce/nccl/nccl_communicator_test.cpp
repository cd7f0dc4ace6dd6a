// The communicator over NCCL without a GPU, over an NCCL that is played (played_nccl.hpp): the bits
// of all its calls, what NCCL is asked for, and what becomes of the run when each of NCCL's calls
// fails.
#include <atomic>
#include <iostream>

#include "tests/support/catch.hpp"

#if !defined(DDP_PLAYED_NCCL)

TEST_CASE("the communicator over a played NCCL") {
    std::cout
        << "SKIPPED: the communicator over a played NCCL (no nccl.h here, or this is a CUDA build)"
        << std::endl;
}

#else

#include "tests/chapters/09_all_reduce/all_calls.hpp"
#include "tests/chapters/09_all_reduce/late_kernel.hpp"
#include "tests/chapters/09_all_reduce/nccl/played_nccl.hpp"
#include "tests/chapters/support/worlds.hpp"

namespace ddp {

// What make_nccl_communicator is called in the copy of its file that takes the played NCCL.
std::unique_ptr<Communicator> make_nccl_communicator_played(Rank& rank, std::size_t arena_bytes,
                                                            std::optional<Group> group);

namespace test {
namespace {

using Texts = std::vector<std::string>;
using Work = std::function<void(Communicator&, Stream&)>;

std::unique_ptr<Communicator> over_nccl(Rank& rank, std::size_t arena_bytes,
                                        std::optional<Group> group = std::nullopt) {
    rank.select_device();
    return make_nccl_communicator_played(rank, arena_bytes, std::move(group));
}

// Returns the first cause of failure of `ranks` ranks that do `work` with a communicator of all.
std::string failure_over_nccl(int ranks, const Work& work, double timeout_s = 30) {
    World world(thread_options(ranks, timeout_s));
    return failure_of(world, [&](Rank& rank) {
        const auto communicator = over_nccl(rank, 1 << 20);
        Stream stream;
        work(*communicator, stream);
        communicator->synchronize(stream);
    });
}

void sum_ten(Communicator& communicator, Stream& stream) {
    ArenaBuffer<float> data = communicator.allocate<float>(10);
    data.copy_from(std::vector<float>(10, 1));
    communicator.all_reduce(data.data(), data.data(), 10, ReduceOp::sum, stream, "x");
    communicator.synchronize(stream);
}

}  // namespace

TEST_CASE("every call over NCCL has the bits of the native communicator") {
    const std::vector<std::size_t> counts{0, 1, 3, 130};
    for (const int ranks : {1, 2, 3}) {
        const PlayedNccl nccl;
        std::atomic<std::size_t> wrong = 0;
        World world(thread_options(ranks));
        world.run([&](Rank& rank) {
            const std::size_t bytes = arena_bytes_for(ranks, counts, 5003);
            const OrderOfSums order = order_on_one_node(ranks);
            std::vector<CallResult> results[2];
            {
                const auto communicator = over_nccl(rank, bytes);
                wrong += communicator->kind() != "nccl" || communicator->world_size() != ranks;
                results[0] = make_all_calls(*communicator, counts, 5003, order);
            }
            results[1] =
                make_all_calls(*make_native_communicator(rank, bytes), counts, 5003, order);
            for (std::size_t i = 0; i < results[1].size(); i++)
                wrong += results[0].at(i).wrong + (results[0].at(i).bits != results[1][i].bits);
        });
        CAPTURE(ranks);
        REQUIRE(wrong == 0);
        REQUIRE(nccl.calls().size() > 400 * static_cast<std::size_t>(ranks));
        REQUIRE(nccl.complaints() == Texts{});
    }
}

TEST_CASE(
    "NCCL is asked for what the program asks for: communicator, stream, data, count, type, "
    "operation, root, order") {
    const PlayedNccl nccl;
    std::atomic<int> wrong = 0;
    std::array<std::atomic<int>, 4> numbers;  // of each rank's communicator
    World world(thread_options(4));
    world.run([&](Rank& rank) {
        // Roots and peers are indices in the group, where rank 3 and rank 2 are the first.
        const auto communicator =
            over_nccl(rank, 1 << 20, rank.rank() % 2 == 1 ? Group({3, 1}) : Group({2, 0}));
        const int me = communicator->index();
        Stream one, other;
        ArenaBuffer<double> a = communicator->allocate<double>(64);
        ArenaBuffer<__half> b = communicator->allocate<__half>(64);
        a.copy_from(std::vector<double>(64, rank.rank()));
        b.copy_from(std::vector<__half>(64));
        communicator->broadcast(a.data(), 7, 1, one);
        communicator->reduce(a.data() + 16, a.data() + 32, 5, ReduceOp::maximum, 0, other);
        communicator->all_reduce(b.data(), b.data() + 16, 9, ReduceOp::average, one);
        communicator->reduce_scatter(b.data() + 32, b.data() + 48, 3, ReduceOp::minimum, other);
        communicator->all_gather(a.data(), a.data() + 48, 4, one);
        if (me == 0)
            communicator->send(a.data() + 1, 2, 1, one);
        else
            communicator->receive(a.data() + 8, 2, 0, one);
        communicator->synchronize(one);
        communicator->synchronize(other);

        constexpr auto sum = ReduceOp::sum;
        const std::vector<NcclCall> asked{
            {-1, me, OperationKind::broadcast, a.data(), a.data(), 7, ElementType::float64, sum, 1,
             one},
            {-1, me, OperationKind::reduce, a.data() + 16, a.data() + 32, 5, ElementType::float64,
             ReduceOp::maximum, 0, other},
            {-1, me, OperationKind::all_reduce, b.data(), b.data() + 16, 9, ElementType::float16,
             ReduceOp::average, -1, one},
            {-1, me, OperationKind::reduce_scatter, b.data() + 32, b.data() + 48, 3,
             ElementType::float16, ReduceOp::minimum, -1, other},
            {-1, me, OperationKind::all_gather, a.data(), a.data() + 48, 4, ElementType::float64,
             sum, -1, one},
            me == 0 ? NcclCall{-1, me, OperationKind::send, a.data() + 1, nullptr, 2,
                               ElementType::float64, sum, 1, one}
                    : NcclCall{-1, me, OperationKind::receive, nullptr, a.data() + 8, 2,
                               ElementType::float64, sum, 0, one}};
        std::vector<NcclCall> mine;
        for (NcclCall call : nccl.calls())
            if (call.stream == one || call.stream == other) {
                numbers[static_cast<std::size_t>(rank.rank())] =
                    std::exchange(call.communicator, -1);
                mine.push_back(call);
            }
        wrong += mine != asked;
    });
    REQUIRE(wrong == 0);
    REQUIRE(numbers[0] == numbers[2]);
    REQUIRE(numbers[1] == numbers[3]);
    REQUIRE(numbers[0] != numbers[1]);
    REQUIRE(nccl.complaints() == Texts{});
}

TEST_CASE(
    "NCCL's operations keep the order of streams, and two communicators do not wait for each "
    "other") {
    const PlayedNccl nccl;
    std::atomic<int> wrong = 0;
    World world(thread_options(3));
    world.run([&](Rank& rank) {
        const std::unique_ptr<Communicator> communicators[] = {over_nccl(rank, 1 << 20),
                                                               over_nccl(rank, 1 << 20)};
        constexpr std::size_t count = 1001;
        Stream streams[2], last;
        ArenaBuffer<float> data[2];
        for (const std::size_t i : {0, 1}) {
            data[i] = communicators[i]->allocate<float>(count);
            data[i].copy_from(std::vector<float>(count, static_cast<float>(rank.rank())));
        }
        for (const std::size_t turn : {0, 1}) {
            const std::size_t i = rank.rank() == 1 ? 1 - turn : turn;
            add_late(data[i].data(), count, 1, streams[i]);
            communicators[i]->all_reduce(data[i].data(), data[i].data(), count, ReduceOp::sum,
                                         streams[i]);
            add_late(data[i].data(), count, 100, streams[i]);
        }
        // On another stream, but after all of that.
        Event event;
        event.record(streams[0]);
        last.wait(event);
        communicators[0]->all_reduce(data[0].data(), data[0].data(), count, ReduceOp::maximum,
                                     last);
        communicators[0]->synchronize(last);
        communicators[1]->synchronize(streams[1]);
        for (const std::size_t i : {0, 1})
            wrong += data[i].to_host_now() != std::vector<float>(count, 1 + 2 + 3 + 100);
    });
    REQUIRE(wrong == 0);
    REQUIRE(nccl.complaints() == Texts{});
}

TEST_CASE("a communicator over NCCL ends when what was enqueued is done") {
    const PlayedNccl nccl;
    World world(thread_options(3));
    world.run([&](Rank& rank) {
        Stream stream;
        const auto communicator = over_nccl(rank, 1 << 20);
        ArenaBuffer<float> data = communicator->allocate<float>(10);
        data.copy_from(std::vector<float>(10, 1));
        if (rank.rank() == 0)
            add_late(data.data(), 10, 1, stream);
        communicator->all_reduce(data.data(), data.data(), 10, ReduceOp::sum, stream);
    });
    REQUIRE(nccl.complaints() == Texts{});
}

// ---- Failures

TEST_CASE("each call of NCCL that fails ends the run with its name, and the next run works") {
    constexpr auto sum = ReduceOp::sum;
    const auto call = [](const auto& operation) -> Work {
        return [operation](Communicator& communicator, Stream& stream) {
            ArenaBuffer<float> data = communicator.allocate<float>(40);
            operation(communicator, data.data(), stream);
            communicator.synchronize(stream);
        };
    };
    const auto message = [](Communicator& c, float* d, Stream& s) {
        if (c.index() < 2)
            c.index() == 0 ? c.send(d, 10, 1, s) : c.receive(d, 10, 0, s);
    };
    struct Case {
        std::string name;
        int index;
        std::string what;  // of the message
        Work work;
    };
    const std::vector<Case> cases{
        {"ncclGetUniqueId", 0, "ncclGetUniqueId", sum_ten},
        {"ncclCommInitRankConfig", 1, "ncclCommInitRankConfig", sum_ten},
        {"ncclCommGetAsyncError", 2, "ncclCommInitRankConfig", sum_ten},
        {"ncclSend", 0, "operation 1, send of 10 float to rank 1", call(message)},
        {"ncclRecv", 1, "operation 1, receive of 10 float from rank 0", call(message)},
        {"ncclBroadcast", 2, "operation 1, broadcast of 10 float from rank 1",
         call([](Communicator& c, float* d, Stream& s) { c.broadcast(d, 10, 1, s); })},
        {"ncclReduce", 0, "operation 1, reduce sum of 10 float to rank 1",
         call([](Communicator& c, float* d, Stream& s) { c.reduce(d, d, 10, sum, 1, s); })},
        {"ncclAllReduce", 1, "operation 1, all_reduce sum of 10 float (\"x\")", sum_ten},
        {"ncclReduceScatter", 2, "operation 1, reduce_scatter sum of 10 float",
         call([](Communicator& c, float* d, Stream& s) {
             c.reduce_scatter(d, d + 30, 10, sum, s);
         })},
        {"ncclAllGather", 0, "operation 1, all_gather of 10 float",
         call([](Communicator& c, float* d, Stream& s) { c.all_gather(d + 30, d, 10, s); })}};
    for (const Case& one : cases) {
        PlayedNccl nccl;
        nccl.fail_once(one.name, one.index);
        CAPTURE(one.name);
        REQUIRE(failure_over_nccl(3, one.work) == "rank " + std::to_string(one.index) +
                                                      ": NCCL failed in " + one.what +
                                                      ": unhandled system error");
        REQUIRE(nccl.has_failed());
        REQUIRE(failure_over_nccl(3, one.work) == "");
        REQUIRE(nccl.complaints() == Texts{});
    }
}

TEST_CASE("what fails when a communicator over NCCL ends harms nothing") {
    for (const auto& [name, others_wait] :
         {std::pair("ncclCommFinalize", true), {"ncclCommDestroy", false}}) {
        PlayedNccl nccl;
        nccl.fail_once(name, 1);
        CAPTURE(name);
        REQUIRE(failure_over_nccl(2, sum_ten, others_wait ? 1 : 30) == "");
        REQUIRE(nccl.has_failed());
        REQUIRE(nccl.complaints() == Texts{});
    }
    PlayedNccl nccl;
    nccl.fail_once("ncclCommInitRankConfig", 1);
    nccl.fail_once("ncclCommAbort", 0);
    REQUIRE(has(failure_over_nccl(2, sum_ten), "rank 1: NCCL failed in ncclCommInitRankConfig"));
    REQUIRE(nccl.has_failed());
}

TEST_CASE("an error that NCCL finds later ends the run, and the kernels that wait") {
    PlayedNccl nccl;
    nccl.break_later("ncclAllReduce", 1);
    const std::string failure = failure_over_nccl(3, sum_ten);
    CAPTURE(failure);
    REQUIRE(failure.starts_with("rank 1: NCCL failed"));
    REQUIRE(failure.ends_with(": remote process exited"));
    REQUIRE(nccl.complaints() == Texts{});
}

TEST_CASE("a rank that does not come to NCCL, or throws, ends the run of the others") {
    const PlayedNccl nccl;
    const auto but_rank_1 = [](const std::function<void(Rank&)>& rank_1) -> Work {
        return [rank_1](Communicator& communicator, Stream& stream) {
            if (communicator.index() == 1)
                rank_1(communicator.rank());
            else
                sum_ten(communicator, stream);
        };
    };
    const std::string late = failure_over_nccl(3, but_rank_1(wait_for_failure), 1);
    CAPTURE(late);
    REQUIRE(
        late.ends_with(": waited 1.0 s for NCCL in operation 1, all_reduce sum of 10 float "
                       "(\"x\"): has every rank come to it?"));
    REQUIRE(failure_over_nccl(3, but_rank_1([](Rank&) {
                                  throw std::runtime_error("broken on purpose");
                              })) == "rank 1: broken on purpose");
    REQUIRE(nccl.complaints() == Texts{});
}

TEST_CASE("an NCCL that never finds its ranks ends after the time-out") {
    PlayedNccl nccl;
    nccl.set_questions(-1);
    REQUIRE(failure_over_nccl(2, sum_ten, 1)
                .ends_with(": waited 1.0 s for NCCL in ncclCommInitRankConfig"));
    REQUIRE(nccl.complaints() == Texts{});
}

TEST_CASE("what makes no sense over NCCL is refused in a sentence") {
    const PlayedNccl nccl;
    World world(thread_options(5));  // on four devices
    const std::string shared = failure_of(world, [](Rank& rank) { over_nccl(rank, 1 << 10); });
    CAPTURE(shared);
    REQUIRE(
        has(shared,
            "The communicator nccl takes one rank on each GPU, but ranks 0 and 4 share device "));
    REQUIRE(
        has(shared, ": start as many ranks as there are GPUs, or use the communicator native."));
    REQUIRE(has(failure_over_nccl(2,
                                  [](Communicator& communicator, Stream& stream) {
                                      ArenaBuffer<unsigned char> bytes =
                                          communicator.allocate<unsigned char>(10);
                                      communicator.all_reduce(bytes.data(), bytes.data(), 10,
                                                              ReduceOp::sum, stream);
                                  }),
                "bytes can be sent and gathered, but not summed"));
    REQUIRE(nccl.complaints() == Texts{});
}

}  // namespace test
}  // namespace ddp

#endif
