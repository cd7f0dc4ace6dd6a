#include "19_checkpoint_failover/state/folders.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "common/data/file.hpp"
#include "common/report/process.hpp"

namespace ddp {
namespace {

// Throws an error about `path` with the cause in errno.
[[noreturn]] void fail(const std::string& path, const std::string& what) {
    throw std::runtime_error("'" + path + "' cannot be " + what + " (" + std::strerror(errno) +
                             "): give --folder a folder that is yours, on a disk with room.");
}

// Opens a file or folder; throws if that fails. The descriptor closes itself.
Descriptor open_file(const std::string& path, int flags) {
    Descriptor file(open(path.c_str(), flags | O_CLOEXEC, 0666));
    if (file.number() < 0)
        fail(path, "opened");
    return file;
}

// Waits until the pipe on stdin breaks. A rank that is being killed may still write a checkpoint,
// so one attempt may not be enough.
constexpr const char* remove_at_end = R"(
    read -r nothing
    for attempt in 1 2 3 4 5; do
        rm -rf -- "$0" && break
        sleep 0.2
    done)";

// Returns a name that no other folder has.
std::filesystem::path new_name() {
    std::random_device random;
    std::ostringstream name;
    name << "ddp_checkpoints_" << std::hex << random() << random();
    const char* place = std::getenv("TMPDIR");
    return std::filesystem::path(place == nullptr ? "/tmp" : place) / name.str();
}

// Puts the node's name in place of %h.
std::string with_node(std::string path, const std::string& node) {
    if (const std::size_t at = path.find("%h"); at != std::string::npos)
        path.replace(at, 2, node);
    return path;
}

}  // namespace

// ---- DiskFolder

DiskFolder::DiskFolder(std::filesystem::path path) : path_(std::move(path)) {
    make();
}

bool DiskFolder::make() {
    std::error_code error;
    const bool is_new = std::filesystem::create_directories(path_, error);
    // Another rank may have made it meanwhile. All that counts is that it exists.
    if (!std::filesystem::is_directory(path_)) {
        errno = error ? error.value() : ENOTDIR;
        fail(path_.string(), "made");
    }
    return is_new;
}

void DiskFolder::write(const std::string& name, std::initializer_list<Bytes> parts) {
    const std::string path = path_ / name;
    const Descriptor file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
    for (Bytes rest : parts)
        while (!rest.empty()) {
            // One call may write less than it was given, or be interrupted by a signal.
            const ssize_t count = ::write(file.number(), rest.data(), rest.size());
            if (count < 0 && errno != EINTR)
                fail(path, "written");
            rest = rest.subspan(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        }
}

void DiskFolder::sync(const std::string& name) {
    const std::string path = path_ / name;
    if (fsync(open_file(path, O_RDONLY).number()) != 0)
        fail(path, "synced");
}

void DiskFolder::rename(const std::string& from, const std::string& to) {
    // POSIX: at every moment the name leads to the old file or to the new one.
    if (std::rename((path_ / from).c_str(), (path_ / to).c_str()) != 0)
        fail(path_ / from, "renamed");
}

void DiskFolder::sync_names() {
    // A folder is a file of names, and is synced like one.
    if (fsync(open_file(path_, O_RDONLY | O_DIRECTORY).number()) != 0)
        fail(path_, "synced");
}

void DiskFolder::remove(const std::string& name) {
    std::error_code ignored;  // another writer may have removed it already
    std::filesystem::remove(path_ / name, ignored);
}

std::vector<std::string> DiskFolder::names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
        names.push_back(entry.path().filename());
    return names;
}

std::vector<std::uint8_t> DiskFolder::read(const std::string& name) const {
    return read_file(path_ / name);
}

// ---- TemporaryFolder

// The shell comes first: if this process ends as soon as there is a folder, that goes, too.
TemporaryFolder::TemporaryFolder() : path_(new_name()) {
    std::array<Descriptor, 2> lifeline = make_pipe();  // read end, write end
    try {
        remover_ = start_process({"/bin/sh", "-c", remove_at_end, path_},
                                 {.input = lifeline[0].number(),
                                  .output = -1,
                                  .error = -1,
                                  .leads_group = true});  // Ctrl-C does not reach it
    } catch (const std::exception& error) {
        throw std::runtime_error("the shell that is to remove '" + path_.string() +
                                 "' at the end cannot be started (" + error.what() +
                                 "): give --folder a folder that is to stay.");
    }
    if (mkdir(path_.c_str(), S_IRWXU) != 0) {
        const std::string why = std::strerror(errno);
        kill(remover_, SIGKILL);  // what has this name is not ours to remove
        waitpid(remover_, nullptr, 0);
        throw std::runtime_error("'" + path_.string() + "' cannot be made (" + why +
                                 "): give --folder, or TMPDIR, a folder that is yours.");
    }
    lifeline_ = std::move(lifeline[1]);
}

TemporaryFolder::~TemporaryFolder() {
    lifeline_ = Descriptor();
    while (waitpid(remover_, nullptr, 0) < 0 && errno == EINTR) {
    }
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);  // where there is no process left for its rm
}

// ---- CheckpointFolder

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
