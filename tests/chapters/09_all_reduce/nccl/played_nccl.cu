#include "tests/chapters/09_all_reduce/nccl/played_nccl.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "09_all_reduce/all_reduce.hpp"

namespace ddp::test::played {

// One operation of several ranks: all of a collective, two of a message (first the one that sends).
struct Exchange {
    explicit Exchange(std::size_t parts) : calls(parts) {}
    std::vector<std::optional<NcclCall>> calls;
    std::atomic<std::size_t> arrived = 0, taken = 0;
};

// The ranks that have one id.
struct Clique {
    int number, ranks = 0, joined = 0, finalized = 0;
    std::set<int> present;
    std::map<std::uint64_t, std::shared_ptr<Exchange>> collectives;
    std::map<std::tuple<int, int, std::uint64_t>, std::shared_ptr<Exchange>> messages;
};

enum class State { joining, ready, working, finalizing, over };

}  // namespace ddp::test::played

struct ncclComm {
    using State = ddp::test::played::State;

    std::shared_ptr<ddp::test::played::Clique> clique;
    int index;
    State state = State::joining;
    int questions = 0;  // so many more until the call is over
    bool is_broken = false;
    std::uint64_t collectives = 0;
    std::map<int, std::uint64_t> sent, received;  // by the other rank
    std::function<void()> begin_kernel;           // of the call that is in progress
    std::atomic<bool> is_aborted = false;
};

