#pragma once
// A file that is there as a whole or not at all, whatever happens while it is written.
//
// Two things may happen. The process may be killed: then what it has written so far stays, and
// nothing more comes. Or the power may fail: then only what was synced is sure to be there, file by
// file and name by name, in any order.
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace ddp {

using Bytes = std::span<const std::uint8_t>;

// A folder, as who writes a file into it sees it. All throw std::runtime_error in a sentence.
class Folder {
  public:
    virtual ~Folder() = default;

    // Makes the file, or empties it, and writes `parts` into it, one behind the other.
    virtual void write(const std::string& name, std::initializer_list<Bytes> parts) = 0;
    // What was written into the file has come to the disk (fsync).
    virtual void sync(const std::string& name) = 0;
    // The file gets another name, at once; who had that name is gone.
    virtual void rename(const std::string& from, const std::string& to) = 0;
    // The folder's names have come to the disk (fsync of the folder).
    virtual void sync_names() = 0;
    virtual void remove(const std::string& name) = 0;

    virtual std::vector<std::string> names() const = 0;
    virtual std::vector<std::uint8_t> read(const std::string& name) const = 0;
    virtual std::string path() const = 0;  // for messages
};

class DiskFolder final : public Folder {
  public:
    // Makes the folder if it is not there.
    explicit DiskFolder(std::filesystem::path path);

    void write(const std::string& name, std::initializer_list<Bytes> parts) override;
    void sync(const std::string& name) override;
    void rename(const std::string& from, const std::string& to) override;
    void sync_names() override;
    void remove(const std::string& name) override;
    std::vector<std::string> names() const override;
    std::vector<std::uint8_t> read(const std::string& name) const override;
    std::string path() const override { return path_.string(); }

  private:
    const std::filesystem::path path_;
};

// What the name of a file ends in that is not whole yet.
inline const std::string unfinished = ".unfinished";

// When this returns the file is on the disk; until then there is what was there before. A file that
// `name` + `unfinished` names may be left behind, and is of no use to anybody.
void save_atomically(Folder& folder, const std::string& name, std::initializer_list<Bytes> parts);

}  // namespace ddp
