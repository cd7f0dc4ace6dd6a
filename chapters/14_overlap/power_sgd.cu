#include "14_overlap/power_sgd.hpp"

#include <algorithm>
#include <stdexcept>

#include "02_kernels/block_reduce.cuh"
#include "03_network/layers/matrix.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {

// ---- Kernels

namespace {

// A number from -1 to 1 that has nothing to do with its neighbours' (splitmix64, by Vigna).
__device__ float random_at(std::uint64_t seed, std::uint64_t i) {
    std::uint64_t bits = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebull;
    return static_cast<float>((bits ^ (bits >> 31)) >> 40) / 8388608.0f - 1.0f;
}

__global__ void fill_at_random(std::size_t n, std::uint64_t seed, float* values) {
    for (std::size_t i : grid_range(n))
        values[i] = random_at(seed, i);
}

// For one warp: every lane gets the product.
__device__ float dot(int length, const float* a, const float* b) {
    float sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < length; i += 32)
        sum += a[i] * b[i];
    return __shfl_sync(0xffffffffu, combine_warp<ReduceOp::sum>(sum), 0);
}

// to += factor * from
__device__ void add_multiple(int length, float factor, const float* from, float* to) {
    for (int i = static_cast<int>(threadIdx.x); i < length; i += 32)
        to[i] += factor * from[i];
}

// Takes away from vector k what lies along those before it. Returns the length that is left.
__device__ float take_away_earlier(float* vectors, int k, int length) {
    float* vector = vectors + static_cast<std::ptrdiff_t>(k) * length;
    for (int round = 0; round < 2; round++)
        for (int j = 0; j < k; j++) {
            const float* earlier = vectors + static_cast<std::ptrdiff_t>(j) * length;
            add_multiple(length, -dot(length, earlier, vector), earlier, vector);
        }
    return sqrtf(dot(length, vector, vector));
}

// One warp: each lane reads again only what it has written itself.
__global__ void orthonormalise_vectors(float* vectors, int count, int length) {
    constexpr float nothing = 1e-6f;  // of what there was: roundings
    for (int k = 0; k < count; k++) {
        float* vector = vectors + static_cast<std::ptrdiff_t>(k) * length;
        const float before = sqrtf(dot(length, vector, vector));
        float left = take_away_earlier(vectors, k, length);
        if (!(left > nothing * before)) {
            for (int i = static_cast<int>(threadIdx.x); i < length; i += 32)
                vector[i] = random_at(static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(i));
            left = take_away_earlier(vectors, k, length);
        }
        for (int i = static_cast<int>(threadIdx.x); i < length; i += 32)
            vector[i] /= left;
    }
}

// What is to be sent: the gradient, and what could not be sent before. The error begins as all of
// it.
__global__ void add_error(std::size_t n, float* gradient, float* error) {
    for (std::size_t i : grid_range(n)) {
        gradient[i] += error[i];
        error[i] = gradient[i];
    }
}

__global__ void subtract_sent(std::size_t n, const float* sent, float* error) {
    for (std::size_t i : grid_range(n))
        error[i] -= sent[i];
}

}  // namespace

void orthonormalise(float* vectors, int count, int length, Stream& stream) {
    launch(stream, {dim3(1), dim3(32)}, orthonormalise_vectors, vectors, count, length);
}

// ---- What is compressed