namespace ddp::test::played {
namespace {

// ---- On the device

// What a kernel is to do for one rank of an exchange.
struct Task {
    std::shared_ptr<Exchange> exchange;
    ncclComm* communicator;
    NcclCall call;
    std::size_t part;  // which of the exchange's calls it is
    bool is_broken;    // it never ends by itself
    std::atomic<bool> is_done = false;
};

// Returns false if the communicator was aborted meanwhile.
template <class Ready>
bool wait_until(const ncclComm& communicator, const Ready& ready) {
    while (!ready()) {
        if (communicator.is_aborted)
            return false;
        __nanosleep(10'000);
    }
    return true;
}

const std::byte* input_of(const Exchange& exchange, std::size_t part) {
    return static_cast<const std::byte*>(exchange.calls[part]->input);
}

// Reduces elements `offset`, ..., offset + count - 1 of all inputs in the order of the ring that
// ends at the rank last(i).
template <class T, class Last>
std::vector<std::byte> reduced(const Exchange& exchange, ReduceOp op, std::size_t offset,
                               std::size_t count, const Last& last) {
    const std::size_t ranks = exchange.calls.size();
    std::vector<std::byte> bytes(count * sizeof(T));
    T* result = reinterpret_cast<T*>(bytes.data());
    const auto value = [&](std::size_t rank, std::size_t i) {
        return reinterpret_cast<const T*>(input_of(exchange, rank))[i];
    };
    with_op(op, [&]<ReduceOp op>() {
        for (std::size_t i = offset; i < offset + count; i++) {
            T sum = value((last(i) + 1) % ranks, i);
            for (std::size_t r = 2; r <= ranks; r++)
                sum = combine<op>(sum, value((last(i) + r) % ranks, i));
            result[i - offset] = finish<op>(sum, static_cast<int>(ranks));
        }
    });
    return bytes;
}

std::vector<std::byte> reduced(const Task& task) {
    const Exchange& exchange = *task.exchange;
    const NcclCall& call = task.call;
    std::vector<std::byte> result;
    with_type(call.type, [&]<class T>() {
        const std::size_t ranks = exchange.calls.size(),
                          chunk = chunk_of(call.count, ranks, 0, sizeof(T)).size;
        if (call.kind == OperationKind::all_reduce)
            result = reduced<T>(exchange, call.op, 0, call.count,
                                [&](std::size_t i) { return i / chunk; });
        else if (call.kind == OperationKind::reduce_scatter)
            result = reduced<T>(exchange, call.op, task.part * call.count, call.count,
                                [&](std::size_t) { return task.part; });
        else if (static_cast<std::size_t>(call.peer) == task.part)
            result = reduced<T>(exchange, call.op, 0, call.count,
                                [&](std::size_t) { return task.part; });
    });
    return result;
}

// Returns what this rank's output becomes; nothing where it has none.
std::vector<std::byte> result_of(const Task& task) {
    const NcclCall& call = task.call;
    const std::size_t bytes = call.count * bytes_of(call.type);
    const auto copied = [&](std::size_t part) {
        const std::byte* input = input_of(*task.exchange, part);
        return std::vector<std::byte>(input, input + bytes);
    };
    switch (call.kind) {
        case OperationKind::send:
            return {};
        case OperationKind::receive:
            return copied(0);
        case OperationKind::broadcast:
            return copied(static_cast<std::size_t>(call.peer));
        case OperationKind::all_gather: {
            std::vector<std::byte> all;
            for (std::size_t part = 0; part < task.exchange->calls.size(); part++) {
                const std::vector<std::byte> one = copied(part);
                all.insert(all.end(), one.begin(), one.end());
            }
            return all;
        }
        default:
            return reduced(task);
    }
}

void carry_out(const Task& task) {
    Exchange& exchange = *task.exchange;
    const auto all_have = [&](std::atomic<std::size_t>& count) {
        count++;
        return wait_until(*task.communicator,
                          [&] { return count == exchange.calls.size() && !task.is_broken; });
    };
    if (!all_have(exchange.arrived))
        return;
    const std::vector<std::byte> result = result_of(task);
    if (all_have(exchange.taken) && !result.empty())
        std::memcpy(task.call.output, result.data(), result.size());
}

// The task lies in memory of the host, which a kernel must not be given: so it comes as a number.
__global__ void played_operation(std::uintptr_t task) {
    carry_out(*reinterpret_cast<const Task*>(task));
    reinterpret_cast<Task*>(task)->is_done = true;
}

// ---- On the host

std::optional<ElementType> type_of(ncclDataType_t type) {
    switch (type) {
        case ncclFloat32:
            return ElementType::float32;
        case ncclFloat64:
            return ElementType::float64;
        case ncclFloat16:
            return ElementType::float16;
        case ncclBfloat16:
            return ElementType::bfloat16;
        case ncclInt32:
            return ElementType::int32;
        case ncclUint8:
            return ElementType::uint8;
        default:
            return std::nullopt;
    }
}

ReduceOp op_of(ncclRedOp_t op) {
    switch (op) {
        case ncclAvg:
            return ReduceOp::average;
        case ncclMax:
            return ReduceOp::maximum;
        case ncclMin:
            return ReduceOp::minimum;
        default:
            return ReduceOp::sum;
    }
}

// All that is played, from one test's begin to its end.
struct Play {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<Clique>> cliques;  // by id
    std::vector<std::unique_ptr<ncclComm>> communicators;
    std::vector<std::unique_ptr<Task>> tasks;
    std::vector<NcclCall> calls;
    std::vector<std::string> complaints;
    std::set<std::pair<std::string, int>> failing, breaking;  // calls of ranks
    int questions = 2;

    bool fails(const std::string& name, int index) { return failing.erase({name, index}) > 0; }
    ncclResult_t complain(const std::string& text) {
        complaints.push_back(text);
        return ncclInvalidUsage;
    }
    // Returns "" if the communicator may be used, and otherwise why not.
    std::string objection_to(const ncclComm* communicator) const {
        const auto is_it = [&](const auto& one) { return one.get() == communicator; };
        if (std::ranges::none_of(communicators, is_it))
            return "with no communicator";
        if (communicator->state == State::over)
            return "with a communicator that is over";
        return communicator->state == State::ready ? "" : "while another call is in progress";
    }
    ncclResult_t enqueue(const std::string& name, ncclComm* communicator, ncclDataType_t type,
                         NcclCall call);
    void begin_kernel(ncclComm* communicator, const NcclCall& call, bool is_broken);
    void compare(const std::string& name, const Exchange& exchange);
};

std::unique_ptr<Play>& play() {
    static std::unique_ptr<Play> one;
    return one;
}

ncclResult_t Play::enqueue(const std::string& name, ncclComm* communicator, ncclDataType_t type,
                           NcclCall call) {
    std::lock_guard lock(mutex);
    if (const std::string objection = objection_to(communicator); !objection.empty())
        return complain(name + " " + objection);
    if (fails(name, communicator->index))
        return ncclSystemError;
    if (!type_of(type))
        return complain(name + " with another type");
    if (call.peer < -1 || call.peer >= communicator->clique->ranks)
        return complain(name + " with a rank that is not there");
    call.communicator = communicator->clique->number;
    call.index = communicator->index;
    call.type = *type_of(type);
    calls.push_back(call);
    const bool is_broken = breaking.contains({name, communicator->index});
    communicator->begin_kernel = [this, communicator, call, is_broken] {
        begin_kernel(communicator, call, is_broken);
    };
    communicator->questions = questions;
    communicator->state = State::working;
    return ncclInProgress;
}

// Finds the exchange that this call is a part of, and puts its kernel on the stream.
void Play::begin_kernel(ncclComm* communicator, const NcclCall& call, bool is_broken) {
    Clique& clique = *communicator->clique;
    const int me = communicator->index;
    std::shared_ptr<Exchange>* exchange = nullptr;
    auto part = static_cast<std::size_t>(me), parts = static_cast<std::size_t>(clique.ranks);
    if (call.kind == OperationKind::send) {
        exchange = &clique.messages[{me, call.peer, communicator->sent[call.peer]++}];
        part = 0, parts = 2;
    } else if (call.kind == OperationKind::receive) {
        exchange = &clique.messages[{call.peer, me, communicator->received[call.peer]++}];
        part = 1, parts = 2;
    } else {
        exchange = &clique.collectives[communicator->collectives++];
    }
    if (*exchange == nullptr)
        *exchange = std::make_shared<Exchange>(parts);
    (*exchange)->calls[part] = call;
    compare(ddp::name_of(call.kind), **exchange);
    communicator->is_broken |= is_broken;
    tasks.emplace_back(new Task{*exchange, communicator, call, part, is_broken});
    launch(call.stream, LaunchShape(1, 1), played_operation,
           reinterpret_cast<std::uintptr_t>(tasks.back().get()));
}

// Notes a difference between the calls of the ranks that have come.
void Play::compare(const std::string& name, const Exchange& exchange) {
    const NcclCall* first = nullptr;
    for (const std::optional<NcclCall>& call : exchange.calls) {
        if (!call)
            continue;
        if (first == nullptr)
            first = &*call;
        const bool is_message =
            call->kind == OperationKind::send || call->kind == OperationKind::receive;
        if (call->count != first->count || call->type != first->type ||
            (!is_message &&
             (call->kind != first->kind || call->op != first->op || call->peer != first->peer)))
            complain(name + ": the ranks ask for different things");
    }
}

}  // namespace
}  // namespace ddp::test::played

namespace ddp::test {

using played::play;

PlayedNccl::PlayedNccl() {
    play() = std::make_unique<played::Play>();
}
PlayedNccl::~PlayedNccl() {
    play().reset();
}
void PlayedNccl::fail_once(const std::string& name, int index) {
    std::lock_guard lock(play()->mutex);
    play()->failing.insert({name, index});
}
void PlayedNccl::break_later(const std::string& name, int index) {
    std::lock_guard lock(play()->mutex);
    play()->breaking.insert({name, index});
}
void PlayedNccl::set_questions(int questions) {
    std::lock_guard lock(play()->mutex);
    play()->questions = questions;
}
std::vector<NcclCall> PlayedNccl::calls() const {
    std::lock_guard lock(play()->mutex);
    return play()->calls;
}
std::vector<std::string> PlayedNccl::complaints() const {
    std::lock_guard lock(play()->mutex);
    std::vector<std::string> all = play()->complaints;
    for (const auto& one : play()->communicators)
        if (one->state != played::State::over)
            all.push_back("a communicator of index " + std::to_string(one->index) + " was left");
    return all;
}
bool PlayedNccl::has_failed() const {
    std::lock_guard lock(play()->mutex);
    return play()->failing.empty();
}

}  // namespace ddp::test

// ---- The calls of nccl.h

using namespace ddp;
using namespace ddp::test::played;

const char* ncclGetErrorString(ncclResult_t result) {
    constexpr const char* texts[] = {
        "no error",         "unhandled cuda error", "unhandled system error", "internal error",
        "invalid argument", "invalid usage",        "remote process exited",  "in progress"};
    return texts[result];
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    std::lock_guard lock(play()->mutex);
    if (play()->fails("ncclGetUniqueId", 0))
        return ncclSystemError;
    const int number = static_cast<int>(play()->cliques.size());
    std::snprintf(id->internal, sizeof id->internal, "played %d", number);
    auto clique = std::make_shared<Clique>();
    clique->number = number;
    play()->cliques[id->internal] = clique;
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int index,
                                    ncclConfig_t* config) {
    std::lock_guard lock(play()->mutex);
    const auto found = play()->cliques.find(id.internal);
    if (found == play()->cliques.end())
        return play()->complain("ncclCommInitRankConfig with an unknown id");
    Clique& clique = *found->second;
    if (config->magic != 0xcafebeef || config->blocking != 0)
        return play()->complain("ncclCommInitRankConfig with a configuration that blocks");
    if (index < 0 || index >= ranks || (clique.ranks != 0 && clique.ranks != ranks) ||
        !clique.present.insert(index).second)
        return play()->complain(
            "ncclCommInitRankConfig with another number of ranks, or a rank twice");
    if (play()->fails("ncclCommInitRankConfig", index))
        return ncclSystemError;
    clique.ranks = ranks;
    clique.joined++;
    play()->communicators.push_back(std::make_unique<ncclComm>());
    *communicator = play()->communicators.back().get();
    (*communicator)->clique = found->second;
    (*communicator)->index = index;
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* result) {
    std::lock_guard lock(play()->mutex);
    if (play()->objection_to(communicator).ends_with("over"))
        return play()->complain("ncclCommGetAsyncError with a communicator that is over");
    ncclComm& one = *communicator;
    if (play()->fails("ncclCommGetAsyncError", one.index))
        return ncclSystemError;
    if (one.state == State::joining && one.clique->joined == one.clique->ranks &&
        play()->questions >= 0)
        one.state = State::ready;
    if (one.state == State::working && one.questions-- == 0) {
        one.begin_kernel();
        one.state = State::ready;
    } else if (one.is_broken) {
        *result = ncclRemoteError;
        return ncclSuccess;
    }
    const bool is_over = one.state == State::ready || (one.state == State::finalizing &&
                                                       one.clique->finalized == one.clique->ranks);
    *result = is_over ? ncclSuccess : ncclInProgress;
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
    std::lock_guard lock(play()->mutex);
    if (const std::string objection = play()->objection_to(communicator); !objection.empty())
        return play()->complain("ncclCommFinalize " + objection);
    for (const auto& task : play()->tasks)
        if (task->communicator == communicator && !task->is_done)
            return play()->complain("ncclCommFinalize before its operations are done");
    if (play()->fails("ncclCommFinalize", communicator->index))
        return ncclSystemError;
    communicator->state = State::finalizing;
    communicator->clique->finalized++;
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
    std::lock_guard lock(play()->mutex);
    if (communicator->state != State::finalizing ||
        communicator->clique->finalized < communicator->clique->ranks)
        return play()->complain("ncclCommDestroy before ncclCommFinalize is over");
    communicator->state = State::over;
    return play()->fails("ncclCommDestroy", communicator->index) ? ncclSystemError : ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
    std::lock_guard lock(play()->mutex);
    if (play()->objection_to(communicator).ends_with("over"))
        return play()->complain("ncclCommAbort with a communicator that is over");
    communicator->is_aborted = true;
    communicator->state = State::over;
    return play()->fails("ncclCommAbort", communicator->index) ? ncclSystemError : ncclSuccess;
}

ncclResult_t ncclSend(const void* input, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
    return play()->enqueue("ncclSend", communicator, type,
                           {.kind = OperationKind::send,
                            .input = input,
                            .count = count,
                            .peer = peer,
                            .stream = stream});
}
ncclResult_t ncclRecv(void* output, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
    return play()->enqueue("ncclRecv", communicator, type,
                           {.kind = OperationKind::receive,
                            .output = output,
                            .count = count,
                            .peer = peer,
                            .stream = stream});
}
ncclResult_t ncclBroadcast(const void* input, void* output, size_t count, ncclDataType_t type,
                           int root, ncclComm_t communicator, cudaStream_t stream) {
    return play()->enqueue("ncclBroadcast", communicator, type,
                           {.kind = OperationKind::broadcast,
                            .input = input,
                            .output = output,
                            .count = count,
                            .peer = root,
                            .stream = stream});
}
ncclResult_t ncclReduce(const void* input, void* output, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t communicator, cudaStream_t stream) {
    return play()->enqueue("ncclReduce", communicator, type,
                           {.kind = OperationKind::reduce,
                            .input = input,
                            .output = output,
                            .count = count,
                            .op = op_of(op),
                            .peer = root,
                            .stream = stream});
}
ncclResult_t ncclAllReduce(const void* input, void* output, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t communicator, cudaStream_t stream) {
    return play()->enqueue("ncclAllReduce", communicator, type,
                           {.kind = OperationKind::all_reduce,
                            .input = input,
                            .output = output,
                            .count = count,
                            .op = op_of(op),
                            .stream = stream});
}
ncclResult_t ncclReduceScatter(const void* input, void* output, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t communicator, cudaStream_t stream) {
    return play()->enqueue("ncclReduceScatter", communicator, type,
                           {.kind = OperationKind::reduce_scatter,
                            .input = input,
                            .output = output,
                            .count = count,
                            .op = op_of(op),
                            .stream = stream});
}
ncclResult_t ncclAllGather(const void* input, void* output, size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream) {
    return play()->enqueue("ncclAllGather", communicator, type,
                           {.kind = OperationKind::all_gather,
                            .input = input,
                            .output = output,
                            .count = count,
                            .stream = stream});
}
