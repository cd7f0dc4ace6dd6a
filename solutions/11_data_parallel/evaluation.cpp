// The exercise evaluation: scores over the samples of all ranks. Read
// exercises/11_data_parallel/README.md first.
#include "exercises/11_data_parallel/evaluation.hpp"

namespace ddp {
namespace {

// stub
//: Helpers of several tasks go here.
Spread merged(const Spread& a, const Spread& b) {
    if (b.count == 0)
        return a;
    const auto count_a = static_cast<double>(a.count), count_b = static_cast<double>(b.count);
    const double count = count_a + count_b, delta = b.mean - a.mean;
    return {a.count + b.count, a.mean + delta * count_b / count,
            a.squares + b.squares + delta * delta * count_a * count_b / count};
}
// end stub

}  // namespace

Confusion confusion_of_all(Rank& rank, const Confusion& mine) {
    // stub: confusion
    //: rank.all_gather() of a string brings every rank's bytes to every rank.
    const std::size_t bytes = mine.counts.size() * sizeof(std::int64_t);
    Confusion all{mine.classes, std::vector<std::int64_t>(mine.counts.size())};
    for (const std::string& each :
         rank.all_gather({reinterpret_cast<const char*>(mine.counts.data()), bytes})) {
        std::vector<std::int64_t> theirs(all.counts.size());
        std::memcpy(theirs.data(), each.data(), bytes);
        for (std::size_t i = 0; i < theirs.size(); i++)
            all.counts[i] += theirs[i];
    }
    return all;
    // end stub
}

Scores scores_of(const Confusion& confusion) {
    // stub: scores
    //: Row t has the samples of class t; correct predictions are on the diagonal.
    const auto classes = static_cast<std::size_t>(confusion.classes);
    double samples = 0, correct = 0, recalls = 0;
    int classes_seen = 0;
    for (std::size_t t = 0; t < classes; t++) {
        double of_class = 0;
        for (std::size_t p = 0; p < classes; p++)
            of_class += static_cast<double>(confusion.counts[t * classes + p]);
        if (of_class == 0)
            continue;
        const auto right = static_cast<double>(confusion.counts[t * classes + t]);
        samples += of_class;
        correct += right;
        recalls += right / of_class;
        classes_seen++;
    }
    return classes_seen == 0 ? Scores{} : Scores{correct / samples, recalls / classes_seen};
    // end stub
}

Spread spread_of_all(Rank& rank, const Spread& mine) {
    // stub: spread
    //: Begin with two ranks: what are the mean and the squares of both together?
    Spread all;
    for (const Spread& theirs : rank.all_gather(mine))
        all = merged(all, theirs);
    return all;
    // end stub
}

}  // namespace ddp
