#include "23_your_job/backend/guest_rank.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "05_ranks/world.hpp"
#include "09_all_reduce/communicator.hpp"
#include "23_your_job/backend/own_all_reduce.hpp"

namespace ddp {
namespace {

// The arena's room for a slice of one rank's array, or of all ranks' together. A slice stays in the
// processor's cache while it is copied in, summed and copied out. But where ranks have to wait for
// a core, each slice costs them that wait.
constexpr std::size_t slice_bytes = 4 << 20;

ReduceOp reduce_op_named(const std::string& name) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::average, ReduceOp::maximum})
        if (name_of(op) == name)
            return op;
    return ReduceOp::minimum;
}

ElementType require_type(const std::string& name) {
    if (const std::optional<ElementType> type = element_type_named(name))
        return *type;
    throw std::invalid_argument("there are no elements of type " + name);
}

// ---- What the rank's thread works with

// Copies `bytes` between the arena and memory of the other program. On a CPU a kernel reaches all
// memory of its process; a launch refuses a bare pointer to it all the same, as a GPU would, so
// both travel in a struct.
struct CopyOfBytes {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
};
__global__ void copy_anywhere(CopyOfBytes copy) {
    std::memcpy(copy.to, copy.from, copy.bytes);
}

}  // namespace

// All is enqueued on one stream, slice after slice: a slice is copied out before the next one takes
// its room. Each call returns when that is done.
class GuestRank::Desk {
  public:
    explicit Desk(Rank& rank)
        : communicator_(make_native_communicator(rank, 2 * slice_bytes + (1 << 12))),
          ranks_(static_cast<std::size_t>(rank.world_size())),
          room_(communicator_->allocate<std::byte>(2 * slice_bytes)) {
        if (own_all_reduce()) {
            peers_.emplace(rank, slice_bytes + (1 << 12));
            own_room_ = peers_->allocate<float>(slice_bytes / sizeof(float));
        }
    }

    void all_reduce(void* data, std::size_t count, ElementType type, ReduceOp op) {
        if (peers_ && type == ElementType::float32 && op == ReduceOp::sum)
            return all_reduce_by_the_readers(static_cast<float*>(data), count);
        by_slices(count, bytes_of(type), 1, [&](std::size_t begin, std::size_t size, auto name) {
            std::byte* here = static_cast<std::byte*>(data) + begin * bytes_of(type);
            copy(input(), here, size * bytes_of(type));
            with_type(type, [&]<class T>() {
                T* slice = reinterpret_cast<T*>(input());
                communicator_->all_reduce(slice, slice, size, op, stream_, name);
            });
            copy(here, input(), size * bytes_of(type));
        });
        communicator_->synchronize(stream_);
    }

    void reduce_scatter(const std::vector<const void*>& inputs, void* output, std::size_t count,
                        ElementType type, ReduceOp op) {
        by_slices(
            count, bytes_of(type), ranks_, [&](std::size_t begin, std::size_t size, auto name) {
                const std::size_t from = begin * bytes_of(type), bytes = size * bytes_of(type);
                for (std::size_t r = 0; r < ranks_; r++)
                    copy(input() + r * bytes, static_cast<const std::byte*>(inputs[r]) + from,
                         bytes);
                with_type(type, [&]<class T>() {
                    communicator_->reduce_scatter(reinterpret_cast<const T*>(input()),
                                                  reinterpret_cast<T*>(this->output()), size, op,
                                                  stream_, name);
                });
                copy(static_cast<std::byte*>(output) + from, this->output(), bytes);
            });
        communicator_->synchronize(stream_);
    }

    void broadcast(void* data, std::size_t bytes, int root) {
        by_slices(bytes, 1, 1, [&](std::size_t begin, std::size_t size, auto name) {
            std::byte* here = static_cast<std::byte*>(data) + begin;
            const bool is_root = communicator_->index() == root;
            if (is_root)
                copy(input(), here, size);
            communicator_->broadcast(as_bytes(input()), size, root, stream_, name);
            if (!is_root)
                copy(here, input(), size);
        });
        communicator_->synchronize(stream_);
    }

