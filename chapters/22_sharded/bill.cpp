// Where the bill of each stage comes from, for N ranks:
//
//     a unit       | weight .......... gap | bias .. gap |     size: what DDP keeps of it
//     padded       | chunk 0 | chunk 1 | ... | chunk N-1 |     N chunks of one length
//     kept whole   stage 0 the sizes, stage 1 the padded units, for parameters and for gradients
//     sharded      one chunk of each unit, and two slots as long as the largest padded unit
#include "22_sharded/bill.hpp"

#include <algorithm>

#include "06_messages/peers.hpp"
#include "15_overlap/ddp.hpp"

namespace ddp {

std::size_t arena_bytes_of(const Blocks& blocks, int stage, int ranks,
                           const ShardOptions& options) {
    return stage == 0 ? ddp_arena_bytes(blocks.model)
                      : ShardedDataParallel::arena_bytes(blocks, ranks, stage, options);
}

// Adds up the units, as they are and as they are cut; each stage has some of these sums.
Bill bill_of(const Blocks& blocks, int stage, int ranks, std::size_t moments_each,
             const ShardOptions& options) {
    const Units layout = units_of(blocks, ranks);
    std::size_t exact = 0, sizes = 0, chunks = 0;
    for (const Unit& unit : layout.units) {
        for (const auto& parameter : unit.parameters)
            exact += parameter->value.bytes();
        sizes += unit.size * sizeof(float);
        chunks += unit.chunk * sizeof(float);
    }
    const auto slots = [&](bool in_turns) {
        return Slots(layout, ranks, in_turns).total() * sizeof(float);
    };
    Bill bill{
        .parameters = slots(false), .gradients = slots(false), .moments = moments_each * chunks};
    if (stage == 0)
        bill = {.parameters = exact, .gradients = sizes, .moments = moments_each * exact};
    if (stage >= 2) {  // the gradients, too
        bill.gradients = chunks;
        bill.buckets = slots(!options.keep_gradients);
    }
    if (stage >= 3) {  // and the parameters
        bill.parameters = chunks;
        bill.gathered = slots(options.reshard_after_forward) +
                        (options.bfloat16 ? ShortGather::bytes(layout, ranks) : 0);
    }
    // All but moments and activations lies in the arena; DDP's parameters do not, either.
    const std::size_t of_the_arena =
        (stage == 0 ? 0 : bill.parameters) + bill.gathered + bill.gradients + bill.buckets;
    bill.communicator =
        Peers::own_bytes + arena_bytes_of(blocks, stage, ranks, options) - of_the_arena;
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
