// Models that are not a row of layers: a transformer, with a unit for each block, and a layer that
// two blocks share. Every stage ends in DDP's bits.
#include "22_sharded/blocks.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "03_network/cross_entropy.hpp"
#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"
#include "03_network/optimizers.hpp"
#include "15_overlap/ddp.hpp"
#include "20_transformer/token_loss.hpp"
#include "22_sharded/sharded_checkpoint.hpp"
#include "tests/chapters/support/replicas.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<std::vector<float>>;

constexpr int steps = 3, sentences = 3, length = 7;

const TransformerOptions small{.vocabulary = 13,
                               .width = 12,
                               .heads = 3,
                               .layers = 2,
                               .feed_forward = 17,
                               .longest = 12,
                               .dropout = 0.1};

// A model, its blocks, and its loss on this rank's part of a step.
class Trained {
  public:
    virtual ~Trained() = default;
    virtual Module& model() = 0;
    virtual Blocks blocks() = 0;
    // Makes the batches of all steps.
    virtual void prepare(const Rank& rank) = 0;
    virtual Variable scores(Tape& tape, int step) = 0;
    virtual Variable loss(Variable scores, int step) = 0;
};

class TrainedTransformer : public Trained {
  public:
    TrainedTransformer(Device& device, Random& random, const TransformerOptions& options)
        : device_(device), model_(device, options, random, masks_) {}

    Transformer& model() override { return model_; }
    Blocks blocks() override { return blocks_of(model_); }
    void prepare(const Rank& rank) override {
        rank_ = rank.rank();
        for (int step = 0; step < steps; step++) {
            Random random(static_cast<std::uint64_t>(step * rank.world_size() + rank.rank()) + 100);
            TokenBatch batch{.sentences = sentences, .length = length};
            for (int sentence = 0; sentence < sentences; sentence++)
                for (int i = 0, end = 2 + (sentence + rank.rank()) % 6; i < length; i++)
                    for (std::vector<int>* tokens :
                         {&batch.source, &batch.target_in, &batch.target_out})
                        tokens->push_back(i < end ? 1 + static_cast<int>(random.below(12)) : 0);
            batches_.push_back(to_device(device_, batch));
        }
    }
    Variable scores(Tape& tape, int step) override {
        masks_.begin(
            {.step = static_cast<std::uint64_t>(step), .samples = sentences, .first = rank_});
        const DeviceBatch& batch = batches_.at(static_cast<std::size_t>(step));
        return model_.forward(tape, batch.source, batch.target_in);
    }
    Variable loss(Variable scores, int step) override {
        return token_loss(scores, batches_[static_cast<std::size_t>(step)].target_out, 0.1, 11);
    }

  private:
    Device& device_;
    DropoutMasks masks_{5};
    Transformer model_;
    std::vector<DeviceBatch> batches_;
    int rank_ = 0;
};

// first, shared | second, shared | last
class TwoShare : public Module {
  public:
    TwoShare(Device& device, Random& random)
        : Module("two_share"),
          flatten_("flatten"),
          first_("first", device, 64, 21, random),
          second_("second", device, 21, 21, random),
          shared_("shared", device, 21, 21, random),
          last_("last", device, 21, 10, random) {}

    Variable forward(Variable input) override {
        Variable x = shared_.forward(first_.forward(flatten_.forward(input)));
        x = shared_.forward(second_.forward(end_(x, "one")));
        return end_(last_.forward(end_(x, "two")), "three");
    }
    Parameters parameters() const override { return of({&first_, &second_, &shared_, &last_}); }
    Blocks blocks() {
        return {*this,
                {{"one", of({&first_, &shared_})},
                 {"two", of({&second_, &shared_})},
                 {"three", of({&last_})}},
                [this](EndOfBlock end) { end_ = std::move(end); }};
    }

  private:
    static Parameters of(std::initializer_list<const Linear*> layers) {
        Parameters all;
        for (const Linear* layer : layers)
            for (const auto& parameter : layer->parameters())
                all.push_back(parameter);
        return all;
    }

    Flatten flatten_;
    Linear first_, second_, shared_, last_;
    EndOfBlock end_ = [](Variable x, const std::string&) { return x; };
};

class TrainedTwoShare : public Trained {
  public:
    TrainedTwoShare(Device& device, Random& random) : device_(device), model_(device, random) {}

