// Within no_sync nothing is sent. Also: when the model's buffers become those of rank 0.
#include "03_network/layers/batch_norm2d.hpp"
#include "tests/chapters/15_overlap/replica.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;

// Returns whether a forward begins with rank 0's buffers: rank 1 writes numbers into its own that
// no training gives, and checks whether they are gone.
bool forward_takes_buffers(Replica& replica, const std::function<void()>& forward) {
    constexpr float marker = 1e6f;
    Tensor mean = replica.model->buffers()[0].value;
    if (replica.rank.rank() == 1)
        mean.copy_from(Values(mean.size(), marker));
    forward();
    const bool has_gone = mean.to_host()[0] < 0.5f * marker;
    const std::vector<std::string> all = replica.rank.all_gather(has_gone ? "gone" : "there");
    return all[1] == "gone";
}

}  // namespace

TEST_CASE("no_sync: nothing is sent, and the next reduced step reduces the sum") {
    World world(thread_options(2));
    std::vector<Values> own(2), combined(2);
    std::vector<std::size_t> sent_within(2), sent_after(2);
    world.run([&](Rank& rank) {
        const auto place = static_cast<std::size_t>(rank.rank());
        Replica replica(rank, make_small_mlp, {.bucket_cap_bytes = 0});
        replica.step();
        replica.sent.clear();
        {
            const auto no_sync = replica.ddp.no_sync();
            {
                const auto nested = replica.ddp.no_sync();
                replica.ddp.backward(replica.forward());
            }
            replica.ddp.backward(replica.forward());
        }
        sent_within[place] = replica.sent.size();
        own[place] = replica.gradient("linear3.bias");
        // A loss with weight 0 adds nothing, so the accumulated sum is what is reduced.
        replica.ddp.backward(replica.forward(), {}, 0.0f);
        replica.synchronize();
        sent_after[place] = replica.sent.size();
        combined[place] = replica.gradient("linear3.bias");
    });
    REQUIRE(sent_within == std::vector<std::size_t>{0, 0});
    REQUIRE(sent_after == std::vector<std::size_t>{6, 6});
    REQUIRE(own[0] != own[1]);
    REQUIRE(combined[0] == combined[1]);
    for (std::size_t i = 0; i < own[0].size(); i++)
        REQUIRE(combined[0][i] == Approx((own[0][i] + own[1][i]) / 2).margin(1e-7));
}

TEST_CASE("no_sync: buffers are shared in the first forward, and after each reduced one") {
    World world(thread_options(2));
    std::vector<bool> taken;
    world.run([&](Rank& rank) {
        Replica replica(rank, make_normed);
        const auto reduced = [&] { replica.step(); };
        const auto alone = [&] {
            const auto no_sync = replica.ddp.no_sync();
            replica.step();
        };
        std::vector<bool> mine;
        for (const bool is_reduced : {true, true, false, false, false, true, true}) {
            const std::function<void()> step = is_reduced ? std::function<void()>(reduced) : alone;
            mine.push_back(forward_takes_buffers(replica, step));
        }
        replica.synchronize();
        if (rank.rank() == 0)
            taken = mine;
    });
    // The forward after a reduced one takes them; the one after an unreduced one does not.
    REQUIRE(taken == std::vector<bool>{true, true, true, false, false, false, true});
}

// A model in evaluation may be fine-tuned, so its forward is like any other (in PyTorch, too,
// unless the program says torch.no_grad).
TEST_CASE("no_sync: a test in evaluation takes the buffers each time, and within no_sync once") {
    World world(thread_options(2));
    std::vector<bool> taken;
    std::vector<Values> means(2), shared(2);
    world.run([&](Rank& rank) {
        const auto place = static_cast<std::size_t>(rank.rank());
        Replica replica(rank, make_normed);
        const auto forward = [&] {
            replica.forward();
            replica.clear();
        };
        replica.step();
        replica.model->set_training(false);
        std::vector<bool> mine;
        for (int i = 0; i < 2; i++)
            mine.push_back(forward_takes_buffers(replica, forward));
        {
            const auto no_sync = replica.ddp.no_sync();
            for (int i = 0; i < 2; i++)
                mine.push_back(forward_takes_buffers(replica, forward));
        }
        replica.model->set_training(true);
        mine.push_back(forward_takes_buffers(replica, [&] { replica.step(); }));
        mine.push_back(forward_takes_buffers(replica, [&] { replica.step(); }));
        if (place == 0)
            taken = mine;
        const Tensor mean = replica.model->buffers()[0].value;
        means[place] = mean.to_host();
        replica.ddp.share_buffers();
        replica.synchronize();
        shared[place] = mean.to_host();
    });
    REQUIRE(taken == std::vector<bool>{true, true, true, false, false, true});
    REQUIRE(means[0] != means[1]);
    REQUIRE(shared[0] == means[0]);
    REQUIRE(shared[1] == means[0]);
}

// PyTorch's torch.no_grad: the first forward takes the buffers, and then no backward is expected.
TEST_CASE("a forward on a tape that does not record expects no backward") {
    World world(thread_options(2));
    std::vector<bool> taken;
    std::size_t sent = 0;
    world.run([&](Rank& rank) {
        Replica replica(rank, make_normed);
        const auto recorded = [&] {
            replica.forward();
            replica.clear();
        };
        const auto unrecorded = [&] {
            Tape tape(replica.device, Recording::off);
            replica.ddp.forward(tape.constant(batch_of(replica.device, {1, 2}).images));
        };
        replica.step();
        replica.synchronize();
        const std::size_t sent_before = replica.sent.size();
        std::vector<bool> mine{forward_takes_buffers(replica, recorded)};
        for (int i = 0; i < 2; i++)
            mine.push_back(forward_takes_buffers(replica, unrecorded));
        if (rank.rank() == 0) {
            taken = mine;
            sent = replica.sent.size() - sent_before;
        }
        replica.step();  // as if there had been no test
        replica.synchronize();
    });
    REQUIRE(taken == std::vector<bool>{true, true, false});
    REQUIRE(sent == 0);
}

}  // namespace ddp::test
