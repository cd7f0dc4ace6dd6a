// Four ranks, and the samples of an epoch:
//
//     mistake                         what the ranks learn from              what shows it
//     no sampler                      all ranks take the same batches        the time only
//     each rank shuffles for itself   a third of the samples is never seen   nothing
//     no set_epoch                    every epoch has the same batches       nothing
//     next(iter(loader)) each time    every update has the same batch        nothing
//
// Each of them is a line that looks right, and none of them throws.
#include "12_sampler/mistakes.hpp"

#include <algorithm>

namespace ddp {

std::string to_string(Division division) {
    switch (division) {
        case Division::sampler:
            return "the sampler";
        case Division::forgotten:
            return "no sampler";
        default:
            return "each rank shuffles for itself";
    }
}

std::vector<int> divided(Division division, int samples, int rank, int world_size,
                         std::uint64_t seed) {
    switch (division) {
        case Division::sampler:
            return DistributedSampler(samples, rank, world_size, {.seed = seed}).indices();
        case Division::forgotten:  // the order of one rank, on every rank
            return random_permutation(samples, seed);
        default:  // dealt out correctly, but each rank deals from an order of its own
            return DistributedSampler(samples, rank, world_size,
                                      {.seed = seed + static_cast<std::uint64_t>(rank)})
                .indices();
    }
}

Coverage coverage_of(Division division, int samples, int batch, int world_size,
                     std::uint64_t seed) {
    std::vector<int> times(static_cast<std::size_t>(samples));
    Coverage coverage;
    // Count, over all ranks, how often each sample is taken.
    for (int rank = 0; rank < world_size; rank++) {
        const std::vector<int> indices = divided(division, samples, rank, world_size, seed);
        coverage.steps = (static_cast<int>(indices.size()) + batch - 1) / batch;
        for (int i : indices)
            times[static_cast<std::size_t>(i)]++;
    }
    coverage.missed = static_cast<int>(std::ranges::count(times, 0));
    coverage.seen = samples - coverage.missed;
    coverage.twice =
        static_cast<int>(std::ranges::count_if(times, [](int seen) { return seen > 1; }));
    return coverage;
}

// ---- Updates are counted, and not epochs

std::vector<std::vector<int>> batches_of(Counting counting, int samples, int ranks, int batch,
                                         int updates, std::uint64_t seed) {
    DistributedSampler sampler(samples, 0, ranks, {.seed = seed});
    std::vector<int> indices;  // of the iterator that is in use
    std::size_t position = 0;  // of its next sample
    int iterators = 0;         // that were made before
    // Makes an iterator: it begins an epoch.
    const auto start = [&] {
        if (counting == Counting::restarted_with_set)
            sampler.set_epoch(iterators);
        indices = sampler.indices();
        position = 0;
        iterators++;
    };
    start();
    std::vector<std::vector<int>> batches;
    for (int update = 0; update < updates; update++) {
        // Restart where the program does: never, before each update, or at the end of an epoch.
        const bool has_run_out = position == indices.size();
        if (has_run_out && counting == Counting::one_iterator)
            return batches;
        if (has_run_out || counting == Counting::new_iterators)
            start();
        // Take the next batch.
        const std::size_t end =
            std::min(indices.size(), position + static_cast<std::size_t>(batch));
        batches.emplace_back(indices.begin() + static_cast<std::ptrdiff_t>(position),
                             indices.begin() + static_cast<std::ptrdiff_t>(end));
        position = end;
    }
    return batches;
}

}  // namespace ddp
