// The Communicator over MPI: the reference on CPUs, and a road between hosts. This MPI need not
// know of devices: data goes through pinned memory, and a thread beside the stream calls MPI
// (proxy.hpp).
#include <stdexcept>

#include "09_all_reduce/communicator.hpp"
#if defined(DDP_MPI)
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "09_all_reduce/libraries/check_mpi.hpp"
#include "09_all_reduce/libraries/in_arena.hpp"
#include "09_all_reduce/libraries/proxy.hpp"
#include "09_all_reduce/with_type.hpp"
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

// ---- What ranks tell each other before data moves

struct Record {
    char call[160] = "";  // in words, for messages
    char what[112] = "";  // must be the same on all ranks that have to do with it
};

struct Call {
    Record record;
    std::vector<int> peers;  // the other ranks that have to do with it

    std::string text() const { return record.call; }
};

// "all_reduce sum of 1000 float32 ("weights")".
std::string text_of(const std::string& operation, const Elements& elements,
                    const std::string& place, const std::string& name) {
    constexpr std::size_t longest_name = 31;
    const std::string quoted = name.empty() ? "" : " (\"" + name.substr(0, longest_name) + "\")";
    return operation + " of " + std::to_string(elements.count) + " " + name_of(elements.type) +
           place + quoted;
}

// Longer texts are cut.
template <std::size_t size>
void set_text(char (&field)[size], const std::string& text) {
    std::memcpy(field, text.data(), std::min(text.size(), size - 1));
}

// Records on their way to and from the peers of a call.
class Exchange {
  public:
    // `records[r]` is rank r's, ours is there already. What is not over at the end of this object
    // is given up: nothing will be written to `records` any more.
    Exchange(MPI_Comm communicator, const std::vector<int>& peers, int rank,
             std::vector<Record>& records)
        : peers_(peers), requests_(2 * peers.size()) {
        constexpr int bytes = sizeof(Record), tag = 0;
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

    // Whether all is over; `see` is called with each rank whose record has come since the last
    // time.
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

    // Those whose records have not come.
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
    MpiCommunicator(Rank& rank, std::size_t arena_bytes);
    ~MpiCommunicator() override;

    std::string kind() const override { return "mpi"; }
    void synchronize(Stream& stream) override { proxy_->synchronize(stream); }

  private:
    // Begins MPI's part of a piece of `count` elements, without waiting.
    using Start = std::function<int(const StagedPiece& piece, int count, MPI_Request* request)>;
    // What is left to be done when MPI has ended it.
    using Finish = std::function<void(const StagedPiece& piece, int count)>;
    struct Reducer {
        std::shared_ptr<MpiOp> op;
        Finish finish;
    };

    const std::shared_ptr<SharedArena>& arena() override { return arena_; }
    void broadcast_elements(const Elements& elements, int root, Stream& stream,
                            const std::string& name) override;
    void reduce_elements(const Elements& elements, ReduceOp op, int root, Stream& stream,
                         const std::string& name) override;
    void all_reduce_elements(const Elements& elements, ReduceOp op, Stream& stream,
                             const std::string& name) override;
    void reduce_scatter_elements(const Elements& elements, ReduceOp op, Stream& stream,
                                 const std::string& name) override;
    void all_gather_elements(const Elements& elements, Stream& stream,
                             const std::string& name) override;
    void send_elements(const Elements& elements, int to, Stream& stream,
                       const std::string& name) override;
    void receive_elements(const Elements& elements, int from, Stream& stream,
                          const std::string& name) override;

    Call collective(const std::string& operation, const Elements& elements,
                    const std::string& place, const std::string& name);
    Call message(const std::string& operation, const Elements& elements, int from, int to,
                 const std::string& name);
    void enqueue(const Call& call, const Elements& elements, std::size_t input_parts,
                 std::size_t output_parts, Stream& stream, const Start& start,
                 const Finish& finish = {});
    Reducer reducer_of(ElementType type, ReduceOp op) const;

    // The proxy's thread:
    void handshake(const Call& call);
    void see(const Call& call, int peer);
    void end(MPI_Request& request, const Call& call);

    const std::shared_ptr<SharedArena> arena_;
    MPI_Comm communicator_ = MPI_COMM_NULL;               // MPI never mixes it up with another one
    const std::shared_ptr<std::vector<Record>> records_;  // by rank; our own at our place
    std::uint64_t operations_ = 0;
    std::optional<Proxy> proxy_;
};

MpiCommunicator::MpiCommunicator(Rank& rank, std::size_t arena_bytes)
    : Communicator(rank),
      arena_(std::make_shared<SharedArena>(arena_bytes)),
      records_(std::make_shared<std::vector<Record>>(static_cast<std::size_t>(rank.world_size()))) {
    rank.keep_until_run_ends(
        arena_);  // to free it may be to wait for kernels, which may wait for another rank
    rank.keep_until_run_ends(records_);
    rank.barrier();  // MPI's own waits have no limit: enter them together
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator_);
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
    proxy_.emplace(rank);
}