    Module& model() override { return model_; }
    Blocks blocks() override { return model_.blocks(); }
    void prepare(const Rank& rank) override {
        for (int step = 0; step < steps; step++) {
            const int first = (step * rank.world_size() + rank.rank()) * 2;
            batches_.push_back(batch_of(device_, {first, first + 1}));
        }
    }
    Variable scores(Tape& tape, int step) override {
        return model_.forward(tape.constant(batches_.at(static_cast<std::size_t>(step)).images));
    }
    Variable loss(Variable scores, int step) override {
        return cross_entropy(scores, batches_[static_cast<std::size_t>(step)].labels);
    }

  private:
    Device& device_;
    TwoShare model_;
    std::vector<Batch> batches_;
};

using MakeTrained = std::function<std::unique_ptr<Trained>(Device& device, Random& random)>;

MakeTrained transformer(const TransformerOptions& options) {
    return [options](Device& device, Random& random) {
        return std::make_unique<TrainedTransformer>(device, random, options);
    };
}

// Adam on parameters of full precision, of which the model has copies that are rounded to bfloat16.
class AdamBesideRounded {
  public:
    AdamBesideRounded(Device& device, const Parameters& rounded) : rounded_(rounded) {
        for (const auto& parameter : rounded_) {
            exact_.push_back(std::make_shared<Parameter>(
                parameter->name,
                Tensor(device, parameter->value.shape(), parameter->value.to_host())));
        }
        adam_.emplace(exact_, 0.01);
        round();
    }
    void step() {
        for (std::size_t i = 0; i < exact_.size(); i++)
            exact_[i]->gradient_for_writing().copy_from(rounded_[i]->gradient().to_host());
        adam_->step();
        round();
    }
    void zero_gradients() {
        adam_->zero_gradients();
        for (const auto& parameter : rounded_)
            parameter->clear_gradient();
    }
    const Parameters& exact() const { return exact_; }

  private:
    void round() {
        for (std::size_t i = 0; i < exact_.size(); i++) {
            std::vector<float> values = exact_[i]->value.to_host();
            for (float& value : values)
                value = static_cast<float>(static_cast<__nv_bfloat16>(value));
            rounded_[i]->value.copy_from(values);
        }
    }

    Parameters rounded_, exact_;
    std::optional<Adam> adam_;
};

struct Ending {
    Values learned, frozen;
    ShardedDataParallel::Held held;
    std::size_t received = 0;
    Units units;
};

struct How {
    std::set<std::string> frozen = {};
    ShardOptions options = {};
    bool accumulates = false;  // a step of two batches, of which the first is not reduced
    int last_step = steps;
    std::filesystem::path checkpoints = {};  // where they are, if there are any
    std::optional<NodeShape> nodes = {};     // simulated ones: stage 3 is sharded within each
};

// Some steps of Adam on every rank. Ranks begin with different parameters, or with a checkpoint.
Ending train(Rank& rank, const MakeTrained& make, int stage, const How& how) {
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, test_memory);
    Random random(7 + static_cast<std::uint64_t>(rank.rank()));
    const auto trained = make(device, random);
    Module& model = trained->model();
    for (const auto& parameter : model.parameters())
        parameter->is_frozen = how.frozen.contains(parameter->name);
    const auto communicator =
        make_communicator("native", rank, 4 << 20, {.order = {.shape = how.nodes}});
    std::optional<HybridMesh> hybrid;
    if (how.nodes)
        hybrid.emplace(make_hybrid_mesh(rank, how.nodes, trained->blocks(), how.options));
    trained->prepare(rank);
    Tape tape(device);
    Ending ending;
    ending.units = units_of(trained->blocks(), rank.world_size());
    const auto run = [&](auto& replica, auto& adam, int first, const auto& after_step) {
        const auto learn = [&](int batch) {
            const Variable scores = replica.forward([&] { return trained->scores(tape, batch); });
            replica.backward(trained->loss(scores, batch));
        };
        rank.barrier();
        for (int step = first; step < how.last_step; step++) {
            if (how.accumulates) {
                const auto quiet = replica.no_sync();
                learn((step + 1) % steps);
                tape.clear();
            }
            learn(step);
            adam.step();
            adam.zero_gradients();
            after_step();
            tape.clear();
        }
        communicator->synchronize(device.stream());
    };
    if (stage == 0) {
        DistributedDataParallel ddp(*communicator, device, model);
        ddp.set_state({encode_plan(ending.units.plan), {}});
        Parameters learned = learned_parameters(model.parameters());
        if (how.options.bfloat16) {
            AdamBesideRounded adam(device, learned);
            run(ddp, adam, 0, [] {});
            learned = adam.exact();
        } else {
            Adam adam(model.parameters(), 0.01);
            run(ddp, adam, 0, [] {});
        }
        for (const auto& parameter : learned)
            ending.learned.push_back(parameter->value.to_host());
    } else {
        ShardedDataParallel sharded(hybrid ? std::move(hybrid->mesh) : Mesh(*communicator), device,
                                    trained->blocks(), stage, how.options);
        Adam adam(sharded.chunks(), 0.01);
        ShardedCheckpoints checkpoints(*communicator, device, trained->blocks(), sharded, adam,
                                       {.folder = how.checkpoints}, {});
        checkpoints.resume();
        run(sharded, adam, checkpoints.state().step, [&] {
            sharded.after_step();
            checkpoints.state().step++;
        });
        checkpoints.finish();
        ending.received = sharded.received_bytes() / steps;
        ending.held = sharded.held();
        ending.learned = sharded.whole_parameters();
    }
    for (const auto& parameter : model.parameters())
        if (parameter->is_frozen)
            ending.frozen.push_back(parameter->value.to_host());
    rank.barrier();
    return ending;
}

