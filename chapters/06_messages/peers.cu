#include "06_messages/peers.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cuda/atomic>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "06_messages/support/copy.cuh"
#include "06_messages/wait.cuh"
#include "common/report/bench.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// ---- On the device

// One thread: posts the record, and waits until the receiver has acknowledged the data.
__global__ void send_kernel(PeersView view, OperationRecord record, std::uint64_t number) {
    const auto to = static_cast<int>(record.peer);
    std::uint64_t& acknowledged = view.own().acknowledged[to];
    const auto has_taken = [&](std::uint64_t posts) { return load_acquire(acknowledged) >= posts; };
    // The channel has room for one post; an earlier one may still be in it, from another stream.
    if (!begin_operation(view, record) ||
        !wait_until(view, record, to, [&] { return has_taken(number - 1); }))
        return;
    Channel& channel = view.control[to]->from[view.rank];
    channel.record = record;
    channel.posted_ns = device_clock_ns();
    store_release(channel.posted, number);
    if (wait_until(view, record, to, [&] { return has_taken(number); }))
        end_operation(view);
}

// One thread of each block: waits for the sender's record, and compares it with our own.
__device__ bool wait_for_post(const PeersView& view, OperationRecord& record,
                              std::uint64_t number) {
    const auto from = static_cast<int>(record.peer);
    Channel& channel = view.own().from[from];
    if (!wait_until(view, record, from, [&] { return load_acquire(channel.posted) >= number; }))
        return false;
    if (channel.record.count == record.count && is_same_text(channel.record.type, record.type))
        return true;
    report_problem(view, Problem::mismatch, record, from, channel.record, Progress::under_way);
    return false;
}

// One thread of the last block to end: the data is here once the link has delivered it.
__device__ void take_post(const PeersView& view, OperationRecord& record, std::uint64_t number,
                          std::size_t bytes, std::uint64_t begin_ns) {
    const auto from = static_cast<int>(record.peer);
    Channel& channel = view.own().from[from];
    channel.blocks = 0;
    if (view.link.bytes_per_ns > 0) {
        const std::uint64_t ready_ns = begin_ns > channel.posted_ns ? begin_ns : channel.posted_ns;
        if (!sleep_until(view, arrival_over_link(view, from, view.rank, bytes, ready_ns)))
            return;
    }
    store_release(view.control[from]->acknowledged[view.rank], number);
    end_operation(view);
}

// All threads copy; `bytes` from the sender's arena to `to`.
__global__ void receive_kernel(PeersView view, OperationRecord record, std::uint64_t number,
                               std::byte* to, std::size_t bytes) {
    __shared__ bool is_posted;
    const std::uint64_t begin_ns = device_clock_ns();
    if (threadIdx.x == 0)
        is_posted = begin_operation(view, record) && wait_for_post(view, record, number);
    __syncthreads();
    if (!is_posted)
        return;
    const auto from = static_cast<int>(record.peer);
    Channel& channel = view.own().from[from];
    copy_bytes(to, view.data_of(from, channel.record), bytes);
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    cuda::atomic_ref<unsigned int, cuda::thread_scope_system> blocks(channel.blocks);
    if (blocks.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1)
        take_post(view, record, number, bytes, begin_ns);
}

// ---- On the host

// "operation 3, send of 1000 float to rank 1 ("weights")".
std::string text_of(const OperationRecord& record) {
    std::string text = "operation " + std::to_string(record.sequence) + ", " + record.operation +
                       " of " + std::to_string(record.count) + " " + record.type;
    const std::string operation = record.operation;
    const bool is_from = operation == "receive" || operation.find("broadcast") != operation.npos;
    if (record.peer >= 0)
        text += (is_from ? " from rank " : " to rank ") + std::to_string(record.peer);
    if (record.name[0] != 0)
        text += " (\"" + std::string(record.name) + "\")";
    return text;
}

// Of all that ranks must call alike. (FNV-1a, by words of 64 bits: that two different calls have
// the same one will not happen by chance.)
std::uint64_t fingerprint_of(const OperationRecord& record) {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&hash](const auto& field) {
        std::uint64_t words[sizeof field / sizeof(std::uint64_t)];
        static_assert(sizeof words == sizeof field);
        std::memcpy(words, &field, sizeof field);
        for (const std::uint64_t word : words)
            hash = (hash ^ word) * 0x100000001b3;
    };
    add(record.count);
    add(record.peer);
    add(record.operation);
    add(record.type);
    add(record.name);
    return hash;
}

