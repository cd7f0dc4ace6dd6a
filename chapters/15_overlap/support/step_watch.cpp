#include "15_overlap/support/step_watch.hpp"

namespace ddp {

StepWatch::StepWatch(Rank& rank, Device& device, Sequential& model, DistributedDataParallel& ddp,
                     DdpTrainer& trainer, int step)
    : rank_(rank),
      device_(device),
      model_(model),
      ddp_(ddp),
      trainer_(trainer),
      overlaps_(ddp.overlaps()) {
    trainer.set_hooks({.before_step =
                           [this, step](const Batch&) {
                               if (trainer_.steps() == step)
                                   begin(overlaps_);
                               if (trainer_.steps() == step + 1)
                                   begin(false);
                           },
                       .after_step =
                           [this, step](int steps) {
                               if (steps == step + 1)
                                   steps_.usual = end();
                               if (steps == step + 2)
                                   steps_.without_overlap = end();
                           }});
}

void StepWatch::begin(bool overlaps) {
    ddp_.set_overlap(overlaps);
    compute_.emplace("compute", device_.stream());
    communication_.emplace("communication", ddp_.communication_stream());
    trainer_.set_track(&*compute_);
    ddp_.set_track(&*communication_);
    // The model reports each layer when its forward is enqueued, the trainer each final gradient.
    model_.observe([&](const Module& layer) { compute_->mark("forward " + layer.name()); });
    compute_->begin();
}

std::vector<StreamSpan> StepWatch::end() {
    model_.observe({});
    ddp_.set_track(nullptr);
    trainer_.set_track(nullptr);
    ddp_.set_overlap(overlaps_);
    std::vector<StreamSpan> mine = compute_->read(rank_.rank());
    for (StreamSpan& span : communication_->read(rank_.rank()))
        mine.push_back(std::move(span));
    return gather(rank_, mine);
}

}  // namespace ddp
