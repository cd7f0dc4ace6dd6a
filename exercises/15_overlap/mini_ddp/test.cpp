// The exercise mini_ddp beside one rank that learns from the samples of all: with a device that
// stands still until backward is enqueued, and a wire that does so until backward is done.
#include "exercises/15_overlap/mini_ddp.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "03_network/optimizers.hpp"
#include "07_broadcast/broadcast.hpp"
#include "09_all_reduce/all_reduce.hpp"
#include "exercises/support/gate.hpp"
#include "exercises/support/ranks.hpp"
#include "exercises/support/small_network.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

// Notes where the all-reduces work, and how much of backward is enqueued when they begin.
class Watched final : public Communicator {
  public:
    Watched(Rank& rank, Device& device, const Module& model)
        : Communicator(rank), peers_(rank, 1 << 20), device_(device), model_(model) {}
    std::string kind() const override { return "native"; }
    void synchronize(Stream& stream) override { peers_.synchronize(stream); }

    Stream* wire = nullptr;           // of the step's last all-reduce; before that backward's
    std::optional<Gate> gate;         // before the first all-reduce
    Event before{EventFor::order};    // what is on the wire before the gate
    Event backward{EventFor::order};  // what was enqueued of it before the last all-reduce
    bool is_after_backward = false;   // so late came the first one

  private:
    const std::shared_ptr<SharedArena>& arena() override { return peers_.arena(); }
    void enqueue(const Call& call, Stream& stream) override {
        if (call.kind == OperationKind::broadcast)
            return tree_broadcast(peers_, call, stream);
        if (&stream == &device_.stream())
            throw Wrong("Your all-reduce is on backward's stream, which waits for it: use wire_.");
        if (wire == &device_.stream()) {
            is_after_backward = model_.parameters()[0]->has_gradient();
            before.record(stream);
            gate.emplace(stream);
        }
        wire = &stream;
        backward.record(device_.stream());
        one_shot_all_reduce(peers_, call, stream);
    }

    Peers peers_;
    Device& device_;
    const Module& model_;
};

// A rank's network, whose weights and samples are its own.
struct Trial {
    Rank& rank;
    Device& device = make_run_scoped<Device>(rank, 4 << 20);
    std::unique_ptr<Sequential> model = make_small_network(device, 1 + rank.rank());
    Watched communicator{rank, device, *model};
    Tape tape{device};
    MiniDdp ddp{communicator, device, *model};

    Variable loss_of(Module& network, int samples_of) {
        return small_loss(tape, network, small_batch(device, {10 * samples_of, 3 + samples_of}));
    }
};

// Takes a step, which `one`, with rank 0's weights, takes with the samples of all ranks.
std::string wrong_in_step(Trial& trial, Module& one) {
    Watched& seen = trial.communicator;
    const int rank = trial.rank.rank(), ranks = trial.rank.world_size();
    Sgd optimizer(trial.model->parameters(), 0.1), of_one(one.parameters(), 0.1);
    const auto mean_of = [&](int first, int last) {
        of_one.zero_gradients();
        for (int r = first; r < last; r++)
            trial.tape.backward(trial.loss_of(one, r), {}, 1 / static_cast<float>(last - first));
        return gradients_of(one);
    };
    const std::vector<float> own = mean_of(rank, rank + 1), mean = mean_of(0, ranks);
    of_one.step();
    const Variable loss = trial.loss_of(*trial.model, rank);
    seen.wire = &trial.device.stream();
    bool is_early = false;
    const std::string wrong = wrong_if_host_waits(trial.device.stream(), [&] {
        trial.ddp.backward(loss);
        optimizer.step();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        is_early = forget_not_ready(cudaEventQuery(seen.before)) == cudaSuccess;
    });
    seen.backward.synchronize();
    const bool goes_on = !seen.gate || seen.gate->open();
    trial.device.stream().synchronize();
    seen.synchronize(*seen.wire);
    const std::vector<float> yours = gradients_of(*trial.model);
    optimizer.zero_gradients();
    if (!wrong.empty())
        return wrong;
    if (!are_near(yours, mean))
        return are_near(yours, own)
                   ? "The gradients are this rank's own: who copies the means back, on wire_?"
               : is_early
                   ? "A gradient is copied before it is computed: wire_ has to wait for computed_."
                   : "The gradients are not the means: is each copied, averaged and copied back?";
    if (!are_near(values_of(*trial.model), values_of(one)))
        return "An optimizer that comes right after backward reads gradients that are not averaged "
               "yet: record reduced_ on wire_, and let device_.stream() wait for it.";
    if (seen.is_after_backward)
        return "The mean is right, but the first all-reduce comes after backward, and hides behind "
               "nothing. Send each gradient in the function that tape->backward() calls for it.";
    if (!goes_on)
        return "Backward stands still while an all-reduce goes on: only what follows has to wait." +
               may_be_busy;
    return "";
}

void check_on_ranks(const std::function<std::string(Trial&)>& judge) {
    for (const int ranks : {1, 2, 3})
        on_ranks(ranks, [&](Rank& rank) {
            Trial trial{rank};
            throw_first_wrong(rank, judge(trial));
        });
}

void check_begin() {
    check_on_ranks([](Trial& trial) -> std::string {
        if (values_of(*trial.model) == values_of(*make_small_network(trial.device, 1)))
            return "";
        return "A rank begins with other parameters than rank 0: who copies rank 0's to all?";
    });
}

void check_overlap() {
    check_on_ranks([](Trial& trial) {
        const auto one = make_small_network(trial.device, 1);
        throw_first_wrong(trial.rank, wrong_in_step(trial, *one));
        return wrong_in_step(trial, *one);
    });
}

}  // namespace

std::vector<Task> tasks() {
    return {{"begin", check_begin}, {"overlap", check_overlap}};
}

}  // namespace ddp::test
