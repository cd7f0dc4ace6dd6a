#include "14_overlap/show/memory_report.hpp"

#include <iostream>

#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {

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
    table.note("Gradients lie in the communicator's memory, all else in the device's.");
    std::cout << table << "\n";
}

}  // namespace ddp