std::vector<Ending> train_all(int ranks, const MakeTrained& make, int stage, const How& how = {}) {
    World world(thread_options(ranks));
    std::vector<Ending> endings(static_cast<std::size_t>(ranks));
    world.run([&](Rank& rank) {
        endings[static_cast<std::size_t>(rank.rank())] = train(rank, make, stage, how);
    });
    return endings;
}

void require_bits_of_ddp(int ranks, const MakeTrained& make, const How& how = {}) {
    const Ending replicated = train_all(ranks, make, 0, how)[0];
    REQUIRE(replicated.frozen.size() == how.frozen.size());
    for (const int stage : {1, 2, 3}) {
        CAPTURE(ranks, stage);
        for (const Ending& ending : train_all(ranks, make, stage, how)) {
            REQUIRE(ending.learned == replicated.learned);
            REQUIRE(ending.frozen == replicated.frozen);
        }
    }
}

}  // namespace

TEST_CASE("sharded: a transformer ends in DDP's bits at every stage, on 1, 3 and 4 ranks") {
    for (const int ranks : {1, 3, 4})
        require_bits_of_ddp(ranks, transformer(small));
}

TEST_CASE("sharded: a transformer with three tables, and one that begins with frozen parameters") {
    TransformerOptions options = small;
    options.tie_embeddings = options.norm_first = false;
    require_bits_of_ddp(3, transformer(options));
    // The table, a whole norm that no block has, and a part of a block.
    require_bits_of_ddp(
        3, transformer(small),
        {.frozen = {"embedding.weight", "encoder.norm.weight", "encoder.norm.bias",
                    "encoder.layers.1.linear1.weight", "decoder.layers.1.norm1.bias"}});
}

TEST_CASE(
    "sharded: a transformer goes on from its checkpoint in DDP's bits, and 2 ranks have them") {
    const Values replicated = train_all(3, transformer(small), 0)[0].learned;
    const TemporaryFolder folder;
    train_all(3, transformer(small), 2, {.last_step = 2, .checkpoints = folder / "x"});
    for (const int ranks : {3, 2})  // three take the last step, and two only read what they saved
        for (const Ending& ending :
             train_all(ranks, transformer(small), 3, {.checkpoints = folder / "x"}))
            REQUIRE(ending.learned == replicated);
    // One file of the parts that two ranks have saved: each parameter as a whole, by its name.
    DiskFolder target(folder / "whole");
    World world(thread_options(1));
    world.run([&](Rank& rank) {
        rank.select_device();
        auto& device = make_run_scoped<Device>(rank, test_memory);
        Random random(1);
        TrainedTransformer other(device, random, small);
        REQUIRE(save_whole_checkpoint(folder / "x", other.blocks(), target) == steps);
        std::vector<std::string> errors;
        const auto whole = Checkpoints(target, 1).newest(errors);
        const Parameters parameters = other.model().parameters();
        for (std::size_t i = 0; i < parameters.size(); i++)
            REQUIRE(whole->file.values(*whole->file.find(parameters[i]->name)) == replicated.at(i));
    });
}

TEST_CASE("sharded: a transformer on two nodes of two ranks ends in the bits of DDP on them") {
    const How on_nodes{.nodes = NodeShape{2, 2}};
    const Values replicated = train_all(4, transformer(small), 0, on_nodes)[0].learned;
    for (const Ending& ending : train_all(4, transformer(small), 3, on_nodes))
        REQUIRE(ending.learned == replicated);
}

