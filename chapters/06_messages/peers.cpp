#include "06_messages/peers.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <span>
#include <stdexcept>
#include <thread>

#include "06_messages/support/shared_device.hpp"
#include "common/gpu/clock.hpp"
#include "common/report/bench.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// ---- Messages

// Returns "operation 3, send of 1000 float to rank 1 ("weights")".
std::string to_string(const OperationRecord& record) {
    return "operation " + std::to_string(record.sequence) + ", " +
           to_string(static_cast<const Call&>(record));
}

bool is_send(const OperationRecord& record) {
    return record.kind == OperationKind::send;
}

bool is_message(const OperationRecord& record) {
    return is_send(record) || record.kind == OperationKind::receive;
}

// The advice at the end of a time-out that a slow rank, and nothing else, may have caused. A limit
// that the program has set itself does not change with --timeout.
std::string advice_if_slow(const Job& job, double timeout_s) {
    return timeout_s == job.timeout_s
               ? ": if it is only slow, or the machine is busy, give a longer --timeout"
               : "";
}

// `is_readable`: the peer shares its memory, where its record stands.
std::string explain_timeout(const Job& job, int rank, double timeout_s, bool has_link,
                            bool is_readable, const DeviceErrorReport& error_report) {
    const OperationRecord& theirs = error_report.theirs;
    std::string text = "waited " + format_fixed(timeout_s, 1) + " s in " +
                       to_string(error_report.mine) + "; " + job.name(error_report.peer);
    if (theirs.sequence == 0)
        return text + (is_readable ? " has begun no operation" + advice_if_slow(job, timeout_s)
                                   : " does not answer");
    const bool is_under_way = error_report.their_progress == PeerProgress::under_way;
    text += is_under_way                                        ? " is in "
            : error_report.their_progress == PeerProgress::over ? " has ended "
                                                                : " was last heard of in ";
    text += to_string(theirs);
    if (is_send(error_report.mine) && is_send(theirs) && theirs.peer == rank && is_under_way)
        text += ": both send, and neither receives; one of them must receive first";
    const bool are_both_ends = is_message(error_report.mine) && is_message(theirs) &&
                               is_send(error_report.mine) != is_send(theirs) && theirs.peer == rank;
    if (is_under_way && (are_both_ends || to_string(error_report.mine) == to_string(theirs)))
        text += has_link ? ": if the simulated link is so slow, give a longer --timeout"
                         : advice_if_slow(job, timeout_s);
    else if (error_report.their_progress == PeerProgress::over)
        text += advice_if_slow(job, timeout_s);
    return text;
}

// Returns what the hosts of this process have enqueued, if operations wait for a place on the
// device: "; rank 0 has enqueued 9 operations; rank 1 has enqueued 8 and is inside a launch". Else
// nothing. `peer`: the late rank's place among `ranks`, or -1.
std::string explain_hosts(const Job& job, const std::vector<int>& ranks, int peer,
                          const DeviceErrorReport& report) {
    const std::span hosts(report.hosts, ranks.size());
    const bool has_not_begun = peer >= 0 && report.their_progress == PeerProgress::over &&
                               report.hosts[peer].enqueued > report.theirs.sequence;
    const bool is_in_launch = std::ranges::count(hosts, HostCall::launch, &HostProgress::call) > 0;
    if (!has_not_begun && !is_in_launch)
        return "";
    constexpr const char* inside[] = {"", " and is inside a launch", " and records an event",
                                      " and waits for an event"};
    std::string text;
    for (std::size_t i = 0; i < ranks.size(); i++)
        if (job.members[static_cast<std::size_t>(ranks[i])].process == getpid())
            text += "; " + job.name(ranks[i]) + " has enqueued " +
                    format_count(static_cast<std::int64_t>(hosts[i].enqueued), "operation") +
                    inside[static_cast<int>(hosts[i].call)];
    return text + (is_in_launch ? "; a launch that waits for room in its queue may keep those of "
                                  "other ranks from beginning"
                                : "");
}

std::string explain_mismatch(const Job& job, const DeviceErrorReport& error_report) {
    return "in " + to_string(error_report.mine) + ", but " + job.name(error_report.peer) +
           " is in " + to_string(error_report.theirs) + ": " +
           (is_message(error_report.mine) ? "both must say the same count and type"
                                          : "all ranks must do the same, in the same order");
}

