#include "common/data/random.hpp"

#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace ddp {
namespace {

std::mt19937 seeded(std::uint64_t seed) {
    std::seed_seq words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
    return std::mt19937(words);
}

}  // namespace

Random::Random(std::uint64_t seed) : engine_(seeded(seed)) {}

std::size_t Random::below(std::size_t n) {
    return static_cast<std::size_t>((std::uint64_t{engine_()} * n) >> 32);
}

float Random::uniform(float low, float high) {
    const float fraction = static_cast<float>(engine_() >> 8) * 0x1p-24f;  // exact: 24 bits
    return low + (high - low) * fraction;
}

float Random::normal() {
    std::int64_t sum = 0;  // of twelve numbers below 2^32, each of variance 2^64 / 12
    for (int i = 0; i < 12; i++)
        sum += static_cast<std::int64_t>(engine_());
    return static_cast<float>(sum - 6 * (std::int64_t{1} << 32)) * 0x1p-32f;
}

std::string Random::state() const {
    std::ostringstream text;
    text << engine_;
    return text.str();
}

void Random::set_state(const std::string& state) {
    std::istringstream text(state);
    std::mt19937 engine;
    // In GNU's library the text ends with the number of words already used, which >> does not
    // check.
    const std::size_t last = state.find_last_of(' ');
    const int used = last == std::string::npos ? -1 : std::atoi(state.c_str() + last);
    const bool ends_well = used >= 0 && used <= int{std::mt19937::state_size};
    if (!ends_well || !(text >> engine) || !text.eof())
        throw std::invalid_argument("this text is not the state of a random generator");
    engine_ = engine;
}

}  // namespace ddp
