// A training that may end anywhere and starts again here:
//
//     resume      the state of the newest checkpoint; without one: step 0
//     each epoch  the samples that are not taken yet, dealt out to the ranks that there are
//     each step   mirror the batch   every rank tosses the coins of all ranks' samples
//                 forward, backward  gradients are averaged, in buckets
//                 wait for the copy  of the last checkpoint, before the optimizer changes anything
//                 optimizer
//                 count              every `every` steps: save
//     the end     save once more; the same where SIGTERM has come
//
// What a checkpoint of it holds beside tensors and counts: the generator of the coins, and the
// bucket plan.
#include "19_checkpoint_failover/resumable_training.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "10_nodes/make_communicator.hpp"
#include "10_nodes/placement.hpp"
#include "15_overlap/training.hpp"
#include "19_checkpoint_failover/job/status_line.hpp"
#include "19_checkpoint_failover/job/training_status.hpp"
#include "19_checkpoint_failover/state/mirror.hpp"
#include "19_checkpoint_failover/state/resume.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr int test_batch = 500;
constexpr std::size_t bucket_cap = 256 << 10;  // so that a small network has several buckets

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const Parameters& parameters,
                                          double learning_rate) {
    if (name == "adam")  // whose steps have about the length of the learning rate
        return std::make_unique<Adam>(parameters, learning_rate / 100);
    return std::make_unique<Sgd>(parameters, learning_rate);
}

// Makes the network: small, so that many steps fit between two failures.
std::unique_ptr<Sequential> make_network(Device& device, const LabelledImages& samples,
                                         std::uint64_t seed) {
    Random random(seed);  // on all ranks the same: DDP has nothing to mend
    return make_mlp(device, random, mlp_widths(samples, {256, 256}));
}

// A checkpoint of a training with other values is refused.
std::map<std::string, std::string> configuration_of(const TrainingPlan& plan, int pictures) {
    return {{"optimizer", plan.optimizer},  // names for the message
            {"batch", std::to_string(plan.batch)},
            {"learning rate", format_fixed(plan.learning_rate, 6)},
            {"seed", std::to_string(plan.seed)},
            {"epochs", std::to_string(plan.epochs)},
            {"number of pictures", std::to_string(pictures)}};
}

// One rank's training.
class ResumableTraining {
  public:
    ResumableTraining(Rank& rank, const FashionMnist& data, const TrainingPlan& plan)
        : rank_(rank),
          plan_(plan),
          device_(make_run_scoped<Device>(rank, rank_memory(rank))),
          train_(make_run_scoped<Loader>(rank, device_, data.train, fashion_mnist_normalisation,
                                         plan.batch, LastBatch::drop)),
          test_(make_run_scoped<Loader>(rank, device_, data.test, fashion_mnist_normalisation,
                                        std::min(test_batch, static_cast<int>(data.test.count())))),
          model_(make_network(device_, data.train, plan.seed)),
          communicator_(make_communicator(
              plan.communicator, rank,
              ddp_arena_bytes(*model_) + preemption_arena_bytes() + resume_arena_bytes(),
              {.order = plan_.order})),
          ddp_(*communicator_, device_, *model_, {.bucket_cap_bytes = bucket_cap}),
          optimizer_(make_optimizer(plan.optimizer, model_->parameters(), plan.learning_rate)),
          trainer_(rank, device_, *model_, ddp_, *optimizer_),
          coins_(~plan.seed),
          run_(*communicator_, device_, *model_, *optimizer_, plan.checkpoints,
               configuration_of(plan, train_.samples()),
               [r = rank.rank()](const std::string& what, int step) {
                   send_to_supervisor({r, what, step, ""});
               }),
          status_(rank, device_, trainer_) {
        // The buckets are on their way, and the optimizer is next.
        ddp_.set_hooks({.before_finalize = [this] { run_.wait_for_copy(); }});
        trainer_.set_hooks({.before_step = [this](const Batch& batch) { prepare(batch); },
                            .after_step = [this](int steps) { count(steps); }});
        // The rest of a checkpoint, beside tensors and counts, goes in and comes out here.
        run_.set_hooks({.before_save =
                            [this](TrainingState& state) {
                                state.random = coins_.state();
                                state.buckets = ddp_.state();
                            },
                        .after_resume =
                            [this](const TrainingState& state) {
                                coins_.set_state(state.random);
                                ddp_.set_state(state.buckets);
                                trainer_.set_steps(state.step);
                            }});
    }