    void all_gather(const void* data, const std::vector<void*>& outputs, std::size_t bytes) {
        by_slices(bytes, 1, ranks_, [&](std::size_t begin, std::size_t size, auto name) {
            copy(input(), static_cast<const std::byte*>(data) + begin, size);
            communicator_->all_gather(as_bytes(input()), as_bytes(output()), size, stream_, name);
            for (std::size_t r = 0; r < ranks_; r++)
                copy(static_cast<std::byte*>(outputs[r]) + begin, output() + r * size, size);
        });
        communicator_->synchronize(stream_);
    }

    void barrier() {
        int* one = reinterpret_cast<int*>(input());
        communicator_->all_reduce(one, one, 1, ReduceOp::maximum, stream_, "barrier");
        communicator_->synchronize(stream_);
    }

  private:
    void all_reduce_by_the_readers(float* data, std::size_t count) {
        by_slices(count, sizeof(float), 1, [&](std::size_t begin, std::size_t size, const auto&) {
            copy(own_room_.data(), data + begin, size * sizeof(float));
            own_all_reduce()(*peers_, own_room_.data(), size, stream_);
            copy(data + begin, own_room_.data(), size * sizeof(float));
        });
        peers_->synchronize(stream_);
    }

    std::byte* input() { return room_.data(); }
    std::byte* output() { return room_.data() + slice_bytes; }
    static unsigned char* as_bytes(std::byte* data) {
        return reinterpret_cast<unsigned char*>(data);
    }

    void copy(void* to, const void* from, std::size_t bytes) {
        if (bytes > 0)
            launch(stream_, shape_on_cpu(1), copy_anywhere,
                   CopyOfBytes{static_cast<std::byte*>(to), static_cast<const std::byte*>(from),
                               bytes});
    }

    // Calls work(begin, size, name) for one slice of `count` elements after the other, of which the
    // arena takes `arrays` at a time. The name tells the other ranks how many elements all slices
    // have. Without elements there is one slice, which is empty: the others may have some.
    template <class Work>
    void by_slices(std::size_t count, std::size_t element_bytes, std::size_t arrays,
                   const Work& work) {
        const std::size_t most = slice_bytes / arrays / 128 * 128 / element_bytes;
        std::size_t begin = 0;
        do {
            const std::size_t size = std::min(most, count - begin);
            work(begin, size,
                 count <= most ? ""
                               : "from " + std::to_string(begin) + " of " + std::to_string(count));
            begin += size;
        } while (begin < count);
    }

    std::unique_ptr<Communicator> communicator_;
    const std::size_t ranks_;
    ArenaBuffer<std::byte> room_;
    std::optional<Peers> peers_;  // for the reader's all-reduce
    ArenaBuffer<float> own_room_;
    Stream stream_;
};

// ---- What the threads of the other program and the rank's thread share

struct GuestRank::Call {
    std::string text;  // "all_reduce sum of 1000 float"
    std::function<void(Desk&)> work;
    Done done;
};

struct GuestRank::Shared {
    Shared(int rank, int world_size) : rank(rank), world_size(world_size) {}

    const int rank, world_size;
    std::promise<void> has_met;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Call> calls;  // the first of them is under way
    bool leaves = false;
    std::string why_it_fails;  // fail() was called
    std::string failure;       // nothing can be enqueued any more
    std::thread thread;

    // Waits for a call. Returns nothing if the rank leaves instead. Throws RunFailed if another one
    // has failed.
    const Call* next(const Rank& self) {
        std::unique_lock lock(mutex);
        while (calls.empty() && !leaves && why_it_fails.empty()) {
            changed.wait_for(lock, std::chrono::milliseconds(50));
            self.check();
        }
        if (!why_it_fails.empty())
            throw std::runtime_error(why_it_fails);
        return calls.empty() ? nullptr : &calls.front();  // a deque's elements stay where they are
    }
    void finish(std::exception_ptr error) {
        std::unique_lock lock(mutex);
        const Done done = std::move(calls.front().done);
        calls.pop_front();
        lock.unlock();
        done(error);
    }
    // From now on every call fails, those that wait first.
    void end(const std::string& why) {
        std::deque<Call> left;
        {
            std::lock_guard lock(mutex);
            failure = why;
            left.swap(calls);
        }
        for (const Call& call : left)
            call.done(std::make_exception_ptr(std::runtime_error(call.text + ": " + why)));
    }
};

