// Bucket hooks that send less: how far from the average they are, that all ranks have the same bits
// whatever they lose, and that PowerSGD loses nothing for good.
#include <algorithm>
#include <cmath>

#include "10_nodes/make_communicator.hpp"
#include "14_buckets/flat_buffers.hpp"
#include "15_overlap/compression.hpp"
#include "15_overlap/power_sgd.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/chapters/support/replicas.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;

constexpr int sizes[] = {12 * 7, 5, 4 * 3 * 3 * 3, 9 * 16};

// Gradients in two buckets, as a network might have them: a wide and a tall matrix, a bias, a
// convolution.
class Gradients {
  public:
    explicit Gradients(Rank& rank)
        : rank_(rank),
          device_(make_run_scoped<Device>(rank, test_memory)),
          communicator_(make_communicator("native", rank, 1 << 20)),
          parameters_{make("wide", {12, 7}), make("bias", {5}), make("conv", {4, 3, 3, 3}),
                      make("tall", {9, 16})} {
        BucketPlan plan = rebuilt_plan(gradient_sizes(parameters_), {400}, {3, 2, 1, 0});
        memory_ = communicator_->allocate<float>(plan.memory_bytes() / sizeof(float));
        buffers_.emplace(device_, parameters_, std::move(plan), memory_.share(), memory_.size());
    }

    // Numbers that differ by rank, step, gradient and place.
    static Values values(int rank, int step, std::size_t gradient, float scale = 1) {
        Values all;
        for (int i = 0; i < sizes[gradient]; i++)
            all.push_back(scale * std::sin(0.7f * static_cast<float>(i * (rank + 1)) +
                                           1.3f * static_cast<float>(step) +
                                           2.1f * static_cast<float>(gradient)) +
                          scale * 0.5f * std::cos(0.37f * static_cast<float>(i)));
        return all;
    }
    static Values mean(int ranks, int step, std::size_t gradient, float scale = 1) {
        Values all(static_cast<std::size_t>(sizes[gradient]));
        for (int r = 0; r < ranks; r++) {
            const Values theirs = values(r, step, gradient, scale);
            for (std::size_t i = 0; i < all.size(); i++)
                all[i] += theirs[i] / static_cast<float>(ranks);
        }
        return all;
    }

    // Returns the gradients after the hook.
    std::vector<Values> reduce(const BucketHook& hook, int step, float scale = 1) {
        std::vector<Values> all;
        rank_.barrier();  // no rank allocates any more
        for (std::size_t i = 0; i < parameters_.size(); i++)
            buffers_->view(i).copy_from(values(rank_.rank(), step, i, scale));
        for (std::size_t i = 0; i < buffers_->plan().buckets.size(); i++)
            hook(*communicator_, buffers_->bucket(i), stream_, "bucket " + std::to_string(i));
        communicator_->synchronize(stream_);
        for (std::size_t i = 0; i < parameters_.size(); i++)
            all.push_back(buffers_->view(i).to_host());
        return all;
    }

    Rank& rank() { return rank_; }
    Communicator& communicator() { return *communicator_; }
    const FlatBuffers& buffers() const { return *buffers_; }

  private:
    std::shared_ptr<Parameter> make(const std::string& name, const Shape& shape) {
        return std::make_shared<Parameter>(name, Tensor(device_, shape));
    }

    Rank& rank_;
    Device& device_;
    const std::unique_ptr<Communicator> communicator_;
    Parameters parameters_;
    ArenaBuffer<float> memory_;
    std::optional<FlatBuffers> buffers_;
    Stream stream_;
};

double norm(const Values& values) {
    double sum = 0;
    for (const float value : values)
        sum += static_cast<double>(value) * value;
    return std::sqrt(sum);
}

// Returns the distance of `found` from `right`, relative to `right`.
double difference(const Values& found, const Values& right) {
    Values rest;
    for (std::size_t i = 0; i < right.size(); i++)
        rest.push_back(found[i] - right[i]);
    return norm(rest) / norm(right);
}

void add(const Values& values, Values& sum) {
    sum.resize(values.size());
    for (std::size_t i = 0; i < values.size(); i++)
        sum[i] += values[i];
}

// Returns the bits of all ranks' gradients.
void require_equal(Rank& rank, const std::vector<Values>& mine) {
    std::string bytes;
    for (const Values& values : mine)
        bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    for (const std::string& theirs : rank.all_gather(bytes))
        if (theirs != bytes)
            throw std::runtime_error("the ranks have different bits");
}

template <class T>
double worst_of_short(Gradients& gradients, float scale, Divide divide = Divide::before) {
    const int ranks = gradients.rank().world_size();
    const std::vector<Values> found = gradients.reduce(
        compressed_average<T>(gradients.communicator(), gradients.buffers(), divide), 0, scale);
    require_equal(gradients.rank(), found);
    double worst = 0;
    for (std::size_t i = 0; i < found.size(); i++)
        worst = std::max(worst, difference(found[i], Gradients::mean(ranks, 0, i, scale)));
    return worst;
}

