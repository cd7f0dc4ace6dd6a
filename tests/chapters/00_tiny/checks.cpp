// Checks of tiny.cpp, as it is or as a mutant: TINY names the file. Ends with status 1 and a
// sentence at the first that fails.
#pragma GCC diagnostic ignored "-Wreturn-type"  // only main may end without a return
#define main tiny_main
#include TINY
#undef main
#include <functional>

namespace {

void require(bool is_so, const std::string& what) {
    if (is_so)
        return;
    std::fprintf(stderr, "%s\n", what.c_str());
    std::_Exit(1);
}

// Runs `work` on so many ranks, which stand in a ring.
void on_ranks(int world_size, const std::function<void(Communicator)>& work) {
    std::vector<Channel> ring(world_size);
    std::vector<std::jthread> ranks;
    for (int r = 0; r < world_size; r++)
        ranks.emplace_back(work, Communicator{r, world_size, ring[r], ring[(r + 1) % world_size]});
}

// A number that shows its rank and its place; sums of eight are exact.
float number_of(int rank, std::size_t i) {
    return static_cast<float>((rank + 1) * 1000 + static_cast<int>(i * 37 % 991));
}

void check_collectives() {
    for (int world_size = 1; world_size <= 8; world_size++)
        for (const std::size_t size : {0, 1, 2, 3, 5, 7, 8, 64, 1000, 1001})
            on_ranks(world_size, [&](Communicator communicator) {
                const std::string where = " of " + std::to_string(size) + " elements on " +
                                          std::to_string(world_size) + " ranks";
                for (int turn = 0; turn < 3; turn++) {
                    Array data(size), sums(size), first(size);
                    for (std::size_t i = 0; i < size; i++) {
                        data[i] = number_of(communicator.rank + turn, i);
                        first[i] = number_of(turn, i);
                        for (int r = 0; r < world_size; r++)
                            sums[i] += number_of(r + turn, i);
                    }
                    Array copy = data;
                    communicator.all_reduce(data);
                    require(data == sums, "an all-reduce" + where + " is not the sum");
                    communicator.broadcast(copy);
                    require(copy == first, "a broadcast" + where + " is not rank 0's data");
                }
            });
}

// A batch that differs from rank to rank and from step to step.
Samples batch_of(int rank, int step, int count) {
    std::mt19937 random(1000 * step + rank);
    Samples batch;
    for (int n = 0; n < count; n++) {
        batch.labels.push_back(random() % classes);
        for (int i = 0; i < 12; i++)
            batch.x.push_back(static_cast<float>(random() % 100) / 100);
    }
    return batch;
}

// Ranks that learn from their parts of a batch must learn what one rank learns from all of it.
void check_training(std::size_t cap, bool has_overlap) {
    constexpr int world_size = 3, steps = 5, count = 4;
    const std::vector<int> widths = {12, 7, 9, 5, classes};
    std::vector<Channel> alone(1);
    DistributedDataParallel one({0, 1, alone[0], alone[0]}, widths, cap);
    for (int step = 0; step < steps; step++) {
        Samples all;
        for (int r = 0; r < world_size; r++) {
            const Samples part = batch_of(r, step, count);
            all.x.insert(all.x.end(), part.x.begin(), part.x.end());
            all.labels.insert(all.labels.end(), part.labels.begin(), part.labels.end());
        }
        one.step(all, 0.5f, has_overlap);
    }
    std::vector<std::uint64_t> hashes(world_size);
    on_ranks(world_size, [&](Communicator communicator) {
        DistributedDataParallel ddp(communicator, widths, cap);
        const Array before = ddp.network.parameters;
        for (int step = 0; step < steps; step++)
            ddp.step(batch_of(communicator.rank, step, count), 0.5f, has_overlap);
        hashes[communicator.rank] = hash_of(ddp.network.parameters);
        float largest = 0, moved = 0;
        for (std::size_t i = 0; i < before.size(); i++) {
            largest =
                std::max(largest, std::abs(ddp.network.parameters[i] - one.network.parameters[i]));
            moved = std::max(moved, std::abs(ddp.network.parameters[i] - before[i]));
        }
        require(moved > 0.05f, "five steps have changed nothing");
        require(largest < 1e-5f, "three ranks have not learned what one learns from their samples");
    });
    for (const std::uint64_t hash : hashes)
        require(hash == hashes[0], "the replicas differ");
}

void check_buckets() {
    std::vector<Channel> alone(1);
    for (const std::size_t cap : {0, 1, 200, 400, 1 << 20}) {
        DistributedDataParallel ddp({0, 1, alone[0], alone[0]}, {12, 7, 9, 5, classes}, cap);
        std::size_t sum = 0;
        for (std::size_t b = 0; b < ddp.buckets.size(); b++) {
            require(ddp.buckets[b].data() == ddp.network.gradients.data() + sum,
                    "a bucket does not begin where the one before it ends");
            require(b + 1 == ddp.buckets.size() || ddp.buckets[b].size_bytes() >= cap,
                    "a bucket was closed before it was full");
            sum += ddp.buckets[b].size();
        }
        require(sum == ddp.network.gradients.size(), "some gradients are in no bucket");
        require(ddp.buckets.size() == (cap < 2      ? 4u
                                       : cap == 200 ? 4u
                                       : cap == 400 ? 2u
                                                    : 1u),
                "there are " + std::to_string(ddp.buckets.size()) + " buckets");
    }
}

// The gradient by central differences.
void check_gradients() {
    Network network({12, 7, 5, classes}, 3);
    const Samples batch = batch_of(0, 0, 6);
    Array logits = network.forward(batch.x);
    cross_entropy(logits, batch.labels);
    int calls = 0, last = 3;
    network.backward(logits, [&](int l) {
        require(l == last - 1, "backward goes from the last layer to the first");
        calls++, last = l;
    });
    require(calls == 3, "each layer's gradients are ready once");
    const auto loss = [&] {
        Array output = network.forward(batch.x);
        return cross_entropy(output, batch.labels);
    };
    for (std::size_t i = 0; i < network.parameters.size(); i++) {
        const float kept = network.parameters[i], by = 1e-3f;
        network.parameters[i] = kept + by;
        const float above = loss();
        network.parameters[i] = kept - by;
        const float below = loss();
        network.parameters[i] = kept;
        require(std::abs((above - below) / (2 * by) - network.gradients[i]) < 3e-3f,
                "gradient " + std::to_string(i) + " is not what differences say");
    }
}

void check_sampler() {
    for (int world_size = 1; world_size <= 5; world_size++) {
        std::vector<int> seen(103);
        for (int r = 0; r < world_size; r++) {
            const auto own = distributed_sampler(103, 4, r, world_size);
            require(std::ssize(own) == 103 / world_size, "ranks have not equally many samples");
            require(own != distributed_sampler(103, 5, r, world_size),
                    "two epochs have the same order");
            for (const int i : own)
                require(seen[i]++ == 0, "two ranks have the same sample");
        }
    }
}

// A bucket's lane is blank until the bucket is full. A busy machine may start the second thread
// late: then once more.
bool begins_before_backward_ends(bool has_overlap) {
    std::atomic<int> early = 0;
    on_ranks(2, [&](Communicator communicator) {
        communicator.bytes_per_s = 1e6;
        DistributedDataParallel ddp(communicator, {12, 7, 2000, 7, classes}, 8 << 10);
        ddp.step(batch_of(communicator.rank, 0, 400), 0.1f, has_overlap);
        const std::size_t begins = ddp.wire.text.find('a'), ends = ddp.compute.text.find('.');
        require(begins != std::string::npos, "the wire is shown without bucket a");
        require(ends != std::string::npos, "nobody is shown to wait for the wire");
        early += begins < ends;
    });
    return early == 2;
}
void check_overlap() {
    require(!begins_before_backward_ends(false), "buckets travel before backward has ended");
    int tries = 20;
    while (!begins_before_backward_ends(true))
        require(--tries > 0, "no bucket travels before backward has ended");
}

}  // namespace

int main() {
    check_collectives();
    check_gradients();
    check_buckets();
    for (const std::size_t cap : {0, 400, 1 << 20})
        for (const bool has_overlap : {false, true})
            check_training(cap, has_overlap);
    check_sampler();
    check_overlap();
}
