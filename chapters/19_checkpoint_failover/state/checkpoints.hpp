#pragma once
// The checkpoints of one training in one folder: the last few are kept, and the newest one that is
// whole is loaded.
#include <optional>
#include <string>
#include <vector>

#include "19_checkpoint_failover/safetensors.hpp"
#include "19_checkpoint_failover/state/folders.hpp"

namespace ddp {

struct Checkpoint {
    int step = 0;
    Safetensors file;
};

class Checkpoints {
  public:
    // `folder` must outlive this object. `keep`: how many checkpoints stay in it.
    Checkpoints(Folder& folder, int keep) : folder_(folder), keep_(keep) {}

    // Returns the number of the training's last generation in this folder, or 0. A generation is
    // one start of the training, until its end.
    int newest_generation() const;
    // Begins generation `number`. An earlier one may be thought dead and be only stopped, as with
    // its node: when it wakes up, its save() finds the newer number, and throws std::runtime_error.
    // (A fencing token would be checked by the storage: Kleppmann, Designing Data-Intensive
    // Applications, 2017, chapter 8.)
    void begin_generation(int number);

    // Saves the checkpoint of step `step` as a whole or not at all, and adds a checksum to its
    // header. Then removes all checkpoints but the last `keep`. Removes files that writers who were
    // killed, or found no room, have left behind. Returns whether the folder had been removed: then
    // it has been made again, and this checkpoint is all that is in it.
    bool save(int step, SafetensorsHeader header, Bytes data);

    // Returns the newest checkpoint that is whole, or nothing. Adds one sentence with name and
    // cause to `errors` for each newer one that is damaged.
    std::optional<Checkpoint> newest(std::vector<std::string>& errors) const;

    // Returns the steps of all checkpoints, whole or not, from the newest to the oldest.
    std::vector<int> steps() const;

    static std::string file_name(int step);  // "checkpoint-00000120.safetensors"

  private:
    void require_newest_generation() const;
    void remove_others(int step);
    void remove_unfinished();

    Folder& folder_;
    const int keep_;
    int generation_ = 0;
};

// Returns the bytes before `data` in a checkpoint's file: the header, with the checksum of both.
std::string seal(SafetensorsHeader header, Bytes data);

// Decodes a checkpoint's file and compares its checksum. Throws DataError, with a sentence that
// begins with `name`, as decode_safetensors does, and if the checksum does not match.
Checkpoint read_checkpoint(int step, std::vector<std::uint8_t> bytes, const std::string& name);

}  // namespace ddp
