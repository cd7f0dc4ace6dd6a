#pragma once
// The checkpoints of one training in one folder: the last few are kept, and the newest one that is
// whole is used.
#include <optional>
#include <string>
#include <vector>

#include "17_checkpoint_failover/atomic_save.hpp"
#include "17_checkpoint_failover/safetensors.hpp"

namespace ddp {

struct Checkpoint {
    int step = 0;
    Safetensors file;
};

class Checkpoints {
  public:
    // `folder` must live longer.
    Checkpoints(Folder& folder, int keep) : folder_(folder), keep_(keep) {}

    // That of step `step`, as a whole or not at all; then all but the last `keep` go, and what
    // killed writers have left behind. The header gets a checksum.
    void save(int step, SafetensorsHeader header, Bytes data);

    // The newest one that is whole. Each newer one that is not is told of, by name and cause, in a
    // sentence of `complaints`.
    std::optional<Checkpoint> newest(std::vector<std::string>& complaints) const;

    std::vector<int> steps() const;  // of all, whole or not, from the newest to the oldest

    static std::string file_name(int step);  // "checkpoint-00000120.safetensors"

  private:
    Folder& folder_;
    const int keep_;
};

// What stands before `data` in a checkpoint's file: the header, with the checksum of both in it.
std::string seal(SafetensorsHeader header, Bytes data);

// A checkpoint's file. Throws DataError as decode_safetensors, and if its checksum is another.
Checkpoint read_checkpoint(int step, std::vector<std::uint8_t> bytes, const std::string& name);

}  // namespace ddp
