#include "19_checkpoint_failover/show/torn_files.hpp"

#include <iostream>
#include <latch>
#include <thread>

#include "19_checkpoint_failover/state/checkpoints.hpp"
#include "19_checkpoint_failover/state/folders.hpp"
#include "common/data/file.hpp"
#include "common/report/table.hpp"

namespace ddp {
namespace {

constexpr int times = 3;
constexpr int reads_at_least = 40;

// Returns a whole checkpoint, header and data, whose bytes tell by which rank it was written.
std::vector<std::uint8_t> version_of(int rank) {
    SafetensorsHeader header;
    header.add("weight", {128, 1024});
    const std::vector<std::uint8_t> data(header.data_bytes(), static_cast<std::uint8_t>(rank + 1));
    const std::string text = seal(header, data);
    std::vector<std::uint8_t> bytes(text.begin(), text.end());
    bytes.insert(bytes.end(), data.begin(), data.end());
    return bytes;
}

bool is_torn(Folder& folder, const std::string& name) {
    try {
        read_checkpoint(0, folder.read(name), name);
        return false;
    } catch (const DataError&) {
        return true;
    }
}

}  // namespace

Reads read_while_written(Folder& folder, int writers, bool atomically) {
    const std::string name = "one_file";
    save_atomically(folder, name, {version_of(0)});
    std::latch have_begun(writers);
    std::vector<std::jthread> threads;  // which stop at its end
    for (int rank = 0; rank < writers; rank++)
        threads.emplace_back([&, rank](const std::stop_token& enough) {
            const std::vector<std::uint8_t> bytes = version_of(rank);
            for (int i = 0; i < times || !enough.stop_requested(); i++) {
                if (atomically)
                    save_atomically(folder, name, {bytes});
                else
                    folder.write(name, {bytes});
                if (i == 0)
                    have_begun.count_down();
            }
        });
    have_begun.wait();
    Reads reads;
    for (; reads.all < reads_at_least; reads.all++)
        reads.torn += is_torn(folder, name);
    return reads;
}

void show_torn_files(int ranks) {
    const TemporaryFolder temporary;
    DiskFolder folder(temporary.path());
    const Reads all = read_while_written(folder, ranks, false);
    const Reads one = read_while_written(folder, 1, true);
    Table table("A checkpoint that is read while it is written", {"written by", "reads", "torn"});
    table.row({"all ranks, into one file", std::to_string(all.all), std::to_string(all.torn)});
    table.row(
        {"one rank, under another name first", std::to_string(one.all), std::to_string(one.torn)});
    std::cout << table << std::endl;
    if (one.torn > 0)
        throw std::runtime_error("a checkpoint that was saved atomically is torn");
}

}  // namespace ddp