// Returns the largest distance between the sum of what was applied in `steps` steps and the sum of
// the means.
double worst_sum(Gradients& gradients, PowerSgd& power_sgd, int steps) {
    const int ranks = gradients.rank().world_size();
    std::vector<Values> applied(4), right(4);
    for (int step = 0; step < steps; step++) {
        const std::vector<Values> found = gradients.reduce(power_sgd.hook(), step);
        require_equal(gradients.rank(), found);
        for (std::size_t i = 0; i < 4; i++) {
            add(found[i], applied[i]);
            add(Gradients::mean(ranks, step, i), right[i]);
        }
    }
    double worst = 0;
    for (std::size_t i = 0; i < 4; i++)
        worst = std::max(worst, difference(applied[i], right[i]));
    return worst;
}

std::vector<double> on_all_ranks(int ranks, const std::function<double(Gradients&)>& work) {
    World world(thread_options(ranks));
    std::vector<double> results(static_cast<std::size_t>(ranks));
    world.run([&](Rank& rank) {
        results[static_cast<std::size_t>(rank.rank())] =
            work(make_run_scoped<Gradients>(rank, rank));
    });
    return results;
}

}  // namespace

TEST_CASE("compression: float16 and bfloat16 are as near as their fractions are long") {
    for (const int ranks : {1, 2, 3, 4}) {
        CAPTURE(ranks);
        for (const double worst : on_all_ranks(ranks, [](Gradients& gradients) {
                 return worst_of_short<__half>(gradients, 1);
             })) {
            REQUIRE(worst < 1.5e-3);
            REQUIRE(worst > 1e-5);  // or nothing was rounded
        }
        for (const double worst : on_all_ranks(ranks, [](Gradients& gradients) {
                 return worst_of_short<__nv_bfloat16>(gradients, 1);
             })) {
            REQUIRE(worst < 1.2e-2);
            REQUIRE(worst > 2e-4);
        }
    }
}

TEST_CASE("compression: the sum of float16 is too large unless it is divided before") {
    constexpr float large = 30'000;  // and up to one and a half times as much
    for (const int ranks : {2, 3, 4}) {
        CAPTURE(ranks);
        for (const double worst : on_all_ranks(ranks, [](Gradients& gradients) {
                 return worst_of_short<__half>(gradients, large);
             }))
            REQUIRE(worst < 1.5e-3);
        for (const double worst : on_all_ranks(ranks, [](Gradients& gradients) {
                 return worst_of_short<__half>(gradients, large, Divide::after);
             }))
            REQUIRE(!std::isfinite(worst));
        for (const double worst : on_all_ranks(ranks, [](Gradients& gradients) {
                 return worst_of_short<__nv_bfloat16>(gradients, large, Divide::after);
             }))
            REQUIRE(worst < 1.2e-2);
    }
}

TEST_CASE("power_sgd: with as many columns as the matrix has, it is the average") {
    for (const int ranks : {1, 3, 4})
        for (const bool feeds : {true, false}) {
            CAPTURE(ranks, feeds);
            const auto worst = on_all_ranks(ranks, [feeds](Gradients& gradients) {
                PowerSgd& power_sgd = make_run_scoped<PowerSgd>(
                    gradients.rank(), gradients.communicator(), gradients.buffers(),
                    PowerSgdOptions{.matrix_rank = 100,
                                    .start_step = 2,
                                    .least_saving = 0,
                                    .feeds_errors_back = feeds});
                return worst_sum(gradients, power_sgd, 6);
            });
            for (const double each : worst)
                REQUIRE(each < 2e-6);
        }
}

TEST_CASE("power_sgd: what was applied and the mean of the errors add up to all gradients") {
    for (const int ranks : {1, 2, 3, 4}) {
        CAPTURE(ranks);
        const auto worst = on_all_ranks(ranks, [](Gradients& gradients) {
            Rank& rank = gradients.rank();
            PowerSgd& power_sgd = make_run_scoped<PowerSgd>(
                rank, gradients.communicator(), gradients.buffers(),
                PowerSgdOptions{.matrix_rank = 2, .start_step = 2, .least_saving = 1.2});
            std::vector<Values> rest(4);
            for (int step = 0; step < 8; step++) {
                const std::vector<Values> found = gradients.reduce(power_sgd.hook(), step);
                for (std::size_t i = 0; i < 4; i++) {
                    add(Gradients::mean(rank.world_size(), step, i), rest[i]);
                    for (std::size_t k = 0; k < found[i].size(); k++)
                        rest[i][k] -= found[i][k];
                }
            }
            // The errors have the same layout as the gradients.
            const Values mine = power_sgd.errors().to_host();
            std::string bytes(reinterpret_cast<const char*>(mine.data()), mine.size() * 4);
            Values mean(mine.size());
            for (const std::string& each : rank.all_gather(bytes)) {
                const auto* theirs = reinterpret_cast<const float*>(each.data());
                for (std::size_t i = 0; i < mean.size(); i++)
                    mean[i] += theirs[i] / static_cast<float>(rank.world_size());
            }
            double largest = 0;
            for (std::size_t i = 0; i < 4; i++) {
                const auto first = static_cast<std::size_t>(gradients.buffers().view(i).data() -
                                                            gradients.buffers().bucket(0).data());
                for (std::size_t k = 0; k < rest[i].size(); k++)
                    largest = std::max<double>(largest, std::abs(rest[i][k] - mean[first + k]));
            }
            return largest;
        });
        for (const double each : worst)
            REQUIRE(each < 2e-5);
    }
}

