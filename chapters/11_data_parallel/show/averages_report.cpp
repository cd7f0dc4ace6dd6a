#include "11_data_parallel/show/small_numbers.hpp"

#include <iostream>

#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// A row of the table: the numbers that one rank has found.
struct AveragesRow {
    int samples, correct;
    double own, all_reduced, reduced, mean_of_means;  // accuracies
    std::size_t gathered;                             // predictions
};

}  // namespace

Score shown_score(int rank) {
    const double seen = 10 * (rank + 1);
    return {seen - 5, seen};
}

void show_averages(Communicator& communicator, Stream& stream) {
    Rank& rank = communicator.rank();
    const int r = rank.rank();
    const Score mine = shown_score(r);
    const int samples = static_cast<int>(mine.samples), correct = static_cast<int>(mine.correct);
    AveragesRow row{samples, correct, mine.accuracy(), 0, 0, 0, 0};
    row.all_reduced = all_reduce_score(communicator, stream, mine).accuracy();
    row.reduced = reduce_score(communicator, stream, mine).accuracy();
    row.mean_of_means = mean_of_accuracies(communicator, stream, mine);
    const std::vector<int> predictions(static_cast<std::size_t>(samples), r);
    for (const std::vector<int>& each : gather_predictions(communicator, stream, predictions))
        row.gathered += each.size();
    const std::vector<AveragesRow> rows = rank.all_gather(row);
    if (r != 0)
        return;
    Table table("The accuracy of a test in which ranks have seen different numbers of samples",
                {"rank", "seen", "correct", "its own", "all_reduce", "reduce", "mean of means",
                 "all_gather"});
    int number = 0;
    for (const AveragesRow& each : rows)
        table.row({std::to_string(number++), std::to_string(each.samples),
                   std::to_string(each.correct), format_fixed(each.own, 3),
                   format_fixed(each.all_reduced, 3), format_fixed(each.reduced, 3),
                   format_fixed(each.mean_of_means, 3), std::to_string(each.gathered)});
    table.note(
        "all_reduce and reduce sum up correct and seen over the ranks and divide last. Only rank 0 "
        "receives the result of reduce. all_gather is a count: each rank then has all predictions, "
        "for any metric.");
    std::cout << table << "\n";
}

}  // namespace ddp
