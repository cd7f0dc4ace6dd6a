#include "15_overlap/show/training_report.hpp"

#include <iostream>

#include "10_nodes/placement.hpp"
#include "11_data_parallel/replica.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {

TrainingReport::TrainingReport(bool prints, const std::filesystem::path& csv)
    : prints_(prints),
      csv_(prints ? csv : "",
           {"epoch", "step", "loss", "train_accuracy", "test_accuracy", "time_s"}) {}

void TrainingReport::add(int epoch, int steps, const Metrics::Totals& trained,
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

void TrainingReport::finish(const Rank& rank, const Parameters& parameters,
                            const AllReduceOrder& order, bool are_equal) const {
    const std::string hash = text_of_hash(hash_of(parameters));
    if (prints_)
        std::cout << "\n"
                  << (are_equal ? text_of_equal_replicas(rank.world_size(), hash)
                                : "Nothing was sent: each rank has trained a network of its own.")
                  << "\ntest accuracy " << format_fixed(test_accuracy_, 3) << "\n"
                  << order_line(rank.job(), order) << "\n";
}

void show_memory(const Device& device, const Parameters& parameters, const BucketPlan& plan) {
    std::size_t values = 0;
    for (const auto& parameter : parameters)
        values += parameter->value.bytes();
    const std::size_t buckets = plan.buckets.size();
    Table table("Memory of a rank", {"what", "bytes"});
    const auto row = [&](const std::string& what, std::size_t bytes) {
        table.row({what, format_bytes(static_cast<double>(bytes))});
    };
    row("parameters", values);
    row("gradients, in " + std::to_string(buckets) + (buckets == 1 ? " bucket" : " buckets"),
        plan.memory_bytes());
    row("optimizer (momentum)", values);
    row("all tensors, at most", device.memory().peak_bytes);
    table.note("Gradients are in the communicator's memory, everything else in the device's.");
    std::cout << table << "\n";
}

}  // namespace ddp