TEST_CASE(
    "power_sgd: without the errors the sum goes astray, and without a warm start more slowly") {
    for (const int ranks : {3}) {
        const auto sum_with = [&](const PowerSgdOptions& options) {
            return on_all_ranks(ranks, [options](Gradients& gradients) {
                return worst_sum(
                    gradients,
                    make_run_scoped<PowerSgd>(gradients.rank(), gradients.communicator(),
                                              gradients.buffers(), options),
                    20);
            })[0];
        };
        const PowerSgdOptions usual{.matrix_rank = 1, .start_step = 2, .least_saving = 1};
        PowerSgdOptions forgets = usual, begins_anew = usual;
        forgets.feeds_errors_back = false;
        begins_anew.has_warm_start = false;
        const double right = sum_with(usual);
        REQUIRE(right < 0.5 * sum_with(forgets));
        REQUIRE(right < sum_with(begins_anew));
    }
}

TEST_CASE("power_sgd: sends thin matrices once it has started, and small ones as they are") {
    const auto sent = on_all_ranks(2, [](Gradients& gradients) {
        PowerSgd& power_sgd = make_run_scoped<PowerSgd>(
            gradients.rank(), gradients.communicator(), gradients.buffers(),
            PowerSgdOptions{.matrix_rank = 1, .start_step = 3});
        std::vector<std::size_t> after;
        for (int step = 0; step < 5; step++) {
            const std::vector<Values> found = gradients.reduce(power_sgd.hook(), step);
            after.push_back(power_sgd.sent_bytes());
            // To the bit where nothing is compressed: two ranks have one sum.
            for (std::size_t i = 0; i < 4; i++)
                if (i == 1 || step < 3)
                    if (found[i] != Gradients::mean(2, step, i))
                        return -1.0;
        }
        // wide: 12 + 7; conv: 4 + 27; tall: 9 + 16; and the bias as it is.
        const std::size_t thin = 4 * (12 + 7 + 4 + 27 + 9 + 16 + 5);
        const std::size_t whole = gradients.buffers().plan().memory_bytes();
        const bool is_right =
            after[2] == 3 * whole && after[3] == after[2] + thin && after[4] == after[3] + thin;
        return is_right ? 1.0 : 0.0;
    });
    REQUIRE(sent == std::vector<double>{1, 1});
}

TEST_CASE("power_sgd: what makes no sense is refused in a sentence") {
    const auto refusal = [](const PowerSgdOptions& options) {
        World world(thread_options(1));
        std::string message;
        world.run([&](Rank& rank) {
            auto& gradients = make_run_scoped<Gradients>(rank, rank);
            message = message_of(
                [&] { PowerSgd(gradients.communicator(), gradients.buffers(), options); });
        });
        return message;
    };
    REQUIRE(refusal({.matrix_rank = 0}) == "PowerSGD needs a rank of 1 or more, not 0");
    REQUIRE(refusal({.start_step = 1}) ==
            "PowerSGD can start at step 2, not 1: buckets are made anew after the first step, and "
            "errors are kept by place");
}

TEST_CASE("power_sgd: vectors become perpendicular, though they were nearly one") {
    Device device(test_memory);
    constexpr int count = 5, length = 67;
    Values values;
    for (int k = 0; k < count; k++)
        for (int i = 0; i < length; i++)
            values.push_back(k == 3 ? 0.0f
                                    : std::sin(static_cast<float>(i)) +
                                          1e-3f * static_cast<float>(k * k) *
                                              std::cos(0.3f * static_cast<float>(i * (k + 1))));
    Tensor vectors(device, {count, length}, values);
    orthonormalise(vectors.data(), count, length, device.stream());
    const Values found = vectors.to_host();
    for (int a = 0; a < count; a++)
        for (int b = 0; b <= a; b++) {
            double product = 0;
            for (int i = 0; i < length; i++)
                product += static_cast<double>(found[static_cast<std::size_t>(a * length + i)]) *
                           found[static_cast<std::size_t>(b * length + i)];
            CAPTURE(a, b);
            REQUIRE(product == Approx(a == b ? 1 : 0).margin(1e-5));
        }
}

}  // namespace ddp::test
