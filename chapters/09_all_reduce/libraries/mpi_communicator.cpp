// The Communicator over MPI: the reference on CPUs, and a road between nodes. This MPI need not
// know of devices: data goes through pinned memory, and a thread beside the stream calls MPI
// (host_staging.hpp).
#include <stdexcept>

#include "09_all_reduce/communicator.hpp"
#if defined(DDP_MPI)
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "09_all_reduce/libraries/duplicate_world.hpp"
#include "09_all_reduce/libraries/host_staging.hpp"
#include "common/report/bench.hpp"
#include "common/report/units.hpp"
#endif

namespace ddp {

#if defined(DDP_MPI)

namespace {

// ---- Sums. MPI has none for 16-bit floats, and its maximum need not keep a NaN: these are ours.

template <ReduceOp op, class T>
void combine_elements(void* input, void* in_and_out, int* count, MPI_Datatype*) {
    const auto* a = static_cast<const T*>(input);
    auto* b = static_cast<T*>(in_and_out);
    for (int i = 0; i < *count; i++)
        b[i] = combine<op>(a[i], b[i]);
}

template <ReduceOp op, class T>
void finish_elements(std::byte* data, int count, int ranks) {
    auto* elements = reinterpret_cast<T*>(data);
    for (int i = 0; i < count; i++)
        elements[i] = finish<op>(elements[i], ranks);
}

struct Reduction {
    MPI_User_function* combine;
    void (*finish)(std::byte* data, int count, int ranks);
};

template <class T>
Reduction reduction_of(ReduceOp op) {
    switch (op) {
        case ReduceOp::average:
            return {combine_elements<ReduceOp::average, T>, finish_elements<ReduceOp::average, T>};
        case ReduceOp::maximum:
            return {combine_elements<ReduceOp::maximum, T>, finish_elements<ReduceOp::maximum, T>};
        case ReduceOp::minimum:
            return {combine_elements<ReduceOp::minimum, T>, finish_elements<ReduceOp::minimum, T>};
        default:
            return {combine_elements<ReduceOp::sum, T>, finish_elements<ReduceOp::sum, T>};
    }
}

Reduction reduction_of(ElementType type, ReduceOp op) {
    Reduction reduction{};
    with_type(type, [&]<class T>() { reduction = reduction_of<T>(op); });
    return reduction;
}

class MpiOp {
  public:
    explicit MpiOp(const Reduction& reduction) { MPI_Op_create(reduction.combine, 1, &op_); }
    ~MpiOp() { MPI_Op_free(&op_); }
    MpiOp(const MpiOp&) = delete;
    MpiOp& operator=(const MpiOp&) = delete;
    operator MPI_Op() const { return op_; }

  private:
    MPI_Op op_;
};

// To MPI, 16-bit floats are something of two bytes.
MPI_Datatype mpi_type_of(ElementType type) {
    switch (type) {
        case ElementType::float32:
            return MPI_FLOAT;
        case ElementType::float64:
            return MPI_DOUBLE;
        case ElementType::int32:
            return MPI_INT;
        case ElementType::uint8:
            return MPI_BYTE;
        default:
            return MPI_UINT16_T;
    }
}

// ---- What ranks send each other before data moves

struct Announcement {
    char call[160] = "";  // in words, for messages
    char what[112] = "";  // must be the same on all ranks that take part
};

// One operation, as the staging thread carries it out.
struct MpiOperation {
    Announcement announcement;
    std::vector<int> peers;  // the other ranks that take part

