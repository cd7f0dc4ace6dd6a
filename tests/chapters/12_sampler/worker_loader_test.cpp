// Batches that worker threads prepare ahead: their order, how many, and by whose thread.
#include "tests/bench/12_sampler/worker_loader.hpp"

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("worker_loader: the batches come in their order, each once, and none too early") {
    for (const int batches : {0, 1, 5, 200})
        for (const int workers : {0, 1, 2, 3, 7}) {
            CAPTURE(batches, workers);
            std::vector<std::atomic<int>> prepared(200);
            std::atomic<int> asked = 0, too_early = 0;
            WorkerLoader<int> loader(batches, workers, [&](int batch) {
                prepared[static_cast<std::size_t>(batch)]++;
                if (batch >= asked + workers)  // without workers: before it is asked for
                    too_early++;
                return 100 + 7 * batch;
            });
            for (int batch = 0; batch < batches; batch++) {
                asked++;
                REQUIRE(loader.next() == 100 + 7 * batch);
            }
            REQUIRE_FALSE(loader.next());
            REQUIRE_FALSE(loader.next());
            REQUIRE(too_early == 0);
            for (int batch = 0; batch < 200; batch++)
                REQUIRE(prepared[static_cast<std::size_t>(batch)] == (batch < batches ? 1 : 0));
        }
}

TEST_CASE("worker_loader: without workers the caller prepares a batch when it takes it") {
    std::vector<int> prepared;
    const std::thread::id caller = std::this_thread::get_id();
    const auto prepare = [&](int batch) {
        REQUIRE(std::this_thread::get_id() == caller);
        prepared.push_back(batch);
        return batch;
    };
    WorkerLoader<int> loader(3, 0, prepare);
    REQUIRE(prepared.empty());
    REQUIRE(loader.next() == 0);
    REQUIRE(prepared == std::vector{0});
    WorkerLoader<bool> ahead(3, 1, [&](int) { return std::this_thread::get_id() != caller; });
    REQUIRE(ahead.next() == true);
}

TEST_CASE("worker_loader: an error comes with its batch, and the batches under way end") {
    for (const int workers : {0, 1, 4}) {
        CAPTURE(workers);
        std::atomic<int> begun = 0, ended = 0;
        {
            WorkerLoader<int> loader(9, workers, [&](int batch) {
                begun++;
                if (batch == 2)
                    throw std::runtime_error("batch 2 cannot be read");
                ended++;
                return batch;
            });
            REQUIRE(loader.next() == 0);
            REQUIRE(loader.next() == 1);
            REQUIRE_THROWS_WITH(loader.next(), "batch 2 cannot be read");
            REQUIRE(loader.next() == 3);
        }
        REQUIRE(begun == ended + 1);
    }
}

}  // namespace ddp::test
