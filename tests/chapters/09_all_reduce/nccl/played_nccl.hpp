#pragma once
// NCCL as tests play it where there is no GPU: the calls of nccl.h that the communicator makes, for
// ranks that are threads. Like NCCL with a communicator that does not block, it begins a call and
// goes on with it while the caller asks:
//
//     ncclCommInitRankConfig  in progress until all ranks have come
//     ncclAllReduce, ...      in progress for some questions; only then its kernel is on the stream
//     the kernel              waits for those of the other ranks, takes what they give, waits until
//                             all have taken it, and writes
//     ncclCommAbort           ends the waits of this rank's kernels
//     ncclCommFinalize        in progress until all ranks have come
//
// It adds in the order of the book's ring. What NCCL forbids is noted: a call of a communicator
// that is in progress or over, another count, type, root or operation than those of the other
// ranks, a communicator that is left. And one thing more: to finalize before all is done.
#include <nccl.h>

#include <cstddef>
#include <string>
#include <vector>

#include "06_messages/call.hpp"

namespace ddp::test {

// One call of an operation, as it came: which communicator (they are counted as their ids are
// made), and which rank in it.
struct NcclCall {
    int communicator = -1, index = -1;
    OperationKind kind = OperationKind::other;
    const void* input = nullptr;
    void* output = nullptr;
    std::size_t count = 0;
    ElementType type = ElementType::uint8;
    ReduceOp op = ReduceOp::sum;
    int peer = -1;  // the root, or the other rank
    cudaStream_t stream = nullptr;

    bool operator==(const NcclCall&) const = default;
};

class PlayedNccl {
  public:
    // All calls of nccl.h go to the one that lives. The next test makes another.
    PlayedNccl();
    ~PlayedNccl();
    PlayedNccl(const PlayedNccl&) = delete;
    PlayedNccl& operator=(const PlayedNccl&) = delete;

    // ---- What is to happen

    // The next call of this name ("ncclAllReduce") by the rank of this index fails.
    void fail_once(const std::string& name, int index);
    // The kernel of that call waits forever, and NCCL reports an error of its own when it is asked.
    void break_later(const std::string& name, int index);
    // How often a call is in progress before it is over; -1: it never is.
    void set_questions(int questions);

    // ---- What has happened

    // The operations, in the order in which they came.
    std::vector<NcclCall> calls() const;
    // What NCCL forbids, and communicators that were neither destroyed nor aborted.
    std::vector<std::string> complaints() const;
    // Whether all failures that were asked for have happened.
    bool has_failed() const;
};

}  // namespace ddp::test
