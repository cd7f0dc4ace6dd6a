// All of DistributedDataParallel on one page: ranks learn from different samples and stay equal.
//
//     g++ -std=c++20 -O2 -pthread tiny.cpp -o tiny && ./tiny 4
//
// A rank is a thread with a replica, a whole copy of the network. One step of four ranks:
//
//                 rank 0       rank 1       rank 2       rank 3
//     sampler     0 4 8 ...    1 5 9 ...    2 6 10 ...   3 7 11 ...   each takes different samples
//     forward     loss         loss         loss         loss
//     backward    gradient     gradient     gradient     gradient     four different ones
//     all-reduce  mean ------- mean ------- mean ------- mean         in buckets, during backward
//     update      parameters   parameters   parameters   parameters   equal, as they were before
#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

using Array = std::vector<float>;
using View = std::span<float>;
using Bytes = std::vector<std::uint8_t>;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// ---- Data: Fashion-MNIST, or drawn shapes where it is not installed

constexpr int image_size = 28 * 28, classes = 10;
const std::string data_folder = "/usr/share/datasets/fashion-mnist/";

struct Samples {
    Array x;       // [count, image_size]
    Bytes labels;  // [count]
    int count() const { return std::ssize(labels); }
};

// Returns a gzipped file's bytes after its header, or none. The program gzip unpacks them.
Bytes read_gzip(const std::string& path, int header) {
    Bytes bytes;
    FILE* pipe = popen(("gzip -dc " + path + " 2>/dev/null").c_str(), "r");
    for (int i = 0, byte; pipe && (byte = std::getc(pipe)) != EOF; i++)
        if (i >= header)
            bytes.push_back(byte);
    return pipe && pclose(pipe) == 0 ? bytes : Bytes();
}

// Returns the pictures and labels of "train" or "t10k", or none if they cannot be read.
Samples load(const std::string& name) {
    Samples all{{}, read_gzip(data_folder + name + "-labels-idx1-ubyte.gz", 8)};
    for (const float pixel : read_gzip(data_folder + name + "-images-idx3-ubyte.gz", 16))
        all.x.push_back((pixel / 255 - 0.286f) / 0.353f);  // mean 0, variance 1
    return all.x.size() == all.labels.size() * image_size ? all : Samples();
}

// Draws bars: upright, level and slanting.
Samples draw_shapes(int count) {
    std::mt19937 random(count);
    Samples shapes;
    for (int i = 0; i < count; i++) {
        const int label = i % 3, middle = 6 + random() % 16;  // one of three classes
        for (int pixel = 0; pixel < image_size; pixel++) {
            const int x = pixel % 28, y = pixel / 28, across[] = {x, y, (x + y) / 2};
            shapes.x.push_back(std::abs(across[label] - middle) < 3 ? 1 : 0);  // a bar
        }
        shapes.labels.push_back(label);
    }
    return shapes;
}

Samples gather(const Samples& from, std::span<const int> indices) {
    Samples batch;  // the pictures side by side
    for (const int i : indices) {
        const auto image = from.x.begin() + i * image_size;
        batch.x.insert(batch.x.end(), image, image + image_size);
        batch.labels.push_back(from.labels[i]);
    }
    return batch;
}

// ---- Network: linear layers with ReLU between them, and backward by hand

// y = x W^T + b. A row of the parameters holds the weights of one output, then its bias.
struct Layer {
    int inputs, outputs;
    View parameters, gradients;  // [outputs, inputs + 1], parts of the network's arrays
    Array x = {};                // [batch, inputs], kept for backward

    Array forward(Array input) {
        x = std::move(input);
        Array y;  // [batch, outputs]
        for (auto sample = x.begin(); sample < x.end(); sample += inputs)
            for (auto w = parameters.begin(); w < parameters.end(); w += inputs + 1)
                y.push_back(std::transform_reduce(w, w + inputs, sample, w[inputs]));
        return y;
    }

