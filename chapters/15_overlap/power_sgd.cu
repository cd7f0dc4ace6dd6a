// One compressed step for a gradient M of rows x columns, with P of rows x r and Q of columns x r:
//
//          M                    P        Q^T                     on each rank       over the ranks
//    [ . . . . . . ]          [ . ]                       0    M = gradient + error
//    [ . . . . . . ]    ~     [ . ]  [ . . . . . . ]      1    Q = orthonormal(Q)
//    [ . . . . . . ]          [ . ]                       2    P = M Q             P: all-reduce
//    [ . . . . . . ]          [ . ]                       3    P = orthonormal(P)
//                                                         4    Q = M^T P           Q: all-reduce
//                                                         5    gradient = P Q^T
//                                                         6    error = M - P Q^T
//
// Steps 1 to 5 are `project`, 0 and 6 are in `compress`. The code stores P and Q transposed.
#include "15_overlap/power_sgd.hpp"

#include <algorithm>
#include <stdexcept>

#include "02_kernels/block_reduce.cuh"
#include "03_network/layers/matrix.hpp"
#include "15_overlap/splitmix64.cuh"
#include "common/gpu/gpu.hpp"

namespace ddp {

// ---- Kernels

namespace {

// Returns the i-th of a sequence of pseudo-random numbers from -1 to 1.
__device__ float random_at(std::uint64_t seed, std::uint64_t i) {
    return static_cast<float>(splitmix64(seed, i) >> 40) / 8388608.0f - 1.0f;
}

__global__ void fill_at_random(std::size_t n, std::uint64_t seed, float* values) {
    for (std::size_t i : grid_range(n))
        values[i] = random_at(seed, i);
}

// Returns the dot product of two vectors to every lane of one warp.
__device__ float dot(int length, const float* a, const float* b) {
    float sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < length; i += 32)
        sum += a[i] * b[i];
    return __shfl_sync(0xffffffffu, combine_warp<ReduceOp::sum>(sum), 0);
}

// Computes to += factor * from, with one warp.
__device__ void add_multiple(int length, float factor, const float* from, float* to) {
    for (int i = static_cast<int>(threadIdx.x); i < length; i += 32)
        to[i] += factor * from[i];
}

// Subtracts from vector k its components along the earlier vectors (Gram and Schmidt). Returns the
// norm of the rest.
__device__ float take_away_earlier(float* vectors, int k, int length) {
    float* vector = vectors + static_cast<std::ptrdiff_t>(k) * length;
    for (int round = 0; round < 2; round++)  // the second round takes away the first one's rounding
        for (int j = 0; j < k; j++) {
            const float* earlier = vectors + static_cast<std::ptrdiff_t>(j) * length;
            // earlier has the length 1, so the component along it is earlier (earlier . vector).
            add_multiple(length, -dot(length, earlier, vector), earlier, vector);
        }
    return sqrtf(dot(length, vector, vector));
}

// Runs in one warp, without barriers: each lane reads only elements that it has written itself.
__global__ void orthonormalise_vectors(float* vectors, int count, int length) {
    constexpr float nothing = 1e-6f;  // relative: a smaller rest is rounding error
    for (int k = 0; k < count; k++) {
        float* vector = vectors + static_cast<std::ptrdiff_t>(k) * length;
        const float before = sqrtf(dot(length, vector, vector));
        float left = take_away_earlier(vectors, k, length);
        // Nothing is left, or a NaN, with which every comparison is false: a random vector instead.
        if (!(left > nothing * before)) {
            for (int i = static_cast<int>(threadIdx.x); i < length; i += 32)
                vector[i] = random_at(static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(i));
            left = take_away_earlier(vectors, k, length);
        }
        for (int i = static_cast<int>(threadIdx.x); i < length; i += 32)
            vector[i] /= left;
    }
}

// Adds to the gradient what could not be sent before (step 0). Until something is sent, all of the
// sum counts as error.
__global__ void add_error(std::size_t n, float* gradient, float* error) {
    for (std::size_t i : grid_range(n)) {
        gradient[i] += error[i];
        error[i] = gradient[i];
    }
}

// Keeps what was not sent (step 6).
__global__ void subtract_sent(std::size_t n, const float* sent, float* error) {
    for (std::size_t i : grid_range(n))
        error[i] -= sent[i];
}

}  // namespace

void orthonormalise(float* vectors, int count, int length, Stream& stream) {
    launch(stream, {dim3(1), dim3(32)}, orthonormalise_vectors, vectors, count, length);
}

// ---- Which gradients are compressed