    std::string text() const { return announcement.call; }
};

// Longer texts are cut.
template <std::size_t size>
void set_text(char (&field)[size], const std::string& text) {
    std::memcpy(field, text.data(), std::min(text.size(), size - 1));
}

// The exchange of announcements with the peers of an operation.
class Exchange {
  public:
    // `records[r]` is rank r's; this rank's is there already. What is not over at the end of this
    // object is given up: nothing will be written to `records` any more.
    Exchange(MPI_Comm communicator, const std::vector<int>& peers, int rank,
             std::vector<Announcement>& records)
        : peers_(peers), requests_(2 * peers.size()) {
        constexpr int bytes = sizeof(Announcement), tag = 0;
        for (std::size_t i = 0; i < peers.size(); i++) {
            const int peer = peers[i];
            MPI_Irecv(&records[static_cast<std::size_t>(peer)], bytes, MPI_BYTE, peer, tag,
                      communicator, &requests_[i]);
            MPI_Isend(&records[static_cast<std::size_t>(rank)], bytes, MPI_BYTE, peer, tag,
                      communicator, &requests_[peers.size() + i]);
        }
    }
    ~Exchange() {
        for (std::size_t i = 0; i < requests_.size(); i++) {
            if (requests_[i] == MPI_REQUEST_NULL)
                continue;
            if (i >= peers_.size()) {  // a record is short: MPI has taken a copy
                MPI_Request_free(&requests_[i]);
            } else {
                MPI_Cancel(&requests_[i]);
                MPI_Wait(&requests_[i], MPI_STATUS_IGNORE);
            }
        }
    }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    // Returns whether all is over; calls `see` with each rank whose record has come since the
    // last time.
    bool is_over(const std::function<void(int)>& see) {
        std::vector<int> finished(requests_.size());
        int count = 0;
        check_mpi(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                               finished.data(), MPI_STATUSES_IGNORE),
                  "MPI_Testsome");
        if (count == MPI_UNDEFINED)
            return true;
        for (int i = 0; i < count; i++)
            if (const auto index = static_cast<std::size_t>(finished[i]); index < peers_.size())
                see(peers_[index]);
        return false;
    }

    // Returns the ranks whose announcements have not come.
    std::vector<int> missing() const {
        std::vector<int> ranks;
        for (std::size_t i = 0; i < peers_.size(); i++)
            if (requests_[i] != MPI_REQUEST_NULL)
                ranks.push_back(peers_[i]);
        return ranks;
    }

  private:
    const std::vector<int>& peers_;
    std::vector<MPI_Request> requests_;  // receives, then sends
};

class MpiCommunicator final : public Communicator {
  public:
    MpiCommunicator(Rank& rank, std::size_t arena_bytes, const Group& group);
    ~MpiCommunicator() override;

    std::string kind() const override { return "mpi"; }
    void synchronize(Stream& stream) override { staging_->synchronize(stream); }

  private:
    // A sum, and the rest of the work once MPI has added up.
    struct Reducer {
        Reducer(const Reduction& reduction, int ranks)
            : op(reduction), finish([=](const StagedSlice& slice, int count) {
                  reduction.finish(slice.output, count, ranks);
              }) {}
        MpiOp op;
        std::function<void(const StagedSlice& slice, int count)> finish;
    };

    const std::shared_ptr<SharedArena>& arena() override { return arena_; }
    void enqueue(const Call& call, Stream& stream) override;
    MpiOperation collective(const Call& call);
    MpiOperation message(const Call& call);
    std::shared_ptr<Reducer> reducer_of(const Call& call) const;

    // The staging thread:
    void handshake(const MpiOperation& operation);
    int start(const Call& call, MPI_Op op, const StagedSlice& slice, MPI_Request* request) const;
    void see(const MpiOperation& operation, int peer);
    void end(MPI_Request& request, const MpiOperation& operation);