    // dW = dy^T x, db is the sum of dy over the batch, dx = dy W where ReLU gave x > 0.
    Array backward(const Array& dy) {
        Array dx(x.size());
        std::ranges::fill(gradients, 0.0f);
        for (std::size_t k = 0; k < dy.size(); k++) {
            if (dy[k] == 0)
                continue;  // half of them are: ReLU let nothing pass
            const std::size_t sample = k / outputs * inputs, row = k % outputs * (inputs + 1);
            for (int i = 0; i < inputs; i++) {
                gradients[row + i] += dy[k] * x[sample + i];
                dx[sample + i] += dy[k] * parameters[row + i];
            }
            gradients[row + inputs] += dy[k];  // the bias
        }
        std::ranges::transform(dx, x, dx.begin(), [](float d, float x) { return x > 0 ? d : 0; });
        return dx;
    }
};

// One array of all parameters and one of all gradients, in the order of backward: last layer first.
struct Network {
    Array parameters, gradients;
    std::vector<Layer> layers;

    Network(const std::vector<int>& widths, int seed) {
        int size = 0;
        for (std::size_t l = 1; l < widths.size(); l++)
            size += widths[l] * (widths[l - 1] + 1);
        parameters.resize(size);
        gradients.resize(size);
        std::mt19937 random(seed);
        for (std::size_t l = 1; l < widths.size(); l++) {
            const int inputs = widths[l - 1], count = widths[l] * (inputs + 1);
            size -= count;
            layers.push_back({inputs, widths[l], View(parameters).subspan(size, count),
                              View(gradients).subspan(size, count)});
            const float bound = 1 / std::sqrt(inputs);
            for (float& parameter : layers.back().parameters)
                parameter = std::uniform_real_distribution(-bound, bound)(random);
        }
    }

    // Returns the logits, [batch, classes]: a sample's largest logit is the network's answer.
    Array forward(Array x) {
        for (std::size_t l = 0; l < layers.size(); l++) {
            x = layers[l].forward(std::move(x));
            for (float& value : x)
                value = l + 1 < layers.size() ? std::max(value, 0.0f) : value;  // ReLU
        }
        return x;
    }

    // Computes all gradients from dy, the logits' gradient. Calls is_ready after each layer.
    void backward(Array dy, const auto& is_ready) {
        for (int l = std::ssize(layers) - 1; l >= 0; l--) {
            dy = layers[l].backward(dy);
            is_ready(l);
        }
    }
};

// Returns the mean loss of the batch, and replaces the logits by their gradient.
float cross_entropy(Array& logits, const Bytes& labels) {
    float loss = 0, samples = labels.size();
    for (std::size_t n = 0; n < labels.size(); n++) {
        const std::span row(&logits[n * classes], classes);
        const float max = *std::ranges::max_element(row);  // subtracted, so that exp stays finite
        float sum = 0;
        for (float& value : row)
            sum += value = std::exp(value - max);
        loss -= std::log(row[labels[n]] / sum) / samples;
        for (int c = 0; c < classes; c++)
            row[c] = (row[c] / sum - (c == labels[n])) / samples;
    }
    return loss;
}

// ---- Messages between ranks, in a ring

// Raises a counter. Release: a thread that sees the new number sees our earlier writes, too.
void advance(std::atomic<int>& counter) {
    counter.fetch_add(1, std::memory_order_release);
    counter.notify_all();
}

// Waits until a counter has reached value: acquire. wait() spins for a while, and then sleeps.
void wait_until(const std::atomic<int>& counter, int value) {
    for (int seen; (seen = counter.load(std::memory_order_acquire)) < value;)
        counter.wait(seen, std::memory_order_acquire);
}

// The path from a rank to its right neighbour: room for one message, and how many have passed.
struct Channel {
    Array message;
    std::atomic<int> sent = 0, received = 0;
};

struct Communicator {
    int rank, world_size;
    Channel &from_left, &to_right;
    double bytes_per_s = INFINITY;  // the speed of a wire that we pretend to have

    void send(std::span<const float> data) {
        wait_until(to_right.received, to_right.sent);  // the message before this one is gone
        to_right.message.assign(data.begin(), data.end());
        std::this_thread::sleep_for(Seconds(data.size_bytes() / bytes_per_s));
        advance(to_right.sent);
    }
    void receive(View data, const auto& combine) {
        wait_until(from_left.sent, from_left.received + 1);
        std::ranges::transform(from_left.message, data, data.begin(), combine);
        advance(from_left.received);
    }
    static float replace(float theirs, float) { return theirs; }
    static float add(float theirs, float own) { return theirs + own; }