std::string explain_slow_link(const Job& job, double timeout_s, const DeviceErrorReport& report) {
    return to_string(report.mine) + " would take longer than " + format_fixed(timeout_s, 1) +
           " s over the simulated link: give a faster --link" +
           (timeout_s == job.timeout_s ? " or a longer --timeout" : "");
}

// ---- The ranks' devices and arenas

// Lets other ranks find an arena: by its IPC handle, or within the same process by its address.
struct ArenaAddress {
    cudaIpcMemHandle_t handle;
    std::byte* data;
    int device;
    HostProgress* host;  // within the same process
};

// Returns `ranks`, or all of the job if there are none. Throws OptionError if they cannot share
// memory: they are too many, or one is on another machine than this rank.
std::vector<int> require_shared_memory(const Rank& rank, std::vector<int> ranks) {
    if (ranks.empty()) {
        ranks.resize(rank.job().members.size());
        std::iota(ranks.begin(), ranks.end(), 0);
    }
    for (const int number : ranks)
        if (const Member& member = rank.job().members[static_cast<std::size_t>(number)];
            member.node != rank.node())
            throw OptionError("rank " + std::to_string(number) + " is on another node (" +
                              member.node + "), where kernels cannot reach");
    if (ranks.size() > max_peers)
        throw OptionError(std::to_string(ranks.size()) + " ranks on one node are more than the " +
                          std::to_string(max_peers) +
                          " that can share memory: start fewer on each node.");
    return ranks;
}

// Lets kernels of the current device use the memory of `device`.
void allow_access_to(int device) {
    int own = 0, possible = 0;
    DDP_CHECK(cudaGetDevice(&own));
    if (own == device)
        return;
    DDP_CHECK(cudaDeviceCanAccessPeer(&possible, own, device));
    if (possible == 0)
        throw std::runtime_error("GPU " + std::to_string(own) + " cannot reach the memory of GPU " +
                                 std::to_string(device) +
                                 ": let all ranks share one (CUDA_VISIBLE_DEVICES=0).");
    const cudaError_t error = cudaDeviceEnablePeerAccess(device, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled)
        cudaGetLastError();  // another rank of this process was first
    else
        check(error, "cudaDeviceEnablePeerAccess");
}

// Opens the memory of another rank of this node, `name`.
void* open_memory(const cudaIpcMemHandle_t& handle, const std::string& name) {
    void* opened = nullptr;
    const cudaError_t error = cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess);
    // Linux lets a process open what belongs to another one only if it could debug it (ptrace(2)).
    if (error == cudaErrorNotPermitted)
        throw std::runtime_error(
            "the memory of " + name +
            " must not be opened: it runs as another user, or in a container of its own. Start all "
            "ranks of a node in one container (ch-run --join, say), or make each a node of its own "
            "by DDP_NODE=$(hostname)-$OMPI_COMM_WORLD_RANK ($SLURM_PROCID by srun).");
    check(error, "cudaIpcOpenMemHandle");
    return opened;
}

}  // namespace

Peers::Peers(Rank& rank, std::size_t arena_bytes, std::optional<double> timeout_s,
             std::optional<LinkSpeed> link, std::vector<int> ranks)
    : rank_(rank),
      ranks_(require_shared_memory(rank, std::move(ranks))),
      timeout_s_(longest_wait_s(timeout_s.value_or(rank.job().timeout_s))) {
    view_.ranks_on_device =
        require_kernels_at_the_same_time(rank, (link ? link : rank.job().link).has_value())
            .max_ranks;
    const Job& job = rank.job();
    let_kernels_run(10 * timeout_s_);
    arena_ = std::make_shared<SharedArena>(own_bytes + arena_bytes);
    error_report_ = std::make_shared<PinnedBuffer<DeviceErrorReport>>(1);
    (*error_report_)[0] = DeviceErrorReport{};
    ControlBlock fresh;
    fresh.rank = rank.rank();
    arena_->take(sizeof fresh);  // the very beginning
    copy_to_device(arena_->data(), &fresh, sizeof fresh);
    // A process's first copy to memory that is not pinned may wait for every kernel that runs, and
    // keeps all launches out meanwhile (seen on an H200): so it is made before any kernel waits.
    int first = 0;
    copy_to_host(&first, arena_->data(), sizeof first);
    extension_memory_ = allocate<std::byte>(extension_bytes);
    view_.rank = index_of(rank.rank());
    view_.world_size = static_cast<int>(ranks_.size());
    view_.timeout_ns = static_cast<std::uint64_t>(timeout_s_ * 1e9);
    view_.error_report = error_report_->data();
    if (const std::optional<LinkSpeed>& speed = link ? link : job.link)
        view_.link = {speed->bytes_per_second * 1e-9,
                      static_cast<std::uint64_t>(speed->latency_s * 1e9)};
    // Peers read the arena until they have ended the run, and the watchdog may read the report.
    rank.keep_until_run_ends(arena_);
    rank.keep_until_run_ends(error_report_);
    exchange_arenas();
    rank.add(*this);
    try {
        rehearse(rank, view_);
    } catch (...) {
        rank.remove(*this);
        throw;
    }
}

