// A file is there as a whole or not at all, wherever the process or the machine crashes.
#include "19_checkpoint_failover/atomic_save.hpp"

#include "19_checkpoint_failover/show/torn_files.hpp"
#include "19_checkpoint_failover/state/folders.hpp"
#include "exercises/support/crashing_folder.hpp"
#include "tests/common/data/files.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Save = std::function<void(Folder&, const std::string&, std::span<const std::uint8_t>)>;

const std::vector<std::uint8_t> before{1, 2, 3, 4, 5, 6}, after{7, 8, 9, 10, 11, 12, 13, 14};

// Returns what is wrong with a method of saving, or "".
std::string fault_of(const Save& save) {
    for (const bool is_first : {true, false})
        for (int call = 0;; call++) {
            const Contents start = is_first ? Contents() : Contents{{"file", before}};
            CrashingFolder folder(start, call);
            bool is_done = true;
            try {
                save(folder, "file", after);
            } catch (const Crash&) {
                is_done = false;
            }
            std::vector<Left> all = folder.after_power_failure();
            all.push_back({folder.after_kill(), ""});
            for (const auto& [left, lost] : all) {
                const auto found = left.find("file");
                const bool is_old =
                    is_first ? found == left.end() : found != left.end() && found->second == before;
                const bool is_new = found != left.end() && found->second == after;
                if (!is_old && !is_new)
                    return "torn";
                if (is_done && !is_new)
                    return "lost";
            }
            if (is_done)
                break;
        }
    return "";
}

}  // namespace

TEST_CASE("atomic_save: old or new after a crash at every call, and new when it has returned") {
    REQUIRE(fault_of([](Folder& folder, const std::string& name, auto bytes) {
                save_atomically(folder, name, {bytes});
            }) == "");
}

TEST_CASE("atomic_save: every call and its place matter") {
    const std::string t = "file.t";
    REQUIRE(fault_of([&](Folder& f, const std::string& name, auto bytes) {
                f.write(name, {bytes});  // into the file itself
                f.sync(name);
                f.sync_names();
            }) == "torn");
    REQUIRE(fault_of([&](Folder& f, const std::string& name, auto bytes) {
                f.write(t, {bytes});  // no sync
                f.rename(t, name);
                f.sync_names();
            }) == "torn");
    REQUIRE(fault_of([&](Folder& f, const std::string& name, auto bytes) {
                f.write(t, {bytes});
                f.rename(t, name);
                f.sync(name);  // too late
                f.sync_names();
            }) == "torn");
    REQUIRE(fault_of([&](Folder& f, const std::string& name, auto bytes) {
                f.write(t, {bytes});
                f.sync(t);
                f.rename(t, name);  // and the name?
            }) == "lost");
    REQUIRE(fault_of([&](Folder& f, const std::string& name, auto bytes) {
                f.write(t, {bytes});
                f.sync(t);
                f.sync_names();  // too early
                f.rename(t, name);
            }) == "lost");
}

TEST_CASE("atomic_save: on the disk") {
    const TemporaryFolder temporary;
    DiskFolder folder(temporary.path() / "a" / "b");  // made as needed
    const std::vector<std::uint8_t> large(3'000'000, 5);
    for (const auto& bytes : {before, large, after, std::vector<std::uint8_t>()}) {
        save_atomically(folder, "file", {bytes, before});
        REQUIRE(folder.read("file") == joined(bytes, before));
        REQUIRE(folder.names() == std::vector<std::string>{"file"});
    }
    std::string error;
    try {
        DiskFolder(temporary.write("no folder", before));
    } catch (const std::exception& thrown) {
        error = thrown.what();
    }
    REQUIRE(
        error.ends_with("no folder' cannot be made (Not a directory): give --folder a folder "
                        "that is yours, on a disk with room."));
}

TEST_CASE("atomic_save: a concurrent reader sees no torn file; without atomic_save it does") {
    const TemporaryFolder temporary;
    DiskFolder folder(temporary.path());
    REQUIRE(read_while_written(folder, 4, false).torn > 0);
    REQUIRE(read_while_written(folder, 1, true).torn == 0);
}

}  // namespace ddp::test
