#include "03_network/metrics.hpp"

#include <array>
#include <cfloat>
#include <cmath>

#include "02_kernels/support/block_sum.cuh"
#include "common/gpu/rows.hpp"

namespace ddp {
namespace {

// Returns the class that a row of logits predicts: the place of its largest logit.
__device__ int largest_logit(int classes, const float* logits) {
    int best = 0;
    for (int c = 1; c < classes; c++)
        best = logits[c] > logits[best] ? c : best;
    return best;
}

// Predicts the class of each row.
__global__ void predict_rows(int batch, int classes, const float* logits, int* predictions) {
    for (std::size_t row : grid_range(batch))
        predictions[row] = largest_logit(classes, logits + row * classes);
}

// Adds a step to the totals, in one block: a batch is small.
__global__ void add_step(int batch, int classes, const float* loss, const float* logits,
                         const int* labels, Metrics::Totals* totals) {
    const int correct = sum_by_block<int>(batch, [=](std::size_t row) {
        return largest_logit(classes, logits + row * classes) == labels[row] ? 1 : 0;
    });
    if (threadIdx.x != 0)
        return;
    totals->correct += correct;
    totals->samples += batch;
    totals->loss_sum += static_cast<double>(*loss) * batch;
    const bool is_finite = fabsf(*loss) <= FLT_MAX;
    if (!is_finite && totals->first_bad_step < 0)
        totals->first_bad_step = totals->steps;
    totals->steps++;
}

}  // namespace

Labels predict(const Tensor& logits) {
    Labels predictions(logits.device(), {logits.dim(0)});
    launch(logits.device().stream(), grid_for(predictions.size()), predict_rows, logits.dim(0),
           logits.dim(1), logits.data(), predictions.data());
    return predictions;
}

Metrics::Metrics(Device& device) : device_(device), totals_(1) {
    reset();
}

void Metrics::add(const Tensor& loss, const Tensor& logits, const Labels& labels) {
    launch(device_.stream(), rows_for(1, labels.size()), add_step, labels.dim(0), logits.dim(1),
           loss.data(), logits.data(), labels.data(), totals_.data());
}

Metrics::Totals Metrics::read() const {
    device_.stream().synchronize();
    return totals_.to_host_now()[0];
}

void Metrics::reset() {
    device_.stream().synchronize();
    totals_.copy_from(std::array{Totals{}});
}

}  // namespace ddp