bool is_send(const OperationRecord& record) {
    return std::string(record.operation) == "send";
}

bool is_between_two(const OperationRecord& record) {
    return is_send(record) || std::string(record.operation) == "receive";
}

// Of those on another host we know only what comes from there.
bool is_near(const Job& job, int rank, int peer) {
    const auto& members = job.members;
    return members[static_cast<std::size_t>(rank)].host ==
           members[static_cast<std::size_t>(peer)].host;
}

std::string explain_timeout(const Job& job, int rank, double timeout_s, bool has_link,
                            const DeviceErrorReport& error_report) {
    const OperationRecord& theirs = error_report.theirs;
    std::string text = "waited " + format_fixed(timeout_s, 1) + " s in " +
                       text_of(error_report.mine) + "; " + job.name(error_report.peer);
    if (theirs.sequence == 0)
        return text + (is_near(job, rank, error_report.peer) ? " has begun no operation"
                                                             : " does not answer");
    const bool is_under_way = error_report.their_progress == Progress::under_way;
    text += is_under_way                                    ? " is in "
            : error_report.their_progress == Progress::over ? " has ended "
                                                            : " was last heard of in ";
    text += text_of(theirs);
    if (is_send(error_report.mine) && is_send(theirs) && theirs.peer == rank && is_under_way)
        text += ": both send, and neither receives; one of them must receive first";
    const bool are_both_ends = is_between_two(error_report.mine) && is_between_two(theirs) &&
                               is_send(error_report.mine) != is_send(theirs) && theirs.peer == rank;
    if (has_link && is_under_way &&
        (are_both_ends || text_of(error_report.mine) == text_of(theirs)))
        text += ": if the simulated link is so slow, give a longer --timeout";
    return text;
}

std::string explain_mismatch(const Job& job, const DeviceErrorReport& error_report) {
    return "in " + text_of(error_report.mine) + ", but " + job.name(error_report.peer) + " is in " +
           text_of(error_report.theirs) + ": " +
           (is_between_two(error_report.mine) ? "both must say the same count and type"
                                              : "all ranks must do the same, in the same order");
}

// Several processes take turns on a GPU, and one whose kernel waits does not give way, unless
// NVIDIA's Multi-Process Service mixes them.
void require_kernels_at_the_same_time(const Rank& rank) {
    int devices = 0;
    DDP_CHECK(cudaGetDeviceCount(&devices));
    const bool has_mps = std::getenv("CUDA_MPS_PIPE_DIRECTORY") != nullptr ||
                         std::filesystem::exists("/tmp/nvidia-mps");
    if (!kernels_run_on_cpu && rank.job().has_processes && !has_mps &&
        rank.local_world_size() > devices)
        throw OptionError(std::to_string(rank.local_world_size()) + " processes cannot share " +
                          std::to_string(devices) + " GPU" + (devices == 1 ? "" : "s") +
                          ", because a kernel that waits would never let the other run: use "
                          "--ranks, which makes threads, or start NVIDIA's MPS.");
}

// An arena as others find it: its IPC handle, and for threads of the same process its address.
struct PoolAddress {
    cudaIpcMemHandle_t handle;
    std::byte* data;
    int device;
};

PoolAddress unpack(const std::string& bytes) {
    PoolAddress address;
    if (bytes.size() != sizeof address)
        throw std::runtime_error("another rank runs another build of this program");
    std::memcpy(&address, bytes.data(), sizeof address);
    return address;
}

void allow_access_to(int device) {
    int own = 0, possible = 0;
    DDP_CHECK(cudaGetDevice(&own));
    if (own == device)
        return;
    DDP_CHECK(cudaDeviceCanAccessPeer(&possible, own, device));
    if (possible == 0)
        throw std::runtime_error("device " + std::to_string(own) +
                                 " cannot reach the memory of device " + std::to_string(device));
    const cudaError_t error = cudaDeviceEnablePeerAccess(device, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled)
        cudaGetLastError();  // another rank of this process was first
    else
        check(error, "cudaDeviceEnablePeerAccess");
}

}  // namespace

