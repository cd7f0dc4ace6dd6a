#include "common/report/bench.hpp"

#include <stdexcept>
#include <utility>

namespace ddp {

Measurement timed(std::function<void()> work) {
    return [work = std::move(work)] {
        const Stopwatch stopwatch;
        work();
        return stopwatch.seconds();
    };
}

std::vector<std::vector<double>> interleave(std::span<const Measurement> variants, int warm_up,
                                            int rounds) {
    if (variants.empty() || warm_up < 0 || rounds < 1)
        throw std::invalid_argument(
            "Interleaving needs a variant, 0 or more warm-up rounds and 1 or more measured ones.");
    std::vector<std::vector<double>> samples(variants.size());
    for (int round = -warm_up; round < rounds; round++) {
        const std::size_t first = static_cast<std::size_t>(round + warm_up) % variants.size();
        for (std::size_t i = 0; i < variants.size(); i++) {
            const std::size_t variant = (first + i) % variants.size();
            const double sample = variants[variant]();
            if (round >= 0)
                samples[variant].push_back(sample);
        }
    }
    return samples;
}

}  // namespace ddp
