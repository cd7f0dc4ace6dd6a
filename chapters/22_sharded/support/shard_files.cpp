#include "22_sharded/support/shard_files.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

#include "common/data/file.hpp"

namespace ddp {
namespace {

std::string name_of_folder(int rank, int ranks) {
    return "rank-" + std::to_string(rank) + "-of-" + std::to_string(ranks);
}

// Returns the number of ranks in a folder's name, or 0 if it is no rank's.
int ranks_in(const std::string& name) {
    int rank = -1, ranks = 0;
    const bool has_both = std::sscanf(name.c_str(), "rank-%d-of-%d", &rank, &ranks) == 2;
    return has_both && rank >= 0 && rank < ranks && name == name_of_folder(rank, ranks) ? ranks : 0;
}

}  // namespace

std::filesystem::path ShardFiles::of_rank(int rank, int ranks) const {
    return folder_ / name_of_folder(rank, ranks);
}

std::vector<std::filesystem::path> ShardFiles::all() const {
    std::vector<std::filesystem::path> folders;
    if (std::filesystem::is_directory(folder_))
        for (const auto& entry : std::filesystem::directory_iterator(folder_))
            if (entry.is_directory() && ranks_in(entry.path().filename()) > 0)
                folders.push_back(entry.path());
    std::ranges::sort(folders);
    return folders;
}

std::vector<SavedSet> ShardFiles::sets() const {
    std::set<std::pair<int, int>> found;  // step, ranks
    for (const auto& path : all()) {
        DiskFolder folder(path);
        for (const int step : Checkpoints(folder, 1).steps())
            found.emplace(step, ranks_in(path.filename()));
    }
    std::vector<SavedSet> sets;
    for (auto set = found.rbegin(); set != found.rend(); ++set)
        sets.push_back({set->first, set->second});
    return sets;
}

std::string ShardFiles::name(const SavedSet& set, int rank) {
    return name_of_folder(rank, set.ranks) + "/" + Checkpoints::file_name(set.step);
}

std::map<std::string, std::string> ShardFiles::place(int rank, int ranks) {
    return {{"rank", std::to_string(rank)}, {"ranks", std::to_string(ranks)}};
}

Safetensors ShardFiles::read(const SavedSet& set, int rank) const {
    const std::string file = name(set, rank);
    if (!std::filesystem::exists(folder_ / file))
        refuse(file, "is missing: a checkpoint of " + std::to_string(set.ranks) +
                         " ranks takes the files of all of them.");
    Safetensors read = read_checkpoint(set.step, read_file(folder_ / file), file).file;
    std::map<std::string, std::string> says = place(rank, set.ranks);
    says["step"] = std::to_string(set.step);
    for (const auto& [key, value] : says) {
        const auto found = read.header.metadata.find(key);
        if (found == read.header.metadata.end() || found->second != value)
            refuse(file, "does not say that its " + key + " is " + value +
                             ": it was copied there from another place, or an earlier version of "
                             "this program has written it.");
    }
    return read;
}

Safetensors ShardFiles::read(const SavedSet& set, int rank, const Safetensors& first) const {
    Safetensors read = this->read(set, rank);
    std::map<std::string, std::string> expected = first.header.metadata;
    expected["rank"] = std::to_string(rank);
    const auto& found = read.header.metadata;
    if (const auto [a, b] = std::ranges::mismatch(expected, found);
        a != expected.end() || b != found.end())
        refuse(name(set, rank), "is of another training than rank 0's file: its '" +
                                    printable((a == expected.end() ? b : a)->first) + "' differs.");
    return read;
}

}  // namespace ddp
