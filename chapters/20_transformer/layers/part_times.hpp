#pragma once
// Times the parts of a model whose forward is not a row: a boundary on the tape after each part.
//
//     forward      source | encoder layer 0 | ... | target | decoder layer 0 | ... | scores | loss
//     backward  <- source | encoder layer 0 | ... | target | decoder layer 0 | ... | scores | loss
//
// Forward passes a boundary when the part before it is enqueued; backward, when the next one is.
#include <functional>
#include <string>
#include <vector>

#include "01_sgd/tape.hpp"
#include "common/gpu/step_times.hpp"

namespace ddp {

// Called in forward after each part of a model, such as "encoder layer 0", with what the part has
// computed. Forward goes on with what it returns: x, or x behind a boundary.
using EndOfPart = std::function<Variable(Variable x, const std::string& part)>;

class PartTimes {
  public:
    // `times` must outlive this object, and this object the tapes that it has been given.
    explicit PartTimes(StepTimes& times) : times_(times) {}

    // Begins a step. The first part begins here.
    void begin();
    // Ends the part that computes x, and marks it as "forward NAME". Returns x behind a boundary,
    // at which backward will mark the part that follows.
    Variable end_of(Variable x, const std::string& part);
    // Ends a part behind the last boundary, such as the loss.
    void end_of_forward(const std::string& part);
    // To be called after backward: marks what is left, the backward of the first part.
    void end_of_backward();

  private:
    StepTimes& times_;
    std::vector<std::string> parts_;  // of this step
};

}  // namespace ddp
