#pragma once
// Saves a file as a whole or not at all, whatever happens while it is written.
//
// Two things may go wrong. The process may be killed: the bytes written so far stay, and no more
// come. Or the power may fail: only synced files and names are sure to be on the disk; the others
// get there in any order, or never.
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace ddp {

using Bytes = std::span<const std::uint8_t>;

// The calls on a folder that save_atomically needs. All of them throw std::runtime_error with one
// sentence.
class Folder {
  public:
    virtual ~Folder() = default;

    // Makes the folder if it is missing; returns whether it was.
    virtual bool make() = 0;
    // Creates the file, or empties it, and writes `parts` into it, one after another.
    virtual void write(const std::string& name, std::initializer_list<Bytes> parts) = 0;
    // Returns when the file's bytes are on the disk (fsync).
    virtual void sync(const std::string& name) = 0;
    // Renames the file in one moment. A file that had the name `to` is replaced.
    virtual void rename(const std::string& from, const std::string& to) = 0;
    // Returns when the folder's names are on the disk (fsync of the folder).
    virtual void sync_names() = 0;
    // Removes the file; there may be none.
    virtual void remove(const std::string& name) = 0;

    virtual std::vector<std::string> names() const = 0;  // in any order
    virtual std::vector<std::uint8_t> read(const std::string& name) const = 0;
    virtual std::string path() const = 0;  // for messages
};

// The end of a file's name while the file is being written.
inline const std::string unfinished = ".unfinished";

// Writes `parts`, one after another, as the file `name`. When it returns, the file is on the disk;
// until then the name leads to the old file. If it is interrupted, it may leave a file called
// `name` + `writer` + `unfinished`, which no reader needs. Writers that may work at the same time,
// such as a job and its successor, need different values of `writer`.
void save_atomically(Folder& folder, const std::string& name, std::initializer_list<Bytes> parts,
                     const std::string& writer = "");

}  // namespace ddp
