#pragma once
// A model as a row of blocks. A block computes with parameters of its own. The rest is the root's:
// what stands between the blocks, and a parameter that has two places.
//
//     Sequential     linear1 | linear2 | linear3                           no root
//     Transformer    encoder layer 0 | ... | decoder layer 0 | ...         root: embedding, the two
//                                                                          last norms
//
// That is all that sharding has to know of a model: which parameters a block has, and where in
// forward it ends. Where one ends, the next one begins.
#include <functional>
#include <string>
#include <vector>

#include "03_network/layers/sequential.hpp"
#include "20_transformer/transformer.hpp"

namespace ddp {

// Called in forward, behind each block, with the block's output. Forward goes on with what it
// returns.
using EndOfBlock = std::function<Variable(Variable output, const std::string& block)>;

struct Block {
    std::string name;
    Parameters parameters;
};

struct Blocks {
    Module& model;
    std::vector<Block> blocks;  // in the order of forward
    // Makes the model call this function from now on.
    std::function<void(EndOfBlock end)> observe;
};

// Makes a block of each layer that has parameters. `model` must outlive the result.
Blocks blocks_of(Sequential& model);
// Makes a block of each layer of the encoder and of the decoder.
Blocks blocks_of(Transformer& model);

// Everything in a model except its learned parameters. It belongs to none of the units.
class Rest : public Module {
  public:
    explicit Rest(const Module& model) : Module(model.name()), model_(model) {}

    Parameters parameters() const override;  // the frozen ones
    std::vector<NamedTensor> buffers() const override { return model_.buffers(); }
    // Returns the elements of both.
    std::size_t elements() const;

  private:
    const Module& model_;
};

}  // namespace ddp