    // Trains to the end of the plan, and compares the replicas. Returns false if it was told to
    // end.
    bool run() try {
        resume();
        TrainingState& state = run_.state();
        if (state.epoch > plan_.epochs)  // all is done: what is its accuracy?
            test(plan_.epochs);
        for (; state.epoch <= plan_.epochs; state.epoch++, state.taken = 0)
            epoch(state);
        trainer_.set_hooks({});  // the last test makes no step
        run_.finish();
        if (const std::optional<Saver::Seconds> saves = run_.save_seconds()) {
            report("waited", std::to_string(saves->waited));
            report("copied", std::to_string(saves->copied));
        }
        require_equal_replicas(rank_, model_->parameters());
        const std::string hash = text_of_hash(hash_of(model_->parameters()));
        report("done", hash);
        if (prints())
            std::cout << order_line(rank_.job(), plan_.order)
                      << text_of_equal_replicas(rank_.world_size(), hash) << std::endl;
        return true;
    } catch (const ToldToEnd&) {
        // After the same step on all ranks: nothing is under way between them.
        run_.finish();
        report("preempted", "");
        if (prints())
            std::cout << text_of_preemption(run_.state().step) << std::endl;
        return false;
    }

  private:
    bool prints() const { return rank_.rank() == 0 && !has_supervisor(); }
    void report(const std::string& what, const std::string& value) {
        send_to_supervisor({rank_.rank(), what, run_.state().step, value});
    }

    void resume() {
        const std::optional<int> from = run_.resume();
        report("resumed", std::to_string(run_.state().samples));
        if (from && prints())
            std::cout << "continues after step " << run_.state().step << ", from rank " << *from
                      << "'s checkpoint" << std::endl;
    }

    // Trains for the rest of the current epoch, then tests.
    void epoch(const TrainingState& state) {
        const int epoch = state.epoch;
        // The learning rate falls with every epoch: it depends on the state alone.
        optimizer_->set_learning_rate(plan_.learning_rate * (plan_.epochs - epoch + 1) /
                                      plan_.epochs / (plan_.optimizer == "adam" ? 100 : 1));
        // All samples of the epoch, or the rest of it after a restart.
        train_.start_epoch(rest_of_epoch(train_.samples(), plan_.seed, epoch, state.taken,
                                         rank_.rank(), rank_.world_size()));
        status_.begin_epoch();
        if (train_.batches() > 0)  // none: the checkpoint was at the end of the epoch
            trainer_.epoch(train_, "epoch " + std::to_string(epoch));
        test(epoch);
    }

    void test(int epoch) {
        const double accuracy = trainer_.test(test_).accuracy();
        report("tested", format_fixed(accuracy, 4));
        if (prints())
            std::cout << "epoch " << epoch << "  test accuracy " << format_fixed(accuracy, 3)
                      << std::endl;
    }

    // Mirrors the batch, before its forward.
    void prepare(const Batch& batch) {
        mirror(batch.images, toss(coins_, plan_.batch, rank_.rank(), rank_.world_size()));
    }

    // Counts the step that was enqueued last, and saves where a checkpoint is due. The device may
    // still be computing the step.
    void count(int steps) {
        // Positions count the samples of all ranks, so that another number of ranks can continue.
        const int samples = plan_.batch * rank_.world_size();
        TrainingState& state = run_.state();
        state.step = steps;
        state.taken += samples;
        state.samples += samples;
        status_.report(state);
        run_.save_if_due();
    }

    Rank& rank_;
    const TrainingPlan& plan_;
    Device& device_;
    Loader &train_, &test_;
    const std::unique_ptr<Sequential> model_;
    const std::unique_ptr<Communicator> communicator_;
    DistributedDataParallel ddp_;
    const std::unique_ptr<Optimizer> optimizer_;
    DdpTrainer trainer_;
    Random coins_;         // in the same state on all ranks
    CheckpointedRun run_;  // its end comes before the communicator's
    TrainingStatus status_;
};

}  // namespace

bool train_resumably(Rank& rank, const FashionMnist& data, const TrainingPlan& plan) {
    // The supervisor learns which processes belong to the job.
    send_to_supervisor({rank.rank(), "started", 0, rank.node() + " " + std::to_string(getpid())});
    rank.select_device();
    try {
        return ResumableTraining(rank, data, plan).run();
    } catch (const std::exception& error) {
        // Reported at once: before the job ends it may wait for a rank that has stopped.
        send_to_supervisor({rank.rank(), "failed", 0, error.what()});
        throw;
    }
}

}  // namespace ddp
