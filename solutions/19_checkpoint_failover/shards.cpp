// The exercise shards: several files, one checkpoint. Read
// exercises/19_checkpoint_failover/README.md first.
#include "exercises/19_checkpoint_failover/shards.hpp"

#include <algorithm>
#include <sstream>

namespace ddp {
// stub
namespace {

const std::string manifest = "latest";

std::string name_of(int step, std::size_t rank) {
    return "step-" + std::to_string(step) + "-shard-" + std::to_string(rank);
}

// Returns the names of the last checkpoint's files; none if there is no checkpoint.
std::vector<std::string> latest(const Folder& folder) {
    std::vector<std::string> shards;
    if (std::ranges::count(folder.names(), manifest) == 0)
        return shards;
    const std::vector<std::uint8_t> bytes = folder.read(manifest);
    std::istringstream words(std::string(bytes.begin(), bytes.end()));
    for (std::string word; words >> word;)
        shards.push_back(word);
    return shards;
}

}  // namespace
// end stub

void save_shards(Folder& folder, int step, const Shards& shards) {
    // stub: save_and_load
    //: One call of save_atomically makes one file appear. What must be true at that moment?
    std::string names;
    for (std::size_t rank = 0; rank < shards.size(); rank++) {
        const std::string name = name_of(step, rank);
        folder.write(name, {shards[rank]});
        folder.sync(name);
        names += name + "\n";
    }
    folder.sync_names();
    const std::vector<std::uint8_t> bytes(names.begin(), names.end());
    save_atomically(folder, manifest, {bytes});
    // end stub
}

std::optional<Shards> load_shards(const Folder& folder) {
    // stub: save_and_load
    Shards shards;
    for (const std::string& name : latest(folder))
        shards.push_back(folder.read(name));
    if (shards.empty())
        return std::nullopt;
    return shards;
    // end stub
}

void forget_shards(Folder& folder) {
    // stub: forget_shards
    //: Which files does load_shards need?
    // A save that was killed may have renamed the manifest and not synced its name. Were the files
    // of the one before removed now, a failure of the power would leave neither.
    folder.sync_names();
    const std::vector<std::string> needed = latest(folder);
    for (const std::string& name : folder.names())
        if (name != manifest && std::ranges::count(needed, name) == 0)
            folder.remove(name);
    // end stub
}

}  // namespace ddp
