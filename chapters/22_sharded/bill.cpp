// Where the bill of each stage comes from, for N ranks:
//
//     a unit       | weight .......... gap | bias .. gap |     size: what DDP keeps of it
//     padded       | chunk 0 | chunk 1 | ... | chunk N-1 |     N chunks of one length
//     kept whole   stage 0 the sizes, stage 1 the padded units, for parameters and for gradients
//     sharded      one chunk of each unit, and two slots as long as the largest padded unit
#include "22_sharded/bill.hpp"

#include <algorithm>

namespace ddp {

Bill bill_of(const Units& units, int stage, int ranks, std::size_t moments_each) {
    std::size_t exact = 0, sizes = 0, chunks = 0;
    for (const Unit& unit : units.units) {
        for (const auto& parameter : unit.parameters)
            exact += parameter->value.bytes();
        sizes += unit.size * sizeof(float);
        chunks += unit.chunk * sizeof(float);
    }
    const std::size_t whole = Slots(units, ranks, false).total() * sizeof(float);
    const std::size_t in_turns = Slots(units, ranks, true).total() * sizeof(float);
    if (stage == 0)
        return {.parameters = exact, .gradients = sizes, .moments = moments_each * exact};
    Bill bill{.parameters = whole, .gradients = whole, .moments = moments_each * chunks};
    if (stage >= 2) {
        bill.gradients = chunks;
        bill.buckets = in_turns;
    }
    if (stage >= 3) {
        bill.parameters = chunks;
        bill.gathered = in_turns;
    }
    return bill;
}

std::size_t mlp_activations(const std::vector<int>& widths, int batch) {
    std::size_t kept = 1, most = 0;  // 1: the loss of a sample
    for (std::size_t i = 1; i < widths.size(); i++) {
        const auto out = static_cast<std::size_t>(widths[i]);
        const auto in = i == 1 ? 0 : static_cast<std::size_t>(widths[i - 1]);
        kept += 2 * out;  // of the linear layer, and of the ReLU or the loss behind it
        most = std::max(most, out + std::max(out, in));
    }
    return (kept + most) * static_cast<std::size_t>(batch) * sizeof(float);
}

}  // namespace ddp
