#include "17_checkpoint_failover/atomic_save.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "05_ranks/rendezvous.hpp"
#include "common/data/file.hpp"

namespace ddp {

// The order is all there is to it. Synced too late, the name could lead to bytes that never came;
// without the last line, the old file could be back after a failure of the power.
void save_atomically(Folder& folder, const std::string& name, std::initializer_list<Bytes> parts) {
    const std::string temporary = name + unfinished;
    folder.write(temporary, parts);
    folder.sync(temporary);
    folder.rename(temporary, name);
    folder.sync_names();
}

// ---- DiskFolder

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) {
    throw std::runtime_error("'" + path + "' cannot be " + what + " (" + std::strerror(errno) +
                             "): give --folder a folder that is yours, on a disk with room.");
}

Descriptor open_file(const std::string& path, int flags) {
    Descriptor file(open(path.c_str(), flags | O_CLOEXEC, 0666));
    if (file.number() < 0)
        fail(path, "opened");
    return file;
}

}  // namespace

DiskFolder::DiskFolder(std::filesystem::path path) : path_(std::move(path)) {
    std::error_code error;
    std::filesystem::create_directories(path_, error);
    if (!std::filesystem::is_directory(path_)) {
        errno = error ? error.value() : ENOTDIR;
        fail(path_.string(), "made");
    }
}

void DiskFolder::write(const std::string& name, std::initializer_list<Bytes> parts) {
    const std::string path = path_ / name;
    const Descriptor file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
    for (Bytes rest : parts)
        while (!rest.empty()) {
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
    if (std::rename((path_ / from).c_str(), (path_ / to).c_str()) != 0)
        fail(path_ / from, "renamed");
}

void DiskFolder::sync_names() {
    if (fsync(open_file(path_, O_RDONLY | O_DIRECTORY).number()) != 0)
        fail(path_, "synced");
}

void DiskFolder::remove(const std::string& name) {
    std::error_code ignored;  // another writer may have done it
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

}  // namespace ddp