TEST_CASE("sharded: a layer that two blocks use is the root's") {
    const MakeTrained make = [](Device& device, Random& random) {
        return std::make_unique<TrainedTwoShare>(device, random);
    };
    require_bits_of_ddp(3, make);
    const Units units = train_all(2, make, 3)[0].units;
    REQUIRE(units.first_block == 1);
    std::vector<std::string> names;
    for (const Unit& unit : units.units)
        for (const auto& parameter : unit.parameters)
            names.push_back(unit.name + " " + parameter->name);
    REQUIRE(names == std::vector<std::string>{"root shared.weight", "root shared.bias",
                                              "one first.weight", "one first.bias",
                                              "two second.weight", "two second.bias",
                                              "three last.weight", "three last.bias"});
}

TEST_CASE("sharded: a transformer has a unit for each block, and what a rank keeps and receives") {
    constexpr std::size_t ranks = 3;
    const auto stage = [](int number) { return train_all(ranks, transformer(small), number)[1]; };
    const Ending three = stage(3);
    const std::vector<Unit>& units = three.units.units;
    REQUIRE(units.size() == 1 + 2 * 2);
    REQUIRE(units[0].parameters.size() == 5);   // the table, and two norms
    REQUIRE(units[2].parameters.size() == 16);  // of an encoder's layer
    REQUIRE(units[3].parameters.size() == 26);
    REQUIRE(units[3].name == "decoder layer 0");
    std::size_t chunks = 0, largest = 0;
    for (const Unit& unit : units) {
        chunks += unit.chunk * sizeof(float);
        largest = std::max(largest, ranks * unit.chunk * sizeof(float));
    }
    const std::size_t root = ranks * units[0].chunk * sizeof(float);
    REQUIRE(three.held.parameters == chunks + root + 2 * largest);
    REQUIRE(three.held.gradients == chunks + root + 2 * largest);
    // All are gathered twice but the root, and the two blocks that are there when backward begins.
    std::size_t once = 0;
    for (const std::size_t unit : {0, 3, 4})
        once += units[unit].chunk * sizeof(float);
    REQUIRE(three.received == (ranks - 1) * (3 * chunks - once));
    const Ending two = stage(2);
    REQUIRE(two.held.parameters == ranks * chunks);
    REQUIRE(two.held.gradients == chunks + root + 2 * largest);
    REQUIRE(two.received == 2 * (ranks - 1) * chunks);
}

TEST_CASE(
    "sharded: units that stay whole after forward are gathered once, and the bits are DDP's") {
    constexpr std::size_t ranks = 3;
    const auto ending = [](int stage, bool reshards) {
        return train_all(ranks, transformer(small), stage,
                         {.options = {.reshard_after_forward = reshards}})[1];
    };
    const Ending whole = ending(3, false);
    REQUIRE(whole.learned == ending(0, true).learned);
    std::size_t chunks = 0;
    for (const Unit& unit : whole.units.units)
        chunks += unit.chunk * sizeof(float);
    REQUIRE(whole.held.parameters == chunks + ranks * chunks);
    REQUIRE(whole.held.gradients == ending(3, true).held.gradients);
    REQUIRE(whole.received == 2 * (ranks - 1) * chunks);
}

TEST_CASE("sharded: gathered as bfloat16, it is DDP with rounded parameters, for fewer bytes") {
    const How rounds{.options = {.bfloat16 = true}};
    for (const int ranks : {1, 2, 3, 4}) {
        CAPTURE(ranks);
        const Values replicated = train_all(ranks, transformer(small), 0, rounds)[0].learned;
        for (const Ending& ending : train_all(ranks, transformer(small), 3, rounds))
            REQUIRE(ending.learned == replicated);
    }
    constexpr std::size_t ranks = 3;
    const Ending exact = train_all(ranks, transformer(small), 3)[1];
    const Ending rounded = train_all(ranks, transformer(small), 3, rounds)[1];
    REQUIRE(rounded.learned != exact.learned);
    // A gradient stays a float: a third of the bytes and a little more.
    std::size_t reduced = 0, longest = 0;
    for (const Unit& unit : exact.units.units) {
        reduced += (ranks - 1) * unit.chunk * sizeof(float);
        longest = std::max(longest, unit.chunk);
    }
    REQUIRE(rounded.received - reduced == (exact.received - reduced) / 2);
    // Room for a chunk and for all chunks of a unit, with two bytes for an element.
    REQUIRE(rounded.held.parameters == exact.held.parameters + (1 + ranks) * longest * 2);
    REQUIRE(rounded.held.gradients == exact.held.gradients);
}

