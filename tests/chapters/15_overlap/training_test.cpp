// The loop that all ranks run: what it counts, how it ends where it cannot go on, and the timeline
// of a step.
#include "15_overlap/training.hpp"

#include <functional>
#include <iostream>
#include <sstream>

#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "10_nodes/make_communicator.hpp"
#include "15_overlap/graphed_step.hpp"
#include "15_overlap/show/timeline_report.hpp"
#include "common/report/csv.hpp"
#include "tests/chapters/15_overlap/replica.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

constexpr Normalisation usual{0.04f, 1.0f};

// Pictures of 28 x 28; class c has a bright line.
LabelledImages lines(int count) {
    LabelledImages images{1, 28, 28, {}, {}};
    for (int n = 0; n < count; n++) {
        for (int p = 0; p < 784; p++)
            images.pixels.push_back(p / 28 == n % 10 * 2 ? 200 : 10);
        images.labels.push_back(static_cast<std::uint8_t>(n % 10));
    }
    return images;
}

// A small perceptron for them, or a network that has buffers.
struct Training {
    Training(Rank& rank, const LabelledImages& images, int batch,
             const Normalisation& normalisation = usual, bool has_buffers = false)
        : rank(rank),
          device(make_run_scoped<Device>(rank, std::size_t{64} << 20)),
          loader(
              make_run_scoped<Loader>(rank, device, images, normalisation, batch, LastBatch::drop)),
          random(static_cast<std::uint64_t>(rank.rank())),
          model(has_buffers ? make_cnn(device, random) : make_mlp(device, random, {784, 12, 10})),
          communicator(make_communicator("native", rank, ddp_arena_bytes(*model))),
          ddp(*communicator, device, *model, {.bucket_cap_bytes = 500}),
          optimizer(model->parameters(), 0.3),
          trainer(rank, device, *model, ddp, optimizer) {}

    Metrics::Totals epoch(Loader& from, int number) {
        from.start_epoch(
            shard(shuffled(from.samples(), 1, number), rank.rank(), rank.world_size()));
        return trainer.epoch(from, "epoch");
    }
    Metrics::Totals epoch(int number) { return epoch(loader, number); }

    Rank& rank;
    Device& device;
    Loader& loader;
    Random random;
    const std::unique_ptr<Sequential> model;
    const std::unique_ptr<Communicator> communicator;
    DistributedDataParallel ddp;
    Sgd optimizer;
    DdpTrainer trainer;
};

// Returns what `work` prints.
std::string printed(const std::function<void()>& work) {
    std::ostringstream text;
    std::streambuf* const before = std::cout.rdbuf(text.rdbuf());
    work();
    std::cout.rdbuf(before);
    return text.str();
}

}  // namespace

TEST_CASE("training: all ranks' samples count, every one is tested, and the network learns") {
    for (const int ranks : {1, 2, 3}) {
        World world(thread_options(ranks));
        const LabelledImages images = lines(100);
        std::vector<Metrics::Totals> first(static_cast<std::size_t>(ranks)), tested = first;
        int steps = 0;
        world.run([&](Rank& rank) {
            const auto place = static_cast<std::size_t>(rank.rank());
            Training training(rank, images, 8);
            first[place] = training.epoch(1);
            for (int epoch = 2; epoch <= 6; epoch++)
                training.epoch(epoch);
            auto& loader = make_run_scoped<Loader>(rank, training.device, images, usual, 7);
            tested[place] = training.trainer.test(loader);
            require_equal_replicas(rank, training.model->parameters());
            if (place == 0)
                steps = training.trainer.steps();
        });
        CAPTURE(ranks);
        const int steps_of_epoch = 100 / ranks / 8;  // what does not fill a batch is left out
        REQUIRE(steps == 6 * steps_of_epoch);
        for (std::size_t rank = 0; rank < first.size(); rank++) {
            REQUIRE(first[rank].samples == steps_of_epoch * 8 * ranks);
            REQUIRE(first[rank].loss() == first[0].loss());
            REQUIRE(first[rank].loss() > 1);
            REQUIRE(tested[rank].samples == 100);
            REQUIRE(tested[rank].accuracy() == 1);
            REQUIRE(tested[rank].loss() < 0.5 * first[0].loss());
        }
    }
}

