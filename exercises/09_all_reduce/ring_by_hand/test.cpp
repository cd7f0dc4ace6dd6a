// The exercise ring_by_hand: sums that show which ranks are in them, and a communicator that
// watches who sends what to whom.
#include "exercises/09_all_reduce/ring_by_hand.hpp"

#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr double wait_s = 2;     // of one rank for another: longer is for ever
constexpr float untouched = -5;  // what no rank has sent

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
        const bool sends = call.kind == OperationKind::send;
        if (!sends && call.kind != OperationKind::receive)
            throw Wrong("You call " + name_of(call.kind) + "(): send() and receive() are enough.");
        const int neighbour = (index() + (sends ? 1 : world_size() - 1)) % world_size();
        if (call.peer != neighbour)
            throw Wrong(name(index()) + (sends ? " sends to " : " receives from ") +
                        name(call.peer) + ". Its neighbour there is " + name(neighbour) +
                        ", and a ring needs no other.");
        if (!sends)
            return inner_.receive(static_cast<float*>(call.output), call.count, neighbour, stream);
        sent_ += call.count;
        inner_.send(static_cast<const float*>(call.input), call.count, neighbour, stream);
    }

    Communicator& inner_;
    std::size_t sent_ = 0;
};

Chunk chunk_of_rank(std::size_t count, int ranks, int rank) {
    return chunk_of(count, static_cast<std::size_t>(ranks), static_cast<std::size_t>(rank),
                    sizeof(float));
}

// Calls of the reader's code, in which a rank sends N - 1 chunks `passes` times.
struct Trial {
    int passes;
    std::function<void(Communicator&, float* data, float* room, std::size_t, Stream&)> run;
    std::function<float(int rank, std::size_t i)> brings;
    std::function<std::string(const std::vector<float>&, int ranks, int rank)> judge;
    std::string hint;
};

std::string wrong_with(Communicator& communicator, const Trial& trial, std::size_t count) {
    const int rank = communicator.index(), ranks = communicator.world_size();
    const std::size_t chunk = chunk_of_rank(count, ranks, 0).size;
    ArenaBuffer<float> data = communicator.allocate<float>(count),
                       room = communicator.allocate<float>(chunk + 1);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; i++)
        values[i] = trial.brings(rank, i);
    data.copy_from(values);
    room.copy_from(std::vector<float>(chunk + 1, untouched));
    communicator.rank().barrier();
    Watched watched(communicator);
    Stream stream;
    trial.run(watched, data.data(), room.data(), count, stream);
    communicator.synchronize(stream);
    const float behind_room = room.to_host_now().back();
    communicator.rank().barrier();
    const std::size_t right = static_cast<std::size_t>(trial.passes * (ranks - 1)) * chunk;
    if (watched.sent() > right)
        return name(rank) + " sends " + std::to_string(watched.sent()) + " elements, and " +
               std::to_string(right) + " are enough: send a chunk, and not the array.";
    if (behind_room != untouched)
        return name(rank) + " writes more into `room` than a chunk.";
    return trial.judge(data.to_host_now(), ranks, rank);
}

void check_on_ranks(const Trial& trial) {
    const std::string hint = trial.hint + " (In C++ -1 % 3 is -1: add N before you take the rest.)";
    for (const int ranks : {2, 3, 4, 5, 1}) {
        const auto work = [&](Rank& rank) {
            const auto communicator =
                make_native_communicator(rank, 1 << 20, {.timeout_s = wait_s});
            for (const std::size_t count : {1000, 0, 1, 5}) {
                const std::string wrong = wrong_with(*communicator, trial, count);
                throw_first_wrong(rank, wrong.empty() ? ""
                                                      : ranks_and_elements(ranks, count) + ": " +
                                                            wrong + "\n" + hint);
            }
        };
        on_ranks_with_hint(ranks, work, std::to_string(ranks) + " ranks",
                           hint +
                               "\nIf a rank waits: a send() is over when the other rank receives, "
                               "and what stands behind it on the stream waits. If all send first, "
                               "nobody receives: let the even ones send first.");
    }
}

std::string wrong_own_chunk(const std::vector<float>& values, int ranks, int rank) {
    const auto wrong_in = [&](int i) {
        const Chunk chunk = chunk_of_rank(values.size(), ranks, i);
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(chunk.begin);
        return wrong_shares({begin, begin + static_cast<std::ptrdiff_t>(chunk.size)}, ranks, rank);
    };
    const std::string wrong = wrong_in(rank);
    const int next = (rank + 1) % ranks;
    if (!wrong.empty() && wrong_in(next).empty())
        return name(rank) + " has the whole sum of chunk " + std::to_string(next) +
               ", and should have that of chunk " + std::to_string(rank) + ".";
    return wrong.empty() ? "" : "in chunk " + std::to_string(rank) + " " + wrong;
}

void check_reduce_scatter() {
    check_on_ranks({1, ring_reduce_scatter,
                    [](int rank, std::size_t) { return share_that_tells(rank); }, wrong_own_chunk,
                    "In step s rank r sends chunk r - s, adds what comes to chunk r - s - 1, and "
                    "there are N - 1 steps."});
}

void check_all_gather() {
    const auto both = [](Communicator& communicator, float* data, float* room, std::size_t count,
                         Stream& stream) {
        ring_reduce_scatter(communicator, data, room, count, stream);
        ring_all_gather(communicator, data, count, stream);
    };
    check_on_ranks({2, both, share_of_place, wrong_places,
                    "Both after each other are an all-reduce. What a rank has got in one step it "
                    "sends in the next one; it begins with its own chunk."});
}

}  // namespace

std::vector<Task> tasks() {
    return {{"reduce_scatter", check_reduce_scatter}, {"all_gather", check_all_gather}};
}

}  // namespace ddp::test
