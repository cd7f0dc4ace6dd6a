// The exercise merge_statistics: means and variances, merged and taken apart. Read
// exercises/18_sync_batch_norm/README.md first.
#include "exercises/18_sync_batch_norm/merge_statistics.hpp"

#include <algorithm>

namespace ddp {

void add(Statistics& statistics, double value) {
    // stub: add
    //: How far is the value from the old mean, and from the new one?
    const double from_old = value - statistics.mean;
    statistics.count++;
    statistics.mean += from_old / statistics.count;
    statistics.m2 += from_old * (value - statistics.mean);
    // end stub
}

Statistics merged(const Statistics& a, const Statistics& b) {
    // stub: merge
    //: The distances within each set, and the distance between their means.
    const double count = a.count + b.count;
    const double distance = b.mean - a.mean;
    return {count, a.mean + distance * b.count / count,
            a.m2 + b.m2 + distance * distance * a.count * b.count / count};
    // end stub
}

Statistics without(const Statistics& all, const Statistics& part) {
    // stub: without
    //: Which statistics, merged with those of `part`, give those of all?
    const double count = all.count - part.count;
    const double mean = all.mean - (part.mean - all.mean) * part.count / count;
    const double distance = part.mean - mean;
    const double m2 = all.m2 - part.m2 - distance * distance * part.count * count / all.count;
    return {count, mean, std::max(0.0, m2)};  // roundings must not make a variance negative
    // end stub
}

}  // namespace ddp
