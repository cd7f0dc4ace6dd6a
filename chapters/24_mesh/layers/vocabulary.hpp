#pragma once
// The two ends of a language model, cut by the vocabulary: each part has some tokens' rows of the
// table, and the scores of the same tokens. No rank ever has all the scores of a row.
#include "20_transformer/layers/tokens.hpp"
#include "24_mesh/layers/parallel_linear.hpp"

namespace ddp {

class VocabularyParallelEmbedding {
  public:
    // Draws the whole table [vocabulary, width], and keeps this rank's rows of it.
    VocabularyParallelEmbedding(TensorParallel& parallel, const std::string& name, Device& device,
                                int vocabulary, int width, Random& random);

    // Computes [sentences, length] -> [sentences * length, width]. A part without the token's row
    // gives zeros to the sum.
    Variable forward(Tape& tape, const Tokens& tokens);
    void append_to(Parameters& parameters) const;

  private:
    TensorParallel& parallel_;
    const std::string name_;
    Parameters parts_;
};

// Returns the mean cross entropy of scores that are cut by the vocabulary, each part [rows,
// vocabulary / parts], and of `target` [rows]; one element. Three numbers a row cross the ranks:
// the largest score, the sum of the exponentials, and the target's score.
Variable vocabulary_parallel_loss(TensorParallel& parallel, const PartVariables& scores,
                                  const Labels& target);

}  // namespace ddp
