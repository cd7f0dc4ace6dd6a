#include "14_overlap/show/epoch_report.hpp"

#include <iostream>

#include "10_data_parallel/replica.hpp"
#include "common/report/units.hpp"

namespace ddp {

EpochReport::EpochReport(bool prints, const std::filesystem::path& csv)
    : prints_(prints),
      csv_(prints ? csv : "",
           {"epoch", "step", "loss", "train_accuracy", "test_accuracy", "time_s"}) {}

void EpochReport::add(int epoch, int steps, const Metrics::Totals& trained,
                      const Metrics::Totals& tested) {
    const double seconds = watch_.seconds();
    test_accuracy_ = tested.accuracy();
    csv_.row({epoch, steps, trained.loss(), trained.accuracy(), tested.accuracy(), seconds});
    if (prints_)
        std::cout << "epoch " << epoch << "  loss " << format_fixed(trained.loss(), 4)
                  << "  train accuracy " << format_fixed(trained.accuracy(), 3)
                  << "  test accuracy " << format_fixed(tested.accuracy(), 3) << "  "
                  << format_seconds(seconds) << std::endl;
}

void EpochReport::finish(const Rank& rank, const Parameters& parameters) const {
    if (prints_)
        std::cout << text_of_equal_replicas(rank.world_size(), text_of_hash(hash_of(parameters)))
                  << "\ntest accuracy " << format_fixed(test_accuracy_, 3) << "\n\n";
}

}  // namespace ddp