void Peers::exchange_arenas() {
    ArenaAddress own{};
    own.data = arena_->data();
    own.host = &(*error_report_)[0].own_host;
    DDP_CHECK(cudaGetDevice(&own.device));
    if (rank_.job().has_processes)
        DDP_CHECK(cudaIpcGetMemHandle(&own.handle, own.data));
    const std::vector<ArenaAddress> all = rank_.all_gather(own);
    for (std::size_t i = 0; i < ranks_.size(); i++) {
        const auto r = static_cast<std::size_t>(ranks_[i]);
        ArenaAddress address = all[r];
        if (rank_.job().members[r].process == getpid()) {
            allow_access_to(address.device);
            view_.host[i] = address.host;
        } else {
            opened_.push_back(open_memory(address.handle, rank_.job().name(static_cast<int>(r))));
            address.data = static_cast<std::byte*>(opened_.back());
        }
        view_.control[i] = reinterpret_cast<ControlBlock*>(address.data);
    }
    // No kernel may wait for a rank that still asks the device for memory.
    rank_.barrier();
}

Peers::~Peers() {
    if (std::uncaught_exceptions() > exceptions_)
        stop();
    // This rank's kernels only: those of others may wait for something that this rank does next.
    // An error was either reported already, or the next call finds it.
    for (auto& [stream, enqueued] : enqueued_)
        cudaEventSynchronize(enqueued.last);
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
                                   view_.link.bytes_per_ns > 0, index_of(error_report.peer) >= 0,
                                   error_report) +
                   explain_hosts(rank_.job(), ranks_, index_of(error_report.peer), error_report);
        case Problem::mismatch:
            return explain_mismatch(rank_.job(), error_report);
        case Problem::slow_link:
            return explain_slow_link(rank_.job(), timeout_s_, error_report);
        default:
            return "";
    }
}

Wait Peers::wait_when_stopped() {
    const DeviceErrorReport& report = (*error_report_)[0];
    if (std::atomic_ref(report.problem).load(std::memory_order_acquire) != Problem::stopped)
        return {};
    return {report.peer, " It was awaited by " + rank_.job().name(rank_.rank()) + " in " +
                             to_string(report.mine)};
}

void Peers::synchronize(Stream& stream) {
    stream.synchronize();
    wait_for_problem();
    rank_.check();
    if (const std::string text = error(); !text.empty())
        throw std::runtime_error(text);
}

// A kernel on another stream may still be writing the report of the problem that has ended this
// one's. That takes a moment, unless the kernel was cut off.
void Peers::wait_for_problem() {
    const std::atomic_ref<Problem> problem((*error_report_)[0].problem);
    const Stopwatch watch;
    while (problem.load(std::memory_order_acquire) == Problem::being_written) {
        if (watch.seconds() > 10)
            throw std::runtime_error("a kernel was cut off while it wrote down what had failed");
        std::this_thread::yield();
    }
}

OperationRecord Peers::next_record(const Call& call) {
    OperationRecord record{call, {.offset = input_offset(*arena_, call)}};
    record.sequence = ++operations_;
    record.fingerprint = fingerprint_of(call);
    note(HostCall::launch);
    return record;
}

