// A training that may end anywhere and starts again here:
//
//     connect     on several hosts, also after each epoch: is one of them on a slow network?
//     resume      the newest whole checkpoint of any host goes to all ranks; without one: step 0
//     begin       this life's number goes into the folder: an earlier one that wakes up ends
//     each epoch  the samples that are not taken yet, dealt out to the ranks that there are
//     each step   mirror the batch   every rank tosses the coins of all ranks' samples
//                 forward, backward  gradients are averaged (15)
//                 wait for the copy  of the last checkpoint, before the optimizer changes anything
//                 optimizer
//                 count              every `every` steps: save
//     the end     save once more, and wait until that is on the disk
//
// A checkpoint holds, and the next start restores:
//
//     tensors     parameters, buffers, the optimizer's momentum or means
//     numbers     step, samples, epoch, samples taken of it, the optimizer's step counts
//     texts       the random generator, the bucket plan, the configuration
#include "19_checkpoint_failover/resumable_training.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <set>
#include <stdexcept>

#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "09_all_reduce/hosts/placement.hpp"
#include "15_overlap/training.hpp"
#include "19_checkpoint_failover/job/slow_hosts.hpp"
#include "19_checkpoint_failover/job/status_line.hpp"
#include "19_checkpoint_failover/saver.hpp"
#include "19_checkpoint_failover/state/mirror.hpp"
#include "19_checkpoint_failover/state/resume.hpp"
#include "common/report/bench.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr int steps_between_losses = 5;  // in the status lines
constexpr int test_batch = 500;
constexpr std::size_t bucket_cap = 256 << 10;  // so that a small network has several buckets

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const Parameters& parameters,
                                          double learning_rate) {
    if (name == "adam")  // whose steps have about the length of the learning rate
        return std::make_unique<Adam>(parameters, learning_rate / 100);
    return std::make_unique<Sgd>(parameters, learning_rate);
}

std::unique_ptr<Sequential> make_network(Device& device, std::uint64_t seed) {
    Random random(seed);
    return make_mlp(device, random, {784, 256, 256, 10});
}

// The objects that the writer thread uses. They are run-scoped, so that they outlive the writer.
struct Storage {
    explicit Storage(const TrainingPlan& plan)
        : folder(plan.folder), checkpoints(folder, plan.keep) {}

