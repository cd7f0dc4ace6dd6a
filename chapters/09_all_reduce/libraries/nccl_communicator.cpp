// The Communicator over NCCL: the reference on several GPUs.
#include <stdexcept>

#include "09_all_reduce/communicator.hpp"
#if defined(DDP_NCCL)
#include <nccl.h>
#include <sched.h>

#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>

#include "common/report/bench.hpp"
#include "common/report/units.hpp"
#endif

namespace ddp {

#if defined(DDP_NCCL)

namespace {

ncclDataType_t nccl_type_of(ElementType type) {
    switch (type) {
        case ElementType::float32:
            return ncclFloat32;
        case ElementType::float64:
            return ncclFloat64;
        case ElementType::float16:
            return ncclFloat16;
        case ElementType::bfloat16:
            return ncclBfloat16;
        case ElementType::int32:
            return ncclInt32;
        default:
            return ncclUint8;
    }
}

ncclRedOp_t nccl_op_of(const Call& call) {
    if (call.type == ElementType::uint8)
        throw std::invalid_argument("bytes can be sent and gathered, but not summed");
    switch (*call.op) {
        case ReduceOp::average:
            return ncclAvg;
        case ReduceOp::maximum:
            return ncclMax;
        case ReduceOp::minimum:
            return ncclMin;
        default:
            return ncclSum;
    }
}

int current_device() {
    int device = 0;
    DDP_CHECK(cudaGetDevice(&device));
    return device;
}

// "device 0000:1b:00.0 of node1": the same for all who use this rank's GPU, by whatever number.
std::string device_name(const Rank& rank) {
    char address[32] = "";
    DDP_CHECK(cudaDeviceGetPCIBusId(address, sizeof address, current_device()));
    return "device " + std::string(address) + " of " + rank.node();
}

// All ranks throw the same, or none does.
void require_a_gpu_each(Rank& rank) {
    const std::vector<std::string> devices = rank.all_gather(device_name(rank));
    std::map<std::string, std::size_t> first;  // who has it
    for (std::size_t r = 0; r < devices.size(); r++)
        if (const auto [other, is_new] = first.emplace(devices[r], r); !is_new)
            throw OptionError("The communicator nccl takes one rank on each GPU, but ranks " +
                              std::to_string(other->second) + " and " + std::to_string(r) +
                              " share " + devices[r] +
                              ": start as many ranks as there are GPUs, or use the communicator "
                              "native.");
}

bool is_past(const Event& event) {
    return forget_not_ready(cudaEventQuery(event)) == cudaSuccess;
}

// An operation that was enqueued and may not be done yet, with its name for messages.
struct Operation {
    std::string text;
    Event begin, end;
    std::optional<Stopwatch> running;  // since it was seen to have begun
};

// NCCL is called without blocking: a call may return before it is over, and its state is asked for
// until it is. Only so can another thread end it when the run fails.
class NcclCommunicator final : public Communicator, private Abortable {
  public:
    NcclCommunicator(Rank& rank, std::size_t arena_bytes, const Group& group);
    ~NcclCommunicator() override;

    std::string kind() const override { return "nccl"; }
    void synchronize(Stream& stream) override;

  private:
    const std::shared_ptr<SharedArena>& arena() override { return arena_; }
    void enqueue(const Call& call, Stream& stream) override;
    ncclResult_t call_nccl(const Call& call, ncclRedOp_t op, Stream& stream);
    void wait_for_nccl(ncclResult_t result, const std::string& what);
    ncclResult_t state();
    Operation next_operation(const std::string& text);
    void forget_ended();
    bool has_pending();
    void close() noexcept;

    void stop() noexcept override;
    std::string error() override;

