#include "common/report/options.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

#include "common/report/csv.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr double longest_timeout_s = 86400;

// Returns `text` as a number, or nothing if any of it is not part of the number.
template <class T>
std::optional<T> parse_number(const std::string& text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

std::string shortest(double value) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

[[noreturn]] void throw_wrong_value(const std::string& name, const std::string& needed,
                                    const std::string& given) {
    throw OptionError(name + " needs " + needed + ", not '" + given + "'.");
}

int parse_int(const std::string& name, Range<int> range, const std::string& text) {
    const std::optional<int> value = parse_number<int>(text);
    if (!value || *value < range.least || *value > range.most)
        throw_wrong_value(name,
                          "a whole number from " + std::to_string(range.least) + " to " +
                              std::to_string(range.most),
                          text);
    return *value;
}

std::vector<int> parse_ints(const std::string& name, Range<int> range, const std::string& text) {
    std::vector<int> values;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        values.push_back(parse_int(name, range, text.substr(begin, end - begin)));
        begin = end + 1;
    }
    return values;
}

double parse_double(const std::string& name, Range<double> range, const std::string& text) {
    const std::optional<double> value = parse_number<double>(text);
    if (!value || !(*value >= range.least && *value <= range.most))  // refuses a NaN as well
        throw_wrong_value(
            name, "a number from " + shortest(range.least) + " to " + shortest(range.most), text);
    return *value;
}

std::uint64_t parse_seed(const std::string& text) {
    const std::optional<std::uint64_t> value = parse_number<std::uint64_t>(text);
    if (!value)
        throw_wrong_value("--seed", "a whole number from 0 to 18446744073709551615", text);
    return *value;
}

// Slower or later than any network, and the seconds of a run no longer fit into the machine's
// clock.
constexpr double least_bytes_per_second = 1, max_bytes_per_second = 1e15, max_latency_s = 3600;

LinkSpeed parse_link(const std::string& text) {
    const std::size_t comma = text.find(',');
    const std::optional<double> bandwidth = parse_bandwidth(text.substr(0, comma));
    const std::optional<double> latency =
        comma == std::string::npos ? std::nullopt : parse_seconds(text.substr(comma + 1));
    if (!bandwidth || *bandwidth == 0 || !latency)
        throw_wrong_value("--link", "BANDWIDTH,LATENCY such as 100MB/s,1ms or 10Gbit/s,50us", text);
    if (*bandwidth < least_bytes_per_second || *bandwidth > max_bytes_per_second ||
        *latency > max_latency_s)
        throw_wrong_value("--link", "1 to 1e15 bytes a second and at most 3600 s", text);
    return {*bandwidth, *latency};
}

std::string parse_path(const std::string& name, const std::string& text) {
    if (text.empty())
        throw OptionError(name + " needs a path: write it after the option.");
    return text;
}

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
    std::string result;
    for (const std::string& word : words)
        result += (result.empty() ? "" : separator) + word;
    return result;
}

// Returns Levenshtein's distance: how many letters must be added, dropped or replaced to turn a
// into b.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);  // distances from the first i letters of a
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); i++) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); j++) {
            const std::size_t replaced = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
        }
    }
    return row.back();
}

}  // namespace

// The command line. CLI11 splits it; reading the values and writing --help is done here, so that
// the words are the same with every version of CLI11.
struct Options::Parser {
    // An option as --help shows it. `value` is the name of its value; a switch has none. `own`
    // marks an option of the chapter.
    struct Entry {
        std::string name, value, help, default_value;
        bool own = false;

        std::string usage() const { return value.empty() ? name : name + " " + value; }
    };

    CLI::App app;
    std::string about;
    std::vector<Entry> entries;
    std::vector<std::string> examples;
    std::vector<std::pair<std::string, std::function<void()>>> quick;  // for an option not given
    CommonOptions common;

    Parser(const std::string& program, const std::string& about_program)
        : app("", program), about(about_program) {
        app.allow_extras();  // check_extras reports unknown options
        add_common_options();
        app.set_help_flag("-h,--help");
        entries.push_back({"--help", "", "print this page", "", false});
    }

    void drop(const std::string& name) {
        std::erase_if(entries, [&](const Entry& entry) { return entry.name == name; });
        if (CLI::Option* option = app.get_option_no_throw(name))
            app.remove_option(option);
    }

    void add(Entry entry, std::function<void(const std::string&)> read) {
        drop(entry.name);
        CLI::Option* option = app.add_option_function<std::string>(
            entry.name, [this, name = entry.name, read = std::move(read)](const std::string& text) {
                if (text.starts_with("--"))  // CLI11 takes the next option for the value
                    explain_mismatch(name);
                read(text);
            });
        option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
        entries.push_back(std::move(entry));
    }

