// Checkpoints in a folder, and what a checkpoint records about a training run.
#include "19_checkpoint_failover/state/checkpoints.hpp"

#include <sys/resource.h>

#include <csignal>
#include <set>

#include "19_checkpoint_failover/training_state.hpp"
#include "common/report/options.hpp"
#include "exercises/support/crashing_folder.hpp"
#include "tests/common/data/files.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/text.hpp"

namespace ddp::test {
namespace {

constexpr int never = -1;

SafetensorsHeader header_of(int step) {
    SafetensorsHeader header;
    header.add("weight", {3, 7});
    header.metadata["step"] = std::to_string(step);
    return header;
}

Bytes data_of(int step) {
    Bytes data = counting(84);
    data[0] = static_cast<std::uint8_t>(step);
    return data;
}

void save(Checkpoints& checkpoints, int step) {
    checkpoints.save(step, header_of(step), data_of(step));
}

TrainingState example_state() {
    TrainingState state;
    state.step = 120;
    state.samples = 61'440;
    state.epoch = 2;
    state.taken = 1'440;
    state.random = "5 6 7";
    state.buckets = {"plan of\nlines", {2, 0, 1}};
    state.configuration = {{"batch", "64"}, {"seed", "1"}};
    state.optimizer_numbers = {{"linear1.weight.step", 7}};
    return state;
}

std::string error_of(const std::map<std::string, std::string>& metadata) {
    return data_error([&] { to_state(metadata, "file"); });
}

}  // namespace

TEST_CASE("checkpoints: the last ones are kept, and the newest is found") {
    CrashingFolder folder({{"mine.txt", {1}},
                           {"checkpoint-00000003.safetensors.unfinished", {1, 2}},
                           {"checkpoint-1.safetensors", {1}}},
                          never);
    Checkpoints checkpoints(folder, 3);
    std::vector<std::string> errors;
    REQUIRE(!checkpoints.newest(errors));
    for (const int step : {10, 20, 30, 40, 50})
        save(checkpoints, step);
    REQUIRE(checkpoints.steps() == std::vector<int>{50, 40, 30});
    REQUIRE(folder.names().size() == 5);  // with what is not ours
    const std::optional<Checkpoint> newest = checkpoints.newest(errors);
    REQUIRE(errors.empty());
    REQUIRE(newest->step == 50);
    REQUIRE(newest->file.header.metadata.at("step") == "50");
    REQUIRE(newest->file.data()[0] == 50);
    // A training run that went back to step 30 writes a 35 of its own.
    save(checkpoints, 35);
    REQUIRE(checkpoints.steps() == std::vector<int>{35, 30});
    save(checkpoints, 35);
    REQUIRE(checkpoints.steps() == std::vector<int>{35, 30});
}

TEST_CASE("checkpoints: damaged ones are named, and the one before is used") {
    CrashingFolder folder({}, never);
    Checkpoints checkpoints(folder, 5);
    for (const int step : {1, 2, 3, 4})
        save(checkpoints, step);
    Bytes flipped = with_bit_flipped(folder.read(Checkpoints::file_name(3)), 8 * 190);
    folder.write(Checkpoints::file_name(3), {flipped});
    const Bytes cut = shortened(folder.read(Checkpoints::file_name(4)), 200);
    folder.write(Checkpoints::file_name(4), {cut});
    std::vector<std::string> errors;
    REQUIRE(checkpoints.newest(errors)->step == 2);
    REQUIRE(errors.size() == 2);
    REQUIRE(
        errors[0].starts_with("'checkpoint-00000004.safetensors' is not a whole safetensors "
                              "file: "));
    REQUIRE(errors[1] ==
            "'checkpoint-00000003.safetensors' is damaged: its checksum does not match its bytes.");
}

TEST_CASE("checkpoints: every bit counts") {
    CrashingFolder folder({}, never);
    Checkpoints checkpoints(folder, 1);
    save(checkpoints, 7);
    const Bytes good = folder.read(Checkpoints::file_name(7));
    for (std::size_t bit = 0; bit < 8 * good.size(); bit++) {
        CAPTURE(bit);
        REQUIRE(data_error([&] { read_checkpoint(7, with_bit_flipped(good, bit), "f"); }) != "");
    }
    REQUIRE(data_error([&] { read_checkpoint(7, good, "f"); }) == "");
    const std::string plain = encode_safetensors(header_of(7));
    REQUIRE(data_error([&] {
                read_checkpoint(7, joined({plain.begin(), plain.end()}, data_of(7)), "f");
            }) == "'f' has no checksum: this program has not written it.");
}

TEST_CASE("checkpoints: one that another program has laid out otherwise is whole") {
    SafetensorsHeader ours;
    ours.add("bias", {1});
    ours.add("weight", {2});
    ours.metadata["step"] = "7";
    const Bytes data = counting(12);
    const std::string text = seal(ours, data);
    const Bytes file = joined({text.begin(), text.end()}, data);
    // Python's safetensors reads it and writes it again: the texts stay, the tensors change places.
    SafetensorsHeader theirs;
    theirs.add("weight", {2});
    theirs.add("bias", {1});
    theirs.metadata = decode_safetensors(file, "f").header.metadata;
    const std::string other_text = encode_safetensors(theirs);
    Bytes moved(data.begin() + 4, data.end());
    moved.insert(moved.end(), data.begin(), data.begin() + 4);
    const auto error_of_file = [&](const Bytes& tensors) {
        return data_error([&] {
            read_checkpoint(7, joined({other_text.begin(), other_text.end()}, tensors), "f");
        });
    };
    REQUIRE(error_of_file(moved) == "");
    REQUIRE(error_of_file(data) == "'f' is damaged: its checksum does not match its bytes.");
}

TEST_CASE("checkpoints: a whole one is there wherever saving crashes") {
    for (int call = 0; call < 20; call++) {
        CrashingFolder first({}, never);
        Checkpoints before(first, 2);
        save(before, 1);
        save(before, 2);
        CrashingFolder second(first.after_kill(), call);
        Checkpoints during(second, 2);
        bool is_done = true;
        try {
            save(during, 3);
        } catch (const Crash&) {
            is_done = false;
        }
        std::vector<Left> all = second.after_power_failure();
        all.push_back({second.after_kill(), ""});
        for (const auto& [left, lost] : all) {
            CrashingFolder third(left, never);
            std::vector<std::string> errors;
            const auto newest = Checkpoints(third, 2).newest(errors);
            REQUIRE(errors.empty());
            REQUIRE(newest->step >= (is_done ? 3 : 2));
        }
    }
}

// A folder on the disk whose writer is stopped before its next call of `call`, and wakes up when
// `meanwhile` is over.
class StoppingFolder final : public Folder {
  public:
    explicit StoppingFolder(DiskFolder& folder) : folder_(folder) {}

