// The exercise mini_ddp: a small network, a communicator that watches, a device that stands still
// until backward is enqueued, and a rank that comes late.
#include "exercises/15_overlap/mini_ddp.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <thread>

#include "03_network/cross_entropy.hpp"
#include "03_network/models.hpp"
#include "07_broadcast/broadcast.hpp"
#include "09_all_reduce/all_reduce.hpp"
#include "exercises/support/gate.hpp"
#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr std::size_t device_memory = 4 << 20;
constexpr int inputs = 5, hidden = 8, classes = 3, samples = 4;
constexpr std::size_t gradients_of_all = (inputs + 1) * hidden + (hidden + 1) * classes;
constexpr float stale = -7;  // what stands in a gradient before backward

// Notes where the all-reduces work, and how much of backward is enqueued when they begin.
class Watched final : public Communicator {
  public:
    Watched(Rank& rank, Device& device, Parameters parameters)
        : Communicator(rank),
          peers_(rank, 1 << 20),
          device_(device),
          parameters_(std::move(parameters)) {}
    std::string kind() const override { return "native"; }
    void synchronize(Stream& stream) override { peers_.synchronize(stream); }

    // Returns whether the all-reduces end while the device stands still.
    bool is_done_soon() const {
        for (int i = 0; i < 30 && wire != nullptr; i++) {
            if (forget_not_ready(cudaStreamQuery(*wire)) == cudaSuccess)
                return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return false;
    }

    int calls = 0;
    Stream* wire = nullptr;       // of the last of them
    std::size_t known_first = 0;  // gradients that backward had enqueued when the first came

  private:
    const std::shared_ptr<SharedArena>& arena() override { return peers_.arena(); }
    void enqueue(const Call& call, Stream& stream) override {
        if (call.kind == OperationKind::broadcast)
            return tree_broadcast(peers_, call, stream);
        if (call.kind != OperationKind::all_reduce)
            throw Wrong("A gradient is averaged by all_reduce(); you call " + name_of(call.kind) +
                        "().");
        if (&stream == &device_.stream())
            throw Wrong(
                "Your all-reduce is on the stream of backward, whose next layer then waits for it. "
                "Put it on wire_, and both can go on at the same time.");
        if (calls++ == 0)
            known_first = static_cast<std::size_t>(std::ranges::count_if(
                parameters_, [](const auto& one) { return one->has_gradient(); }));
        wire = &stream;
        one_shot_all_reduce(peers_, call, stream);
    }

    Peers peers_;
    Device& device_;
    const Parameters parameters_;
};

// A rank's network, whose weights and samples are its own.
struct Trial {
    Rank& rank;
    Device& device = make_run_scoped<Device>(rank, device_memory);
    Random random{static_cast<std::uint64_t>(rank.rank() + 1)};
    std::unique_ptr<Sequential> model = make_mlp(device, random, {inputs, hidden, classes});
    Watched communicator{rank, device, model->parameters()};
    Tape tape{device};

    explicit Trial(Rank& rank) : rank(rank) {}

