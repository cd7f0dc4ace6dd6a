#pragma once
// A GPU loads a kernel for each shape of a product, and a transformer's batches have many shapes.
#include <vector>

#include "11_data_parallel/replica.hpp"
#include "20_transformer/transformer.hpp"
#include "20_transformer/words/token_batches.hpp"

namespace ddp {

// Computes a batch of each size that these pairs can make, of 1 to `most_sentences` sentences, and
// forgets it: then no rank loads kernels for a new length while another rank's bucket waits for it
// (FirstPass). Takes this rank's device.
void compute_every_size(Rank& rank, const std::vector<TokenPair>& pairs,
                        const TransformerOptions& options, int most_sentences);

}  // namespace ddp