    // Gives rank 0's data to all ranks: each passes it on to the right.
    void broadcast(View data) {
        if (rank > 0)
            receive(data, replace);
        if (rank < world_size - 1)
            send(data);
    }

    // Replaces the data by its sum over all ranks. In each step a rank sends one chunk of the data
    // to the right, 1 / world_size of it, and receives one from the left. It receives chunk
    //
    //                             rank 0   rank 1   rank 2   rank 3
    //     reduce-scatter  step 0    2        3        0        1     added to their own chunk
    //                     step 1    1        2        3        0
    //                     step 2    0        1        2        3     rank r has the sum of chunk r
    //     all-gather      step 3    3        0        1        2     replaces their own chunk
    //                     step 4    2        3        0        1
    //                     step 5    1        2        3        0     every rank has every sum
    void all_reduce(View data) {
        const auto chunk = [&](int i) {
            i = (i + 2 * world_size) % world_size;
            const std::size_t begin = data.size() * i / world_size;
            return data.subspan(begin, data.size() * (i + 1) / world_size - begin);
        };
        for (int step = 0; step < 2 * (world_size - 1); step++) {
            send(chunk(rank - 1 - step));
            receive(chunk(rank - 2 - step), step < world_size - 1 ? add : replace);
        }
    }
};

// ---- DistributedDataParallel: equal replicas, buckets, overlap

// Draws a thread's work as text: one character per millisecond since the step began.
struct Lane {
    Clock::time_point begin = Clock::now();
    std::string text = {};
    void until_now(char what) { text.resize((Clock::now() - begin) / Seconds(1e-3), what); }
};

struct DistributedDataParallel {
    Communicator communicator;
    Network network;
    std::vector<View> buckets = {};  // gradients that travel as one array
    Lane compute = {}, wire = {};    // the last step's

    // Gives this rank the parameters of rank 0. A bucket is closed when it has cap bytes or more.
    DistributedDataParallel(Communicator ring, const std::vector<int>& widths, std::size_t cap)
        : communicator(ring), network(widths, ring.rank) {
        communicator.broadcast(network.parameters);
        std::size_t begin = 0, end = 0;
        for (int l = std::ssize(network.layers) - 1; l >= 0; l--) {
            end += network.layers[l].gradients.size();
            if ((end - begin) * sizeof(float) >= cap || l == 0) {
                buckets.push_back(View(network.gradients).subspan(begin, end - begin));
                begin = end;
            }
        }
    }

    // Computes the gradients' mean over all ranks. A second thread reduces the buckets, one by one:
    // with overlap each as soon as it is full, while this thread computes the next gradients.
    void backward(Array logits_gradient, bool has_overlap) {
        std::atomic<int> full = 0;
        std::jthread communication([&] {
            for (int b = 0; b < std::ssize(buckets); b++) {
                wait_until(full, b + 1);
                wire.until_now(' ');
                communicator.all_reduce(buckets[b]);
                for (float& gradient : buckets[b])
                    gradient /= communicator.world_size;
                wire.until_now('a' + b);
            }
        });
        network.backward(std::move(logits_gradient), [&](int l) {
            compute.until_now('1' + l);
            if (has_overlap && &network.layers[l].gradients.back() == &buckets[full].back())
                advance(full);
        });
        while (full < std::ssize(buckets))
            advance(full);
    }  // here the second thread is joined: all buckets have been reduced

    // One training step. Returns the loss of this rank's batch.
    float step(Samples batch, float learning_rate, bool has_overlap = true) {
        compute = wire = {};
        Array logits = network.forward(std::move(batch.x));
        const float loss = cross_entropy(logits, batch.labels);
        compute.until_now('f');
        backward(std::move(logits), has_overlap);
        compute.until_now('.');
        for (std::size_t i = 0; i < network.parameters.size(); i++)
            network.parameters[i] -= learning_rate * network.gradients[i];
        return loss;
    }
};

// Returns this rank's samples: every world_size-th of an order that all ranks share.
std::vector<int> distributed_sampler(int samples, int epoch, int rank, int world_size) {
    std::vector<int> order(samples), own;
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, std::mt19937(epoch));
    for (int i = rank; i < samples / world_size * world_size; i += world_size)
        own.push_back(order[i]);
    return own;
}

