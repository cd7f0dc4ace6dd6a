// One training, in two generations:
//
//     resume      the newest whole checkpoint of any node goes to all ranks; without one: step 0
//     begin       this generation's number goes into the folder: an earlier one that wakes up ends
//     steps       wait for the copy of the last checkpoint, before the optimizer changes anything;
//                 every `every` steps: save
//     killed      at any moment
//     resume      the same, from the last step that was saved, with as many ranks as there are
//     ...
//     finish      save once more, and wait until it is on the disk
//
// A checkpoint holds, and the next start restores:
//
//     tensors     parameters, buffers, the optimizer's momentum or moments
//     numbers     step, samples, epoch, samples taken of it, the optimizer's step counts
//     texts       the configuration, the random generator, the bucket plan
#include "19_checkpoint_failover/checkpointed_run.hpp"

#include <iostream>
#include <stdexcept>

#include "19_checkpoint_failover/state/resume.hpp"

namespace ddp {

// Objects that the writer thread uses: run-scoped, so that they outlive it.
struct CheckpointedRun::Storage {
    explicit Storage(const CheckpointPlan& plan)
        : folder(plan.folder), checkpoints(folder, plan.keep) {}

    DiskFolder folder;
    Checkpoints checkpoints;
    std::optional<Saver> saver;  // only on a rank that writes
};

CheckpointedRun::CheckpointedRun(Communicator& communicator, Device& device, const Module& model,
                                 Optimizer& optimizer, const CheckpointPlan& plan,
                                 std::map<std::string, std::string> configuration,
                                 const Saver::OnEvent& on_event)
    : communicator_(communicator),
      device_(device),
      optimizer_(optimizer),
      tensors_(tensors_of(model, optimizer)),
      every_(plan.every) {
    state_.configuration = std::move(configuration);
    if (plan.folder.empty())
        return;
    storage_ = &make_run_scoped<Storage>(communicator.rank(), plan);
    if (plan.takes_sigterm)
        preemption_.emplace(communicator, device);
    if (writes_checkpoints(communicator.rank(), storage_->folder))
        storage_->saver.emplace(
            communicator, device, tensors_, storage_->checkpoints,
            on_event ? on_event : [](const std::string&, int) {});
}

// Ends the writer first: it asks the communicator, which may end next.
CheckpointedRun::~CheckpointedRun() {
    if (storage_ != nullptr && storage_->saver)
        storage_->saver->end();
}

// Throws if all checkpoints are damaged: silently beginning again would hide the loss.
std::optional<int> CheckpointedRun::resume() {
    if (storage_ == nullptr)
        return std::nullopt;
    std::vector<std::string> errors;
    const std::optional<Resumed> resumed = ddp::resume(
        communicator_, device_, storage_->checkpoints, tensors_, state_.configuration, errors);
    if (!resumed && !errors.empty())
        throw std::runtime_error("no checkpoint in '" + storage_->folder.path() +
                                 "' is whole: " + errors.front() + " Remove them to begin again.");
    for (const std::string& error : errors)
        std::cerr << "note: " << error << " The one before it is used." << std::endl;
    // The tensors are loaded already; restore the rest.
    if (resumed) {
        state_ = resumed->state;
        for (const auto& [name, number] : optimizer_.state().numbers)
            *number = state_.optimizer_numbers.at(name);
        if (hooks_.after_resume)
            hooks_.after_resume(state_);
    }
    begin_next_generation(communicator_.rank(), storage_->checkpoints, storage_->saver.has_value());
    return resumed ? std::optional(resumed->from_rank) : std::nullopt;
}

void CheckpointedRun::wait_for_copy() {
    if (storage_ != nullptr && storage_->saver)
        storage_->saver->wait_for_copy();
}

void CheckpointedRun::save_if_due() {
    if (preemption_ && preemption_->is_told_to_end())
        throw ToldToEnd();
    if (state_.step % every_ == 0)
        save();
}

// Gives the saver the current numbers. It has the tensors already, and copies them after the steps
// that the device has yet to finish.
void CheckpointedRun::save() {
    if (storage_ == nullptr || !storage_->saver)
        return;
    for (const auto& [name, number] : optimizer_.state().numbers)
        state_.optimizer_numbers[name] = *number;
    if (hooks_.before_save)
        hooks_.before_save(state_);
    storage_->saver->save(state_);
}

void CheckpointedRun::finish() {
    save();
    if (storage_ != nullptr && storage_->saver)
        storage_->saver->finish();
}

std::optional<Saver::Seconds> CheckpointedRun::save_seconds() const {
    if (storage_ == nullptr || !storage_->saver)
        return std::nullopt;
    return storage_->saver->seconds();
}

}  // namespace ddp
