#include "10_nodes/show/order_report.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iostream>
#include <stdexcept>

#include "05_ranks/support/interfaces.hpp"
#include "10_nodes/communicator/nodes_communicator.hpp"
#include "10_nodes/traffic.hpp"
#include "common/report/bench.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// Returns numbers whose sums are rounded: their bits show the order of the additions.
std::vector<float> rounded_numbers(int rank, std::size_t count) {
    std::vector<float> numbers(count);
    for (std::size_t i = 0; i < count; i++)
        numbers[i] = static_cast<float>((i * 31 + static_cast<std::size_t>(rank) * 17) % 101) / 7;
    return numbers;
}

// Throws std::runtime_error if `averages` are not those of all ranks' numbers, but for rounding.
void require_averages(const std::vector<float>& averages, int ranks) {
    std::vector<double> sums(averages.size());
    for (int rank = 0; rank < ranks; rank++) {
        const std::vector<float> numbers = rounded_numbers(rank, averages.size());
        for (std::size_t i = 0; i < sums.size(); i++)
            sums[i] += numbers[i];
    }
    for (std::size_t i = 0; i < sums.size(); i++)
        if (std::abs(averages[i] - sums[i] / ranks) > 1e-4)  // of numbers up to 15
            throw std::runtime_error("element " + std::to_string(i) + " of the average is wrong");
}

// Returns a hash of the bits (FNV-1a) in hexadecimal digits.
std::string hash_of(const std::vector<float>& numbers) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const float number : numbers)
        hash = (hash ^ std::bit_cast<std::uint32_t>(number)) * 0x100000001b3;
    std::string digits;
    for (int shift = 60; shift >= 0; shift -= 4)
        digits += "0123456789abcdef"[hash >> shift & 15];
    return digits;
}

// One size, in the order of `communicator`.
class OrderSubject {
  public:
    OrderSubject(Communicator& communicator, std::size_t count)
        : communicator_(communicator),
          rank_(communicator.rank()),
          input_(communicator.allocate<float>(count)),
          output_(communicator.allocate<float>(count)) {
        input_.copy_from(rounded_numbers(rank_.rank(), count));
        rank_.barrier();
    }

    // Reduces once, and returns the bits. Throws if they are wrong, or not the same on all ranks.
    std::string bits() {
        all_reduce();
        const std::vector<float> averages = output_.to_host_now();
        if (rank_.rank() == 0)
            require_averages(averages, rank_.world_size());
        const std::vector<std::string> all = rank_.all_gather(hash_of(averages));
        if (std::ranges::count(all, all[0]) != rank_.world_size())
            throw std::runtime_error("the ranks have different bits");
        return all[0];
    }

    // Fills in the time, and what the interfaces say. Short arrays are reduced several times in a
    // row: the ranks do not begin at the same time, and a single one would be lost in that.
    void measure(OrderMeasurement& measurement, int rounds, bool has_network) {
        const int in_a_row = input_.size() * sizeof(float) <= 64 << 10 ? 8 : 1;
        const SentBytes before = sent_bytes();
        std::vector<double> seconds;
        for (int round = 0; round < rounds; round++) {
            rank_.barrier();
            const Stopwatch watch;
            for (int i = 0; i < in_a_row; i++)
                all_reduce();
            seconds.push_back(rank_.max_over_ranks(watch.seconds()) / in_a_row);
        }
        measurement.seconds = median(seconds);
        const Traffic traffic = max_between(before, sent_bytes());
        const double most = rank_.max_over_ranks(static_cast<double>(traffic.bytes));
        for (const std::string& interface :
             rank_.all_gather(static_cast<double>(traffic.bytes) == most ? traffic.interface : ""))
            if (measurement.interface.empty())
                measurement.interface = interface;
        if (has_network)
            measurement.measured_bytes = most / (rounds * in_a_row);
    }

  private:
    void all_reduce() {
        communicator_.all_reduce(input_.data(), output_.data(), input_.size(), ReduceOp::average,
                                 stream_, "numbers");
        communicator_.synchronize(stream_);
    }

    Communicator& communicator_;
    Rank& rank_;
    ArenaBuffer<float> input_, output_;
    Stream stream_;
};

}  // namespace

std::vector<OrderMeasurement> measure_orders(Rank& rank, const std::vector<std::size_t>& sizes,
                                             const std::optional<NodeShape>& shape, int rounds) {
    const bool has_network = rank.job().has_several_nodes();
    const Group group = Group::all(rank.job());
    const Placement placement = placement_of(group, rank.job(), rank.rank(), shape);
    const std::size_t arena_bytes = 2 * (std::ranges::max(sizes) + SharedArena::unit);
    std::vector<OrderMeasurement> all;
    for (const int levels : {1, 2}) {
        const auto communicator = make_nodes_communicator(
            rank, arena_bytes, has_network ? make_socket_transport(rank) : nullptr,
            {.group = group, .order = AllReduceOrder{levels, shape}});
        for (const std::size_t bytes : sizes) {
            OrderSubject subject(*communicator, bytes / sizeof(float));
            OrderMeasurement& added = all.emplace_back();
            added.bytes = bytes;
            added.levels = uses_two_levels(placement, levels) ? 2 : 1;
            added.expected_bytes = bytes_leaving_node(placement, levels, bytes);
            added.bits = subject.bits();
            subject.measure(added, rounds, has_network);
        }
    }
    std::ranges::stable_sort(all, {}, &OrderMeasurement::bytes);
    return all;
}

std::vector<std::string> order_columns() {
    return {"levels",    "bytes",  "bits", "expected_bytes_leaving_node", "bytes_leaving_node",
            "interface", "seconds"};
}

void report_orders(const std::string& nodes, const std::vector<OrderMeasurement>& measurements,
                   CsvWriter& file) {
    Table table("One ring against two levels, on " + nodes,
                {"array", "order", "bits", "leaves a node", "measured", "time"});
    std::string interface;
    for (const OrderMeasurement& each : measurements) {
        const bool is_measured = each.measured_bytes >= 0;
        table.row({format_bytes(static_cast<double>(each.bytes)),
                   each.levels == 1 ? "one ring" : "two levels", each.bits,
                   format_bytes(each.expected_bytes),
                   is_measured ? format_bytes(each.measured_bytes) : "-",
                   format_seconds(each.seconds)});
        file.row({each.levels, each.bytes, each.bits, each.expected_bytes,
                  is_measured ? CsvCell(each.measured_bytes) : CsvCell(""), each.interface,
                  each.seconds});
        if (is_measured)
            interface = each.interface;
    }
    table.note(interface.empty()
                   ? "The nodes are simulated: nothing crosses a network. Between real nodes the "
                     "column \"measured\" has what an interface has sent."
                   : "measured: what " + interface + " of the node that sent most has sent.");
    std::cout << table;
}

}  // namespace ddp
