#include "09_all_reduce/show/recording.hpp"

#include "09_all_reduce/all_reduce.cuh"
#include "09_all_reduce/all_reduce.hpp"
#include "09_all_reduce/host_ring.hpp"
#include "common/report/bench.hpp"

namespace ddp {
namespace {

// 840 KiB: 2 to 8 ranks cut them into chunks of whole 128 bytes, which are all of one size.
constexpr std::size_t array_elements = 840 * 1024 / sizeof(int);

__global__ void add_received(int* sum, const int* received, std::size_t count) {
    add_array(ReduceOp::sum, sum, static_cast<const int*>(sum), received, grid_range(count), 0);
}

// One all-reduce on one rank, which is looked at after every step. All ranks do the same together.
class WatchedArray {
  public:
    WatchedArray(Peers& peers, std::string algorithm)
        : peers_(peers),
          rank_(peers.rank()),
          chunk_(array_elements / static_cast<std::size_t>(ranks())),
          own_(peers.allocate<int>(array_elements)),
          sum_(peers.allocate<int>(array_elements)),
          received_(peers.allocate<int>(array_elements)),
          recording_{std::move(algorithm), {}, {}, {}, {}} {
        const std::vector<int> numbers(array_elements, 1 << me());
        own_.copy_from(numbers);
        sum_.copy_from(numbers);
        look();
    }

    int ranks() const { return rank_.world_size(); }
    int me() const { return rank_.rank(); }

    // Sends all of `from`'s sum to `to`, which adds it to its own or keeps it.
    void pass(int from, int to, bool adds) {
        for (int chunk = 0; chunk < ranks(); chunk++)
            note(from, to, chunk);
        if (me() == from)
            peers_.send(sum_.data(), array_elements, to, stream_, recording_.algorithm);
        if (me() != to)
            return;
        peers_.receive(adds ? received_.data() : sum_.data(), array_elements, from, stream_,
                       recording_.algorithm);
        if (adds)
            launch(stream_, grid_for(array_elements), add_received, sum_.data(), received_.data(),
                   array_elements);
    }

    void ring() {
        HostRing<int> ring(peers_, array_elements);
        begin_step();  // to make it took time
        int step = 0;
        const auto after_step = [&] {
            step++;
            for (int to = 0; to < ranks(); to++)
                note((to + ranks() - 1) % ranks(), to, (to - 1 - step + 2 * ranks()) % ranks());
            look();
        };
        ring.all_reduce(own_.data(), sum_.data(), array_elements, ReduceOp::sum, stream_,
                        recording_.algorithm, after_step);
        peers_.synchronize(stream_);
    }

    void two_shot() {
        int* mine = sum_.data() + static_cast<std::size_t>(me()) * chunk_;
        reduce_scatter(peers_, static_cast<const int*>(own_.data()), mine, chunk_, ReduceOp::sum,
                       stream_, recording_.algorithm);
        note_all_pairs([](int, int to) { return to; });
        look();
        all_gather(peers_, static_cast<const int*>(mine), sum_.data(), chunk_, stream_,
                   recording_.algorithm);
        note_all_pairs([](int from, int) { return from; });
        look();
    }

    // Ends a step: reads every rank's array when the last rank has it.
    void look() {
        peers_.synchronize(stream_);
        recording_.seconds.push_back(rank_.max_over_ranks(watch_.seconds()));
        const std::vector<int> numbers = sum_.to_host_now();
        Holdings holdings{};
        for (std::size_t chunk = 0; chunk < static_cast<std::size_t>(ranks()); chunk++)
            holdings[chunk] = static_cast<RankSet>(numbers[chunk * chunk_]);
        recording_.steps.push_back(rank_.all_gather(holdings));
        recording_.received.push_back(rank_.all_gather(received_bytes_));
        recording_.sent.push_back(rank_.all_gather(sent_bytes_));
        received_bytes_ = sent_bytes_ = {};
        begin_step();
    }

    const Recording& recording() const { return recording_; }

  private:
    // Counts a chunk at both ports that it passes.
    void note(int from, int to, int chunk) {
        const auto i = static_cast<std::size_t>(chunk);
        if (me() == from)
            sent_bytes_[i] += chunk_ * sizeof(int);
        if (me() == to)
            received_bytes_[i] += chunk_ * sizeof(int);
    }
    template <class ChunkOf>
    void note_all_pairs(ChunkOf chunk_of_pair) {
        for (int from = 0; from < ranks(); from++)
            for (int to = 0; to < ranks(); to++)
                if (from != to)
                    note(from, to, chunk_of_pair(from, to));
    }
    void begin_step() {
        rank_.barrier();
        watch_.restart();
    }

    Peers& peers_;
    Rank& rank_;
    const std::size_t chunk_;  // elements
    ArenaBuffer<int> own_, sum_, received_;
    PortBytes received_bytes_{}, sent_bytes_{};
    Recording recording_;
    Stream stream_;
    Stopwatch watch_;
};

// Rank 0 receives every other rank's array, one after the other, and sends the sum to each.
void serve(WatchedArray& array) {
    for (int worker = 1; worker < array.ranks(); worker++) {
        array.pass(worker, 0, true);
        array.look();
    }
    for (int worker = 1; worker < array.ranks(); worker++) {
        array.pass(0, worker, false);
        array.look();
    }
}

// Passes arrays between all ranks that are `distance` apart in the tree, up or down it.
void pass_in_tree(WatchedArray& array, int distance, bool up) {
    for (int parent = 0; parent + distance < array.ranks(); parent += 2 * distance)
        up ? array.pass(parent + distance, parent, true)
           : array.pass(parent, parent + distance, false);
    array.look();
}
void climb_and_descend(WatchedArray& array) {
    int distance = 1;
    for (; distance < array.ranks(); distance *= 2)
        pass_in_tree(array, distance, true);
    for (distance /= 2; distance > 0; distance /= 2)
        pass_in_tree(array, distance, false);
}

}  // namespace

std::vector<Recording> record_all_reduces(World& world, const LinkSpeed& link) {
    std::vector<Recording> recordings;
    world.run([&](Rank& rank) {
        rank.select_device();
        Peers peers(rank, 8 << 20, {}, link);
        const auto record = [&](const char* algorithm, const auto& all_reduce) {
            WatchedArray array(peers, algorithm);
            all_reduce(array);
            if (rank.rank() == 0)
                recordings.push_back(array.recording());
        };
        record("ring", [](WatchedArray& array) { array.ring(); });
        record("server", serve);
        record("reduce+broadcast", climb_and_descend);
        record("two-shot", [](WatchedArray& array) { array.two_shot(); });
    });
    return recordings;
}

}  // namespace ddp
