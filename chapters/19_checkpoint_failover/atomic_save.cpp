//     write    checkpoint-00000050.safetensors.unfinished   no reader looks for this name
//     fsync    the file                                     its bytes are on the disk before ...
//     rename   to checkpoint-00000050.safetensors           ... the name leads to them, at once
//     fsync    the folder                                   now the name is on the disk, too
//
//     killed in     write       fsync       rename      fsync of the folder
//     you find      old file    old file    old or new  new file; after a power failure old or new
#include "19_checkpoint_failover/atomic_save.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "05_ranks/rendezvous.hpp"
#include "common/data/file.hpp"

namespace ddp {

// The lesson is the order of these calls. Without the first sync, or with the sync after the
// rename, the name could lead to bytes that never reached the disk. Without the last line, a power
// failure could bring the old file back, although the caller was told that the new one is saved.
void save_atomically(Folder& folder, const std::string& name, std::initializer_list<Bytes> parts,
                     const std::string& writer) {
    const std::string temporary = name + writer + unfinished;
    folder.write(temporary, parts);
    folder.sync(temporary);
    folder.rename(temporary, name);
    folder.sync_names();
}

// ---- DiskFolder

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

}  // namespace

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

}  // namespace ddp