TEST_CASE("sharded: gathered as bfloat16 on nodes, with units that stay, from a checkpoint") {
    How rounds{.options = {.bfloat16 = true}, .nodes = NodeShape{2, 2}};
    const auto ending = [&](int stage) { return train_all(4, transformer(small), stage, rounds); };
    REQUIRE(ending(3)[3].learned == ending(0)[0].learned);
    rounds = {.options = {.reshard_after_forward = false, .bfloat16 = true}};
    const Values replicated = ending(0)[0].learned;
    REQUIRE(ending(3)[2].learned == replicated);
    // What is saved is exact: a training that goes on has the same bits.
    const TemporaryFolder folder;
    rounds.checkpoints = folder / "x";
    for (const int last_step : {2, steps}) {
        rounds.last_step = last_step;
        const Values learned = ending(3)[1].learned;
        REQUIRE((learned == replicated) == (last_step == steps));
    }
}

TEST_CASE("sharded: gradients of several batches add up without communication, to DDP's bits") {
    const How how{.options = {.keep_gradients = true}, .accumulates = true};
    require_bits_of_ddp(3, transformer(small), how);
    const auto received = [](const How& how) {
        return train_all(2, transformer(small), 3, how)[0].received;
    };
    std::size_t root_and_chunks = 0;  // the first batch gathers blocks, and reduces nothing
    const Units units = train_all(2, transformer(small), 3)[0].units;
    for (std::size_t unit = 1; unit < units.units.size(); unit++)
        root_and_chunks += units.units[unit].chunk * sizeof(float);
    REQUIRE(received(how) < received({}) + 2 * root_and_chunks);
    REQUIRE(received(how) > received({}));
}

namespace {

// The gradients of a small transformer's chunks, of one batch or of several that are reduced one by
// one. There is no step between them.
class BatchGradients {
  public:
    BatchGradients(Rank& rank, int stage, const ShardOptions& options = {})
        : device_(selected_device(rank)),
          random_(1),
          trained_(device_, random_, small),
          communicator_(make_native_communicator(rank, 8 << 20)) {
        trained_.prepare(rank);
        sharded_.emplace(*communicator_, device_, trained_.blocks(), stage, options);
    }
    std::vector<float> of(const std::vector<int>& batches) {
        for (const auto& chunk : sharded_->chunks())
            chunk->clear_gradient();
        for (const int batch : batches) {
            Tape tape(device_);
            const Variable scores = sharded_->forward([&] { return trained_.scores(tape, batch); });
            sharded_->backward(trained_.loss(scores, batch));
            communicator_->synchronize(device_.stream());
        }
        std::vector<float> all;
        for (const auto& chunk : sharded_->chunks())
            for (const float gradient : chunk->gradient().to_host())
                all.push_back(gradient);
        return all;
    }

  private:
    static Device& selected_device(Rank& rank) {
        rank.select_device();
        return make_run_scoped<Device>(rank, test_memory);
    }
    Device& device_;
    Random random_;
    TrainedTransformer trained_;
    std::unique_ptr<Communicator> communicator_;
    std::optional<ShardedDataParallel> sharded_;
};

}  // namespace

TEST_CASE("sharded: batches that are reduced one by one add up in the chunks") {
    for (const int ranks : {1, 3})
        for (const ShardOptions& options : {ShardOptions{}, ShardOptions{.keep_gradients = true}})
            for (const int stage : {2, 3}) {
                World world(thread_options(ranks));
                const std::string failure = failure_of(world, [&](Rank& rank) {
                    BatchGradients gradients(rank, stage, options);
                    const std::vector<float> first = gradients.of({0}), second = gradients.of({1});
                    const std::vector<float> both = gradients.of({0, 1});
                    for (std::size_t i = 0; i < both.size(); i++)
                        if (both[i] != first[i] + second[i])
                            throw std::runtime_error("element " + std::to_string(i));
                    if (both == first || both == second)
                        throw std::runtime_error("nothing was added");
                });
                CAPTURE(ranks, stage, options.keep_gradients);
                REQUIRE(failure == "");
            }
}

TEST_CASE("sharded: accumulation that would lose gradients is refused") {
    World world(thread_options(2));
    const std::string lost = failure_of(
        world, [&](Rank& rank) { train(rank, transformer(small), 2, {.accumulates = true}); });
    REQUIRE(has(lost, "no_sync at stages 2 and 3 needs ShardOptions::keep_gradients"));
    const std::string twice = failure_of(world, [&](Rank& rank) {
        BatchGradients gradients(rank, 1);
        gradients.of({0, 1});
    });
    REQUIRE(has(twice, "the chunks still have gradients"));
}

}  // namespace ddp::test