    void add_path(const std::string& name, const std::string& value, std::filesystem::path& field,
                  const std::string& help) {
        add({name, value, help, "", false},
            [name, &field](const std::string& text) { field = parse_path(name, text); });
    }

    void add_flag(const Entry& entry, bool& field) {
        CLI::Option* option = app.add_flag_callback(entry.name, [&field] { field = true; });
        option->disable_flag_override()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
        entries.push_back(entry);
    }

    void add_common_options();
    bool offers(const std::string& name) const {
        return std::ranges::count(entries, name, &Entry::name) > 0;
    }
    void check_switches(int argc, const char* const* argv) const;
    void check_extras() const;
    [[noreturn]] void explain_mismatch(const std::string& name) const;
    std::string help() const;
    std::string help_lines(bool own) const;
};

void Options::Parser::add_common_options() {
    add({"--ranks", "N", "run N ranks, as threads of this process", "", false},
        [this](const std::string& text) {
            common.ranks = parse_int("--ranks", {1, 64}, text);
        });
    add({"--processes", "N", "run N ranks, as processes of their own", "", false},
        [this](const std::string& text) {
            common.processes = parse_int("--processes", {1, 64}, text);
        });
    add_flag(
        {"--slowly", "", "let processes share a GPU, where their kernels take turns", "", false},
        common.slowly);
    add({"--seed", "S", "the seed of all random numbers", std::to_string(common.seed), false},
        [this](const std::string& text) { common.seed = parse_seed(text); });
    add_flag({"--quick", "", "a short run that shows the same", "", false}, common.quick);
    add_path("--csv", "FILE", common.csv, "write the measurements to FILE");
    add_path("--trace", "FILE", common.trace, "write a timeline to FILE, for ui.perfetto.dev");
    add({"--timeout", "S", "give up a wait after S seconds; 0: never", "30, with --quick 10",
         false},
        [this](const std::string& text) {
            common.timeout_s = parse_double("--timeout", {0, longest_timeout_s}, text);
        });
    quick.emplace_back("--timeout", [this] { common.timeout_s = 10; });
    add({"--link", "BANDWIDTH,LATENCY", "simulate a link, such as 100MB/s,1ms or 10Gbit/s,50us", "",
         false},
        [this](const std::string& text) { common.link = parse_link(text); });
    add_path("--data", "PATH", common.data, "a folder of pictures as IDX, or a table as .csv");
}

// Refuses `--switch=`, which CLI11 takes for the switch alone.
void Options::Parser::check_switches(int argc, const char* const* argv) const {
    for (const Entry& entry : entries)
        for (int i = 1; i < argc; i++)
            if (entry.value.empty() && argv[i] == entry.name + "=")
                explain_mismatch(entry.name);
}

void Options::Parser::check_extras() const {
    const std::vector<std::string> extras = app.remaining();
    if (extras.empty())
        return;
    const std::string given = extras[0].substr(0, extras[0].find('='));
    if (!given.starts_with("-"))
        throw OptionError("'" + given +
                          "' belongs to no option: options begin with --, and --help lists them.");
    std::string nearest;
    std::size_t least = 3;  // more than two letters away is not a typing mistake
    for (const Entry& entry : entries) {
        const std::size_t distance = edit_distance(given, entry.name);
        if (distance < least) {
            least = distance;
            nearest = entry.name;
        }
    }
    throw OptionError("There is no option " + given + ": " +
                      (nearest.empty() ? "--help lists all." : "did you mean " + nearest + "?"));
}

// Throws OptionError for an option that was given too many or too few values.
void Options::Parser::explain_mismatch(const std::string& name) const {
    for (const Entry& entry : entries)
        if (entry.name == name && !entry.value.empty())
            throw OptionError(name + " needs a value: write " + entry.usage() + ".");
    throw OptionError(name + " is a switch and takes no value: write it alone.");
}

std::string Options::Parser::help() const {
    std::string text = about + "\n\nUsage: " + app.get_name() + " [options]\n";
    const std::string own = help_lines(true);
    if (!own.empty())
        text += "\nOptions of this chapter:\n" + own;
    text += "\nOptions of every chapter:\n" + help_lines(false);
    if (!examples.empty())
        text += "\nExamples:\n" + joined(examples, "");
    return text;
}

std::string Options::Parser::help_lines(bool own) const {
    constexpr std::size_t column = 28;  // the column in which the explanations begin
    std::string text;
    for (const Entry& entry : entries) {
        if (entry.own != own)
            continue;
        const std::string usage = "  " + entry.usage();
        text += usage.size() + 2 <= column ? usage + std::string(column - usage.size(), ' ')
                                           : usage + "\n" + std::string(column, ' ');
        text += entry.help + (entry.default_value.empty() ? "" : " (" + entry.default_value + ")") +
                "\n";
    }
    return text;
}