Peers::Peers(Rank& rank, std::size_t arena_bytes, std::optional<double> timeout_s,
             std::optional<LinkSpeed> link)
    : rank_(rank), timeout_s_(timeout_s.value_or(rank.job().timeout_s)) {
    require_kernels_at_the_same_time(rank);
    if (rank.world_size() > most_peers)
        throw OptionError(std::to_string(rank.world_size()) + " ranks are more than the " +
                          std::to_string(most_peers) + " that can share memory.");
    const Job& job = rank.job();
    let_kernels_run(10 * timeout_s_);
    arena_ = std::make_shared<SharedArena>(sizeof(ControlBlock) + 2 * most_staged +
                                           2 * SharedArena::unit + arena_bytes);
    error_report_ = std::make_shared<PinnedBuffer<DeviceErrorReport>>(1);
    (*error_report_)[0] = DeviceErrorReport{};
    const ControlBlock fresh;
    arena_->take(sizeof fresh);  // the very beginning
    DDP_CHECK(cudaMemcpy(arena_->data(), &fresh, sizeof fresh, cudaMemcpyHostToDevice));
    staging_ = allocate<std::byte>(2 * most_staged);
    view_.rank = rank.rank();
    view_.world_size = rank.world_size();
    view_.timeout_ns = static_cast<std::uint64_t>(timeout_s_ * 1e9);
    view_.error_report = error_report_->data();
    if (const std::optional<LinkSpeed>& speed = link ? link : job.link)
        view_.link = {speed->bytes_per_second * 1e-9,
                      static_cast<std::uint64_t>(speed->latency_s * 1e9)};
    // Peers read the arena until they have ended the run, and a watchdog may look at the board.
    rank.keep_until_run_ends(arena_);
    rank.keep_until_run_ends(error_report_);
    exchange_arenas();
    rank.add(*this);
}

void Peers::exchange_arenas() {
    PoolAddress own{};
    own.data = arena_->data();
    DDP_CHECK(cudaGetDevice(&own.device));
    if (rank_.job().has_processes)
        DDP_CHECK(cudaIpcGetMemHandle(&own.handle, own.data));
    const std::vector<std::string> all =
        rank_.all_gather(std::string(reinterpret_cast<const char*>(&own), sizeof own));
    for (int r = 0; r < rank_.world_size(); r++) {
        const Member& member = rank_.job().members[static_cast<std::size_t>(r)];
        PoolAddress address = unpack(all[static_cast<std::size_t>(r)]);
        if (member.host != rank_.host())
            continue;
        if (member.process == getpid()) {
            allow_access_to(address.device);
        } else {
            void* opened = nullptr;
            DDP_CHECK(
                cudaIpcOpenMemHandle(&opened, address.handle, cudaIpcMemLazyEnablePeerAccess));
            opened_.push_back(opened);
            address.data = static_cast<std::byte*>(opened);
        }
        view_.control[r] = reinterpret_cast<ControlBlock*>(address.data);
    }
    rank_.barrier();  // nobody's kernel waits while another rank still asks the device for memory
}

Peers::~Peers() {
    if (std::uncaught_exceptions() > exceptions_)
        stop();
    // Only our own: the others' kernels may be waiting for what we have yet to say. What has gone
    // wrong was either reported, or is found by the next call.
    for (auto& [stream, event] : last_)
        cudaEventSynchronize(event);
    rank_.remove(*this);
    for (void* opened : opened_)
        cudaIpcCloseMemHandle(opened);
}

void Peers::stop() noexcept {
    std::atomic_ref<unsigned int>((*error_report_)[0].stop).store(1, std::memory_order_release);
}

std::string Peers::error() {
    DeviceErrorReport& error_report = (*error_report_)[0];
    switch (std::atomic_ref<Problem>(error_report.problem).load(std::memory_order_acquire)) {
        case Problem::timeout:
            return explain_timeout(rank_.job(), rank_.rank(), timeout_s_,
                                   view_.link.bytes_per_ns > 0, error_report);
        case Problem::mismatch:
            return explain_mismatch(rank_.job(), error_report);
        default:
            return "";
    }
}

