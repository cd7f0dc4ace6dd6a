#pragma once
// The five mistakes in numbers, which the programs themselves do not print.
#include "20_transformer/show/find_five.hpp"
#include "common/report/options.hpp"

namespace ddp {

// The evidence against a program, when the records of all ranks lie side by side.
struct FiveEvidence {
    int different_replicas = 0;  // hashes of the parameters that differ
    double drift = 0;            // FiveSeen's, of rank 1
    double same_order = 0;  // places of epoch 2 with the sentence that epoch 1 had there: a share
    int validated = 0,
        leaked = 0;  // sentences that rank 0 validates with; of them, some rank learned
    double logged_loss = 0, loss = 0;  // the printed one, and the mean of all ranks'
    double waiting = 0;                // the share of validation in which the other ranks only wait
};

// Lays the ranks' records side by side. All ranks call it together; the result is the same on all.
FiveEvidence evidence_of(Rank& rank, const FivePlan& plan, const FiveSeen& mine);

// Makes the sentences and the model that both programs learn: numbers in words.
FivePlan five_plan(World& world, bool quick);

// Runs both programs and prints what is seen of them.
void show_five_mistakes(World& world, const CommonOptions& common);

}  // namespace ddp
