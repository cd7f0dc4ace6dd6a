// Checkpoints of which each rank writes its part: any number of ranks goes on from them, at any
// stage, and nobody goes on from half of one.
#include <condition_variable>

#include "03_network/cross_entropy.hpp"
#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "15_overlap/ddp.hpp"
#include "19_checkpoint_failover/state/resume.hpp"
#include "22_sharded/sharded_checkpoint.hpp"
#include "common/data/file.hpp"
#include "common/report/options.hpp"
#include "tests/chapters/support/replicas.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

namespace fs = std::filesystem;
using Values = std::vector<std::vector<float>>;

struct Part {
    int ranks = 4, stage = 3;
    int last_step = 6;
    bool is_adam = true;
    int every = 100, keep = 1;
    std::string seed = "7";   // in the configuration alone
    std::uint64_t start = 7;  // of the model, before it is loaded
    Saver::OnEvent on_event = {};
    std::function<void(ShardedCheckpoints&)> after_resume = [](ShardedCheckpoints&) {};
};

struct Model {
    explicit Model(Rank& rank, std::uint64_t start = 7)
        : device((rank.select_device(), make_run_scoped<Device>(rank, test_memory))),
          random(start + static_cast<std::uint64_t>(rank.rank())),
          model(make_mlp(device, random, {64, 37, 29, 23, 10})) {
        model->parameters()[2]->is_frozen = true;  // linear2.weight
    }

    Blocks blocks() { return blocks_of(*model); }

    Device& device;
    Random random;
    const std::unique_ptr<Sequential> model;
};

std::unique_ptr<Optimizer> optimizer_for(bool is_adam, const Parameters& parameters) {
    if (is_adam)
        return std::make_unique<Adam>(parameters, 0.01);
    return std::make_unique<Sgd>(parameters, 0.05, 0.9, 0.01);
}

// Makes this rank's batch of a step.
Batch batch_at(const Rank& rank, Device& device, int step) {
    const int first = (step * rank.world_size() + rank.rank()) * 3;
    return batch_of(device, {first, first + 1, first + 2});
}

// Trains up to the part's last step on this rank, from the newest checkpoint on. Returns the
// parameters that are learned.
Values train_part(Rank& rank, const fs::path& folder, const Part& part) {
    Model made(rank, part.start);
    const auto communicator = make_native_communicator(rank, 4 << 20);
    ShardedDataParallel sharded(*communicator, made.device, made.blocks(), part.stage);
    const auto optimizer = optimizer_for(part.is_adam, sharded.chunks());
    ShardedCheckpoints run(*communicator, made.device, made.blocks(), sharded, *optimizer,
                           {.folder = folder, .every = part.every, .keep = part.keep},
                           {{"seed", part.seed}}, part.on_event);
    run.resume();
    part.after_resume(run);
    Tape tape(made.device);
    while (run.state().step < part.last_step) {
        const Batch batch = batch_at(rank, made.device, run.state().step);
        sharded.backward(cross_entropy(sharded.forward(tape.constant(batch.images)), batch.labels));
        run.wait_for_copy();
        optimizer->step();
        optimizer->zero_gradients();
        sharded.after_step();
        tape.clear();
        run.state().step++;
        run.save_if_due();
    }
    run.finish();
    Values values = sharded.whole_parameters();
    rank.barrier();
    return values;
}

// Returns what rank 0 has at the end. All ranks have the same.
Values train_part(const fs::path& folder, const Part& part) {
    World world(thread_options(part.ranks));
    std::vector<Values> values(static_cast<std::size_t>(part.ranks));
    world.run([&](Rank& rank) {
        values[static_cast<std::size_t>(rank.rank())] = train_part(rank, folder, part);
    });
    for (const Values& each : values)
        REQUIRE(each == values[0]);
    return values[0];
}

std::string failure_of_part(const fs::path& folder, const Part& part) {
    World world(thread_options(part.ranks));
    return failure_of(world, [&](Rank& rank) { train_part(rank, folder, part); });
}

// Returns what is said where folder/x should become one file.
std::string failure_of_whole(const TemporaryFolder& folder) {
    DiskFolder target(folder / "whole");
    World world(thread_options(1));
    return failure_of(world, [&](Rank& rank) {
        save_whole_checkpoint(folder / "x", Model(rank).blocks(), target);
    });
}

// Returns the tensors of all files that so many ranks have saved at this step, by rank and name.
std::map<std::string, std::vector<float>> saved_tensors(const fs::path& folder, int step,
                                                        int ranks) {
    std::map<std::string, std::vector<float>> tensors;
    for (int rank = 0; rank < ranks; rank++) {
        const Safetensors file = ShardFiles(folder).read({step, ranks}, rank);
        for (const auto& entry : file.header.tensors)
            tensors[std::to_string(rank) + " " + entry.name] = file.values(entry);
    }
    return tensors;
}

