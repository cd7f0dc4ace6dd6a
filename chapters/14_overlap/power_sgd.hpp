#pragma once
// PowerSGD: a bucket hook that sends, instead of each matrix of gradients, two thin ones whose
// product is near it. (Vogels, Karimireddy and Jaggi, "PowerSGD", NeurIPS 2019, algorithms 1 and 2;
// torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py.)
//
//     PowerSgd power_sgd(*communicator, ddp.gradients(), {.matrix_rank = 2});
//     ddp.set_bucket_hook(power_sgd.hook());
#include "14_overlap/ddp.hpp"

namespace ddp {

struct PowerSgdOptions {
    int matrix_rank = 1;      // columns of the thin matrices
    int start_step = 10;      // the steps before are averaged as they are
    double least_saving = 2;  // a matrix is compressed if it has more than so many times as many
                              // elements as the two (PyTorch's min_compression_rate)
    bool feeds_errors_back = true;  // what was not sent is added to the next step's gradient
    bool has_warm_start = true;     // a step begins with the last one's Q, not with a random one
    std::uint64_t seed = 0;         // of the first Q, the same on all ranks
};

class PowerSgd {
  public:
    // For a DistributedDataParallel with these gradients, which must live longer, as must the
    // communicator, of which it takes memory (power_sgd_arena_bytes). All ranks make theirs before
    // any of them trains. Throws std::invalid_argument
    // for a rank below 1, or a start before step 2: until then buckets are not as they stay.
    PowerSgd(Communicator& communicator, const FlatBuffers& gradients,
             const PowerSgdOptions& options = {});

    // Is to be called for every bucket of every step, in order.
    void average(Tensor bucket, Stream& stream, const std::string& name);
    BucketHook hook();

    // What a rank has given to all-reduces since it was made.
    std::size_t sent_bytes() const { return sent_bytes_; }
    // What this rank's gradients had, and the averages so far have not: as the buckets lie.
    const Tensor& errors() const { return errors_; }

  private:
    // A gradient that is a matrix [rows, columns] (whatever lies behind the first dimension counts
    // as columns), and the places of its thin ones. These lie transposed: a vector for each of the
    // `matrix_rank` columns.
    struct Factors {
        std::size_t gradient;
        int rows, columns, matrix_rank;
        float* p;  // [matrix_rank, rows]
        float* q;  // [matrix_rank, columns]
    };
    // What there is to do for a bucket.
    struct Part {
        std::vector<Factors> matrices;
        std::vector<std::size_t> others;  // gradients that are sent as they are
    };

    void place_parts();
    void compress(const Part& part, const std::string& name);
    void project(const Part& part, const std::string& name);
    void average_others(const Part& part, const std::string& name);
    void all_reduce(float* data, std::size_t count, const std::string& name);
    float* error_of(std::size_t gradient) const;

    Communicator& communicator_;
    const FlatBuffers& gradients_;
    const PowerSgdOptions options_;
    Device device_;  // a stream of its own to compute in
    Tensor errors_;
    ArenaBuffer<float> p_, q_, others_;
    std::vector<Part> parts_;  // by bucket
    int step_ = 0;
    std::size_t sent_bytes_ = 0;
    Event arrived_, done_;
};

// What make_communicator must be given for one of that rank, beyond ddp_arena_bytes.
std::size_t power_sgd_arena_bytes(const Module& model, int matrix_rank);

// What a rank gives to the all-reduces of a compressed step.
std::size_t power_sgd_bytes(const Parameters& parameters, const PowerSgdOptions& options);

// Makes `count` vectors of `length` numbers, one behind the other, perpendicular to each other and
// of length 1 (Gram and Schmidt, twice, so that roundings do not add up). A vector that the earlier
// ones leave nothing of becomes one at random, so that no column is lost for ever. Enqueues only.
void orthonormalise(float* vectors, int count, int length, Stream& stream);

}  // namespace ddp