    const std::shared_ptr<SharedArena> arena_;
    const int exceptions_ = std::uncaught_exceptions();
    const int device_ = current_device();
    std::mutex mutex_;  // of all that follows: the watchdog uses it, too
    ncclComm_t communicator_ = nullptr;
    bool is_over_ = false;
    std::uint64_t operations_ = 0;
    std::deque<Operation> pending_;  // in the order of the calls
    std::deque<Operation> ended_;    // their events are for the next calls: to make two takes 5 us
};

NcclCommunicator::NcclCommunicator(Rank& rank, std::size_t arena_bytes, const Group& group)
    : Communicator(rank, group), arena_(std::make_shared<SharedArena>(arena_bytes)) {
    rank.keep_until_run_ends(
        arena_);  // to free it may be to wait for kernels, which may wait for another rank
    ncclUniqueId id{};
    agreed_group(rank, group);
    if (index() == 0)
        if (const ncclResult_t result = ncclGetUniqueId(&id); result != ncclSuccess)
            throw std::runtime_error(std::string("NCCL failed in ncclGetUniqueId: ") +
                                     ncclGetErrorString(result));
    id = rank.all_gather(id)[static_cast<std::size_t>(group.rank(0))];
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclResult_t result =
        ncclCommInitRankConfig(&communicator_, world_size(), id, index(), &config);
    rank.add(*this);
    try {
        wait_for_nccl(result, "ncclCommInitRankConfig");
        rank.barrier();
    } catch (...) {
        stop();
        rank.remove(*this);
        throw;
    }
}

NcclCommunicator::~NcclCommunicator() {
    if (std::uncaught_exceptions() > exceptions_)
        stop();
    while (has_pending())
        sched_yield();
    close();
    rank().remove(*this);
}

Operation NcclCommunicator::next_operation(const std::string& text) {
    std::lock_guard lock(mutex_);
    if (ended_.empty())
        return {text, Event(EventFor::order), Event(EventFor::order), {}};
    Operation next = std::move(ended_.front());
    ended_.pop_front();
    next.text = text;
    next.running.reset();
    return next;
}

// Takes operations that are over out of `pending_`; those of a device that has failed are, too.
void NcclCommunicator::forget_ended() {
    while (!pending_.empty() &&
           forget_not_ready(cudaEventQuery(pending_.front().end)) != cudaErrorNotReady) {
        ended_.push_back(std::move(pending_.front()));
        pending_.pop_front();
    }
}

bool NcclCommunicator::has_pending() {
    std::lock_guard lock(mutex_);
    forget_ended();
    return !pending_.empty();
}

// NCCL wants all ranks to end together. If they do not come, this one ends alone.
void NcclCommunicator::close() noexcept try {
    ncclResult_t result = ncclSuccess;
    {
        std::lock_guard lock(mutex_);
        if (is_over_)
            return;
        result = ncclCommFinalize(communicator_);
    }
    wait_for_nccl(result, "ncclCommFinalize");
    std::lock_guard lock(mutex_);
    if (!is_over_)
        ncclCommDestroy(communicator_);
    is_over_ = true;
} catch (const std::exception&) {
    stop();
}

// ---- The calls

// Enqueues the one call of NCCL that does what `call` says.
ncclResult_t NcclCommunicator::call_nccl(const Call& call, ncclRedOp_t op, Stream& stream) {
    const ncclDataType_t type = nccl_type_of(call.type);
    const int peer = call.peer < 0 ? -1 : peer_of(call);
    switch (call.kind) {
        case OperationKind::send:
            return ncclSend(call.input, call.count, type, peer, communicator_, stream);
        case OperationKind::receive:
            return ncclRecv(call.output, call.count, type, peer, communicator_, stream);
        case OperationKind::broadcast:
            return ncclBroadcast(call.input, call.output, call.count, type, peer, communicator_,
                                 stream);
        case OperationKind::reduce:
            return ncclReduce(call.input, call.output, call.count, type, op, peer, communicator_,
                              stream);
        case OperationKind::all_reduce:
            return ncclAllReduce(call.input, call.output, call.count, type, op, communicator_,
                                 stream);
        case OperationKind::reduce_scatter:
            return ncclReduceScatter(call.input, call.output, call.count, type, op, communicator_,
                                     stream);
        case OperationKind::all_gather:
            return ncclAllGather(call.input, call.output, call.count, type, communicator_, stream);
        default:
            return ncclInvalidArgument;
    }
}

void NcclCommunicator::enqueue(const Call& call, Stream& stream) {
    const ncclRedOp_t op = call.op ? nccl_op_of(call) : ncclSum;
    const std::string text =
        "operation " + std::to_string(operations_ + 1) + ", " + to_string(call);
    input_offset(*arena_, call);
    output_offset(*arena_, call);
    operations_++;
    Operation pending = next_operation(text);
    pending.begin.record(stream);
    ncclResult_t result = ncclSuccess;
    {
        std::lock_guard lock(mutex_);
        if (!is_over_)
            result = call_nccl(call, op, stream);
    }
    wait_for_nccl(result, text);
    pending.end.record(stream);
    std::lock_guard lock(mutex_);
    pending_.push_back(std::move(pending));
}

// ---- Waiting

ncclResult_t NcclCommunicator::state() {
    std::lock_guard lock(mutex_);
    if (is_over_)
        return ncclSuccess;
    ncclResult_t result = ncclSuccess;
    const ncclResult_t answer = ncclCommGetAsyncError(communicator_, &result);
    return answer == ncclSuccess ? result : answer;
}

// Waits until the call that has returned `result` is over.
void NcclCommunicator::wait_for_nccl(ncclResult_t result, const std::string& what) {
    const double limit_s = rank().job().timeout_s;
    for (const Stopwatch waited; result == ncclInProgress; result = state()) {
        rank().check();
        if (limit_s > 0 && waited.seconds() > limit_s)
            throw std::runtime_error("waited " + format_fixed(limit_s, 1) + " s for NCCL in " +
                                     what);
        sched_yield();
    }
    if (result != ncclSuccess)
        throw std::runtime_error("NCCL failed in " + what + ": " + ncclGetErrorString(result));
}

void NcclCommunicator::synchronize(Stream& stream) {
    for (;;) {
        const cudaError_t status = forget_not_ready(cudaStreamQuery(stream));
        rank().check();
        if (const std::string text = error(); !text.empty())
            throw std::runtime_error(text);
        if (status == cudaSuccess)
            return;
        if (status != cudaErrorNotReady)
            check(status, "cudaStreamQuery");
        sched_yield();
    }
}

// ncclCommAbort ends NCCL's kernels, wherever they wait.
void NcclCommunicator::stop() noexcept {
    std::lock_guard lock(mutex_);
    if (communicator_ != nullptr && !is_over_)
        ncclCommAbort(communicator_);
    is_over_ = true;
}

// Returns NCCL's own error, or that an operation takes too long. Only the time of its kernels
// counts, and not the time of what is before them on the stream. The watchdog's thread calls it,
// too, and would make a context on device 0.
std::string NcclCommunicator::error() {
    DDP_CHECK(cudaSetDevice(device_));
    if (const ncclResult_t result = state(); result != ncclSuccess && result != ncclInProgress)
        return std::string("NCCL failed: ") + ncclGetErrorString(result);
    std::lock_guard lock(mutex_);
    forget_ended();
    if (pending_.empty() || is_over_)
        return "";
    Operation& oldest = pending_.front();
    if (!oldest.running && is_past(oldest.begin))
        oldest.running.emplace();
    const double limit_s = rank().job().timeout_s;
    if (limit_s == 0 || !oldest.running || oldest.running->seconds() < limit_s)
        return "";
    return "waited " + format_fixed(limit_s, 1) + " s for NCCL in " + oldest.text +
           ": has every rank come to it?";
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(Rank& rank, std::size_t arena_bytes,
                                                     std::optional<Group> group) {
    require_a_gpu_each(rank);
    return std::make_unique<NcclCommunicator>(rank, arena_bytes,
                                              group.value_or(Group::all(rank.job())));
}

#else

std::unique_ptr<Communicator> make_nccl_communicator(Rank&, std::size_t, std::optional<Group>) {
    if (kernels_run_on_cpu)
        throw OptionError(
            "The communicator nccl needs GPUs, and this program was built for a CPU: use the "
            "communicator native or mpi.");
    throw OptionError(
        "The communicator nccl is not in this program, which was built without NCCL: install it "
        "(Debian: libnccl-dev) and build again, or use the communicator native.");
}

#endif

}  // namespace ddp