    void stop_before(const std::string& call, std::function<void()> meanwhile) {
        call_ = call;
        meanwhile_ = std::move(meanwhile);
    }

    bool make() override { return folder_.make(); }
    void write(const std::string& name, std::initializer_list<ddp::Bytes> parts) override {
        begin("write");
        folder_.write(name, parts);
    }
    void sync(const std::string& name) override { folder_.sync(name); }
    void rename(const std::string& from, const std::string& to) override {
        begin("rename");
        folder_.rename(from, to);
    }
    void sync_names() override {
        begin("sync_names");
        folder_.sync_names();
    }
    void remove(const std::string& name) override { folder_.remove(name); }
    std::vector<std::string> names() const override { return folder_.names(); }
    std::vector<std::uint8_t> read(const std::string& name) const override {
        return folder_.read(name);
    }
    std::string path() const override { return folder_.path(); }

  private:
    void begin(const std::string& call) {
        if (meanwhile_ && call == call_)
            std::exchange(meanwhile_, nullptr)();
    }

    DiskFolder& folder_;
    std::string call_;
    std::function<void()> meanwhile_;
};

Contents contents_of(const Folder& folder) {
    Contents contents;
    for (const std::string& name : folder.names())
        contents[name] = folder.read(name);
    return contents;
}

TEST_CASE(
    "checkpoints: a generation that wakes up when a later one has begun leaves all as it is") {
    for (const std::string call : {"write", "rename", "sync_names"})
        for (const bool has_saved : {false, true}) {
            CAPTURE(call, has_saved);
            const TemporaryFolder temporary;
            DiskFolder folder(temporary.path());
            StoppingFolder stopping(folder);
            Checkpoints late(stopping, 2), next(folder, 2);
            late.begin_generation(3);
            save(late, 10);
            save(late, 20);
            Contents left;
            stopping.stop_before(call, [&] {
                REQUIRE(next.newest_generation() == 3);
                next.begin_generation(4);
                if (has_saved)
                    save(next, 25);
                left = contents_of(folder);
            });
            std::string error;
            for (const int step : {30, 40}) {  // it does not learn it better a second time
                try {
                    save(late, step);
                } catch (const std::runtime_error& thrown) {
                    error = thrown.what();
                }
                REQUIRE(error ==
                        "this is generation 3 of the training, and generation 4 writes into '" +
                            folder.path() + "' now: this one ends and writes nothing more.");
            }
            // A whole checkpoint may be there in addition, if it was stopped before the write.
            const std::string late_one = Checkpoints::file_name(30);
            Contents now = contents_of(folder);
            if (call == "write") {
                REQUIRE(data_error([&] { read_checkpoint(30, now.at(late_one), "f"); }) == "");
                now.erase(late_one);
            }
            REQUIRE(now == left);
            REQUIRE(next.steps().back() == (has_saved ? 20 : 10));
        }
}

TEST_CASE("checkpoints: a number of generations that is none is named") {
    CrashingFolder folder({{"generation", {'x'}}}, never);
    REQUIRE_THROWS_WITH(
        Checkpoints(folder, 2).newest_generation(),
        "'memory/generation' holds no number: remove it, if no training runs there.");
}

TEST_CASE("checkpoints: of one that does not fit on the disk nothing stays") {
    const TemporaryFolder temporary;
    DiskFolder folder(temporary.path());
    Checkpoints checkpoints(folder, 3);
    save(checkpoints, 5);
    // A limit for files is as good as a full disk.
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{300, before.rlim_max};
    std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    std::string error;
    try {
        checkpoints.save(6, header_of(6), Bytes(1000));
    } catch (const std::runtime_error& thrown) {
        error = thrown.what();
    }
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, SIG_DFL);
    REQUIRE(has(error, "cannot be written (File too large)"));
    REQUIRE(folder.names() == std::vector<std::string>{"checkpoint-00000005.safetensors"});
}

