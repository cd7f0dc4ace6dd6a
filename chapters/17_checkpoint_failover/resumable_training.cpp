#include "17_checkpoint_failover/resumable_training.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "14_overlap/training.hpp"
#include "17_checkpoint_failover/job/status_line.hpp"
#include "17_checkpoint_failover/saver.hpp"
#include "17_checkpoint_failover/state/mirror.hpp"
#include "17_checkpoint_failover/state/resume.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr int steps_between_losses = 5;
constexpr int test_batch = 500;
constexpr std::size_t bucket_cap = 256 << 10;  // a small network's gradients make several buckets

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const Parameters& parameters,
                                          double learning_rate) {
    if (name == "adam")
        return std::make_unique<Adam>(parameters, learning_rate / 100);
    return std::make_unique<Sgd>(parameters, learning_rate);
}

std::unique_ptr<Sequential> make_network(Device& device, std::uint64_t seed) {
    Random random(seed);
    return make_mlp(device, random, {784, 256, 256, 10});
}

// What the writer works with. The rank keeps it until the writer has ended.
struct Storage {
    explicit Storage(const TrainingPlan& plan)
        : folder(plan.folder), checkpoints(folder, plan.keep) {}

    DiskFolder folder;
    Checkpoints checkpoints;
    std::optional<Saver> saver;  // of a rank that writes
};

class ResumableTraining {
  public:
    ResumableTraining(Rank& rank, const FashionMnist& data, const TrainingPlan& plan)
        : rank_(rank),
          plan_(plan),
          device_(make_run_scoped<Device>(rank, rank_memory)),
          train_(make_run_scoped<Loader>(rank, device_, data.train, fashion_mnist_normalisation,
                                         plan.batch, LastBatch::drop)),
          test_(make_run_scoped<Loader>(rank, device_, data.test, fashion_mnist_normalisation,
                                        std::min(test_batch, static_cast<int>(data.test.count())))),
          model_(make_network(device_, plan.seed)),
          communicator_(make_communicator(plan.communicator, rank,
                                          ddp_arena_bytes(*model_) + resume_arena_bytes())),
          ddp_(*communicator_, device_, *model_, {.bucket_cap_bytes = bucket_cap}),
          optimizer_(make_optimizer(plan.optimizer, model_->parameters(), plan.learning_rate)),
          trainer_(rank, device_, *model_, ddp_, *optimizer_),
          coins_(~plan.seed),
          storage_(make_run_scoped<Storage>(rank, plan)) {
        state_.configuration = {{"optimizer", plan.optimizer},
                                {"batch", std::to_string(plan.batch)},
                                {"learning rate", format_fixed(plan.learning_rate, 6)},
                                {"seed", std::to_string(plan.seed)},
                                {"epochs", std::to_string(plan.epochs)},
                                {"number of pictures", std::to_string(train_.samples())}};
        if (writes_checkpoints(rank, storage_.folder))
            storage_.saver.emplace(*communicator_, device_, tensors_of(*model_, *optimizer_),
                                   storage_.checkpoints,
                                   [r = rank.rank()](const std::string& what, int step) {
                                       tell_supervisor({r, what, step, ""});
                                   });
        ddp_.set_hooks({.before_finalize = [this] {
            if (storage_.saver)
                storage_.saver->let_change();
        }});
        trainer_.set_hooks({.before_step = [this](const Batch& batch) { prepare(batch); },
                            .after_step = [this](int steps) { count(steps); }});
    }

    ~ResumableTraining() {
        if (storage_.saver)
            storage_.saver->end();
    }

    void run() {
        go_on();
        for (; state_.epoch <= plan_.epochs; state_.epoch++, state_.taken = 0)
            epoch();
        trainer_.set_hooks({});
        save();
        if (storage_.saver) {
            storage_.saver->finish();
            say("waited", std::to_string(storage_.saver->seconds_waited()));
        }
        require_equal_replicas(rank_, model_->parameters());
        const std::string hash = text_of_hash(hash_of(model_->parameters()));
        say("done", hash);
        if (prints())
            std::cout << text_of_equal_replicas(rank_.world_size(), hash) << std::endl;
    }