void remove_rank(const fs::path& folder, int rank) {
    fs::remove_all(ShardFiles(folder).of_rank(rank, 4));
}

fs::path file_of(const fs::path& folder, int rank, int step, int ranks = 4) {
    return ShardFiles(folder).of_rank(rank, ranks) / Checkpoints::file_name(step);
}

}  // namespace

TEST_CASE("sharded checkpoint: from any stage to any other, the end is the same to the bit") {
    for (const bool is_adam : {true, false}) {
        const TemporaryFolder all;
        const Values whole = train_part(all / "x", {.is_adam = is_adam});
        using Stages = std::vector<std::pair<int, int>>;
        for (const auto& [from, to] : is_adam ? Stages{{1, 3}, {3, 2}, {2, 1}} : Stages{{3, 3}}) {
            CAPTURE(is_adam, from, to);
            const TemporaryFolder folder;
            train_part(folder / "x", {.stage = from, .last_step = 3, .is_adam = is_adam});
            int resumed = 0;
            const Values rest = train_part(
                folder / "x",
                {.stage = to,
                 .is_adam = is_adam,
                 .start = 99,
                 .after_resume = [&](ShardedCheckpoints& run) { resumed = run.state().step; }});
            REQUIRE(resumed == 3);
            REQUIRE(rest == whole);
        }
    }
}

TEST_CASE("sharded checkpoint: another number of ranks has the same bits of all, and back") {
    for (const int others : {1, 3, 7}) {
        CAPTURE(others);
        const TemporaryFolder folder;
        const Values before = train_part(folder / "x", {.last_step = 3});
        const auto saved = saved_tensors(folder / "x", 3, 4);
        REQUIRE(saved.size() == 4 * 4 * 3 + 1);  // linear2 has its bias alone; rank 0, the frozen
        // They load it, and save it again without a step.
        REQUIRE(train_part(folder / "x", {.ranks = others, .last_step = 3}) == before);
        for (const int rank : {0, 1, 2, 3})
            remove_rank(folder / "x", rank);
        REQUIRE(train_part(folder / "x", {.last_step = 3}) == before);
        REQUIRE(saved_tensors(folder / "x", 3, 4) == saved);
        // And they train.
        REQUIRE(train_part(folder / "x", {.ranks = others, .last_step = 4}) != before);
    }
}

// 19's reader, and its training: the buckets of the file are the units.
TEST_CASE("sharded checkpoint: DistributedDataParallel goes on from the whole file, in one hash") {
    for (const bool is_adam : {true, false}) {
        CAPTURE(is_adam);
        const TemporaryFolder folder;
        const Values sharded = train_part(folder / "all", {.is_adam = is_adam});
        train_part(folder / "x", {.last_step = 3, .is_adam = is_adam});
        World world(thread_options(4));
        world.run([&](Rank& rank) {
            Model made(rank);
            if (rank.rank() == 0) {
                DiskFolder target(folder / "whole");
                REQUIRE(save_whole_checkpoint(folder / "x", made.blocks(), target) == 3);
            }
            rank.barrier();
            const auto communicator = make_native_communicator(rank, 8 << 20);
            DistributedDataParallel ddp(*communicator, made.device, *made.model);
            const auto optimizer =
                optimizer_for(is_adam, learned_parameters(made.model->parameters()));
            CheckpointedRun run(*communicator, made.device, *made.model, *optimizer,
                                {.folder = folder / "whole"}, {{"seed", "7"}});
            run.set_hooks({.after_resume = [&](const TrainingState& state) {
                ddp.set_state(state.buckets);
            }});
            REQUIRE(run.resume() == 0);
            Tape tape(made.device);
            for (TrainingState& state = run.state(); state.step < 6; state.step++) {
                const Batch batch = batch_at(rank, made.device, state.step);
                ddp.backward(cross_entropy(ddp.forward(tape.constant(batch.images)), batch.labels));
                optimizer->step();
                optimizer->zero_gradients();
                tape.clear();
            }
            communicator->synchronize(made.device.stream());
            Values replicated;
            for (const auto& parameter : made.model->parameters())
                if (!parameter->is_frozen)
                    replicated.push_back(parameter->value.to_host());
            REQUIRE(replicated == sharded);
            rank.barrier();
        });
    }
}