TEST_CASE("training: the watched step is written down for all ranks, and no other") {
    World world(thread_options(2));
    const LabelledImages images = lines(64);
    std::vector<std::vector<StreamSpan>> timelines(2);
    world.run([&](Rank& rank) {
        Training training(rank, images, 8);
        const StepWatch watch(rank, training.device, *training.model, training.ddp,
                              training.trainer, 2);
        training.epoch(1);
        timelines[static_cast<std::size_t>(rank.rank())] = watch.steps().usual;
    });
    const std::vector<StreamSpan>& timeline = timelines[1];
    REQUIRE(timelines[0].size() == timeline.size());
    for (int rank = 0; rank < 2; rank++) {
        std::vector<std::string> compute, communication;
        double before_s = 0, compute_begin_s = 0;
        for (const StreamSpan& span : timeline)
            if (span.rank == rank) {
                const bool is_compute = span.track == "compute";
                std::vector<std::string>& track = is_compute ? compute : communication;
                if (track.empty())
                    before_s = span.begin_s;
                track.push_back(span.what);
                REQUIRE(span.begin_s >= before_s);  // the spans of a track do not overlap
                REQUIRE(span.end_s >= span.begin_s);
                before_s = span.end_s;
                if (is_compute && compute.size() == 1)
                    compute_begin_s = span.begin_s;
                REQUIRE(span.begin_s >= compute_begin_s - 1e-3);
            }
        REQUIRE(compute == std::vector<std::string>{
                               "forward flatten", "forward linear1", "forward relu1",
                               "forward linear2", "forward loss", "backward to linear2.bias",
                               "backward to linear2.weight", "backward to linear1.bias",
                               "backward to linear1.weight", waiting_for_gradients, "optimizer"});
        REQUIRE(communication.size() == 2);
        REQUIRE(communication[0].starts_with("bucket 0, "));
        REQUIRE(communication[1].starts_with("bucket 1, "));
    }
}

TEST_CASE("training: the rank whose loss is no longer a number first is named, with the step") {
    World world(thread_options(3));
    const LabelledImages images = lines(96);
    for (const int victim : {0, 2}) {
        const std::string failure = failure_of(world, [&, victim](Rank& rank) {
            Training training(rank, images, 8);
            // Pixels divided by nothing.
            auto& broken =
                make_run_scoped<Loader>(rank, training.device, images, Normalisation{0, 0}, 8);
            training.epoch(1);
            training.epoch(2);
            training.epoch(rank.rank() == victim ? broken : training.loader, 3);
        });
        REQUIRE(failure == "rank " + std::to_string(victim) +
                               ": the loss is no longer a number at step 9: the steps are too "
                               "long; try a smaller --learning-rate");
    }
}

TEST_CASE("training: a step that is a graph makes the same bits, on every number of ranks") {
    const LabelledImages images = lines(100);
    for (const int ranks : {1, 2, 3}) {
        World world(thread_options(ranks));
        std::vector<float> states[2];
        std::string summary;
        for (const bool is_graph : {false, true})
            world.run([&](Rank& rank) {
                Training training(rank, images, 4, usual, ranks == 2);
                std::optional<GraphedStep> graphed;
                if (is_graph)
                    graphed.emplace(training.trainer, *training.communicator, training.device,
                                    training.optimizer, 2);
                for (int epoch = 1; epoch <= 3; epoch++) {
                    training.optimizer.set_learning_rate(0.3 / epoch);
                    training.epoch(epoch);
                    if (epoch < 3)
                        training.trainer.test(training.loader);
                }
                if (rank.rank() + 1 < ranks)
                    return;
                std::vector<float>& state = states[is_graph ? 1 : 0];
                const auto add = [&](const Tensor& tensor) {
                    const std::vector<float> values = tensor.to_host();
                    state.insert(state.end(), values.begin(), values.end());
                };
                for (const auto& parameter : training.model->parameters())
                    add(parameter->value);
                for (const NamedTensor& buffer : training.model->buffers())
                    add(buffer.value);  // rank 0's, with what this rank's last step has added
                if (is_graph)
                    summary = graphed->summary();
            });
        const int steps = 3 * (100 / ranks / 4);
        REQUIRE(summary.starts_with(std::to_string(steps - 2) + " of " + std::to_string(steps) +
                                    " steps were launches of a graph of "));
        REQUIRE((states[0] == states[1]));
    }
}

TEST_CASE("training: steps that are too long are noticed") {
    World world(thread_options(2));
    const LabelledImages images = lines(96);
    const std::string failure = failure_of(world, [&](Rank& rank) {
        Training training(rank, images, 8);
        training.optimizer.set_learning_rate(1e30);
        training.epoch(1);
    });
    REQUIRE(has(failure, ": the loss is no longer a number at step "));
}