MpiCommunicator::~MpiCommunicator() {
    if (proxy_->finish())  // otherwise MPI may still have something to do with it
        MPI_Comm_free(&communicator_);
}

// ---- The calls

// Of all ranks. `place` is " to rank 0" or the like, where there is one.
Call MpiCommunicator::collective(const std::string& operation, const Elements& elements,
                                 const std::string& place, const std::string& name) {
    const std::string text = text_of(operation, elements, place, name);
    Call call;
    set_text(call.record.call, "operation " + std::to_string(++operations_) + ", " + text);
    set_text(call.record.what, text);
    for (int r = 0; r < world_size(); r++)
        if (r != rank().rank())
            call.peers.push_back(r);
    return call;
}

// Of two ranks, which agree on both ends, count and type.
Call MpiCommunicator::message(const std::string& operation, const Elements& elements, int from,
                              int to, const std::string& name) {
    const bool is_send = rank().rank() == from;
    const int peer = is_send ? to : from;
    if (peer == rank().rank())
        throw std::invalid_argument(operation + ": rank " + std::to_string(peer) +
                                    " is this rank itself");
    const std::string place = (is_send ? " to rank " : " from rank ") + std::to_string(peer);
    Call call;
    set_text(call.record.call, "operation " + std::to_string(++operations_) + ", " +
                                   text_of(operation, elements, place, name));
    set_text(call.record.what, std::to_string(from) + " to " + std::to_string(to) + ": " +
                                   std::to_string(elements.count) + " " + name_of(elements.type));
    call.peers = {peer};
    return call;
}

void MpiCommunicator::enqueue(const Call& call, const Elements& elements, std::size_t input_parts,
                              std::size_t output_parts, Stream& stream, const Start& start,
                              const Finish& finish) {
    require_in_arena(*arena_, elements.input, elements.bytes(), call.text(), input_parts);
    require_in_arena(*arena_, elements.output, elements.bytes(), call.text(), output_parts);
    const std::size_t element_bytes = bytes_of(elements.type);
    const auto work = [=, this](const StagedPiece& piece) {
        const int count = static_cast<int>(piece.bytes / element_bytes);
        handshake(call);
        MPI_Request request = MPI_REQUEST_NULL;
        check_mpi(start(piece, count, &request), call.text());
        end(request, call);
        if (finish && output_parts > 0)
            finish(piece, count);
    };
    proxy_->enqueue(
        {elements.input, input_parts, elements.output, output_parts, elements.bytes(), work},
        stream);
}

MpiCommunicator::Reducer MpiCommunicator::reducer_of(ElementType type, ReduceOp op) const {
    const Reduction reduction = reduction_of(type, op);
    return {std::make_shared<MpiOp>(reduction),
            [reduction, ranks = world_size()](const StagedPiece& piece, int count) {
                reduction.finish(piece.output, count, ranks);
            }};
}

void MpiCommunicator::broadcast_elements(const Elements& elements, int root, Stream& stream,
                                         const std::string& name) {
    const bool is_root = rank().rank() == root;
    const auto start = [=, this](const StagedPiece& piece, int count, MPI_Request* request) {
        auto* data = is_root ? const_cast<std::byte*>(piece.input) : piece.output;
        return MPI_Ibcast(data, count, mpi_type_of(elements.type), root, communicator_, request);
    };
    enqueue(collective("broadcast", elements, " from rank " + std::to_string(root), name), elements,
            is_root ? 1 : 0, is_root ? 0 : 1, stream, start);
}

void MpiCommunicator::reduce_elements(const Elements& elements, ReduceOp op, int root,
                                      Stream& stream, const std::string& name) {
    const Reducer reducer = reducer_of(elements.type, op);
    const auto start = [=, this](const StagedPiece& piece, int count, MPI_Request* request) {
        return MPI_Ireduce(piece.input, piece.output, count, mpi_type_of(elements.type),
                           *reducer.op, root, communicator_, request);
    };
    enqueue(collective("reduce " + name_of(op), elements, " to rank " + std::to_string(root), name),
            elements, 1, rank().rank() == root ? 1 : 0, stream, start, reducer.finish);
}

void MpiCommunicator::all_reduce_elements(const Elements& elements, ReduceOp op, Stream& stream,
                                          const std::string& name) {
    const Reducer reducer = reducer_of(elements.type, op);
    const auto start = [=, this](const StagedPiece& piece, int count, MPI_Request* request) {
        return MPI_Iallreduce(piece.input, piece.output, count, mpi_type_of(elements.type),
                              *reducer.op, communicator_, request);
    };
    enqueue(collective("all_reduce " + name_of(op), elements, "", name), elements, 1, 1, stream,
            start, reducer.finish);
}