TEST_CASE("sharded checkpoint: a file that is missing or damaged is refused in one sentence") {
    const TemporaryFolder folder;
    const Values whole = train_part(folder / "x", {.every = 3, .keep = 2});  // at steps 3 and 6
    const auto damage = [&](int step) {
        std::fstream file(file_of(folder / "x", 2, step), std::ios::in | std::ios::out);
        file.seekp(-5, std::ios::end);
        file.put('\x55');
    };
    // The newest lacks a rank's file: the one before it is used, and ends in the same bits.
    fs::remove(file_of(folder / "x", 1, 6));
    REQUIRE_THAT(failure_of_whole(folder),
                 ContainsSubstring("'rank-1-of-4/checkpoint-00000006.safetensors' is "
                                   "missing: a checkpoint of 4 ranks takes "
                                   "the files of all of them."));
    int resumed = 0;
    REQUIRE(train_part(folder / "x",
                       {.every = 3, .keep = 2, .after_resume = [&](ShardedCheckpoints& run) {
                            resumed = run.state().step;
                        }}) == whole);
    REQUIRE(resumed == 3);
    // None is whole.
    for (const int rank : {0, 1, 2, 3})
        fs::remove(file_of(folder / "x", rank, 0));
    fs::remove(file_of(folder / "x", 1, 6));
    damage(3);
    const std::string failure = failure_of_part(folder / "x", Part{.ranks = 3});
    REQUIRE_THAT(failure, ContainsSubstring("no checkpoint in '"));
    REQUIRE_THAT(failure,
                 ContainsSubstring("rank-1-of-4/checkpoint-00000006.safetensors' is missing"));
    fs::remove(file_of(folder / "x", 0, 6));
    for (const int rank : {2, 3})
        fs::remove(file_of(folder / "x", rank, 6));
    REQUIRE_THAT(
        failure_of_part(folder / "x", Part{}),
        ContainsSubstring("'rank-2-of-4/checkpoint-00000003.safetensors' is damaged: its "
                          "checksum does not match its bytes. Put the right files back, or "
                          "remove all to begin again."));
    // Another training, and another optimizer.
    const TemporaryFolder other;
    train_part(other / "x", {.last_step = 1});
    REQUIRE_THAT(failure_of_part(other / "x", Part{.seed = "8"}),
                 ContainsSubstring("a training whose seed was 7, and now it is 8"));
    REQUIRE_THAT(failure_of_part(other / "x", Part{.is_adam = false}),
                 ContainsSubstring("'optimizer.linear1.momentum_buffer': it is of another model."));
}

// A restored backup, an rsync that has stopped, a copy into the wrong folder: each file is whole.
TEST_CASE(
    "sharded checkpoint: files of one step that do not belong together are not a checkpoint") {
    const TemporaryFolder all;
    const Part part{.every = 2, .keep = 3};
    const Values right = train_part(all / "right", part);
    train_part(all / "again", part);
    train_part(all / "other", {.every = 2, .keep = 3, .seed = "8", .start = 8});
    const auto take_rank_1_of = [&](const char* training) {
        return [=, &all](const fs::path& folder) {
            remove_rank(folder, 1);
            fs::copy(ShardFiles(all / training).of_rank(1, 4), ShardFiles(folder).of_rank(1, 4));
        };
    };
    struct Mix {
        const char* name;
        std::function<void(const fs::path& folder)> mix;
        const char* says;
        bool has_older = false;
    };
    const Mix mixes[] = {
        {"another training", take_rank_1_of("other"),
         "'rank-1-of-4/checkpoint-00000006.safetensors' is of another training than rank 0's file: "
         "its 'configuration.seed' differs."},
        {"another training with the same options", take_rank_1_of("again"),
         "its 'configuration.training' differs."},
        {"exchanged",
         [](const fs::path& folder) {
             const ShardFiles files(folder);
             fs::rename(files.of_rank(1, 4), folder / "x");
             fs::rename(files.of_rank(2, 4), files.of_rank(1, 4));
             fs::rename(folder / "x", files.of_rank(2, 4));
         },
         "'rank-1-of-4/checkpoint-00000006.safetensors' does not say that its rank is 1"},
        {"copies of rank 0's",
         [](const fs::path& folder) {
             for (const int rank : {1, 2, 3}) {
                 remove_rank(folder, rank);
                 fs::copy(ShardFiles(folder).of_rank(0, 4), ShardFiles(folder).of_rank(rank, 4));
             }
         },
         "does not say that its rank is 1"},
        {"another step under its name",
         [](const fs::path& folder) {
             fs::copy(file_of(folder, 1, 2), file_of(folder, 1, 6),
                      fs::copy_options::overwrite_existing);
         },
         "does not say that its step is 6", true},
        {"sealed, with another plan",
         [](const fs::path& folder) {
             Safetensors file = ShardFiles(folder).read({6, 4}, 1);
             file.header.metadata["bucket_plan"] = "nonsense";
             DiskFolder of_rank(ShardFiles(folder).of_rank(1, 4));
             Checkpoints checkpoints(of_rank, 9);
             checkpoints.begin_generation(9);
             checkpoints.save(6, file.header, file.data());
         },
         "its 'bucket_plan' differs.", true}};
    for (const auto& [name, mix, says, has_older] : mixes) {
        CAPTURE(name);
        const TemporaryFolder folder;
        fs::copy(all / "right", folder / "x", fs::copy_options::recursive);
        mix(folder / "x");
        REQUIRE_THAT(failure_of_whole(folder), ContainsSubstring(says));
        if (!has_older) {
            REQUIRE_THAT(failure_of_part(folder / "x", part), ContainsSubstring(says));
            continue;
        }
        int resumed = 0;
        REQUIRE(train_part(folder / "x", {.after_resume = [&](ShardedCheckpoints& run) {
                               resumed = run.state().step;
                           }}) == right);
        REQUIRE(resumed == 4);
    }
}

