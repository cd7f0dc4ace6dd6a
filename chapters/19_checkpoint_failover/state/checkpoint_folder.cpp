#include "19_checkpoint_failover/state/checkpoint_folder.hpp"

namespace ddp {
namespace {

std::string with_node(std::string path, const std::string& node) {
    if (const std::size_t at = path.find("%h"); at != std::string::npos)
        path.replace(at, 2, node);
    return path;
}

}  // namespace

CheckpointFolder::CheckpointFolder(World& world, const std::string& given)
    : path_(given), is_temporary_(given.empty()) {
    world.run([&](Rank& rank) {
        if (rank.rank() == 0 && is_temporary_)
            made_.emplace();
        const std::string path = rank.broadcast(made_ ? made_->path().string() : given, 0);
        // Once per process: threads of one process share this object.
        if (rank.job().has_processes || rank.rank() == 0)
            path_ = with_node(path, rank.node());
    });
}

CheckpointFolder::~CheckpointFolder() {
    std::error_code ignored;
    if (is_temporary_)  // on another node than rank 0's it was made as well, under the same name
        std::filesystem::remove_all(path_, ignored);
}

}  // namespace ddp
