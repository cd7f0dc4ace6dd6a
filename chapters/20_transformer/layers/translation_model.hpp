#pragma once
// The interface that training and search need of a model that translates: Transformer is one, and
// DecoderOnlyTransformer another.
#include <functional>
#include <vector>

#include "03_network/layer.hpp"
#include "20_transformer/layers/tokens.hpp"

namespace ddp {

struct TransformerOptions;

// Takes the last token of each row and returns the scores of the tokens to come next
// [rows, vocabulary], in the host's memory. New row j goes on with old row from_row[j]. In the
// first call the old rows are the sentences, and the last tokens begin_token.
using NextScores = std::function<std::vector<float>(const std::vector<int>& last,
                                                    const std::vector<int>& from_row)>;

class TranslationModel : public Module {
  public:
    using Module::Module;

    // Computes the scores of every token to come next, a row for each token of `target`, from the
    // batch that batch_for makes for this model.
    virtual Variable forward(Tape& tape, const Tokens& source, const Tokens& target) = 0;

    // Begins to translate the sources [sentences, length], padded. The model must outlive the
    // result and be in evaluation: throws std::logic_error otherwise.
    virtual NextScores begin_decoding(const Tokens& sources) = 0;

    virtual const TransformerOptions& options() const = 0;
};

}  // namespace ddp