    DiskFolder folder;
    Checkpoints checkpoints;
    std::optional<Saver> saver;  // only on a rank that writes
};

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
          model_(make_network(device_, plan.seed)),
          communicator_(make_first_communicator()),
          ddp_(*communicator_, device_, *model_, {.bucket_cap_bytes = bucket_cap}),
          optimizer_(make_optimizer(plan.optimizer, model_->parameters(), plan.learning_rate)),
          trainer_(rank, device_, *model_, ddp_, *optimizer_),
          coins_(~plan.seed),
          storage_(make_run_scoped<Storage>(rank, plan)) {
        // A checkpoint of a training with other values is refused.
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
                                       send_to_supervisor({r, what, step, ""});
                                   });
        // before_finalize: the buckets are on their way, and the optimizer is next.
        ddp_.set_hooks({.before_finalize = [this] {
            if (storage_.saver)
                storage_.saver->wait_for_copy();
        }});
        trainer_.set_hooks({.before_step = [this](const Batch& batch) { prepare(batch); },
                            .after_step = [this](int steps) { count(steps); }});
    }

    // The writer asks the communicator, which is a member here: it must end before.
    ~ResumableTraining() {
        if (storage_.saver)
            storage_.saver->end();
    }

    // Trains to the end of the plan, and compares the replicas.
    void run() {
        resume_from_checkpoint();
        begin_next_life(rank_, storage_.checkpoints, storage_.saver.has_value());
        if (state_.epoch > plan_.epochs)  // all is done: what is its accuracy?
            test(plan_.epochs);
        for (; state_.epoch <= plan_.epochs; state_.epoch++, state_.taken = 0) {
            epoch();
            if (state_.epoch < plan_.epochs)
                report_slow_hosts(*communicator_);
        }
        // The state behind the last step is a checkpoint, too: a job that is started again finds
        // that nothing is left to do.
        trainer_.set_hooks({});
        save();
        if (storage_.saver) {
            storage_.saver->finish();
            report("waited", std::to_string(storage_.saver->seconds_waited()));
        }
        require_equal_replicas(rank_, model_->parameters());
        const std::string hash = text_of_hash(hash_of(model_->parameters()));
        report("done", hash);
        if (prints())
            std::cout << order_line(rank_.job()) << text_of_equal_replicas(rank_.world_size(), hash)
                      << std::endl;
    }

  private:
    bool prints() const { return rank_.rank() == 0 && !has_supervisor(); }
    void report(const std::string& what, const std::string& value = "") const {
        send_to_supervisor({rank_.rank(), what, state_.step, value});
    }

    // Restores the state of the newest whole checkpoint, if there is one. If all checkpoints are
    // damaged, it throws: to begin again without a word would hide the loss.
    void resume_from_checkpoint() {
        std::vector<std::string> errors;
        const std::optional<Resumed> resumed =
            resume(*communicator_, device_, storage_.checkpoints, tensors_of(*model_, *optimizer_),
                   state_.configuration, errors);
        if (!resumed && !errors.empty())
            throw std::runtime_error("no checkpoint in '" + storage_.folder.path() +
                                     "' is whole: " + errors.front() +
                                     " Remove them to begin again.");
        for (const std::string& error : errors)
            std::cerr << "note: " << error << " The one before it is used." << std::endl;
        // The tensors are loaded already; here is all the rest.
        if (resumed) {
            state_ = resumed->state;
            coins_.set_state(state_.random);
            ddp_.set_state(state_.buckets);
            for (const auto& [name, number] : optimizer_->state().numbers)
                *number = state_.optimizer_numbers.at(name);
            trainer_.set_steps(state_.step);
        }
        report("resumed", std::to_string(state_.samples));
        if (resumed && prints())
            std::cout << "continues after step " << state_.step << ", from rank "
                      << resumed->from_rank << "'s checkpoint" << std::endl;
    }

    // Makes the communicator, and looks for slow hosts before much is sent.
    std::unique_ptr<Communicator> make_first_communicator() {
        std::unique_ptr<Communicator> communicator = make_communicator(
            plan_.communicator, rank_,
            ddp_arena_bytes(*model_) + std::max(resume_arena_bytes(), round_trip_arena_bytes()));
        report_slow_hosts(*communicator);
        return communicator;
    }

    // Names the hosts on a slow network. The second time that one is named a supervised job ends:
    // its supervisor goes on without that host.
    void report_slow_hosts(Communicator& communicator) {
        std::string again;
        for (const auto& [name, text] :
             slow_hosts(time_round_trips(communicator, device_.stream()))) {
            const bool is_new = slow_hosts_.insert(name).second;
            if (rank_.rank() == 0)
                send_to_supervisor({0, slow_host_line, state_.step, text});
            if (is_new && prints())
                std::cout << "note: " << text << "." << std::endl;
            if (!is_new && has_supervisor())
                again = text;
        }
        if (!again.empty())
            throw std::runtime_error(again + "; so it was before");
    }

    // Trains for the rest of the current epoch, then tests.
    void epoch() {
        const int epoch = state_.epoch;
        // The learning rate falls with every epoch: it depends on the state alone.
        optimizer_->set_learning_rate(plan_.learning_rate * (plan_.epochs - epoch + 1) /
                                      plan_.epochs / (plan_.optimizer == "adam" ? 100 : 1));
        // All samples of the epoch, or the rest of it after a restart.
        train_.start_epoch(rest_of_epoch(train_.samples(), plan_.seed, epoch, state_.taken,
                                         rank_.rank(), rank_.world_size()));
        seen_ = {};
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
        state_.step = steps;
        state_.taken += samples;
        state_.samples += samples;
        report_progress();
        if (steps % steps_between_losses == 0)
            report_loss();
        if (steps % plan_.every == 0)
            save();
    }

    // Reports every second which step is done, so that a slow job is known to go on. Rank 0's host
    // is then one step ahead of its device, and not more.
    void report_progress() {
        if (rank_.rank() != 0 || !has_supervisor())
            return;
        done_[state_.step % 2].record(device_.stream());
        done_[(state_.step + 1) % 2].synchronize();
        if (since_report_.seconds() < 1)
            return;
        send_to_supervisor({0, "reached", state_.step - 1, ""});
        since_report_.restart();
    }

    // Reports the mean loss of rank 0's samples since the last report: enough for a curve.
    void report_loss() {
        if (rank_.rank() != 0 || !has_supervisor())
            return;
        const Metrics::Totals now = trainer_.metrics().read();
        const double loss = (now.loss_sum - seen_.loss_sum) / (now.samples - seen_.samples);
        seen_ = now;
        report("step", std::to_string(state_.samples) + " " + format_fixed(loss, 4));
        since_report_.restart();
    }

    // Gives the saver the state behind the last step; the tensors it has already.
    void save() {
        if (!storage_.saver)
            return;
        // The numbers of this moment: the device may be several steps behind.
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
    TrainingState state_;
    std::set<std::string> slow_hosts_;  // that were named
    const std::unique_ptr<Communicator> communicator_;
    DistributedDataParallel ddp_;
    const std::unique_ptr<Optimizer> optimizer_;
    DdpTrainer trainer_;
    Random coins_;  // in the same state on all ranks
    Storage& storage_;
    Metrics::Totals seen_;    // at the last report of a loss
    Event done_[2];           // the last two steps
    Stopwatch since_report_;  // of a step
};

}  // namespace

void train_resumably(Rank& rank, const FashionMnist& data, const TrainingPlan& plan) {
    // The supervisor learns which processes belong to the job.
    send_to_supervisor({rank.rank(), "started", 0, rank.host() + " " + std::to_string(getpid())});
    rank.select_device();
    try {
        ResumableTraining(rank, data, plan).run();
    } catch (const std::exception& error) {
        // Reported at once: before the job ends it may wait for a rank that has stopped.
        send_to_supervisor({rank.rank(), "failed", 0, error.what()});
        throw;
    }
}

}  // namespace ddp