Options::Options(const std::string& program, const std::string& about)
    : parser_(std::make_unique<Parser>(program, about)) {}

Options::~Options() = default;

void Options::add_int(const std::string& name, int& field, Range<int> range,
                      const std::string& help) {
    parser_->add(
        {name, "N", help, std::to_string(field), true},
        [name, &field, range](const std::string& text) { field = parse_int(name, range, text); });
}

void Options::add_ints(const std::string& name, std::vector<int>& field, Range<int> range,
                       const std::string& help) {
    std::vector<std::string> numbers;
    for (const int number : field)
        numbers.push_back(std::to_string(number));
    parser_->add(
        {name, "N,N,...", help, joined(numbers, ","), true},
        [name, &field, range](const std::string& text) { field = parse_ints(name, range, text); });
}

void Options::add_double(const std::string& name, double& field, Range<double> range,
                         const std::string& help) {
    parser_->add({name, "X", help, shortest(field), true},
                 [name, &field, range](const std::string& text) {
                     field = parse_double(name, range, text);
                 });
}

void Options::add_double(const std::string& name, std::optional<double>& field, Range<double> range,
                         const std::string& help) {
    parser_->add({name, "X", help, "", true}, [name, &field, range](const std::string& text) {
        field = parse_double(name, range, text);
    });
}

void Options::add_text(const std::string& name, std::string& field, const std::string& help) {
    parser_->add({name, "TEXT", help, field, true},
                 [&field](const std::string& text) { field = text; });
}

void Options::add_text(const std::string& name, std::optional<std::string>& field,
                       const std::string& help) {
    parser_->add({name, "TEXT", help, "", true},
                 [&field](const std::string& text) { field = text; });
}

void Options::add_choice(const std::string& name, std::string& field,
                         const std::vector<std::string>& choices, const std::string& help) {
    parser_->add({name, joined(choices, "|"), help, field, true},
                 [name, &field, choices](const std::string& text) {
                     if (std::find(choices.begin(), choices.end(), text) == choices.end())
                         throw_wrong_value(name, "one of " + joined(choices, ", "), text);
                     field = text;
                 });
}

void Options::add_flag(const std::string& name, bool& field, const std::string& help) {
    parser_->add_flag({name, "", help, "", true}, field);
}

void Options::add_taken(const std::string& name, const std::string& value, const std::string& help,
                        Take take) {
    parser_->add(
        {name, value, help, "", true},
        [this, take = std::move(take)](const std::string& text) { take(text, parser_->common); });
}

void Options::with_quick(const std::string& name, std::function<void()> shorten) {
    parser_->quick.emplace_back(name, std::move(shorten));
}

void Options::refuse(const std::vector<std::string>& names, const std::string& reason) {
    for (const std::string& name : names) {
        if (name == "--processes")
            refuse({"--slowly"}, reason);
        parser_->drop(name);
        CLI::Option* option =
            parser_->app.add_option_function<std::string>(name, [name, reason](const std::string&) {
                throw OptionError(name + " makes no sense here: " + reason + ".");
            });
        option->expected(0, 1)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
}

void Options::example(const std::string& arguments, const std::string& shows) {
    parser_->examples.push_back("  " + parser_->app.get_name() + " " + arguments + "\n      " +
                                shows + "\n");
}

CommonOptions Options::parse(int argc, const char* const* argv) {
    try {
        parser_->app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        throw HelpRequested(parser_->help());
    } catch (const CLI::ArgumentMismatch& error) {
        const std::string text =
            error.what();  // begins with the option's name, a switch's without dashes
        const std::string name = text.substr(0, text.find_first_of(": "));
        parser_->explain_mismatch(name.starts_with("-") ? name : "--" + name);
    } catch (const CLI::ParseError& error) {
        throw OptionError(std::string(error.what()) + ": --help lists all options.");
    }
    parser_->check_switches(argc, argv);
    parser_->check_extras();
    for (const auto& [name, shorten] : parser_->quick)
        if (parser_->common.quick && parser_->app.count(name) == 0)
            shorten();
    CommonOptions common = parser_->common;
    if (common.ranks && common.processes)
        throw OptionError(
            "--ranks makes threads and --processes makes processes: give one of them only.");
    if (!parser_->offers("--processes"))
        require_writable(common);
    return common;
}

void require_writable(const CommonOptions& options) {
    for (const auto& [name, path] : {std::pair("--csv", options.csv), {"--trace", options.trace}}) {
        if (path.empty())
            continue;
        const bool exists = access(path.c_str(), F_OK) == 0;
        const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
        std::error_code not_there;
        errno = std::filesystem::is_directory(path, not_there) ? EISDIR : 0;
        if (errno != 0 || access(exists ? path.c_str() : folder.c_str(), W_OK) != 0)
            throw OptionError(unwritable(path, name));
    }
}

}  // namespace ddp