TEST_CASE("training_state: what is written down is read, and nothing is guessed") {
    const TrainingState state = example_state();
    const auto metadata = to_metadata(state);
    REQUIRE(to_state(metadata, "file") == state);
    auto hostile = metadata;  // what a terminal would obey is not printed as it is
    hostile["step"] = "\033[2J" + std::string(5000, 'x');
    const std::string refusal = error_of(hostile);
    REQUIRE(refusal.starts_with("'file' has the value '?[2Jxxx"));
    REQUIRE(refusal.size() < 700);
    for (const char* key :
         {"step", "samples", "epoch", "taken", "random", "bucket_plan", "ready_order"}) {
        auto less = metadata;
        less.erase(key);
        REQUIRE(error_of(less) ==
                "'file' has no '" + std::string(key) + "': it is not a checkpoint of a training.");
    }
    for (const char* wrong : {"", "x", "1x", "-1", "99999999999999999999", " 1"}) {
        auto other = metadata;
        other["step"] = wrong;
        REQUIRE(error_of(other) == "'file' has the value '" + std::string(wrong) +
                                       "' for 'step', which is not a number.");
    }
}

TEST_CASE("training_state: another training's checkpoint is refused") {
    std::string error;
    try {
        require_same_configuration(example_state(), {{"batch", "64"}, {"seed", "2"}});
    } catch (const OptionError& thrown) {
        error = thrown.what();
    }
    REQUIRE(error ==
            "The checkpoint is of a training whose seed was 1, and now it is 2: go on with the "
            "same options, or give --folder another folder.");
    require_same_configuration(example_state(), example_state().configuration);
}

TEST_CASE("rest_of_epoch: with another number of ranks every sample still comes once") {
    constexpr int samples = 101, batch = 3;
    for (const int before : {1, 3, 4})
        for (const int after : {1, 2, 3, 4}) {
            std::multiset<int> seen;
            const int steps = 5;
            for (int rank = 0; rank < before; rank++) {
                const auto own = rest_of_epoch(samples, 9, 2, 0, rank, before);
                seen.insert(own.begin(), own.begin() + steps * batch);
            }
            const int taken = steps * batch * before;
            for (int rank = 0; rank < after; rank++) {
                const auto own = rest_of_epoch(samples, 9, 2, taken, rank, after);
                REQUIRE(own.size() == static_cast<std::size_t>((samples - taken) / after));
                seen.insert(own.begin(), own.end());
                // The same ranks go on with what would have been next.
                if (after == before) {
                    const auto all = rest_of_epoch(samples, 9, 2, 0, rank, before);
                    REQUIRE(std::equal(own.begin(), own.end(), all.begin() + steps * batch));
                }
            }
            REQUIRE(std::set<int>(seen.begin(), seen.end()).size() == seen.size());
            REQUIRE(seen.size() + static_cast<std::size_t>((samples - taken) % after) == samples);
        }
    REQUIRE(rest_of_epoch(10, 1, 1, 10, 0, 1).empty());
    REQUIRE(rest_of_epoch(10, 1, 1, 99, 0, 1).empty());
}

}  // namespace ddp::test
