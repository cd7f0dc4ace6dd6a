#pragma once
// A folder in memory that loses what a disk may lose.
#include <exception>
#include <functional>
#include <map>

#include "19_checkpoint_failover/atomic_save.hpp"

namespace ddp::test {

using Contents = std::map<std::string, std::vector<std::uint8_t>>;  // of a folder, by name

// Thrown when the process or the machine crashes in the middle of a call.
class Crash : public std::exception {};

// Holds what a power failure can leave, and, in words, what it has lost.
struct Left {
    Contents contents;
    std::string lost;
};

class CrashingFolder final : public Folder {
  public:
    // All of `contents` is on the disk. Call number `calls` (from 0) crashes in its middle; a write
    // has then written half of its bytes.
    CrashingFolder(const Contents& contents, int calls);

    // Returns what a killed process leaves behind: everything that was done.
    Contents after_kill() const;
    // Returns all that a power failure may leave behind: for every file any part of what was not
    // synced, and any of the changes of names that were not synced. Begins with what loses least.
    std::vector<Left> after_power_failure() const;
    // Returns the call that has crashed: "call 3: sync(a)"; "" if none has.
    std::string crash() const;

    bool make() override { return false; }
    void write(const std::string& name, std::initializer_list<ddp::Bytes> parts) override;
    void sync(const std::string& name) override;
    void rename(const std::string& from, const std::string& to) override;
    void sync_names() override;
    void remove(const std::string& name) override;
    std::vector<std::string> names() const override;  // backwards: no order is promised
    std::vector<std::uint8_t> read(const std::string& name) const override;
    std::string path() const override { return "memory"; }

  private:
    struct File {
        std::vector<std::uint8_t> written, synced;
    };
    // Keeps what is called; returns whether this call crashes.
    bool crashes(const std::string& call);

    using Names = std::map<std::string, std::size_t>;  // numbers of files
    using Change = std::function<void(Names&)>;
    void change(const Change& change);

    const int calls_;
    std::vector<std::string> called_;
    std::vector<File> files_;
    Names now_, synced_;
    std::vector<std::pair<std::string, Change>> since_sync_;  // by their calls
};

}  // namespace ddp::test