    const std::shared_ptr<SharedArena> arena_;
    MPI_Comm communicator_ = MPI_COMM_NULL;  // MPI never mixes it up with another one
    const std::shared_ptr<std::vector<Announcement>> records_;  // by rank; our own at our place
    std::uint64_t operations_ = 0;
    std::optional<HostStaging> staging_;
};

MpiCommunicator::MpiCommunicator(Rank& rank, std::size_t arena_bytes, const Group& group)
    : Communicator(rank, group),
      arena_(std::make_shared<SharedArena>(arena_bytes)),
      records_(
          std::make_shared<std::vector<Announcement>>(static_cast<std::size_t>(group.size()))) {
    rank.keep_until_run_ends(
        arena_);  // to free it may be to wait for kernels, which may wait for another rank
    rank.keep_until_run_ends(records_);
    communicator_ = communicator_of(rank, group);
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
    staging_.emplace(rank);
}

MpiCommunicator::~MpiCommunicator() {
    if (staging_->finish())  // otherwise MPI may still have something to do with it
        MPI_Comm_free(&communicator_);
}

// ---- The calls

// An operation of all ranks, which agree on all of its words.
MpiOperation MpiCommunicator::collective(const Call& call) {
    MpiOperation operation;
    const std::string text = to_string(call);
    set_text(operation.announcement.call,
             "operation " + std::to_string(++operations_) + ", " + text);
    set_text(operation.announcement.what, text);
    for (int r = 0; r < world_size(); r++)
        if (r != index())
            operation.peers.push_back(r);
    return operation;
}

// An operation of two ranks, which agree on both ends, count and type.
MpiOperation MpiCommunicator::message(const Call& call) {
    const int self = rank().rank();
    if (call.peer == self)
        throw std::invalid_argument(call.title() + ": rank " + std::to_string(self) +
                                    " is this rank itself");
    const bool is_send = call.kind == OperationKind::send;
    MpiOperation operation;
    set_text(operation.announcement.call,
             "operation " + std::to_string(++operations_) + ", " + to_string(call));
    set_text(operation.announcement.what, std::to_string(is_send ? self : call.peer) + " to " +
                                              std::to_string(is_send ? call.peer : self) + ": " +
                                              std::to_string(call.count) + " " +
                                              name_of(call.type));
    operation.peers = {peer_of(call)};
    return operation;
}

// Returns what adds up the elements of a call; nothing for one that does not sum.
std::shared_ptr<MpiCommunicator::Reducer> MpiCommunicator::reducer_of(const Call& call) const {
    if (!call.op)
        return nullptr;
    return std::make_shared<Reducer>(reduction_of(call.type, *call.op), world_size());
}

void MpiCommunicator::enqueue(const Call& call, Stream& stream) {
    const std::shared_ptr<Reducer> reducer = reducer_of(call);
    const bool is_message = call.kind == OperationKind::send || call.kind == OperationKind::receive;
    Call staged = call;
    if (call.kind == OperationKind::broadcast) {
        // The root has an input only, the other ranks an output only.
        staged.inputs = index() == peer_of(call) ? 1 : 0;
        staged.outputs = 1 - staged.inputs;
    }
    const auto work = [=, this, operation = is_message ? message(call) : collective(call)](
                          const StagedSlice& slice) {
        handshake(operation);
        MPI_Request request = MPI_REQUEST_NULL;
        check_mpi(start(staged, reducer ? MPI_Op{reducer->op} : MPI_OP_NULL, slice, &request),
                  operation.text());
        end(request, operation);
        if (reducer && staged.outputs > 0)
            reducer->finish(slice, static_cast<int>(slice.bytes / bytes_of(staged.type)));
    };
    input_offset(*arena_, staged);
    output_offset(*arena_, staged);
    staging_->enqueue({call.input, staged.inputs, call.output, staged.outputs, call.bytes(), work},
                      stream);
}

// ---- The thread that calls MPI

// Begins MPI's part of a slice, without waiting: the one call of MPI that does what `call` says.
int MpiCommunicator::start(const Call& call, MPI_Op op, const StagedSlice& slice,
                           MPI_Request* request) const {
    constexpr int tag_of_data = 1;
    const MPI_Datatype type = mpi_type_of(call.type);
    const int count = static_cast<int>(slice.bytes / bytes_of(call.type));
    const int peer = call.peer < 0 ? -1 : peer_of(call);
    switch (call.kind) {
        case OperationKind::send:
            return MPI_Issend(slice.input, count, type, peer, tag_of_data, communicator_, request);
        case OperationKind::receive:
            return MPI_Irecv(slice.output, count, type, peer, tag_of_data, communicator_, request);
        case OperationKind::broadcast: {
            auto* data = call.inputs > 0 ? const_cast<std::byte*>(slice.input) : slice.output;
            return MPI_Ibcast(data, count, type, peer, communicator_, request);
        }
        case OperationKind::reduce:
            return MPI_Ireduce(slice.input, slice.output, count, type, op, peer, communicator_,
                               request);
        case OperationKind::all_reduce:
            return MPI_Iallreduce(slice.input, slice.output, count, type, op, communicator_,
                                  request);
        case OperationKind::reduce_scatter:
            return MPI_Ireduce_scatter_block(slice.input, slice.output, count, type, op,
                                             communicator_, request);
        case OperationKind::all_gather:
            return MPI_Iallgather(slice.input, count, type, slice.output, count, type,
                                  communicator_, request);
        default:
            return MPI_ERR_ARG;
    }
}

// Waits until all peers have come to the same call.
void MpiCommunicator::handshake(const MpiOperation& operation) {
    (*records_)[static_cast<std::size_t>(index())] = operation.announcement;
    Exchange exchange(communicator_, operation.peers, index(), *records_);
    const auto is_over = [&] { return exchange.is_over([&](int peer) { see(operation, peer); }); };
    const double limit_s = rank().job().timeout_s;
    if (staging_->wait_until(is_over, limit_s))
        return;
    std::string text = "waited " + format_fixed(limit_s, 1) + " s in " + operation.text();
    for (std::string word = " for "; int peer : exchange.missing())
        text += std::exchange(word, " and ") + rank().job().name(group().rank(peer));
    throw std::runtime_error(text + ", which did not come");
}

void MpiCommunicator::see(const MpiOperation& operation, int peer) {
    const Announcement& theirs = (*records_)[static_cast<std::size_t>(peer)];
    if (std::strcmp(theirs.what, operation.announcement.what) != 0)
        throw std::runtime_error("in " + operation.text() + ", but " +
                                 rank().job().name(group().rank(peer)) + " is in " + theirs.call +
                                 ": all ranks must do the same, in the same order");
}

// Waits until MPI has done what all ranks have begun, even if the run has failed meanwhile: only a
// rank that is gone leaves it unfinished, and MPI may write to this rank's memory until then.
void MpiCommunicator::end(MPI_Request& request, const MpiOperation& operation) {
    constexpr double last_wait_s = 1;
    const auto is_done = [&] {
        int flag = 0;
        check_mpi(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), operation.text());
        return flag != 0;
    };
    const double limit_s = rank().job().timeout_s;
    try {
        if (!staging_->wait_until(is_done, limit_s))
            throw std::runtime_error("waited " + format_fixed(limit_s, 1) + " s for MPI in " +
                                     operation.text() +
                                     ", to which all have come: is a rank stopped?");
    } catch (...) {
        for (const Stopwatch waited; waited.seconds() < last_wait_s && !is_done();)
            sched_yield();
        throw;
    }
}

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(Rank& rank, std::size_t arena_bytes,
                                                    std::optional<Group> group) {
    int is_started = 0;
    MPI_Initialized(&is_started);
    const Job& job = rank.job();
    if (is_started == 0)
        throw OptionError("The communicator mpi takes ranks that mpirun or srun has started, not " +
                          (job.has_processes ? "processes started by " : std::string()) +
                          job.started_by +
                          ": start the program by mpirun -n 4, or use the communicator native.");
    return std::make_unique<MpiCommunicator>(rank, arena_bytes, group.value_or(Group::all(job)));
}

#else

std::unique_ptr<Communicator> make_mpi_communicator(Rank&, std::size_t, std::optional<Group>) {
    throw OptionError(
        "The communicator mpi is not in this program, which was built without MPI: install Open "
        "MPI and build again, or use the communicator native.");
}

#endif

}  // namespace ddp