  private:
    bool prints() const { return rank_.rank() == 0 && !has_supervisor(); }
    void say(const std::string& what, const std::string& value = "") const {
        tell_supervisor({rank_.rank(), what, state_.step, value});
    }

    // Where the newest checkpoint was, if there is one.
    void go_on() {
        std::vector<std::string> complaints;
        const std::optional<Resumed> resumed =
            resume(*communicator_, device_, storage_.checkpoints, tensors_of(*model_, *optimizer_),
                   state_.configuration, complaints);
        if (!resumed && !complaints.empty())  // to begin anew in silence would be worse
            throw std::runtime_error("no checkpoint in '" + storage_.folder.path() +
                                     "' is whole: " + complaints.front() +
                                     " Remove them to begin anew.");
        for (const std::string& complaint : complaints)
            std::cerr << "note: " << complaint << " The one before it is used." << std::endl;
        if (resumed) {
            state_ = resumed->state;
            coins_.set_state(state_.random);
            ddp_.set_state(state_.buckets);
            for (const auto& [name, number] : optimizer_->state().numbers)
                *number = state_.optimizer_numbers.at(name);
            trainer_.set_steps(state_.step);
        }
        say("resumed", std::to_string(state_.samples));
        if (resumed && prints())
            std::cout << "goes on behind step " << state_.step << ", from rank "
                      << resumed->from_rank << "'s checkpoint" << std::endl;
    }

    void epoch() {
        const int epoch = state_.epoch;
        optimizer_->set_learning_rate(plan_.learning_rate * (plan_.epochs - epoch + 1) /
                                      plan_.epochs / (plan_.optimizer == "adam" ? 100 : 1));
        train_.start_epoch(rest_of_epoch(train_.samples(), plan_.seed, epoch, state_.taken,
                                         rank_.rank(), rank_.world_size()));
        seen_ = {};
        if (train_.batches() > 0)  // or the checkpoint was at the epoch's very end
            trainer_.epoch(train_, "epoch " + std::to_string(epoch));
        const double accuracy = trainer_.test(test_).accuracy();
        say("tested", format_fixed(accuracy, 4));
        if (prints())
            std::cout << "epoch " << epoch << "  test accuracy " << format_fixed(accuracy, 3)
                      << std::endl;
    }

    void prepare(const Batch& batch) {
        mirror(batch.images, toss(coins_, plan_.batch, rank_.rank(), rank_.world_size()));
    }

    // After a step, which the device need not have ended.
    void count(int steps) {
        const int samples = plan_.batch * rank_.world_size();
        state_.step = steps;
        state_.taken += samples;
        state_.samples += samples;
        if (steps % steps_between_losses == 0)
            tell_loss();
        if (steps % plan_.every == 0)
            save();
    }

    // Of the samples since the last time, on rank 0: enough for a curve.
    void tell_loss() {
        if (rank_.rank() != 0 || !has_supervisor())
            return;
        const Metrics::Totals now = trainer_.metrics().read();
        const double loss = (now.loss_sum - seen_.loss_sum) / (now.samples - seen_.samples);
        seen_ = now;
        say("step", std::to_string(state_.samples) + " " + format_fixed(loss, 4));
    }

    void save() {
        if (!storage_.saver)
            return;
        state_.random = coins_.state();
        state_.buckets = ddp_.state();
        for (const auto& [name, number] : optimizer_->state().numbers)
            state_.optimizer_numbers[name] = *number;
        storage_.saver->save(state_);
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
    Random coins_;  // the same on all ranks
    Storage& storage_;
    TrainingState state_;
    Metrics::Totals seen_;
};

}  // namespace

void train_resumably(Rank& rank, const FashionMnist& data, const TrainingPlan& plan) {
    tell_supervisor({rank.rank(), "met", 0, rank.host() + " " + std::to_string(getpid())});
    rank.select_device();
    try {
        ResumableTraining(rank, data, plan).run();
    } catch (const std::exception& error) {
        // At once: the job itself may wait for a rank that has stopped before it ends.
        tell_supervisor({rank.rank(), "failed", 0, error.what()});
        throw;
    }
}

}  // namespace ddp