namespace {

// Returns the rank of the approximation: no more than the matrix itself can have.
int rank_of(const Shape& shape, int matrix_rank) {
    const int rows = shape.at(0), columns = static_cast<int>(element_count(shape)) / rows;
    return std::min({matrix_rank, rows, columns});
}

// Returns whether P and Q have so much fewer elements than the matrix that compression is worth it.
bool is_worth_it(const Shape& shape, int matrix_rank, double least_saving) {
    const auto all = static_cast<double>(element_count(shape));
    const double rows = shape.at(0), columns = all / rows;
    return shape.size() > 1 && (rows + columns) * rank_of(shape, matrix_rank) * least_saving < all;
}

// Elements of all P, of all Q, and of all gradients that are not compressed.
struct Sizes {
    std::size_t p = 0, q = 0, others = 0;
};

Sizes sizes_of(const Parameters& parameters, const PowerSgdOptions& options) {
    Sizes sizes;
    for (const auto& parameter : parameters) {
        const Shape& shape = parameter->value.shape();
        const std::size_t size = parameter->value.size();
        if (!is_worth_it(shape, options.matrix_rank, options.least_saving)) {
            sizes.others += size;
            continue;
        }
        const auto rows = static_cast<std::size_t>(shape[0]);
        const auto matrix_rank = static_cast<std::size_t>(rank_of(shape, options.matrix_rank));
        sizes.p += matrix_rank * rows;
        sizes.q += matrix_rank * (size / rows);
    }
    return sizes;
}

}  // namespace

std::size_t power_sgd_bytes(const Parameters& parameters, const PowerSgdOptions& options) {
    const Sizes sizes = sizes_of(parameters, options);
    return (sizes.p + sizes.q + sizes.others) * sizeof(float);
}

// ---- Made once

namespace {

const PowerSgdOptions& checked(const PowerSgdOptions& options) {
    if (options.matrix_rank < 1)
        throw std::invalid_argument("PowerSGD needs a rank of 1 or more, not " +
                                    std::to_string(options.matrix_rank));
    if (options.start_step < 2)
        throw std::invalid_argument(
            "PowerSGD can start at step 2, not " + std::to_string(options.start_step) +
            ": buckets are made anew after the first step, and errors are kept by place");
    return options;
}

}  // namespace

PowerSgd::PowerSgd(Communicator& communicator, const FlatBuffers& gradients,
                   const PowerSgdOptions& options)
    : communicator_(communicator),
      gradients_(gradients),
      options_(checked(options)),
      device_(gradients.plan().memory_bytes() + (1 << 16)),
      errors_(device_, {static_cast<int>(gradients.plan().memory_bytes() / sizeof(float))}) {
    const Sizes sizes = sizes_of(gradients.parameters(), options);
    p_ = communicator.allocate<float>(sizes.p);
    q_ = communicator.allocate<float>(sizes.q);
    others_ = communicator.allocate<float>(sizes.others);
    fill(errors_, 0.0f);
}

std::size_t power_sgd_arena_bytes(const Module& model, int matrix_rank) {
    std::size_t bytes = 4 * SharedArena::unit;
    for (const auto& parameter : model.parameters()) {
        const Shape& shape = parameter->value.shape();
        const auto rows = static_cast<std::size_t>(shape.at(0));
        const std::size_t thin = static_cast<std::size_t>(rank_of(shape, matrix_rank)) *
                                 (rows + parameter->value.size() / rows) * sizeof(float);
        bytes += std::max(thin, parameter->value.bytes());
    }
    return bytes;
}

// Gives P and Q of every matrix their places: those of one bucket side by side, so that a bucket
// takes one all-reduce for all of its P, one for all of its Q, and one for the other gradients.
void PowerSgd::place_factors() {
    float *p = p_.data(), *q = q_.data();
    for (const BucketPlan::Bucket& bucket : gradients_.plan().buckets) {
        BucketWork& work = work_.emplace_back();
        for (const std::size_t i : bucket.gradients) {
            const Tensor& value = gradients_.parameters()[i]->value;
            if (!is_worth_it(value.shape(), options_.matrix_rank, options_.least_saving)) {
                work.others.push_back(i);
                continue;
            }
            const int rows = value.dim(0), columns = static_cast<int>(value.size()) / rows;
            const int matrix_rank = rank_of(value.shape(), options_.matrix_rank);
            work.matrices.push_back({i, rows, columns, matrix_rank, p, q});
            p += std::ptrdiff_t{matrix_rank} * rows;
            q += std::ptrdiff_t{matrix_rank} * columns;
        }
    }
}

// ---- A step

// The first steps are plain averages: gradients change fast then, and the buckets are still
// rebuilt.
void PowerSgd::average(Tensor bucket, Stream& stream, const std::string& name) {
    std::size_t i = 0;  // which bucket is it?
    while (gradients_.bucket(i).data() != bucket.data())
        i++;
    if (step_ < options_.start_step) {
        average_bucket(communicator_, bucket, stream, name);
        sent_bytes_ += bucket.bytes();
    } else {
        if (work_.empty())
            place_factors();
        // It computes on a stream of its own, between two events of the communication stream.
        arrived_.record(stream);
        device_.stream().wait(arrived_);
        compress(work_.at(i), name);
        done_.record(device_.stream());
        stream.wait(done_);
    }
    if (i + 1 == gradients_.plan().buckets.size())
        step_++;
}

