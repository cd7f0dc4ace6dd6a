// Four parts on four ranks, and on one. An all-reduce adds up chunk c of the array from rank c + 1
// on (09_all_reduce); the one rank does the same with its four arrays:
//
//     chunk 0     p1 + p2 + p3 + p0
//     chunk 1     p2 + p3 + p0 + p1         so one rank can say, to the bit, what four must get
#include "24_mesh/tensor_parallel.hpp"

#include <stdexcept>

#include "09_all_reduce/all_reduce.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// The parts' arrays, as a kernel gets them.
struct PartArrays {
    const float* data[TensorParallel::max_parts];
    int parts;
};

// Adds up all parts of each element in the order of an all-reduce over as many ranks.
__global__ void combine_parts(std::size_t n, const __grid_constant__ PartArrays in, bool is_maximum,
                              float* out) {
    const std::size_t chunk =
        chunk_of(n, static_cast<std::size_t>(in.parts), 0, sizeof(float)).size;
    for (std::size_t i : grid_range(n)) {
        // The sum of chunk c begins with part c + 1, and goes on round the parts.
        const int first = static_cast<int>(i / chunk) + 1;
        float result = in.data[first % in.parts][i];
        for (int k = 1; k < in.parts; k++) {
            const float next = in.data[(first + k) % in.parts][i];
            result = is_maximum ? fmaxf(result, next) : result + next;
        }
        out[i] = result;
    }
}

// Copies `from`, or adds it where another operation has left a gradient already.
__global__ void give(std::size_t n, const float* from, bool accumulate, float* to) {
    for (std::size_t i : grid_range(n))
        to[i] = accumulate ? to[i] + from[i] : from[i];
}

// Passes a gradient on to an input of an operation.
void give_gradient(const Tensor& from, const GradientTarget& target) {
    launch(from.device().stream(), grid_for(from.size()), give, from.size(), from.data(),
           target.accumulate, target.tensor.data());
}

}  // namespace

// ---- Who has which part

TensorParallel::TensorParallel(int parts) : parts_(parts) {
    if (parts < 1 || parts > max_parts)
        throw std::invalid_argument("a matrix is cut into 1 to " + std::to_string(max_parts) +
                                    " parts, not " + std::to_string(parts));
}

TensorParallel::TensorParallel(Communicator& ranks, std::size_t max_elements)
    : ranks_(&ranks), parts_(ranks.world_size()), sum_(ranks.allocate<float>(max_elements)) {}

std::size_t TensorParallel::arena_bytes(std::size_t max_elements) {
    return max_elements * sizeof(float) + 2 * SharedArena::unit;
}

Tensor TensorParallel::all_reduce(const std::vector<Tensor>& mine, ReduceOp op,
                                  const std::string& name) {
    const Tensor& first = mine.front();
    Stream& stream = first.device().stream();
    // A tensor of its own: the next sum writes into the arena again.
    const Tensor result(first.device(), first.shape());
    // One rank has all parts, and adds them up by one kernel.
    if (ranks_ == nullptr) {
        PartArrays arrays{{}, parts_};
        for (int p = 0; p < parts_; p++)
            arrays.data[p] = mine[static_cast<std::size_t>(p)].data();
        launch(stream, grid_for(result.size()), combine_parts, result.size(), arrays,
               op == ReduceOp::maximum, result.data());
        return result;
    }
    // Each rank has one. Peers read only the arena's memory, so that the part goes there, and the
    // sum comes back from there.
    DDP_CHECK(cudaMemcpyAsync(sum_.data(), first.data(), first.bytes(), cudaMemcpyDeviceToDevice,
                              stream));
    ranks_->all_reduce(sum_.data(), sum_.data(), first.size(), op, stream, "tp: " + name);
    DDP_CHECK(cudaMemcpyAsync(result.data(), sum_.data(), result.bytes(), cudaMemcpyDeviceToDevice,
                              stream));
    return result;
}

// ---- The two conjugate operations: to_parts copies and sums, sum_of_parts sums and copies

PartVariables to_parts(TensorParallel& parallel, Variable x, const std::string& name) {
    // Each part names the one before it as its input, only so that backward comes to part 0 last.
    // By then all gradients are there. On a mesh there is one part, and no chain.
    const auto gradients = std::make_shared<std::vector<Tensor>>(parallel.here());
    PartVariables parts;
    for (int p = 0; p < parallel.here(); p++) {
        const Variable before = p == 0 ? x : parts.back();
        parts.push_back(x.tape->record(
            "to_parts", x.value(), {before},
            [=, &parallel](const Tensor& dy, Tape::InputGradients& inputs) {
                gradients->at(static_cast<std::size_t>(p)) = dy;
                // x has all of its gradient once the last part has been here.
                if (p == 0)
                    give_gradient(
                        parallel.all_reduce(*gradients, ReduceOp::sum, name + " backward"),
                        inputs.target(0));
            }));
    }
    return parts;
}

Variable sum_of_parts(TensorParallel& parallel, const PartVariables& parts,
                      const std::string& name) {
    // The other ranks' parts are on their own tapes.
    std::vector<Tensor> values;
    for (const Variable& part : parts)
        values.push_back(part.value());
    return parts.front().tape->record(
        "sum_of_parts", parallel.all_reduce(values, ReduceOp::sum, name), parts,
        [n = parts.size()](const Tensor& dy, Tape::InputGradients& inputs) {
            // d sum / d part is 1, for each.
            for (std::size_t p = 0; p < n; p++)
                give_gradient(dy, inputs.target(p));
        });
}

}  // namespace ddp
