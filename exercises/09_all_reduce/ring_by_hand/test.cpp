// The exercise ring_by_hand: sums that show which ranks are in them, and a communicator that
// watches who sends what to whom.
#include "exercises/09_all_reduce/ring_by_hand.hpp"

#include <algorithm>

#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr double wait_s = 2;           // of one rank for another: longer is for ever
constexpr float untouched = -5;        // what nobody has sent
constexpr std::size_t behind = 8;      // elements that no rank may touch
constexpr std::size_t most = 1 << 20;  // bytes of the arena

std::string name(int rank) {
    return "rank " + std::to_string(rank);
}

// Passes messages between neighbours on to a communicator, and nothing else.
class Watched final : public Communicator {
  public:
    explicit Watched(Communicator& inner) : Communicator(inner.rank()), inner_(inner) {}
    std::string kind() const override { return inner_.kind(); }
    void synchronize(Stream&) override {
        throw Wrong("The host need not wait: what you enqueue on the stream runs in its order.");
    }
    std::size_t sent() const { return sent_; }

  private:
    const std::shared_ptr<SharedArena>& arena() override {
        throw Wrong("You need no memory but `room`: a chunk is added before the next one comes.");
    }
    void enqueue(const Call& call, Stream& stream) override {
        const int right = (index() + 1) % world_size();
        const int left = (index() + world_size() - 1) % world_size();
        if (call.kind == OperationKind::send) {
            require_neighbour(call.peer, right, " sends to ", "right");
            sent_ += call.count;
            inner_.send(static_cast<const float*>(call.input), call.count, right, stream);
        } else if (call.kind == OperationKind::receive) {
            require_neighbour(call.peer, left, " receives from ", "left");
            inner_.receive(static_cast<float*>(call.output), call.count, left, stream);
        } else {
            throw Wrong("You call " + name_of(call.kind) + "(): send() and receive() are enough.");
        }
    }
    void require_neighbour(int peer, int neighbour, const std::string& does,
                           const std::string& side) const {
        if (peer != neighbour)
            throw Wrong(name(index()) + does + name(peer) + ". Its " + side + " neighbour is " +
                        name(neighbour) + ", and a ring needs no other.");
    }

    Communicator& inner_;
    std::size_t sent_ = 0;
};

// One call of the reader's code on this rank.
struct Trial {
    // Returns element i of rank `rank` before it, whose own chunk is `own`.
    std::function<float(int rank, Chunk own, std::size_t i)> brings;
    std::function<void(Communicator&, float* data, float* room, std::size_t count, Stream&)> run;
    std::function<std::string(const std::vector<float>&, int ranks, int rank)> judge;
    int passes;  // times that a rank sends N - 1 chunks
};

Chunk chunk_of_rank(std::size_t count, int ranks, int rank) {
    return chunk_of(count, static_cast<std::size_t>(ranks), static_cast<std::size_t>(rank),
                    sizeof(float));
}

std::string wrong_with(Rank& rank, Communicator& communicator, const Trial& call,
                       std::size_t count) {
    const int ranks = rank.world_size();
    const Chunk own = chunk_of_rank(count, ranks, rank.rank());
    const std::size_t chunk = chunk_of_rank(count, ranks, 0).size;
    std::vector<float> host(count + behind, untouched), room_host(chunk + behind, untouched);
    for (std::size_t i = 0; i < count; i++)
        host[i] = call.brings(rank.rank(), own, i);
    ArenaBuffer<float> data = communicator.allocate<float>(host.size()),
                       room = communicator.allocate<float>(room_host.size());
    data.copy_from(host);
    room.copy_from(room_host);
    rank.barrier();
    Watched watched(communicator);
    Stream stream;
    call.run(watched, data.data(), room.data(), count, stream);
    communicator.synchronize(stream);
    host = data.to_host_now();
    room_host = room.to_host_now();
    rank.barrier();
    host.resize(count);
    if (const std::string wrong = call.judge(host, ranks, rank.rank()); !wrong.empty())
        return wrong;
    if (const std::size_t right = static_cast<std::size_t>(call.passes * (ranks - 1)) * chunk;
        watched.sent() > right)
        return name(rank.rank()) + " sends " + std::to_string(watched.sent()) +
               " elements. N - 1 chunks for the sums and N - 1 for the copies are enough, here " +
               std::to_string(right) + ": send a chunk, and not the array.";
    if (std::any_of(room_host.end() - behind, room_host.end(),
                    [](float x) { return x != untouched; }))
        return name(rank.rank()) + " writes more into `room` than the " + std::to_string(chunk) +
               " elements of a chunk.";
    return "";
}