TEST_CASE("sharded checkpoint: killed while the start was saved, it begins again") {
    const TemporaryFolder folder;
    const Values whole = train_part(folder / "all", {});
    train_part(folder / "x", {.last_step = 0});
    fs::remove(file_of(folder / "x", 2, 0));
    REQUIRE(train_part(folder / "x", {.every = 2, .keep = 2}) == whole);
    // A kill within the first save of a step: the start is there.
    for (const int step : {2, 4, 6})
        fs::remove(file_of(folder / "x", 2, step));
    int resumed = -1;
    REQUIRE(train_part(folder / "x", {.after_resume = [&](ShardedCheckpoints& run) {
                           resumed = run.state().step;
                       }}) == whole);
    REQUIRE(resumed == 0);
}

// Rank 1's disk is slow: it is still writing step 2 when the other ranks have written step 3. What
// is on the disks then is what a power failure would leave.
TEST_CASE("sharded checkpoint: a rank that is two checkpoints behind leaves a whole one") {
    const TemporaryFolder folder;
    std::mutex mutex;
    std::condition_variable changed;
    int saved_third = 0;
    World world(thread_options(4));
    world.run([&](Rank& rank) {
        train_part(rank, folder / "x",
                   {.last_step = 4,
                    .every = 1,
                    .keep = 1,
                    .on_event = [&, me = rank.rank()](const std::string& what, int step) {
                        std::unique_lock lock(mutex);
                        if (me != 1 && what == "saved" && step == 3) {
                            saved_third++;
                            changed.notify_all();
                        }
                        if (me == 1 && what == "saving" && step == 2) {
                            REQUIRE(changed.wait_for(lock, std::chrono::seconds(20),
                                                     [&] { return saved_third == 3; }));
                            fs::copy(folder / "x", folder / "left", fs::copy_options::recursive);
                        }
                    }});
    });
    REQUIRE(!fs::exists(file_of(folder / "left", 1, 2)));
    REQUIRE(fs::exists(file_of(folder / "left", 0, 3)));
    int resumed = 0;
    train_part(folder / "left", {.last_step = 4, .after_resume = [&](ShardedCheckpoints& run) {
                                     resumed = run.state().step;
                                 }});
    REQUIRE(resumed == 1);
}

// Four ranks have saved step 4, but for one of them. Three ranks go on from step 2.
TEST_CASE(
    "sharded checkpoint: an earlier start of more ranks saves no more, nor do its files count") {
    const TemporaryFolder folder;
    train_part(folder / "x", {.last_step = 2});
    DiskFolder old_folder(ShardFiles(folder / "x").of_rank(3, 4));
    Checkpoints old(old_folder, 3);
    old.begin_generation(old.newest_generation());
    train_part(folder / "x", {.last_step = 4});
    fs::remove(file_of(folder / "x", 3, 4));
    train_part(folder / "x", {.ranks = 3, .last_step = 2});
    for (const int rank : {0, 1, 2})
        REQUIRE(!fs::exists(file_of(folder / "x", rank, 4)));
    // The rank that has not saved step 4 was only stopped, and wakes up.
    SafetensorsHeader header;
    header.add("x", {1});
    REQUIRE_THROWS_WITH(old.save(4, header, std::vector<std::uint8_t>(4)),
                        ContainsSubstring("this one ends and writes nothing more"));
}

}  // namespace ddp::test