// ---- The rank's thread

void GuestRank::live(double timeout_s, const AllGather& all_gather) {
    bool has_met = false;
    try {
        World world(shared_->rank, shared_->world_size, timeout_s, all_gather);
        world.run([&](Rank& rank) {
            Desk desk(rank);
            has_met = true;
            shared_->has_met.set_value();
            while (const Call* call = shared_->next(rank)) {
                call->work(desk);
                shared_->finish(nullptr);
            }
        });
        shared_->end("this rank has left the group");
    } catch (const std::exception& error) {
        // A failed run has one cause, the same on all ranks.
        shared_->end(error.what());
        if (!has_met)
            shared_->has_met.set_exception(std::current_exception());
    }
}

GuestRank::GuestRank(int rank, int world_size, double timeout_s, const AllGather& all_gather)
    : shared_(std::make_unique<Shared>(rank, world_size)) {
    shared_->thread = std::thread([&] { live(timeout_s, all_gather); });
    try {
        shared_->has_met.get_future().get();
    } catch (...) {
        shared_->thread.join();
        throw;
    }
}

bool GuestRank::sums_by_the_readers() {
    return own_all_reduce() != nullptr;
}

GuestRank::~GuestRank() {
    leave();
}

void GuestRank::leave() {
    {
        std::lock_guard lock(shared_->mutex);
        shared_->leaves = true;
    }
    shared_->changed.notify_all();
    if (shared_->thread.joinable())
        shared_->thread.join();
}

void GuestRank::fail(const std::string& why) {
    {
        std::lock_guard lock(shared_->mutex);
        shared_->why_it_fails = why;
    }
    leave();
}

// ---- Calls

void GuestRank::enqueue(Call call) {
    {
        std::lock_guard lock(shared_->mutex);
        if (!shared_->failure.empty())
            throw std::runtime_error(call.text + ": " + shared_->failure);
        shared_->calls.push_back(std::move(call));
    }
    shared_->changed.notify_all();
}

void GuestRank::all_reduce(void* data, std::size_t count, const std::string& type,
                           const std::string& op, Done done) {
    const ElementType elements = require_type(type);
    const ReduceOp reduction = reduce_op_named(op);
    const ddp::Call call{.operation = "all_reduce",
                         .kind = OperationKind::all_reduce,
                         .type = elements,
                         .count = count,
                         .op = reduction};
    enqueue({to_string(call),
             [=](Desk& desk) { desk.all_reduce(data, count, elements, reduction); },
             std::move(done)});
}

void GuestRank::reduce_scatter(std::vector<const void*> inputs, void* output, std::size_t count,
                               const std::string& type, const std::string& op, Done done) {
    const ElementType elements = require_type(type);
    const ReduceOp reduction = reduce_op_named(op);
    const ddp::Call call{.operation = "reduce_scatter",
                         .kind = OperationKind::reduce_scatter,
                         .type = elements,
                         .count = count,
                         .op = reduction};
    enqueue({to_string(call),
             [=](Desk& desk) { desk.reduce_scatter(inputs, output, count, elements, reduction); },
             std::move(done)});
}

void GuestRank::broadcast(void* data, std::size_t bytes, int root, Done done) {
    const ddp::Call call{.operation = "broadcast",
                         .kind = OperationKind::broadcast,
                         .type = ElementType::uint8,
                         .count = bytes,
                         .peer = root};
    enqueue(
        {to_string(call), [=](Desk& desk) { desk.broadcast(data, bytes, root); }, std::move(done)});
}

void GuestRank::all_gather(const void* input, std::vector<void*> outputs, std::size_t bytes,
                           Done done) {
    const ddp::Call call{.operation = "all_gather",
                         .kind = OperationKind::all_gather,
                         .type = ElementType::uint8,
                         .count = bytes};
    enqueue({to_string(call), [=](Desk& desk) { desk.all_gather(input, outputs, bytes); },
             std::move(done)});
}

void GuestRank::barrier(Done done) {
    enqueue({"barrier", [](Desk& desk) { desk.barrier(); }, std::move(done)});
}

}  // namespace ddp