void check_on(int ranks, const Trial& call, const std::string& hint) {
    const auto work = [&](Rank& rank) {
        const auto communicator = make_native_communicator(rank, most, {.timeout_s = wait_s});
        for (const std::size_t count : {1000, 0, 1, 5}) {
            const std::string wrong = wrong_with(rank, *communicator, call, count);
            throw_first_wrong(
                rank,
                wrong.empty() ? "" : ranks_and_elements(ranks, count) + ": " + wrong + "\n" + hint);
        }
    };
    on_ranks_with_hint(
        ranks, work, std::to_string(ranks) + " ranks",
        hint +
            "\nIf a rank waits: a send() is over when the other rank receives, and what stands "
            "behind it on the stream waits. If all send first, nobody receives: let the even ones "
            "send first.");
}

const std::string negative = " (In C++ -1 % 3 is -1: add N before you take the rest.)";

// ---- reduce_scatter

std::string wrong_own_chunk(const std::vector<float>& values, int ranks, int rank) {
    const auto sum_of = [&](int i) {
        const Chunk chunk = chunk_of_rank(values.size(), ranks, i);
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(chunk.begin);
        return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(chunk.size));
    };
    const std::string wrong = wrong_shares(sum_of(rank), ranks, rank);
    if (wrong.empty())
        return "";
    for (int i = 0; i < ranks; i++)
        if (!sum_of(i).empty() && wrong_shares(sum_of(i), ranks, rank).empty())
            return name(rank) + " has the whole sum of chunk " + std::to_string(i) +
                   ", and should have that of chunk " + std::to_string(rank) + ".";
    return "in chunk " + std::to_string(rank) + " " + wrong;
}

void check_reduce_scatter() {
    const Trial call{[](int rank, Chunk, std::size_t) { return share_that_tells(rank); },
                     ring_reduce_scatter, wrong_own_chunk, 1};
    for (const int ranks : {2, 3, 4, 5, 1})
        check_on(
            ranks, call,
            "In step s rank r sends chunk r - s, adds what comes to chunk r - s - 1, and there "
            "are N - 1 steps." +
                negative);
}

// ---- all_gather

float value_of(std::size_t i) {
    return static_cast<float>(i + 1);
}

std::string wrong_copies(const std::vector<float>& values, int ranks, int rank) {
    std::size_t first = 0;
    const std::string wrong = wrong_elements(
        values.size(), rank, first, [&](std::size_t i) { return values[i] == value_of(i); });
    if (wrong.empty())
        return "";
    const std::size_t size = chunk_of_rank(values.size(), ranks, 0).size;
    return wrong +
           (values[first] == untouched ? "has not come: chunk "
                                       : "belongs to another place: chunk ") +
           std::to_string(first / size) + " begins at " + std::to_string(first / size * size) + ".";
}

void check_all_gather() {
    const std::string hint =
        "What a rank has got in one step it sends in the next one; it begins with its own chunk." +
        negative;
    const Trial gather{[](int, Chunk own, std::size_t i) {
                           return i >= own.begin && i < own.begin + own.size ? value_of(i)
                                                                             : untouched;
                       },
                       [](Communicator& communicator, float* data, float*, std::size_t count,
                          Stream& stream) { ring_all_gather(communicator, data, count, stream); },
                       wrong_copies, 1};
    const Trial both{[](int rank, Chunk, std::size_t i) { return share_of_place(rank, i); },
                     [](Communicator& communicator, float* data, float* room, std::size_t count,
                        Stream& stream) {
                         ring_reduce_scatter(communicator, data, room, count, stream);
                         ring_all_gather(communicator, data, count, stream);
                     },
                     wrong_places, 2};
    for (const int ranks : {2, 3, 4, 5, 1}) {
        check_on(ranks, gather, hint);
        check_on(ranks, both, "Both after each other are an all-reduce. " + hint);
    }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"reduce_scatter", check_reduce_scatter}, {"all_gather", check_all_gather}};
}

}  // namespace ddp::test
