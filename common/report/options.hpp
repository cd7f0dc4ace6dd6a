#pragma once
// The command line of a chapter: the options that every chapter takes, and its own, bound to fields
// of a plain struct.
//
//     struct SweepOptions {
//         int steps = 100;
//         std::string algorithm = "ring";
//     };
//
//     SweepOptions mine;
//     Options options("buckets", "Why 25 MB? Sweeps the size of a bucket.");
//     options.add_int("--steps", mine.steps, {1, 100000}, "training steps");
//     options.add_choice("--algorithm", mine.algorithm, {"ring", "tree"}, "how gradients are
//     summed"); options.example("--ranks 4 --link 100MB/s,1ms", "four ranks on a slow link"); const
//     CommonOptions common = options.parse(argc, argv);
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ddp {

// The simulated link of --link: what one rank can send, and receive, at a time.
struct LinkSpeed {
    double bytes_per_second = 0;  // more than 0
    double latency_s = 0;         // 0 or more
};

struct CommonOptions {
    std::optional<int>
        ranks;  // threads of this process; not given: the chapter's or the launcher's word
    std::optional<int>
        processes;  // the same as processes of our own launcher; never given with `ranks`
    std::uint64_t seed = 1;
    bool quick = false;
    std::filesystem::path csv;      // empty: write none
    std::filesystem::path trace;    // empty: write none
    double timeout_s = 30;          // of every wait; 0: for ever; 3 with --quick unless given
    std::optional<LinkSpeed> link;  // not given: as fast as the machine
    std::filesystem::path data;     // empty: where the data sets usually are
};

// A wrong option or an impossible request. The text is one sentence that says what to do.
class OptionError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// --help was given; `text` is what to print.
class HelpRequested : public std::exception {
  public:
    explicit HelpRequested(std::string help) : text(std::move(help)) {}
    const char* what() const noexcept override { return text.c_str(); }

    std::string text;
};

// Both ends belong to it.
template <class T>
struct Range {
    T least;
    T most;
};

class Options {
  public:
    // `program` is the name in the usage line, `about` the line under it: what the chapter shows.
    Options(const std::string& program, const std::string& about);
    ~Options();

    // Options of the chapter's own. `name` is written with its dashes; one that is called as a
    // common option takes its place. `field` keeps its value where the option is not given, and
    // must live until parse() has returned.
    void add_int(const std::string& name, int& field, Range<int> range, const std::string& help);
    // Several with commas between them: 1,2,4.
    void add_ints(const std::string& name, std::vector<int>& field, Range<int> range,
                  const std::string& help);
    void add_double(const std::string& name, double& field, Range<double> range,
                    const std::string& help);
    // Without a value of its own: --help names none.
    void add_double(const std::string& name, std::optional<double>& field, Range<double> range,
                    const std::string& help);
    void add_text(const std::string& name, std::string& field, const std::string& help);
    void add_choice(const std::string& name, std::string& field,
                    const std::vector<std::string>& choices, const std::string& help);
    void add_flag(const std::string& name, bool& field, const std::string& help);

    // Common options that make no sense here: --help leaves them out, and giving one is an error
    // that quotes `reason`, which says why and what to do: "one device has no ranks: they begin in
    // chapter 05".
    void refuse(const std::vector<std::string>& names, const std::string& reason);

    // A line at the end of --help: the program with these arguments, and what that shows.
    void example(const std::string& arguments, const std::string& shows);

    // Throws OptionError or HelpRequested. An option given twice counts as it was given last.
    CommonOptions parse(int argc, const char* const* argv);

  private:
    struct Parser;
    std::unique_ptr<Parser> parser_;
};

}  // namespace ddp