TEST_CASE("training: a rank without a batch is refused, and a test needs none") {
    World world(thread_options(3));
    const LabelledImages images = lines(11);
    REQUIRE(has(failure_of(world,
                           [&](Rank& rank) {
                               Training training(rank, images, 4);
                               training.epoch(1);
                           }),
                ": this rank has no batch to learn from: its share of the samples is smaller than "
                "one batch"));
    const LabelledImages two = lines(2);  // for three ranks
    std::vector<int> tested(3);
    world.run([&](Rank& rank) {
        Training training(rank, images, 2);
        auto& loader = make_run_scoped<Loader>(rank, training.device, two, usual, 2);
        tested[static_cast<std::size_t>(rank.rank())] = training.trainer.test(loader).samples;
    });
    REQUIRE(tested == std::vector<int>{2, 2, 2});
}

TEST_CASE("training: a test uses the buffers of rank 0") {
    World world(thread_options(2));
    const LabelledImages images = lines(40);
    std::vector<std::vector<float>> means(2);
    world.run([&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, std::size_t{64} << 20);
        auto& loader = make_run_scoped<Loader>(rank, device, images, usual, 4);
        Random random(1);
        const auto cnn = make_cnn(device, random);
        const auto communicator = make_communicator("native", rank, ddp_arena_bytes(*cnn));
        DistributedDataParallel ddp(*communicator, device, *cnn);
        Sgd optimizer(cnn->parameters(), 0.01);
        DdpTrainer trainer(rank, device, *cnn, ddp, optimizer);
        loader.start_epoch(shard(in_order(8), rank.rank(), 2));
        trainer.epoch(loader, "epoch");
        const Tensor mean = cnn->buffers()[0].value;
        const std::vector<std::string> all =
            rank.all_gather(std::to_string(mean.to_host()[0]) + std::to_string(mean.to_host()[1]));
        trainer.test(loader);
        means[static_cast<std::size_t>(rank.rank())] = mean.to_host();
        if (all[0] == all[1])
            throw std::runtime_error("the ranks' buffers were to differ before the test");
    });
    REQUIRE(means[0] == means[1]);
}

TEST_CASE("timeline: the report says what was exposed, and the files begin at 0") {
    const std::vector<StreamSpan> spans{
        {0, "compute", "forward", 100.0, 100.010},
        {0, "compute", "backward to x", 100.010, 100.030},
        {0, "compute", waiting_for_gradients, 100.030, 100.032},
        {0, "communication", "bucket 0, 1 MiB", 100.020, 100.028},
        {1, "compute", "forward", 100.001, 100.011},
        {1, "compute", waiting_for_gradients, 100.011, 100.019},
        {1, "communication", "bucket 0, 1 MiB", 100.011, 100.019},
    };
    const std::vector<StreamSpan> without{
        {0, "compute", "backward to x", 200.0, 200.030},
        {0, "compute", waiting_for_gradients, 200.030, 200.038},
        {0, "communication", "bucket 0, 1 MiB", 200.030, 200.038},
    };
    const TemporaryFolder folder;
    const std::string text = printed([&] { show_timeline({spans, without}, folder / "run.csv"); });
    CAPTURE(text);
    const auto line = [&](const std::string& part) { return has(text, part); };
    REQUIRE(line("as asked     0   32.0 ms    30.0 ms   20.0 ms        8.00 ms  2.00 ms"));
    REQUIRE(line("as asked     1   18.0 ms    10.0 ms       0 s        8.00 ms  8.00 ms"));
    REQUIRE(line("none         0   38.0 ms    30.0 ms   30.0 ms        8.00 ms  8.00 ms"));
    const Csv steps = read_csv(folder / "run_steps.csv");
    REQUIRE(steps.number(0, "backward_s") == Approx(0.020));
    REQUIRE(steps.number(0, "communication_s") == Approx(0.008));
    REQUIRE(steps.number(0, "exposed_s") == Approx(0.002));
    write_timeline(folder / "run.csv", {spans, without});
    const Csv csv = read_csv(folder / "run_timeline.csv");
    REQUIRE(csv.rows.size() == 10);
    REQUIRE(csv.number(0, "begin_ms") == 0);
    REQUIRE(csv.number(3, "begin_ms") == Approx(20));
    REQUIRE(csv.number(3, "end_ms") == Approx(28));
    REQUIRE(csv.text(3, "stream") == "communication");
    REQUIRE(csv.text(3, "name") == "bucket 0, 1 MiB");
    REQUIRE(csv.text(6, "overlap") == "on");
    REQUIRE(csv.text(7, "overlap") == "off");
    REQUIRE(csv.number(7, "begin_ms") == 0);
    write_timeline("", {spans, {}});
    Trace trace(folder / "trace.json");
    add_to_trace(trace, spans);
    trace.write();
    const std::string events = contents(folder / "trace.json");
    for (const char* part : {"waiting for gradients", "bucket 0, 1 MiB", "communication"})
        REQUIRE(has(events, part));
}

}  // namespace ddp::test
