// `./book predict`: what a training under PyTorch would do on more ranks, which nobody has yet.
#include <iostream>

#include "common/report/csv.hpp"
#include "common/report/main.hpp"
#include "common/report/options.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"
#include "tools/cluster/prediction.hpp"

namespace {

using namespace ddp;

struct PredictOptions {
    std::string parameters, link, backward;
    std::optional<std::string> forward, recorded, late;
    int ranks = 8, max_ranks = 256;
};

double require_seconds(const std::string& option, const std::string& text) {
    const std::optional<double> seconds = parse_seconds(text);
    if (!seconds || *seconds <= 0)
        throw OptionError(option + " must be a time, such as 120ms, but is '" + text + "'.");
    return *seconds;
}

simulator::Link require_link(const std::string& text) {
    const std::size_t comma = text.find(',');
    const auto alpha = parse_seconds(text.substr(0, comma));
    const auto bandwidth = parse_bandwidth(comma == text.npos ? "" : text.substr(comma + 1));
    if (!alpha || !bandwidth || *bandwidth < 1)
        throw OptionError(
            "--link must be ALPHA,BETA as ddp_doctor.py prints them, such as 50us,1.2GB/s, but is "
            "'" +
            text + "'.");
    return simulator::straight_link(*alpha, *bandwidth);
}

ForeignTraining training_of(const PredictOptions& options) {
    if (options.parameters.empty() || options.link.empty() ||
        (options.backward.empty() && !options.recorded))
        throw OptionError(
            "predict takes --parameters LIST, --link ALPHA,BETA and --backward TIME, such as "
            "--parameters list --link 50us,1.2GB/s --backward 120ms.");
    ForeignTraining training = read_training(options.parameters);
    training.link = require_link(options.link);
    if (training.times_s.empty())
        training.backward_s = require_seconds("--backward", options.backward);
    training.forward_s =
        options.forward ? require_seconds("--forward", *options.forward) : training.backward_s / 2;
    return training;
}

std::string in_mib(BucketCap cap) {
    return cap ? format_fixed(static_cast<double>(*cap) / (1 << 20), 0) : "(not given)";
}

// A step that traces have recorded: its time, and its number of buckets.
struct Recorded {
    double step_s;
    std::size_t buckets;
};

Recorded require_recorded(const std::string& text) {
    const std::size_t comma = text.find(',');
    const auto step_s = parse_seconds(text.substr(0, comma));
    const std::string buckets = comma == text.npos ? "" : text.substr(comma + 1);
    if (!step_s || *step_s <= 0 || buckets.empty() || buckets.size() > 6 ||
        buckets.find_first_not_of("0123456789") != buckets.npos)
        throw OptionError("--recorded must be TIME,BUCKETS, such as 97ms,4, but is '" + text +
                          "'.");
    return {*step_s, std::stoul(buckets)};
}

// Says how far the simulator is off where the answer is known: in the job as it was.
std::string beside_recorded(const std::vector<PredictedStep>& steps, const Recorded& recorded) {
    const std::string known = "Recorded: " + format_seconds(recorded.step_s) + ", with " +
                              format_count(static_cast<std::int64_t>(recorded.buckets), "bucket");
    const auto like =
        std::ranges::find(steps, recorded.buckets, [](const auto& step) { return step.buckets; });
    if (like == steps.end())
        return known + ", as many as none of these caps makes.";
    const double off = like->step_s / recorded.step_s - 1;
    return known + "; simulated with as many: " + format_seconds(like->step_s) + ", " +
           format_percent(std::abs(off)) + (off < 0 ? " less." : " more.");
}

void show_caps(const ForeignTraining& training, int ranks, const std::optional<Recorded>& recorded,
               CsvWriter& file) {
    const std::vector<PredictedStep> steps = predict_caps(training, ranks);
    const PredictedStep& best = best_of(steps);
    Table table("A step on " + format_count(ranks, "rank") + ", by bucket_cap_mb",
                {"bucket_cap_mb", "buckets", "step", "compute", "communication", "hidden", ""});
    for (const PredictedStep& step : steps) {
        table.row({in_mib(step.cap), std::to_string(step.buckets), format_seconds(step.step_s),
                   format_seconds(step.compute_s), format_seconds(step.communication_s),
                   format_percent(step.hidden()), &step == &best ? "best" : ""});
        file.row({"cap", ranks, in_mib(step.cap), step.buckets, step.step_s, step.compute_s,
                  step.communication_s, step.hidden()});
    }
    table.note("Not given: PyTorch's 1 MiB for the first bucket, and 25 MiB for the others.");
    if (recorded)
        table.note(beside_recorded(steps, *recorded));
    std::cout << table << "\n";
}

// Shows what would shorten the step: another link, or a rank that no longer comes late.
void show_changes(const ForeignTraining& training, int ranks, double late_s, CsvWriter& file) {
    Table table("Another link, for " + format_count(ranks, "rank"),
                {"", "step", "hidden", "times as fast"});
    const double now_s = best_of(predict_caps(training, ranks)).step_s;
    const auto row = [&](const std::string& change, const ForeignTraining& other) {
        const PredictedStep step = best_of(predict_caps(other, ranks));
        table.row({change, format_seconds(step.step_s), format_percent(step.hidden()),
                   format_fixed(now_s / step.step_s, 2)});
        file.row({change, ranks, in_mib(step.cap), step.buckets, step.step_s, step.compute_s,
                  step.communication_s, step.hidden()});
    };
    const auto with_link = [&](double latency, double busy) {
        ForeignTraining other = training;
        other.link.latency_s *= latency;
        for (simulator::Link::Point& point : other.link.busy)
            point.seconds *= busy;
        return other;
    };
    row("as it is", training);
    row("half the latency", with_link(0.5, 1));
    row("twice the bandwidth", with_link(1, 0.5));
    row("ten times the bandwidth", with_link(1, 0.1));
    row("no time at all", with_link(0, 0));
    ForeignTraining punctual = training;
    punctual.forward_s -= late_s;
    if (late_s > 0)
        row("as it is, and no rank late", punctual);
    table.note("The cap is the best for each row.");
    std::cout << table << "\n";
}

void show_ranks(const ForeignTraining& training, int most, bool is_whole, CsvWriter& file) {
    Table table("More ranks, each on a node of its own",
                {"ranks", "step", "hidden", "speed kept", "one batch shared", "times as fast"});
    const double alone_s = predict_step(training, 1, std::nullopt).step_s;
    for (int ranks = 1; ranks <= most; ranks *= 2) {
        const PredictedStep own = best_of(predict_caps(training, ranks));
        const double shared_s = predict_step(training, ranks, own.cap, 1.0 / ranks).step_s;
        table.row({std::to_string(ranks), format_seconds(own.step_s), format_percent(own.hidden()),
                   format_percent(alone_s / own.step_s), format_seconds(shared_s),
                   format_fixed(alone_s / shared_s, 2)});
        file.row({"ranks", ranks, in_mib(own.cap), own.buckets, own.step_s, own.compute_s,
                  own.communication_s, own.hidden()});
    }
    const auto pays = [&](bool shared) {
        return format_count(ranks_that_pay(training, most, shared), "rank");
    };
    table.note("Twice the ranks pay if they are " + format_fixed(least_gain, 1) +
               " times as fast: up to " + pays(false) +
               " if each has a batch of its own, and up to " + pays(true) + " if they share one.");
    table.note(std::string("The cap is the best for each row") +
               (is_whole ? "." : "; the optimizer's time is not in it."));
    std::cout << table << "\n";
}

int run_predict(int argc, char** argv) {
    PredictOptions options;
    Options parser("predict", "What would a training do on more ranks?");
    parser.add_text("--parameters", options.parameters, "a file: a line 'name elements type' each");
    parser.add_text("--link", options.link, "ALPHA,BETA of a message: 50us,1.2GB/s");
    parser.add_text("--backward", options.backward, "how long one rank's backward takes: 120ms");
    parser.add_text("--forward", options.forward, "the same of forward (half of backward)");
    parser.add_text("--recorded", options.recorded, "TIME,BUCKETS of a step in `./book read`");
    parser.add_text("--late", options.late, "by how much its last rank comes late");
    parser.add_int("--ranks", options.ranks, {2, 4096}, "for which the cap is chosen");
    parser.add_int("--most-ranks", options.max_ranks, {2, 4096},
                   "the last row of the second table");
    parser.with_quick("--most-ranks", [&] { options.max_ranks = 64; });
    parser.refuse({"--processes", "--slowly", "--timeout"}, "ranks are only simulated here");
    parser.refuse({"--seed", "--data", "--trace"}, "nothing here is drawn, read or recorded");
    parser.example("--parameters list --link 50us,1.2GB/s --backward 120ms", "eight ranks");
    const CommonOptions common = parser.parse(argc, argv);
    const ForeignTraining training = training_of(options);
    std::optional<Recorded> recorded;
    if (options.recorded)
        recorded = require_recorded(*options.recorded);
    const double late_s =
        options.late ? std::min(require_seconds("--late", *options.late), training.forward_s) : 0;
    double bytes = 0;
    for (const GradientSize& parameter : training.parameters)
        bytes += static_cast<double>(parameter.bytes());
    std::cout << format_count(static_cast<std::int64_t>(training.parameters.size()), "parameter")
              << ", " << format_bytes(bytes) << " of gradients; forward "
              << format_seconds(training.forward_s) << ", backward "
              << format_seconds(training.backward_s) << ".\n\n";
    CsvWriter file(common.csv, {"table", "ranks", "bucket_cap_mb", "buckets", "step_s", "compute_s",
                                "communication_s", "hidden"});
    show_caps(training, options.ranks, recorded, file);
    if (recorded)
        show_changes(training, options.ranks, late_s, file);
    show_ranks(training, options.max_ranks, recorded.has_value(), file);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_main([&] { return run_predict(argc, argv); });
}
