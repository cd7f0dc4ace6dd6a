#pragma once
// Tensor parallelism: a matrix is cut into parts, and each rank computes with its own. (Shoeybi and
// others, "Megatron-LM", 2019; PyTorch's parallelize_module with ColwiseParallel, RowwiseParallel.)
// Two matrices in a row need one sum forward and one backward:
//
//                  ┌─ W1, first rows ──▶ ReLU ─▶ W2, first columns ─┐
//      x ──▶ to_parts                                        sum_of_parts ──▶ y
//                  └─ W1, last rows ───▶ ReLU ─▶ W2, last columns ──┘
//
//                       forward                   backward
//     to_parts          x to every part           the sum over the parts of dx
//     sum_of_parts      the sum over the parts    dy to every part
//
// Each is the other's backward: where one copies, the other sums. (Megatron-LM calls them f and g.)
#include <string>
#include <vector>

#include "01_sgd/tape.hpp"
#include "09_all_reduce/communicator.hpp"

namespace ddp {

// The parts of every matrix, and who has them.
class TensorParallel {
  public:
    static constexpr int max_parts = 8;

    // All parts are on this rank: what several ranks compute, in the same order, without them.
    // Throws std::invalid_argument for more than max_parts.
    explicit TensorParallel(int parts);
    // Each rank of `ranks`, which must outlive this object, has one part. No sum has more
    // than `max_elements` elements.
    TensorParallel(Communicator& ranks, std::size_t max_elements);
    // Returns the arena size, in bytes, that such a communicator needs.
    static std::size_t arena_bytes(std::size_t max_elements);

    int parts() const { return parts_; }
    int here() const { return ranks_ == nullptr ? parts_ : 1; }  // parts on this rank
    int first() const { return ranks_ == nullptr ? 0 : ranks_->index(); }

    // Returns the sum (or the maximum) over all parts, of which `mine` are this rank's, all of one
    // shape. Enqueues only. All ranks get the same bits, in the all-reduce's order. So does one
    // rank that has all parts.
    Tensor all_reduce(const std::vector<Tensor>& mine, ReduceOp op, const std::string& name);

  private:
    Communicator* ranks_ = nullptr;
    int parts_;
    ArenaBuffer<float> sum_;
};

using PartVariables = std::vector<Variable>;  // of this rank's parts

// Forward: every part gets x. Backward: the gradient of x is the sum of all parts' gradients.
PartVariables to_parts(TensorParallel& parallel, Variable x, const std::string& name);
// Forward: the sum of all parts. Backward: every part gets the gradient.
Variable sum_of_parts(TensorParallel& parallel, const PartVariables& parts,
                      const std::string& name);

}  // namespace ddp
