#pragma once
// Tokens become rows of numbers: each token has a row of its own, which is learned, and each
// position adds a row that is not. (Vaswani et al., "Attention Is All You Need", 2017, 3.4 and 3.5;
// torch.nn.Embedding.)
#include "03_network/layer.hpp"
#include "20_transformer/layers/tokens.hpp"

namespace ddp {

class Embedding : public Module {
  public:
    // `weight` [vocabulary, width] may have other uses, too. `positions` [longest, width] is what
    // sinusoidal_positions returns.
    Embedding(std::string name, std::shared_ptr<Parameter> weight, Tensor positions);

    // Computes [sentences, length] -> [sentences * length, width]; the first column stands at
    // position `first` of its sentence. A token beyond the vocabulary becomes a row of NaN, and the
    // loss shows it. Throws std::invalid_argument if a sentence is longer than the table of
    // positions.
    Variable forward(Tape& tape, const Tokens& tokens, int first = 0);

    Parameters parameters() const override { return {weight}; }
    const Tensor& positions() const { return positions_; }

    const std::shared_ptr<Parameter> weight;

  private:
    const Tensor positions_;
};

// The way back: the scores of all tokens, x weight^T. Each is the dot product of a row of x with
// the token's row of the table.
class TokenScores : public Module {
  public:
    // `weight` [vocabulary, width] may have other uses, too.
    TokenScores(std::string name, std::shared_ptr<Parameter> weight)
        : Module(std::move(name)), weight(std::move(weight)) {}

    // Computes [rows, width] -> [rows, vocabulary].
    Variable forward(Variable x) override;
    Parameters parameters() const override { return {weight}; }

    const std::shared_ptr<Parameter> weight;
};

// Returns a table [longest, width]: column 2i of row p is sin(p / 10000^(2i / width)), column
// 2i + 1 is the cosine. Neighbouring columns are the two hands of a clock; each pair turns more
// slowly than the one before. Throws std::invalid_argument if the width is not even.
Tensor sinusoidal_positions(Device& device, int longest, int width);

}  // namespace ddp