BucketHook PowerSgd::hook() {
    return [this](Communicator&, Tensor bucket, Stream& stream, const std::string& name) {
        average(bucket, stream, name);
    };
}

// Returns the gradient's place in errors_, the same as its place in the buckets.
float* PowerSgd::error_of(std::size_t gradient) const {
    return errors_.data() + (gradients_.view(gradient).data() - gradients_.bucket(0).data());
}

// Reduces one bucket: error feedback around the approximation of its matrices.
void PowerSgd::compress(const BucketWork& work, const std::string& name) {
    Stream& stream = device_.stream();
    const auto with_errors = [&](auto kernel) {
        for (const Factors& matrix : work.matrices) {
            const Tensor gradient = gradients_.view(matrix.gradient);
            launch(stream, grid_for(gradient.size()), kernel, gradient.size(), gradient.data(),
                   error_of(matrix.gradient));
        }
    };
    if (options_.feeds_errors_back)
        with_errors(add_error);
    if (!work.others.empty())
        average_others(work, name);
    if (!work.matrices.empty())
        project(work, name);
    if (options_.feeds_errors_back)
        with_errors(subtract_sent);
}

// Makes one step of the power iteration by which eigenvectors are found: P = M Q, Q = M^T P, where
// M is the mean of all ranks' matrices. No rank has this mean; but multiplication is linear, so the
// mean of the products is the product of the mean.
void PowerSgd::project(const BucketWork& work, const std::string& name) {
    Stream& stream = device_.stream();
    const auto matrix_of = [&](const Factors& matrix) {
        return Matrix{gradients_.view(matrix.gradient).data(), matrix.rows, matrix.columns};
    };
    const auto length = [&](int Factors::*vector) {
        std::size_t sum = 0;
        for (const Factors& matrix : work.matrices)
            sum += static_cast<std::size_t>(matrix.matrix_rank) *
                   static_cast<std::size_t>(matrix.*vector);
        return sum;
    };
    float *all_p = work.matrices[0].p, *all_q = work.matrices[0].q;
    // The last step's Q is a good start, since gradients change slowly; the first one is random.
    if (step_ == options_.start_step || !options_.has_warm_start)
        launch(stream, grid_for(length(&Factors::columns)), fill_at_random,
               length(&Factors::columns), options_.seed + static_cast<std::uint64_t>(step_), all_q);
    for (const Factors& m : work.matrices) {
        orthonormalise(m.q, m.matrix_rank, m.columns, stream);
        multiply_matrices(device_, {m.q, m.matrix_rank, m.columns}, transposed(matrix_of(m)), m.p);
    }
    // One all-reduce for the P of all matrices in the bucket: they are side by side.
    all_reduce(all_p, length(&Factors::rows), name + ", P");
    for (const Factors& m : work.matrices) {
        orthonormalise(m.p, m.matrix_rank, m.rows, stream);
        multiply_matrices(device_, {m.p, m.matrix_rank, m.rows}, matrix_of(m), m.q);
    }
    all_reduce(all_q, length(&Factors::columns), name + ", Q");
    // The bucket gets P Q^T, the same bits on every rank.
    for (const Factors& m : work.matrices)
        multiply_matrices(device_, transposed({m.p, m.matrix_rank, m.rows}),
                          {m.q, m.matrix_rank, m.columns}, gradients_.view(m.gradient).data());
}

// Packs the gradients that are not compressed, biases mostly, averages them, and unpacks them.
void PowerSgd::average_others(const BucketWork& work, const std::string& name) {
    Stream& stream = device_.stream();
    // Calls `action` with each gradient and its place in the packed array; returns the elements.
    const auto each = [&](const auto& action) {
        float* place = others_.data();
        for (const std::size_t i : work.others) {
            const Tensor gradient = gradients_.view(i);
            action(gradient, place);
            place += gradient.size();
        }
        return static_cast<std::size_t>(place - others_.data());
    };
    const auto copy = [&](float* to, const float* from, std::size_t bytes) {
        DDP_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
    };
    const std::size_t count = each([&](const Tensor& gradient, float* place) {
        copy(place, gradient.data(), gradient.bytes());
    });
    all_reduce(others_.data(), count, name + ", others");
    each([&](const Tensor& gradient, float* place) {
        copy(gradient.data(), place, gradient.bytes());
    });
}

void PowerSgd::all_reduce(float* data, std::size_t count, const std::string& name) {
    communicator_.all_reduce(data, data, count, ReduceOp::average, device_.stream(), name);
    sent_bytes_ += count * sizeof(float);
}

}  // namespace ddp