void Peers::synchronize(Stream& stream) {
    stream.synchronize();
    wait_for_problem();
    rank_.check();
    if (const std::string text = error(); !text.empty())
        throw std::runtime_error(text);
}

// A kernel on another stream may be writing down why those of this one have ended. It takes a
// moment, unless that kernel is no more.
void Peers::wait_for_problem() {
    const std::atomic_ref<Problem> problem((*error_report_)[0].problem);
    const Stopwatch watch;
    while (problem.load(std::memory_order_acquire) == Problem::being_written) {
        if (watch.seconds() > 10)
            throw std::runtime_error("a kernel was cut off while it wrote down what had failed");
        std::this_thread::yield();
    }
}

std::uint64_t Peers::offset_of(const void* data, std::size_t bytes,
                               const std::string& operation) const {
    if (data == nullptr || bytes == 0)
        return 0;
    const auto* begin = static_cast<const std::byte*>(data);
    const std::byte* end = arena_->data() + arena_->bytes();
    if (begin < arena_->data() || begin > end || bytes > static_cast<std::size_t>(end - begin))
        throw std::invalid_argument(operation +
                                    ": the data does not lie in this rank's arena; "
                                    "allocate it by Peers::allocate");
    return static_cast<std::uint64_t>(begin - arena_->data());
}

OperationRecord Peers::next_record(const std::string& operation, const void* data,
                                   std::size_t count, std::size_t element_bytes,
                                   const std::string& type, const std::string& name) {
    OperationRecord record;
    // More elements than memory has bytes are refused as data that is not in the arena, too.
    const std::size_t most = SIZE_MAX / element_bytes;
    record.offset = offset_of(data, std::min(count, most) * element_bytes, operation);
    record.sequence = ++operations_;
    record.count = count;
    record.set_operation(operation);
    record.set_type(type);
    record.set_name(name);
    return record;
}

Collective Peers::next_collective(const CollectiveCall& call, Stream& stream) {
    Collective collective{
        view_, next_record(call.operation, call.input, call.input_bytes, 1, call.type, call.name),
        ++collectives_};
    collective.record.result = offset_of(call.output, call.output_bytes, call.operation);
    collective.record.count = call.count;
    collective.record.peer = call.root;
    collective.call = fingerprint_of(collective.record);
    // They use the same flags: one after the other, on whatever streams.
    if (collective_stream_ != nullptr && collective_stream_ != stream)
        stream.wait(last_.at(collective_stream_));
    collective_stream_ = stream;
    return collective;
}

void Peers::enqueued(Stream& stream) {
    last_[stream].record(stream);
}

void Peers::require_peer(int peer, const std::string& operation) const {
    const std::string place = operation + " rank " + std::to_string(peer) + ": ";
    if (peer < 0 || peer >= rank_.world_size() || peer == rank_.rank())
        throw std::invalid_argument(place + "the other ranks of rank " +
                                    std::to_string(rank_.rank()) + " are those of 0 to " +
                                    std::to_string(rank_.world_size() - 1));
    if (view_.control[peer] == nullptr)
        throw std::invalid_argument(place + "it is on another host (" +
                                    rank_.job().members[static_cast<std::size_t>(peer)].host +
                                    "), where kernels cannot reach");
}

void Peers::send_bytes(const void* data, std::size_t count, std::size_t element_bytes,
                       const std::string& type, int to, Stream& stream, const std::string& name) {
    require_peer(to, "send to");
    OperationRecord record = next_record("send", data, count, element_bytes, type, name);
    record.peer = to;
    launch_cooperative(stream, {1, 1}, send_kernel, view_, record, ++sends_[to]);
    enqueued(stream);
}

void Peers::receive_bytes(void* data, std::size_t count, std::size_t element_bytes,
                          const std::string& type, int from, Stream& stream,
                          const std::string& name) {
    require_peer(from, "receive from");
    OperationRecord record = next_record("receive", nullptr, count, element_bytes, type, name);
    record.peer = from;
    const std::size_t bytes = count * element_bytes;
    launch_cooperative(stream, shape_of_copy(bytes, view_.world_size), receive_kernel, view_,
                       record, ++receives_[from],
                       bytes == 0 ? nullptr : static_cast<std::byte*>(data), bytes);
    enqueued(stream);
}

}  // namespace ddp
