// A training that goes on from any of its checkpoints ends with the same bits as one that was never
// stopped; and everything that a checkpoint keeps is needed for that.
#include "19_checkpoint_failover/state/resume.hpp"
#include "10_nodes/make_communicator.hpp"

#include <cstring>
#include <iostream>
#include <thread>

#include "03_network/linear.hpp"
#include "03_network/models.hpp"
#include "11_data_parallel/replica.hpp"
#include "19_checkpoint_failover/resumable_training.hpp"
#include "19_checkpoint_failover/saver.hpp"
#include "19_checkpoint_failover/state/mirror.hpp"
#include "tests/chapters/support/replicas.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/common/data/files.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"
#if !defined(DDP_CUDA)
#include "cuda_on_cpu/observe.hpp"
#endif

namespace ddp::test {
namespace {

constexpr int steps = 8;  // of all epochs, with 4 ranks

LabelledImages pictures(std::size_t count, std::uint32_t salt) {
    LabelledImages images;
    images.channels = 1;
    images.height = images.width = 28;
    for (std::size_t i = 0; i < count; i++) {
        images.labels.push_back(static_cast<std::uint8_t>((i * 7 + salt) % 10));
        for (std::size_t pixel = 0; pixel < 28 * 28; pixel++)
            images.pixels.push_back(static_cast<std::uint8_t>((i * 31 + pixel * 17 + salt) % 251));
    }
    return images;
}

FashionMnist data_set() {
    return {pictures(35, 1), pictures(10, 2)};
}

TrainingPlan plan_in(const std::filesystem::path& folder, const std::string& optimizer = "sgd") {
    TrainingPlan plan;
    plan.epochs = 4;
    plan.batch = 4;
    plan.learning_rate = 0.01;
    plan.optimizer = optimizer;
    plan.checkpoints = {.folder = folder, .every = 1, .keep = 100};
    return plan;
}

void train(int ranks, const TrainingPlan& plan) {
    static const FashionMnist data = data_set();
    World world(thread_options(ranks));
    world.run([&](Rank& rank) { train_resumably(rank, data, plan); });
}

// A folder with this one checkpoint.
class Restart {
  public:
    Restart(const Bytes& checkpoint, int step) {
        folder_.write(Checkpoints::file_name(step), checkpoint);
    }
    std::filesystem::path path() const { return folder_.path(); }
    Bytes last() const {
        DiskFolder folder(folder_.path());
        return folder.read(Checkpoints::file_name(Checkpoints(folder, 1).steps().at(0)));
    }