    Variable loss() {
        std::vector<float> values;
        std::vector<int> labels;
        for (int i = 0; i < samples * inputs; i++)
            values.push_back(random.uniform(-1, 1));
        for (int i = 0; i < samples; i++)
            labels.push_back((rank.rank() + i) % classes);
        tape.clear();
        for (const auto& parameter : model->parameters())
            parameter->clear_gradient();
        return cross_entropy(
            model->forward(tape.constant(Tensor(device, {samples, inputs}, values))),
            Labels(device, {samples}, labels));
    }
    // Enqueues copies of all gradients, one after the other.
    void keep_gradients(float* to) const {
        for (const auto& parameter : model->parameters()) {
            const Tensor& gradient = parameter->gradient();
            DDP_CHECK(cudaMemcpyAsync(to, gradient.data(), gradient.bytes(),
                                      cudaMemcpyDeviceToDevice, device.stream()));
            to += gradient.size();
        }
    }
    std::vector<float> gradients() const {
        Buffer<float> all(gradients_of_all);
        keep_gradients(all.data());
        device.stream().synchronize();
        return all.to_host_now();
    }
    // Returns this rank's own gradients, and leaves `stale` in their place.
    std::vector<float> own_gradients(const Variable& loss) {
        loss.tape->backward(loss);
        const std::vector<float> own = gradients();
        for (const auto& parameter : model->parameters()) {
            const Tensor gradient = parameter->gradient();
            const std::vector<float> old(gradient.size(), stale);
            copy_to_device(gradient.data(), old.data(), gradient.bytes());
            parameter->clear_gradient();
        }
        return own;
    }
};

std::vector<float> sum_over(Rank& rank, const std::vector<float>& own) {
    std::array<float, gradients_of_all> mine;
    std::ranges::copy(own, mine.begin());
    std::vector<float> sum(own.size());
    for (const auto& theirs : rank.all_gather(mine))
        std::ranges::transform(sum, theirs, sum.begin(), std::plus());
    return sum;
}

// While the device stands still, backward is only enqueued, and after it what an optimizer would
// read is copied to `kept`; then both streams run to their ends. The last rank can come late.
std::string wrong_in_step(Trial& trial, MiniDdp& ddp, bool is_late) {
    const int ranks = trial.rank.world_size();
    const Variable loss = trial.loss();
    const std::vector<float> own = trial.own_gradients(loss), sum = sum_over(trial.rank, own);
    Buffer<float> kept(sum.size());
    Watched& seen = trial.communicator;
    seen.calls = 0;
    trial.rank.barrier();
    if (is_late && trial.rank.rank() == ranks - 1)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    bool is_early = false;
    const auto call = [&] {
        ddp.backward(loss);
        trial.keep_gradients(kept.data());
        is_early = seen.is_done_soon();
    };
    if (std::string wrong = wrong_if_host_waits(trial.device.stream(), call); !wrong.empty())
        return wrong;
    trial.device.stream().synchronize();
    if (seen.wire != nullptr)
        seen.synchronize(*seen.wire);
    trial.rank.barrier();  // memory is freed when no kernel waits
    const std::vector<float> yours = trial.gradients();
    const auto is_share = [&](const std::vector<float>& a, int parts) {  // of the sum
        return std::ranges::equal(
            a, sum, [&](float x, float y) { return std::abs(parts * x - y) <= 1e-5f; });
    };
    if (is_early)
        return "The all-reduces are done, and backward has not even begun: they have averaged what "
               "stood in the gradients before. wire_ has to wait for backward: record computed_ on "
               "the device's stream, and let wire_ wait for it, for each gradient.";
    if (!is_share(yours, ranks))
        return is_share(yours, 1) ? "The gradients are the sum over the ranks, and should be their "
                                    "mean: ReduceOp::average."
               : seen.calls == 0 ? "Nothing was sent: call all_reduce() for every gradient that is "
                                   "final."
               : yours == own    ? "The gradients are this rank's own. The means are in memory_: "
                                   "who copies them back, on wire_?"
                                 : "The gradients are neither this rank's own nor the mean: does "
                                   "each have memory of its own, as large as it is, and is it "
                                   "copied in, averaged and copied back on wire_?";
    if (!is_share(kept.to_host_now(), ranks))
        return "An optimizer that comes right after backward reads gradients that are not averaged "
               "yet. The device's stream has to wait for the last all-reduce: record reduced_ on "
               "wire_, and let device_.stream() wait for it.";
    if (seen.known_first == trial.model->parameters().size())
        return "The mean is right, but the first all-reduce comes when backward has given all "
               "gradients, and hides behind nothing. Send each one in the function that "
               "tape->backward() calls for it.";
    return "";
}

void check_on(int ranks, const std::function<std::string(Trial&, MiniDdp&)>& judge) {
    const std::string what = std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
    const auto work = [&](Rank& rank) {
        Trial trial(rank);
        MiniDdp ddp(trial.communicator, trial.device, *trial.model);
        trial.device.stream().synchronize();
        rank.barrier();
        const std::string wrong = judge(trial, ddp);
        throw_first_wrong(rank, wrong.empty() ? "" : what + ": " + wrong);
    };
    on_ranks_with_hint(ranks, work, what,
                       "All ranks make the same calls, in the order in which backward completes "
                       "the gradients.");
}

void check_begin() {
    for (const int ranks : {1, 2, 3})
        check_on(ranks, [](Trial& trial, MiniDdp&) -> std::string {
            const std::uint64_t own = hash_of(trial.model->parameters());
            if (trial.rank.broadcast(own, 0) == own)
                return "";
            return "rank " + std::to_string(trial.rank.rank()) +
                   " begins with other parameters than rank 0. Equal gradients never make them "
                   "equal again: who copies rank 0's to all?";
        });
}

void check_overlap() {
    for (const int ranks : {1, 2, 3})
        check_on(ranks, [](Trial& trial, MiniDdp& ddp) {
            for (int step = 0; step < 2; step++)
                throw_first_wrong(trial.rank, wrong_in_step(trial, ddp, false));
            return wrong_in_step(trial, ddp, true);
        });
}

}  // namespace

std::vector<Task> tasks() {
    return {{"begin", check_begin}, {"overlap", check_overlap}};
}

}  // namespace ddp::test
