#pragma once
// PowerSGD: a bucket hook that sends, instead of each matrix of gradients, two thin matrices whose
// product approximates it. (Vogels, Karimireddy and Jaggi, "PowerSGD", NeurIPS 2019, algorithms 1
// and 2; torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py.)
//
//     PowerSgd power_sgd(*communicator, ddp.gradients(), {.matrix_rank = 2});
//     ddp.set_bucket_hook(power_sgd.hook());
#include "15_overlap/ddp.hpp"

namespace ddp {

struct PowerSgdOptions {
    int matrix_rank = 1;      // columns of the thin matrices
    int start_step = 10;      // earlier steps are averaged without compression
    double least_saving = 2;  // compress a matrix only if it has more than so many times as many
                              // elements as P and Q (PyTorch's min_compression_rate)
    bool feeds_errors_back = true;  // add what was not sent to the next step's gradient
    bool has_warm_start = true;     // begin a step with the last step's Q, not with a random one
    std::uint64_t seed = 0;         // of the first Q; the same on all ranks
};

class PowerSgd {
  public:
    // Serves a DistributedDataParallel with these gradients, and allocates power_sgd_arena_bytes
    // from the communicator; both must outlive this object. All ranks call it before any of them
    // trains. Throws std::invalid_argument for a matrix rank below 1, and for a start before step
    // 2: the buckets are rebuilt after the first step.
    PowerSgd(Communicator& communicator, const FlatBuffers& gradients,
             const PowerSgdOptions& options = {});

    // Replaces the bucket by the approximated mean over the ranks. Must be called for every bucket
    // of every step, in order.
    void average(Tensor bucket, Stream& stream, const std::string& name);
    // Returns average as a bucket hook; this object must outlive it.
    BucketHook hook();

    // Returns the bytes that this rank has passed to all-reduces so far.
    std::size_t sent_bytes() const { return sent_bytes_; }
    // Returns what this rank's gradients contained and has not been sent yet, laid out as the
    // buckets are.
    const Tensor& errors() const { return errors_; }

  private:
    // A gradient that is a matrix [rows, columns] (all dimensions after the first count as columns)
    // and the places of its two factors. These are stored transposed: a contiguous vector for each
    // of the `matrix_rank` columns.
    struct Factors {
        std::size_t gradient;
        int rows, columns, matrix_rank;
        float* p;  // [matrix_rank, rows]
        float* q;  // [matrix_rank, columns]
    };
    // The work for one bucket.
    struct BucketWork {
        std::vector<Factors> matrices;
        std::vector<std::size_t> others;  // gradients that are sent as they are
    };

    void place_factors();
    void compress(const BucketWork& work, const std::string& name);
    void project(const BucketWork& work, const std::string& name);
    void average_others(const BucketWork& work, const std::string& name);
    void all_reduce(float* data, std::size_t count, const std::string& name);
    float* error_of(std::size_t gradient) const;

    Communicator& communicator_;
    const FlatBuffers& gradients_;
    const PowerSgdOptions options_;
    Device device_;  // has a stream of its own, on which it computes
    Tensor errors_;
    ArenaBuffer<float> p_, q_, others_;
    std::vector<BucketWork> work_;  // by bucket
    int step_ = 0;
    std::size_t sent_bytes_ = 0;
    Event arrived_, done_;
};

// Returns the arena size, in bytes, that a PowerSgd of this matrix rank needs beyond
// ddp_arena_bytes.
std::size_t power_sgd_arena_bytes(const Module& model, int matrix_rank);

// Returns the bytes that a rank passes to the all-reduces of a compressed step.
std::size_t power_sgd_bytes(const Parameters& parameters, const PowerSgdOptions& options);

// Makes `count` vectors of `length` numbers, stored one after the other, perpendicular to each
// other and of norm 1 (Gram and Schmidt, applied twice so that rounding errors do not add up). A
// vector that is a combination of earlier ones is replaced by a random one: otherwise that column
// would stay zero. Enqueues only.
void orthonormalise(float* vectors, int count, int length, Stream& stream);

}  // namespace ddp
