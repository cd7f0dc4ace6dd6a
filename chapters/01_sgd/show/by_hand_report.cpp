#include "01_sgd/show/reports.hpp"

#include <iostream>

#include "common/report/bench.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// Writes the time line of the early read: what host and stream did, in seconds since the launch.
void write_time_line(const std::filesystem::path& csv, const EarlyRead& read) {
    CsvWriter file(csv, {"lane", "what", "begin_s", "end_s", "w1"});
    file.row({"host", "launch", 0.0, read.enqueued_s, read.too_early});
    file.row({"host", "wait", read.enqueued_s, read.done_s, read.after_waiting});
    file.row({"stream", "kernel and copy", 0.0, read.done_s, read.after_waiting});
}

}  // namespace

void show_by_hand(Device& device, const std::vector<House>& houses, const HouseData& data,
                  int epochs, double learning_rate, const std::filesystem::path& csv) {
    const auto rate = static_cast<float>(learning_rate);
    const auto steps = static_cast<std::int64_t>(epochs) * data.count;
    Table table(format_count(steps) + " steps by hand", {"", "w1", "w2", "b", "time"});
    const auto row = [&](const std::string& version, auto descend) {
        const Stopwatch watch;
        const LinearModel model = descend();
        const double seconds = watch.seconds();
        table.row({version, format_fixed(model.w1, 4), format_fixed(model.w2, 4),
                   format_fixed(model.b, 4), format_seconds(seconds)});
    };
    row("a loop on the host", [&] { return descend_on_host(houses, epochs, rate); });
    row("a launch for each step", [&] { return descend_by_launches(device, data, epochs, rate); });
    std::cout << table << "\n";

    const EarlyRead read = read_too_early(device, data, epochs, rate);
    Table early("One launch for all steps, and w1 as the host sees it", {"", "after", "w1"});
    early.row({"read at once", format_seconds(read.enqueued_s), format_fixed(read.too_early, 4)});
    early.row({"read when the stream is done", format_seconds(read.done_s),
               format_fixed(read.after_waiting, 4)});
    early.note("A launch puts work into the stream. It does not wait until the work is done.");
    std::cout << early << "\n";
    write_time_line(beside(csv, "stream"), read);
}

void write_houses(const std::filesystem::path& csv, const std::vector<House>& houses) {
    if (csv.empty())
        return;
    CsvWriter file(beside(csv, "houses"), {"bedrooms", "bathrooms", "price"});
    for (const House& house : houses)
        file.row({house.bedrooms, house.bathrooms, house.price});
}

}  // namespace ddp