namespace {

int rank_of(const Shape& shape, int matrix_rank) {
    const int rows = shape.at(0), columns = static_cast<int>(element_count(shape)) / rows;
    return std::min({matrix_rank, rows, columns});
}

bool is_worth_it(const Shape& shape, int matrix_rank, double least_saving) {
    const auto all = static_cast<double>(element_count(shape));
    const double rows = shape.at(0), columns = all / rows;
    return shape.size() > 1 && (rows + columns) * rank_of(shape, matrix_rank) * least_saving < all;
}

// Elements of P, Q and of what is not compressed, for all gradients together.
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

// Those of a bucket side by side: one all-reduce for all of its P, one for all of its Q, and one
// for the rest.
void PowerSgd::place_parts() {
    float *p = p_.data(), *q = q_.data();
    for (const BucketPlan::Bucket& bucket : gradients_.plan().buckets) {
        Part& part = parts_.emplace_back();
        for (const std::size_t i : bucket.gradients) {
            const Tensor& value = gradients_.parameters()[i]->value;
            if (!is_worth_it(value.shape(), options_.matrix_rank, options_.least_saving)) {
                part.others.push_back(i);
                continue;
            }
            const int rows = value.dim(0), columns = static_cast<int>(value.size()) / rows;
            const int matrix_rank = rank_of(value.shape(), options_.matrix_rank);
            part.matrices.push_back({i, rows, columns, matrix_rank, p, q});
            p += std::ptrdiff_t{matrix_rank} * rows;
            q += std::ptrdiff_t{matrix_rank} * columns;
        }
    }
}

// ---- A step

void PowerSgd::average(Tensor bucket, Stream& stream, const std::string& name) {
    std::size_t i = 0;
    while (gradients_.bucket(i).data() != bucket.data())
        i++;
    if (step_ < options_.start_step) {
        average_bucket(communicator_, bucket, stream, name);
        sent_bytes_ += bucket.bytes();
    } else {
        if (parts_.empty())
            place_parts();
        arrived_.record(stream);
        device_.stream().wait(arrived_);
        compress(parts_.at(i), name);
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

// The part of errors_ where the gradient lies in the buckets.
float* PowerSgd::error_of(std::size_t gradient) const {
    return errors_.data() + (gradients_.view(gradient).data() - gradients_.bucket(0).data());
}

void PowerSgd::compress(const Part& part, const std::string& name) {
    Stream& stream = device_.stream();
    const auto with_errors = [&](auto kernel) {
        for (const Factors& matrix : part.matrices) {
            const Tensor gradient = gradients_.view(matrix.gradient);
            launch(stream, grid_for(gradient.size()), kernel, gradient.size(), gradient.data(),
                   error_of(matrix.gradient));
        }
    };
    if (options_.feeds_errors_back)
        with_errors(add_error);
    if (!part.others.empty())
        average_others(part, name);
    if (!part.matrices.empty())
        project(part, name);
    if (options_.feeds_errors_back)
        with_errors(subtract_sent);
}

// One step of the power iteration by which eigenvectors are found: P = M Q, Q = M^T P, where M is
// the mean of all ranks' matrices. Nobody has it; but the mean of the products is the product of
// the mean.
void PowerSgd::project(const Part& part, const std::string& name) {
    Stream& stream = device_.stream();
    const auto matrix_of = [&](const Factors& matrix) {
        return Matrix{gradients_.view(matrix.gradient).data(), matrix.rows, matrix.columns};
    };
    const auto length = [&](int Factors::*vector) {
        std::size_t sum = 0;
        for (const Factors& matrix : part.matrices)
            sum += static_cast<std::size_t>(matrix.matrix_rank) *
                   static_cast<std::size_t>(matrix.*vector);
        return sum;
    };
    float *all_p = part.matrices[0].p, *all_q = part.matrices[0].q;
    if (step_ == options_.start_step || !options_.has_warm_start)
        launch(stream, grid_for(length(&Factors::columns)), fill_at_random,
               length(&Factors::columns), options_.seed + static_cast<std::uint64_t>(step_), all_q);
    for (const Factors& m : part.matrices) {
        orthonormalise(m.q, m.matrix_rank, m.columns, stream);
        multiply_matrices(device_, {m.q, m.matrix_rank, m.columns}, transposed(matrix_of(m)), m.p);
    }
    all_reduce(all_p, length(&Factors::rows), name + ", P");
    for (const Factors& m : part.matrices) {
        orthonormalise(m.p, m.matrix_rank, m.rows, stream);
        multiply_matrices(device_, {m.p, m.matrix_rank, m.rows}, matrix_of(m), m.q);
    }
    all_reduce(all_q, length(&Factors::columns), name + ", Q");
    for (const Factors& m : part.matrices)
        multiply_matrices(device_, transposed({m.p, m.matrix_rank, m.rows}),
                          {m.q, m.matrix_rank, m.columns}, gradients_.view(m.gradient).data());
}

void PowerSgd::average_others(const Part& part, const std::string& name) {
    Stream& stream = device_.stream();
    const auto each = [&](const auto& work) {
        float* place = others_.data();
        for (const std::size_t i : part.others) {
            const Tensor gradient = gradients_.view(i);
            work(gradient, place);
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