void MpiCommunicator::reduce_scatter_elements(const Elements& elements, ReduceOp op, Stream& stream,
                                              const std::string& name) {
    const Reducer reducer = reducer_of(elements.type, op);
    const auto start = [=, this](const StagedPiece& piece, int count, MPI_Request* request) {
        return MPI_Ireduce_scatter_block(piece.input, piece.output, count,
                                         mpi_type_of(elements.type), *reducer.op, communicator_,
                                         request);
    };
    enqueue(collective("reduce_scatter " + name_of(op), elements, "", name), elements,
            static_cast<std::size_t>(world_size()), 1, stream, start, reducer.finish);
}

void MpiCommunicator::all_gather_elements(const Elements& elements, Stream& stream,
                                          const std::string& name) {
    const auto start = [=, this](const StagedPiece& piece, int count, MPI_Request* request) {
        const MPI_Datatype type = mpi_type_of(elements.type);
        return MPI_Iallgather(piece.input, count, type, piece.output, count, type, communicator_,
                              request);
    };
    enqueue(collective("all_gather", elements, "", name), elements, 1,
            static_cast<std::size_t>(world_size()), stream, start);
}

constexpr int tag_of_data = 1;

void MpiCommunicator::send_elements(const Elements& elements, int to, Stream& stream,
                                    const std::string& name) {
    const auto start = [=, this](const StagedPiece& piece, int count, MPI_Request* request) {
        return MPI_Issend(piece.input, count, mpi_type_of(elements.type), to, tag_of_data,
                          communicator_, request);
    };
    enqueue(message("send", elements, rank().rank(), to, name), elements, 1, 0, stream, start);
}

void MpiCommunicator::receive_elements(const Elements& elements, int from, Stream& stream,
                                       const std::string& name) {
    const auto start = [=, this](const StagedPiece& piece, int count, MPI_Request* request) {
        return MPI_Irecv(piece.output, count, mpi_type_of(elements.type), from, tag_of_data,
                         communicator_, request);
    };
    enqueue(message("receive", elements, from, rank().rank(), name), elements, 0, 1, stream, start);
}

// ---- The thread that calls MPI

// Until all peers have come to the same call.
void MpiCommunicator::handshake(const Call& call) {
    (*records_)[static_cast<std::size_t>(rank().rank())] = call.record;
    Exchange exchange(communicator_, call.peers, rank().rank(), *records_);
    const auto is_over = [&] { return exchange.is_over([&](int peer) { see(call, peer); }); };
    const double limit_s = rank().job().timeout_s;
    if (proxy_->wait_until(is_over, limit_s))
        return;
    std::string text = "waited " + format_fixed(limit_s, 1) + " s in " + call.text();
    for (std::string word = " for "; int peer : exchange.missing())
        text += std::exchange(word, " and ") + rank().job().name(peer);
    throw std::runtime_error(text + ", which did not come");
}

void MpiCommunicator::see(const Call& call, int peer) {
    const Record& theirs = (*records_)[static_cast<std::size_t>(peer)];
    if (std::strcmp(theirs.what, call.record.what) != 0)
        throw std::runtime_error("in " + call.text() + ", but " + rank().job().name(peer) +
                                 " is in " + theirs.call +
                                 ": all ranks must do the same, in the same order");
}

// Until MPI has done what all have begun. That is waited for even if the run has failed meanwhile,
// for none but a rank that is gone leaves it unfinished, and MPI may write to our memory until
// then.
void MpiCommunicator::end(MPI_Request& request, const Call& call) {
    constexpr double last_wait_s = 1;
    const auto is_done = [&] {
        int flag = 0;
        check_mpi(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), call.text());
        return flag != 0;
    };
    const double limit_s = rank().job().timeout_s;
    try {
        if (!proxy_->wait_until(is_done, limit_s))
            throw std::runtime_error("waited " + format_fixed(limit_s, 1) + " s for MPI in " +
                                     call.text() + ", to which all have come: is a rank stopped?");
    } catch (...) {
        for (const Stopwatch waited; waited.seconds() < last_wait_s && !is_done();)
            sched_yield();
        throw;
    }
}

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(Rank& rank, std::size_t arena_bytes) {
    int is_started = 0;
    MPI_Initialized(&is_started);
    const Job& job = rank.job();
    if (is_started == 0)
        throw OptionError("The communicator mpi takes ranks that mpirun or srun has started, not " +
                          (job.has_processes ? "processes started by " : std::string()) +
                          job.started_by +
                          ": start the program by mpirun -n 4, or use the communicator own.");
    return std::make_unique<MpiCommunicator>(rank, arena_bytes);
}

#else

std::unique_ptr<Communicator> make_mpi_communicator(Rank&, std::size_t) {
    throw OptionError(
        "The communicator mpi is not in this program, which was built without MPI: install Open "
        "MPI and build again, or use the communicator own.");
}

#endif

}  // namespace ddp
