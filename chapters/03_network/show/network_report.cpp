#include "03_network/show/network_report.hpp"

#include <iostream>

#include "common/data/fashion_mnist.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr int max_columns = 20;  // of a table that a window can show

std::string max_confused_in_words(const Confusion& confusion) {
    const auto [a, b, mistakes] = confusion.max_confused();
    if (mistakes == 0)
        return "No sample was taken for one of another class.";
    return "Most often confused: " + class_name(a, confusion.classes) + " and " +
           class_name(b, confusion.classes) + ", " + format_count(mistakes) + " of their " +
           format_count(confusion.samples(a) + confusion.samples(b)) + " samples.";
}

// Returns the seconds, over all steps, of the parts for which counts(name) is true.
template <class Counts>
double seconds_of(const StepTimes& times, Counts counts) {
    double seconds = 0;
    for (const StepTimes::Part& part : times.parts())
        seconds += counts(part.name) ? part.seconds : 0;
    return seconds;
}

std::string shares_in_words(const StepTimes& times) {
    const auto begins = [](const char* with) {
        return [=](const std::string& name) { return name.starts_with(with); };
    };
    const double forward = seconds_of(times, begins("forward "));
    const double backward = seconds_of(times, begins("backward "));
    const double products = seconds_of(times, [](const std::string& name) {
        return name.find(" linear") != std::string::npos || name.find(" conv") != std::string::npos;
    });
    return "Backward takes " + format_fixed(backward / forward, 1) +
           " times as long as forward; parts with products of matrices, linear and conv, take " +
           format_percent(products / times.total()) + " of the step.";
}

}  // namespace

void show_size(const std::string& network, const Parameters& parameters) {
    std::int64_t count = 0;
    for (const auto& parameter : parameters)
        count += static_cast<std::int64_t>(parameter->value.size());
    std::cout << "The " << network << " has " << format_count(count) << " parameters.\n";
}

void show_times(const StepTimes& times, const Device& device, const std::filesystem::path& csv) {
    const double total = times.total();
    Table table("Where a step's time goes", {"part", "time", "share"});
    CsvWriter file(csv, {"part", "seconds", "share"});
    for (const StepTimes::Part& part : times.parts()) {
        const double seconds = part.seconds / times.steps();
        table.row({part.name, format_seconds(seconds), format_percent(part.seconds / total)});
        file.row({part.name, seconds, part.seconds / total});
    }
    table.row({"a step", format_seconds(total / times.steps()), format_percent(1)});
    table.note("Means of " + format_count(times.steps()) + " steps, on the device's clock.");
    table.note(shares_in_words(times));
    table.note("Memory: " + format_bytes(device.memory().peak_bytes) + " at most, allocated in " +
               format_count(device.memory().allocations) + " pieces.");
    std::cout << table << "\n";
}

std::string class_name(int number, int classes) {
    if (classes == static_cast<int>(fashion_mnist_classes.size()))
        return std::string(fashion_mnist_classes[static_cast<std::size_t>(number)]);
    return "class " + std::to_string(number);
}

void show_confusion(const Confusion& confusion, const std::filesystem::path& csv) {
    const auto name = [&](int number) { return class_name(number, confusion.classes); };
    CsvWriter file(csv, {"shows", "says", "pictures"});
    std::vector<std::string> header{"samples of"};
    for (int predicted = 0; predicted < confusion.classes; predicted++)
        header.push_back(std::to_string(predicted));
    header.push_back("right");
    Table table("What the test samples were taken for", header);
    for (int actual = 0; actual < confusion.classes; actual++) {
        std::vector<std::string> cells{name(actual) + " (" + std::to_string(actual) + ")"};
        for (int predicted = 0; predicted < confusion.classes; predicted++) {
            cells.push_back(std::to_string(confusion.count(actual, predicted)));
            file.row({name(actual), name(predicted), confusion.count(actual, predicted)});
        }
        const double samples = confusion.samples(actual);
        cells.push_back(samples == 0 ? "n/a"
                                     : format_percent(confusion.count(actual, actual) / samples));
        table.row(cells);
    }
    table.note("A row for each class, and a column for each class that the network answered.");
    table.note(max_confused_in_words(confusion));
    if (confusion.classes <= max_columns)
        std::cout << table << "\n";
    else
        std::cout << max_confused_in_words(confusion) << "\n\n";
}

void show_loader(const LoaderTimes& times) {
    Table table("What pinned memory and prefetching gain",
                {"", "the host goes on after", "done after"});
    const std::string copy = "a copy of " + format_bytes(static_cast<double>(times.copy_bytes));
    const auto add_copy = [&](const std::string& from, const CopyTime& time) {
        table.row({copy + " from " + from + " memory", format_seconds(time.until_return_s),
                   format_seconds(time.until_done_s)});
    };
    add_copy("pageable", times.pageable);
    add_copy("pinned", times.pinned);
    table.row(
        {"a step, the batch gathered before it", "n/a", format_seconds(times.step_waiting_s)});
    table.row({"a step, the batch gathered ahead", "n/a", format_seconds(times.step_prefetched_s)});
    if (kernels_run_on_cpu)
        table.note(
            "On a CPU the device's memory is the host's: a copy from pinned memory is no faster, "
            "but the host need not wait for it. Gathering ahead takes a core from the kernels.");
    std::cout << table << "\n";
}

}  // namespace ddp
