#pragma once
// The command line of a chapter: the options that every chapter takes, and its own, bound to fields
// of a plain struct.
//
//     struct SweepOptions {
//         int steps = 100;
//         std::string algorithm = "ring";
//     };
//
//     SweepOptions options;
//     Options parser("buckets", "Why 25 MB? Sweeps the size of a bucket.");
//     parser.add_int("--steps", options.steps, {1, 100000}, "training steps");
//     parser.add_choice("--algorithm", options.algorithm, {"ring", "tree"},
//                        "how gradients are summed");
//     parser.example("--ranks 4 --link 100MB/s,1ms", "four ranks on a slow link");
//     const CommonOptions common = parser.parse(argc, argv);
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ddp {

// The simulated link of --link. Each rank sends, and each rank receives, at most this fast.
struct LinkSpeed {
    double bytes_per_second = 0;  // more than 0
    double latency_s = 0;         // 0 or more
};

struct CommonOptions {
    // Ranks as threads of this process. If not given, the launcher decides; without one there are
    // default_ranks.
    std::optional<int> ranks;
    int default_ranks = 4;
    // Ranks as processes that the book's launcher starts. Never given together with `ranks`.
    std::optional<int> processes;
    // Processes may share a GPU, although their kernels take turns there.
    bool slowly = false;
    std::uint64_t seed = 1;
    bool quick = false;
    std::filesystem::path csv;      // empty: write none
    std::filesystem::path trace;    // empty: write none
    double timeout_s = 30;          // the longest wait; 0: for ever; 10 with --quick unless given
    std::optional<LinkSpeed> link;  // not given: as fast as the machine
    std::filesystem::path data;     // empty: the usual folder; otherwise a folder or a .csv
};

// A wrong option or an impossible request. The text is one sentence that says what to do.
class OptionError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Thrown if --help was given; `text` is the page to print.
class HelpRequested : public std::exception {
  public:
    explicit HelpRequested(std::string help) : text(std::move(help)) {}
    const char* what() const noexcept override { return text.c_str(); }

    std::string text;
};

// The allowed values of an option, both ends included.
template <class T>
struct Range {
    T least;
    T most;
};

// Throws OptionError unless --csv and --trace, where given, can be written: before the work, and
// not behind it. Only for the process that writes them: on another rank's node the folder may be
// missing. Options::parse() calls it where there are no other processes.
void require_writable(const CommonOptions& options);

class Options {
  public:
    // Starts with the common options. `program` is the name in the usage line of --help; `about`
    // says in one line what the chapter shows.
    Options(const std::string& program, const std::string& about);
    ~Options();

    // The following functions add an option of the chapter. `name` includes its dashes; an option
    // with the name of a common option replaces it. `field` keeps its value if the option is not
    // given, and must outlive the call of parse().
    void add_int(const std::string& name, int& field, Range<int> range, const std::string& help);
    // Adds an option that takes several numbers with commas between them: 1,2,4.
    void add_ints(const std::string& name, std::vector<int>& field, Range<int> range,
                  const std::string& help);
    void add_double(const std::string& name, double& field, Range<double> range,
                    const std::string& help);
    // Adds an option without a default; --help shows none.
    void add_double(const std::string& name, std::optional<double>& field, Range<double> range,
                    const std::string& help);
    void add_text(const std::string& name, std::string& field, const std::string& help);
    // Adds an option without a default, whose text may be empty.
    void add_text(const std::string& name, std::optional<std::string>& field,
                  const std::string& help);
    void add_choice(const std::string& name, std::string& field,
                    const std::vector<std::string>& choices, const std::string& help);
    void add_flag(const std::string& name, bool& field, const std::string& help);

    // Adds an option that `take` reads, into whatever it likes; it may also change the common
    // options. It throws OptionError for a wrong text. `value` is the name of the value in --help.
    using Take = std::function<void(const std::string& text, CommonOptions& common)>;
    void add_taken(const std::string& name, const std::string& value, const std::string& help,
                   Take take);

    // Calls `shorten` with --quick, unless the option `name`, whose field that sets, is given.
    void with_quick(const std::string& name, std::function<void()> shorten);

    // Refuses common options that make no sense here. --help leaves them out, and giving one is an
    // error that quotes `reason`, which says why and what to do: "one device has no ranks: they
    // begin in 05_ranks".
    void refuse(const std::vector<std::string>& names, const std::string& reason);

    // Adds an example at the end of --help: the program with these arguments, and what that shows.
    void example(const std::string& arguments, const std::string& shows);

    // Reads the command line: writes the chapter's fields and returns the common options. If an
    // option is given twice, the last one counts. Throws OptionError or HelpRequested. A program
    // that refuses --processes is alone: files that it could not write are refused here.
    CommonOptions parse(int argc, const char* const* argv);

  private:
    struct Parser;
    std::unique_ptr<Parser> parser_;
};

}  // namespace ddp
