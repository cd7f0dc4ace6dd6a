//     write    checkpoint-00000050.safetensors.unfinished   no reader looks for this name
//     fsync    the file                                     its bytes are on the disk before ...
//     rename   to checkpoint-00000050.safetensors           ... the name leads to them, at once
//     fsync    the folder                                   now the name is on the disk, too
//
//     killed in     write       fsync       rename      fsync of the folder
//     you find      old file    old file    old or new  new file; after a power failure old or new
#include "19_checkpoint_failover/atomic_save.hpp"

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

}  // namespace ddp