// Returns a hash of all bits (as FNV-1a), which shows whether replicas are equal.
std::uint64_t hash_of(const Array& parameters) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const float parameter : parameters)
        hash = (hash ^ std::bit_cast<std::uint32_t>(parameter)) * 0x100000001b3;
    return hash;
}

// ---- Training

// Returns how many of this rank's share of the samples get the right class.
float count_correct(DistributedDataParallel& ddp, const Samples& data) {
    float correct = 0;
    for (int i = ddp.communicator.rank; i < data.count(); i += ddp.communicator.world_size) {
        const Array logits = ddp.network.forward(gather(data, std::span(&i, 1)).x);
        correct += std::ranges::max_element(logits) - logits.begin() == data.labels[i];
    }
    return correct;
}

// Takes two steps over a wire as slow as backward, and draws rank 0's timelines.
void show_overlap(Communicator ring) {
    DistributedDataParallel ddp(ring, {image_size, 64, 512, 64, 512, 64, classes}, 64 << 10);
    const std::string &compute = ddp.compute.text, &wire = ddp.wire.text;
    ddp.step(draw_shapes(256), 0);  // shows how long backward takes
    const auto backward_ms = compute.size() - compute.find_first_of("654321");
    ddp.communicator.bytes_per_s = 1e3 * View(ddp.network.gradients).size_bytes() / backward_ms;
    for (const std::string with : {"without", "with"}) {
        ddp.step(draw_shapes(256), 0, with == "with");
        if (ring.rank == 0)
            std::printf("%s overlap: %zu characters\n  compute  %s\n  wire     %s\n", with.c_str(),
                        compute.size(), compute.c_str(), wire.c_str());
    }
}

void run_rank(Communicator ring, const Samples& training, const Samples& testing) {
    constexpr int epochs = 5, batch_size = 32;
    DistributedDataParallel ddp(ring, {image_size, 64, 512, 64, classes}, 64 << 10);
    for (int epoch = 0; epoch < epochs; epoch++) {
        const auto own = distributed_sampler(training.count(), epoch, ring.rank, ring.world_size);
        const float rate = 0.3f * (epochs - epoch) / epochs;  // long steps first
        Array sums(3);  // of the losses, the steps and the right answers
        for (std::size_t i = 0; i + batch_size <= own.size(); i += batch_size, sums[1]++)
            sums[0] += ddp.step(gather(training, std::span(own).subspan(i, batch_size)), rate);
        sums[2] = count_correct(ddp, testing);
        ddp.communicator.all_reduce(sums);
        if (ring.rank == 0)
            std::printf("epoch %d  loss %.4f  test accuracy %.4f\n", epoch + 1, sums[0] / sums[1],
                        sums[2] / testing.count());
    }
    std::printf("rank %d: hash %016lx\n", ring.rank, hash_of(ddp.network.parameters));
}

int main(int argc, char** argv) {
    const std::string number = argc > 1 ? argv[1] : "4";
    const int world_size = std::atoi(number.c_str());
    if (argc > 2 || world_size < 1 || world_size > 64 || number != std::to_string(world_size))
        return std::fputs("error: tiny takes a number of ranks, 1 to 64, such as 4.\n", stderr), 2;
    Samples training = load("train"), testing = load("t10k");
    if (training.count() == 0 || testing.count() == 0) {
        std::printf("no Fashion-MNIST in %s: drawing shapes\n", data_folder.c_str());
        training = draw_shapes(12'000), testing = draw_shapes(2'000);
    }
    std::vector<Channel> ring(world_size), pair(2);  // ring[r] leads to rank r
    std::vector<std::jthread> ranks;
    for (int r = 0; r < world_size; r++)
        ranks.emplace_back([&, r] {
            run_rank({r, world_size, ring[r], ring[(r + 1) % world_size]}, training, testing);
        });
    ranks.clear();  // waits for all ranks
    for (int r = 0; r < 2; r++)
        ranks.emplace_back(show_overlap, Communicator{r, 2, pair[r], pair[1 - r]});
}  // waits for both
