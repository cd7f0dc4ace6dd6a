#include "17_checkpoint_failover/state/checkpoint_folder.hpp"

#include <stdlib.h>

#include <cstring>
#include <stdexcept>

namespace ddp {

std::filesystem::path make_temporary_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "ddp_checkpoints_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
        throw std::runtime_error("'" + name + "' cannot be made (" + std::strerror(errno) +
                                 "): give --folder a folder that is yours.");
    return name;
}

namespace {

std::string with_host(std::string path, const std::string& host) {
    if (const std::size_t at = path.find("%h"); at != std::string::npos)
        path.replace(at, 2, host);
    return path;
}

}  // namespace

CheckpointFolder::CheckpointFolder(World& world, const std::string& given)
    : path_(given), is_temporary_(given.empty()) {
    world.run([&](Rank& rank) {
        const bool makes_it = rank.rank() == 0 && is_temporary_;
        const std::string made =
            rank.broadcast(makes_it ? make_temporary_folder().string() : given, 0);
        // Once per process: threads of one process share this object.
        if (rank.job().has_processes || rank.rank() == 0)
            path_ = with_host(made, rank.host());
    });
}

CheckpointFolder::~CheckpointFolder() {
    std::error_code ignored;
    if (is_temporary_)
        std::filesystem::remove_all(path_, ignored);
}

}  // namespace ddp