  private:
    TemporaryFolder folder_;
};

// The checkpoint, with one thing changed; its checksum is right.
Bytes changed(const Bytes& bytes, const std::function<void(SafetensorsHeader&, Bytes&)>& change) {
    Checkpoint checkpoint = read_checkpoint(0, bytes, "f");
    Bytes data(checkpoint.file.data().begin(), checkpoint.file.data().end());
    change(checkpoint.file.header, data);
    const std::string text = seal(checkpoint.file.header, data);
    return joined({text.begin(), text.end()}, data);
}

void clear(const SafetensorsHeader& header, Bytes& data, const std::string& suffix) {
    int cleared = 0;
    for (const auto& tensor : header.tensors)
        if (tensor.name.ends_with(suffix)) {
            std::fill(data.begin() + static_cast<std::ptrdiff_t>(tensor.begin),
                      data.begin() + static_cast<std::ptrdiff_t>(tensor.end), 0);
            cleared++;
        }
    REQUIRE(cleared == 6);
}

}  // namespace

TEST_CASE("resume: from every step, the last checkpoint is the same to the bit") {
    for (const auto& [ranks, optimizer] :
         {std::pair{4, "sgd"}, std::pair{4, "adam"}, std::pair{3, "sgd"}}) {
        const TemporaryFolder whole;
        train(ranks, plan_in(whole.path(), optimizer));
        DiskFolder folder(whole.path());
        const std::vector<int> all = Checkpoints(folder, 1).steps();
        const Bytes end = folder.read(Checkpoints::file_name(all.at(0)));
        if (ranks == 4)
            REQUIRE(all.size() == steps);
        // 1: before the buckets are made anew; 2: after that, and the end of an epoch.
        for (const int step : {1, 2, 3, all[0] - 1, all[0]}) {
            CAPTURE(ranks, optimizer, step);
            const Restart restart(folder.read(Checkpoints::file_name(step)), step);
            train(ranks, plan_in(restart.path(), optimizer));
            REQUIRE(restart.last() == end);
        }
    }
}

TEST_CASE("resume: without any part of the state the end is another") {
    const TemporaryFolder whole;
    train(2, plan_in(whole.path()));
    DiskFolder folder(whole.path());
    const int last = Checkpoints(folder, 1).steps().at(0);
    const Bytes end = folder.read(Checkpoints::file_name(last));
    const Bytes third = folder.read(Checkpoints::file_name(3));
    const auto tensors = [](const Bytes& bytes) {
        const Checkpoint checkpoint = read_checkpoint(0, bytes, "f");
        return Bytes(checkpoint.file.data().begin(), checkpoint.file.data().end());
    };
    using Change = std::function<void(SafetensorsHeader&, Bytes&)>;
    const std::pair<const char*, Change> changes[] = {
        {"nothing", [](SafetensorsHeader&, Bytes&) {}},
        {"momentum",
         [](SafetensorsHeader& header, Bytes& data) { clear(header, data, ".momentum_buffer"); }},
        {"sampler", [](SafetensorsHeader& header, Bytes&) { header.metadata.at("taken") = "0"; }},
        {"epoch", [](SafetensorsHeader& header, Bytes&) { header.metadata.at("epoch") = "2"; }},
        {"random", [](SafetensorsHeader& header, Bytes&) {
             header.metadata.at("random") = Random(77).state();
         }}};
    for (const auto& [what, change] : changes) {
        CAPTURE(what);
        const Restart restart(changed(third, change), 3);
        train(2, plan_in(restart.path()));
        REQUIRE((tensors(restart.last()) == tensors(end)) == (std::string(what) == "nothing"));
    }
}

TEST_CASE("resume: the bucket plan of the checkpoint is used") {
    const TemporaryFolder whole;
    train(2, plan_in(whole.path()));
    DiskFolder folder(whole.path());
    const Bytes third = folder.read(Checkpoints::file_name(3));
    const auto plan_of = [](const Bytes& bytes) {
        return read_checkpoint(0, bytes, "f").file.header.metadata.at("bucket_plan");
    };
    World world(thread_options(1));
    std::string other;
    world.run([&](Rank&) {
        Device device;
        Random random(1);
        const auto model = make_mlp(device, random, {784, 256, 256, 10});
        other = encode_plan(first_plan(gradient_sizes(model->parameters()), {1 << 30}));
    });
    REQUIRE(plan_of(third) != other);
    const Restart restart(
        changed(third, [&](SafetensorsHeader& header,
                           Bytes&) { header.metadata.at("bucket_plan") = other; }),
        3);
    train(2, plan_in(restart.path()));
    REQUIRE(plan_of(restart.last()) == other);
}

TEST_CASE("resume: with fewer ranks and with more, every sample of the epoch comes once",
          "[as_one]") {
    const TemporaryFolder whole;
    train(2, plan_in(whole.path()));
    DiskFolder folder(whole.path());
    const Bytes second = folder.read(Checkpoints::file_name(2));  // 16 samples of 35
    for (const int ranks : {1, 3, 4}) {
        const Restart restart(second, 2);
        train(ranks, plan_in(restart.path()));
        const auto state =
            to_state(read_checkpoint(0, restart.last(), "f").file.header.metadata, "f");
        const int a_step = 4 * ranks;
        const int rest = (35 - 16) / a_step, epochs = 3 * (35 / a_step);
        REQUIRE(state.step == 2 + rest + epochs);
        REQUIRE(state.samples == 16 + a_step * (rest + epochs));
    }
}

TEST_CASE("saver: what follows from a failed all-reduce is no checkpoint") {
    for (const bool fails : {false, true}) {
        const TemporaryFolder temporary;
        DiskFolder folder(temporary.path());
        Checkpoints checkpoints(folder, 3);
        World world(thread_options(2));
        const std::string failure = failure_of(world, [&](Rank& rank) {
            auto& device = make_run_scoped<Device>(rank, test_memory);
            const auto communicator = make_communicator("native", rank, 1 << 20);
            ArenaBuffer<float> gradients = communicator->allocate<float>(1000);
            auto& saver = make_run_scoped<std::optional<Saver>>(rank);
            Random random(1);
            auto& layer = make_run_scoped<Linear>(rank, "linear1", device, 5, 3, random);
            auto& optimizer = make_run_scoped<PlainSgd>(rank, layer.parameters(), 0.1);
            if (rank.rank() == 0)
                saver.emplace(*communicator, device, tensors_of(layer, optimizer), checkpoints,
                              [](const std::string&, int) {});
            rank.barrier();
            if (fails && rank.rank() == 1)
                throw std::runtime_error("broken on purpose");
            communicator->all_reduce(gradients.data(), gradients.data(), gradients.size(),
                                     ReduceOp::average, device.stream());
            if (saver) {
                TrainingState state;
                state.step = 7;
                saver->save(state);
                saver->end();
            }
            rank.barrier();
        });
        REQUIRE(failure == (fails ? "rank 1: broken on purpose" : ""));
        REQUIRE(checkpoints.steps() == (fails ? std::vector<int>() : std::vector<int>{7}));
    }
}

#if !defined(DDP_CUDA)
// A context on another rank's GPU would take its memory: of the thread that writes checkpoints, and
// of the watchdog, which polls meanwhile.
TEST_CASE("no thread of a rank makes a context on another device", "[.two_devices]") {
    const TemporaryFolder temporary;
    DiskFolder folder(temporary.path());
    Checkpoints checkpoints(folder, 3);
    World world(thread_options(1));
    world.run([&](Rank& rank) {
        DDP_CHECK(cudaSetDevice(1));
        auto& device = make_run_scoped<Device>(rank, test_memory);
        const auto communicator = make_communicator("native", rank, 1 << 20);
        Random random(1);
        auto& layer = make_run_scoped<Linear>(rank, "linear1", device, 5, 3, random);
        auto& optimizer = make_run_scoped<PlainSgd>(rank, layer.parameters(), 0.1);
        auto& saver =
            make_run_scoped<Saver>(rank, *communicator, device, tensors_of(layer, optimizer),
                                   checkpoints, [](const std::string&, int) {});
        saver.save(TrainingState{});
        std::this_thread::sleep_for(std::chrono::milliseconds(200));  // four polls
        saver.end();
    });
    REQUIRE(checkpoints.steps().size() == 1);
    REQUIRE(cuda_on_cpu::devices_with_context() == 0b10);
}
#endif

TEST_CASE("resume: a training that runs while a later generation of it has begun ends") {
    const TemporaryFolder temporary;
    TrainingPlan plan = plan_in(temporary.path());
    plan.epochs = 10'000;
    static const FashionMnist data = data_set();
    World world(thread_options(2));
    DiskFolder folder(temporary.path());
    Checkpoints next(folder, 100);
    std::jthread successor([&](const std::stop_token& enough) {
        while (next.steps().empty() && !enough.stop_requested())
            std::this_thread::yield();
        next.begin_generation(7);
    });
    const std::string failure =
        failure_of(world, [&](Rank& rank) { train_resumably(rank, data, plan); });
    REQUIRE(failure ==
            "rank 0: this is generation 1 of the training, and generation 7 writes into '" +
                temporary.path().string() + "' now: this one ends and writes nothing more.");
}

TEST_CASE("resume: a checkpoint of another training or another model is refused") {
    const TemporaryFolder folder;
    train(2, plan_in(folder.path()));
    TrainingPlan other = plan_in(folder.path());
    other.seed = 2;
    static const FashionMnist data = data_set();
    World world(thread_options(2));
    const std::string failure =
        failure_of(world, [&](Rank& rank) { train_resumably(rank, data, other); });
    REQUIRE(has(failure, "The checkpoint is of a training whose seed was 1, and now it is 2"));
    DiskFolder disk(folder.path());
    REQUIRE(Checkpoints(disk, 1).newest_generation() ==
            1);  // a wrong command does not end a training

    Device device;
    Random random(1);
    const Linear layer("linear1", device, 5, 3, random);
    const std::vector<NamedTensor> wanted{{"linear1.weight", layer.weight->value},
                                          {"linear1.bias", layer.bias->value}};
    SafetensorsHeader header;
    const auto error_of = [&](std::uint8_t each_byte = 0x3f) {
        const std::string text = encode_safetensors(header);
        return data_error([&] {
            load_tensors(
                decode_safetensors(
                    joined({text.begin(), text.end()}, Bytes(header.data_bytes(), each_byte)), "f"),
                wanted, "'f'");
        });
    };
    header.add("module.linear1.weight", {3, 5});
    REQUIRE(error_of() == "''f'' has no 'linear1.bias': it is of another model.");
    header.add("module.linear1.bias", {4});
    REQUIRE(error_of() ==
            "''f'' has a 'linear1.bias' that is no float32 of [3]: it is of another model.");
    header.tensors.pop_back();
    header.add("module.linear1.bias", {3});
    REQUIRE(error_of() == "");
    float expected;
    std::memset(&expected, 0x3f, sizeof expected);
    REQUIRE(layer.weight->value.to_host() == std::vector<float>(15, expected));
    REQUIRE(error_of(0xff) ==
            "''f'' has a 'linear1.weight' whose element 0 is infinite or no number: the training "
            "had failed before it was saved. Remove the file, and the one before it is used.");
    REQUIRE(layer.weight->value.to_host() == std::vector<float>(15, expected));
}

TEST_CASE("checkpoint: PyTorch opens it and gives the same outputs, and we open PyTorch's") {
    const TemporaryFolder whole;
    train(2, plan_in(whole.path()));
    DiskFolder folder(whole.path());
    const std::string checkpoint = Checkpoints::file_name(Checkpoints(folder, 1).steps().at(0));

    Device device;
    Random random(99);
    const auto model = make_mlp(device, random, {784, 256, 256, 10});
    std::vector<NamedTensor> tensors;
    for (const auto& parameter : model->parameters())
        tensors.push_back({parameter->name, parameter->value});
    const std::uint64_t before = hash_of(model->parameters());
    load_tensors(decode_safetensors(folder.read(checkpoint), checkpoint), tensors, checkpoint);
    const std::uint64_t trained = hash_of(model->parameters());
    REQUIRE(trained != before);

    constexpr int count = 7;
    std::vector<float> values(count * 784 + count * 10);
    for (std::size_t i = 0; i < count * 784; i++)
        values[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
    Tape tape(device);
    const Tensor images(device, {count, 1, 28, 28},
                        std::vector<float>(values.begin(), values.begin() + count * 784));
    const std::vector<float> logits = model->forward(tape.constant(images)).value().to_host();
    std::copy(logits.begin(), logits.end(), values.begin() + count * 784);
    SafetensorsHeader header;
    header.add("images", {count, 1, 28, 28});
    header.add("logits", {count, 10});
    const std::string text = encode_safetensors(header);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
    save_atomically(folder, "example",
                    {Bytes(text.begin(), text.end()), {bytes, values.size() * sizeof(float)}});

    const auto path = [&](const std::string& name) { return (whole.path() / name).string(); };
    const ChildResult python = run_command(
        {"bash", WITH_PYTORCH, OPEN_IN_PYTORCH, path(checkpoint), path("example"), path("answer")});
    if (python.exit_code == 77) {
        std::cout << python.output << std::flush;
        return;
    }
    CAPTURE(python.output);
    REQUIRE(python.exit_code == 0);
    for (const NamedTensor& tensor : tensors)
        Tensor(tensor.value).copy_from(std::vector<float>(tensor.value.size(), 0));
    load_tensors(decode_safetensors(folder.read("answer"), "answer"), tensors, "answer");
    REQUIRE(hash_of(model->parameters()) == trained);
}

TEST_CASE("mirror: the right pictures, and coins that do not depend on the number of ranks") {
    constexpr int batch = 6;
    Device device;
    std::vector<float> values;
    for (int i = 0; i < batch * 2 * 3 * 5; i++)
        values.push_back(static_cast<float>(i));
    Tensor images(device, {batch, 2, 3, 5}, values);
    Mirrored which;
    which.set(1);
    which.set(4);
    mirror(images, which);
    const std::vector<float> turned = images.to_host();
    for (int i = 0; i < batch * 2 * 3 * 5; i++) {
        const int picture = i / 30, row = i / 5, column = i % 5;
        const int from = picture == 1 || picture == 4 ? row * 5 + 4 - column : i;
        REQUIRE(turned[static_cast<std::size_t>(i)] == values[static_cast<std::size_t>(from)]);
    }
    const auto is_set = [](const Mirrored& mirrored, int i) {
        return (mirrored.bits[i / 64] >> (i % 64) & 1) == 1;
    };
    Random one(3);
    const Mirrored all = toss(one, 210, 0, 1);
    int heads = 0;
    for (const int ranks : {2, 3, 7})
        for (int rank = 0; rank < ranks; rank++) {
            Random same(3);
            const Mirrored own = toss(same, 210 / ranks, rank, ranks);
            for (int i = 0; i < 210 / ranks; i++) {
                REQUIRE(is_set(own, i) == is_set(all, i * ranks + rank));
                heads += is_set(own, i);
            }
            REQUIRE(same.state() == one.state());
        }
    REQUIRE(heads > 3 * 80);
    REQUIRE(heads < 3 * 130);
}

TEST_CASE("random: a state goes on, and what is none is refused") {
    Random first(5);
    for (int i = 0; i < 1000; i++)
        first.below(10);
    Random second(6);
    second.set_state(first.state());
    for (int i = 0; i < 2000; i++)
        REQUIRE(first.below(1000) == second.below(1000));
    const std::string good = first.state();
    for (const std::string& bad :
         {std::string(), std::string("1 2 3"), good + " 5", good.substr(0, good.rfind(' ')),
          good.substr(0, good.rfind(' ')) + " 999", good.substr(0, good.rfind(' ')) + " -9"})
        REQUIRE_THROWS_AS(second.set_state(bad), std::invalid_argument);
    REQUIRE(second.state() == good);
}

}  // namespace ddp::test