// A GPU's launch queue holds 1021 kernels, or 56 kernels and 56 events for which a host may sleep.
// If a cooperative launch finds it full, every launch of the process waits, also that of the rank
// for which the kernel at the head of the queue waits (measured on an H200). So no rank runs so far
// ahead: after each group of launches the host waits for the end of the group before. The device
// has a whole group to do while the host wakes up.
void Peers::enqueued(Stream& stream) {
    constexpr std::uint64_t group = max_ahead / 2;
    if (is_capturing_)  // nothing runs: the launch of the graph will be noted
        return captured_.record(stream);
    Enqueued& here = enqueued_[stream];
    note(HostCall::record);
    here.last.record(stream);
    if (here.launches == 0)
        require_queues(rank_, streams_in_use());
    if (++here.launches % group == 0) {
        const std::uint64_t groups = here.launches / group;
        here.ends[groups % 2].record(stream);
        note(HostCall::wait);
        if (groups > 1)
            here.ends[(groups - 1) % 2].synchronize();
    }
    note(HostCall::none);
}

void Peers::note(HostCall call) {
    HostProgress& host = (*error_report_)[0].own_host;
    if (call == HostCall::record)
        std::atomic_ref(host.enqueued).store(operations_, std::memory_order_relaxed);
    std::atomic_ref(host.call).store(call, std::memory_order_relaxed);
}

std::size_t Peers::streams_in_use() const {
    return static_cast<std::size_t>(std::ranges::count_if(enqueued_, [](const auto& each) {
        return forget_not_ready(cudaEventQuery(each.second.last)) == cudaErrorNotReady;
    }));
}

void Peers::wait_for_last_on(cudaStream_t other, Stream& stream) {
    if (is_capturing_)
        return stream.wait(captured_);
    const auto before = enqueued_.find(other);
    if (before == enqueued_.end())
        throw std::logic_error(
            "the operation before this one was launched on a different stream, which the peers do "
            "not know: call peers.enqueued(stream) after each launch of a kernel that uses view()");
    stream.wait(before->second.last);
}

void Peers::capture(const std::function<void()>& enqueue) {
    is_capturing_ = true;
    enqueue();
    is_capturing_ = false;
    note(HostCall::none);
}

int Peers::index_of(int number) const {
    const auto found = std::ranges::find(ranks_, number);
    return found == ranks_.end() ? -1 : static_cast<int>(found - ranks_.begin());
}

// Returns the place of rank `number`, which must not be this rank.
int Peers::require_peer(int number, const std::string& operation) const {
    if (is_capturing_)
        throw std::logic_error(operation + " rank " + std::to_string(number) +
                               ": a message has a number, which a graph would repeat; only "
                               "collectives can be captured");
    const int index = index_of(number);
    if (index < 0 || index == view_.rank)
        throw std::invalid_argument(operation + " rank " + std::to_string(number) +
                                    (index < 0 ? "" : ", which is this rank itself") +
                                    ": there are ranks " + std::to_string(ranks_.front()) + " to " +
                                    std::to_string(ranks_.back()));
    return index;
}

// ---- Launch shapes

unsigned int blocks_of_rank(int ranks) {
    return std::clamp(device_limits().multiprocessors / (2 * static_cast<unsigned int>(ranks)), 1u,
                      static_cast<unsigned int>(max_blocks));
}

LaunchShape shape_of_transfer(std::size_t bytes, int ranks) {
    const unsigned int most = blocks_of_rank(ranks);
    if (kernels_run_on_cpu)
        return shape_on_cpu(most);
    constexpr std::size_t threads = max_copy_threads, bytes_per_thread = 64;
    const std::size_t blocks =
        std::clamp<std::size_t>(bytes / (threads * bytes_per_thread), 1, most);
    return {dim3(static_cast<unsigned int>(blocks)), dim3(static_cast<unsigned int>(threads))};
}

LaunchShape shape_of_transfer(const Peers& peers, std::size_t bytes) {
    const PeersView& view = peers.view();
    LaunchShape shape = shape_of_transfer(bytes, view.ranks_on_device);
    if (view.link.bytes_per_ns > 0)
        shape.grid.x = 1;
    return shape;
}

}  // namespace ddp
