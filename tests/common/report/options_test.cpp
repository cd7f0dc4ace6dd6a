#include "common/report/options.hpp"

#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "common/report/main.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/common/report/thrown.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

struct OwnOptions {
    int steps = 100;
    double rate = 0.01;
    std::optional<double> cap;
    std::string algorithm = "ring";
    std::string note = "none";
    bool plot = false;
};

struct Parsed {
    CommonOptions common;
    OwnOptions own;
};

Parsed parse(std::vector<std::string> words) {
    Parsed result;
    OwnOptions& own = result.own;
    Options parser("buckets", "Why 25 MB? Sweeps the size of a bucket.");
    parser.add_int("--steps", own.steps, {1, 5000}, "training steps");
    parser.with_quick("--steps", [&] { own.steps = 5; });
    parser.add_double("--rate", own.rate, {0, 1}, "learning rate");
    parser.add_double("--cap", own.cap, {0, 8}, "size of a bucket");
    parser.add_choice("--algorithm", own.algorithm, {"ring", "tree"}, "how gradients are summed");
    parser.add_text("--note", own.note, "printed under the table");
    parser.add_flag("--plot", own.plot, "draw the curve");
    parser.refuse({"--processes"}, "one process is the lesson; use --ranks");
    parser.example("--ranks 4 --link 100MB/s,1ms", "four ranks on a slow link");
    words.insert(words.begin(), "/some/where/buckets");
    std::vector<const char*> pointers;
    for (const std::string& word : words)
        pointers.push_back(word.c_str());
    result.common = parser.parse(static_cast<int>(pointers.size()), pointers.data());
    return result;
}

std::string refused(const std::vector<std::string>& words) {
    return thrown<OptionError>([&] { parse(words); });
}

// Runs run_main and catches both streams.
struct Ended {
    int status = 0;
    std::string out, err;
};
Ended run(const std::function<int()>& work) {
    std::ostringstream out, err;
    std::streambuf* const old_out = std::cout.rdbuf(out.rdbuf());
    std::streambuf* const old_err = std::cerr.rdbuf(err.rdbuf());
    const int status = run_main(work);
    std::cout.clear();
    std::cout.rdbuf(old_out);
    std::cerr.rdbuf(old_err);
    return {status, out.str(), err.str()};
}

}  // namespace

TEST_CASE("without options everything is at its default", "[report][options]") {
    const Parsed parsed = parse({});
    CHECK_FALSE(parsed.common.ranks);
    CHECK_FALSE(parsed.common.processes);
    CHECK(parsed.common.seed == 1);
    CHECK_FALSE(parsed.common.quick);
    CHECK(parsed.common.csv.empty());
    CHECK(parsed.common.trace.empty());
    CHECK(parsed.common.timeout_s == 30);
    CHECK_FALSE(parsed.common.link);
    CHECK(parsed.common.data.empty());
    CHECK(parsed.own.steps == 100);
    CHECK(parsed.own.rate == 0.01);
    CHECK_FALSE(parsed.own.cap);
    CHECK(parsed.own.algorithm == "ring");
    CHECK(parsed.own.note == "none");
    CHECK_FALSE(parsed.own.plot);
}

TEST_CASE("every option reaches its own field", "[report][options]") {
    const Parsed parsed = parse({"--ranks", "5",      "--seed=18446744073709551615",
                                 "--quick", "--csv",  "a b.csv",
                                 "--trace", "t.json", "--timeout",
                                 "0",       "--link", "10Gbit/s,50us",
                                 "--data",  "/data",  "--steps",
                                 "7",       "--cap",  "4",
                                 "--rate",  "2.5e-1", "--algorithm",
                                 "tree",    "--note", "-1, as it is",
                                 "--plot"});
    CHECK(parsed.common.ranks == 5);
    CHECK(parsed.common.seed == 18446744073709551615u);
    CHECK(parsed.common.quick);
    CHECK(parsed.common.csv == "a b.csv");
    CHECK(parsed.common.trace == "t.json");
    CHECK(parsed.common.timeout_s == 0);
    REQUIRE(parsed.common.link);
    CHECK(parsed.common.link->bytes_per_second == 1.25e9);
    CHECK(parsed.common.link->latency_s == Approx(50e-6));
    CHECK(parsed.common.data == "/data");
    CHECK(parsed.own.steps == 7);
    CHECK(parsed.own.rate == 0.25);
    CHECK(parsed.own.cap == 4);
    CHECK(parsed.own.algorithm == "tree");
    CHECK(parsed.own.note == "-1, as it is");
    CHECK(parsed.own.plot);
}

TEST_CASE("--quick shortens what is not given", "[report][options]") {
    CHECK(parse({"--quick"}).own.steps == 5);
    CHECK(parse({"--quick", "--steps", "40"}).own.steps == 40);
    CHECK(parse({"--quick"}).common.timeout_s == 10);
    CHECK(parse({"--quick", "--timeout", "30"}).common.timeout_s == 30);
    CHECK(parse({"--timeout", "0.5", "--quick"}).common.timeout_s == 0.5);
}

TEST_CASE("the last of two wins", "[report][options]") {
    CHECK(parse({"--ranks", "2", "--ranks", "3"}).common.ranks == 3);
    CHECK(parse({"--quick", "--quick"}).common.quick);
}

TEST_CASE("unknown options are named, with the nearest one", "[report][options]") {
    CHECK(refused({"--rank", "4"}) == "There is no option --rank: did you mean --ranks?");
    CHECK(refused({"--rnaks=4"}) == "There is no option --rnaks: did you mean --ranks?");
    CHECK(refused({"-ranks", "4"}) == "There is no option -ranks: did you mean --ranks?");
    CHECK(refused({"--stesp", "4"}) == "There is no option --stesp: did you mean --steps?");
    CHECK(refused({"--colour"}) == "There is no option --colour: --help lists all.");
    CHECK(refused({"4"}) ==
          "'4' belongs to no option: options begin with --, and --help lists them.");
}

TEST_CASE("values out of range or of another kind are refused", "[report][options]") {
    CHECK(refused({"--ranks", "0"}) == "--ranks needs a whole number from 1 to 64, not '0'.");
    CHECK(refused({"--ranks", "4x"}) == "--ranks needs a whole number from 1 to 64, not '4x'.");
    CHECK(refused({"--ranks", "99999999999"}) ==
          "--ranks needs a whole number from 1 to 64, not '99999999999'.");
    CHECK(refused({"--steps", "5001"}) ==
          "--steps needs a whole number from 1 to 5000, not '5001'.");
    CHECK(refused({"--seed", "-1"}) ==
          "--seed needs a whole number from 0 to 18446744073709551615, not '-1'.");
    CHECK(refused({"--rate", "1.01"}) == "--rate needs a number from 0 to 1, not '1.01'.");
    CHECK(refused({"--rate", "nan"}) == "--rate needs a number from 0 to 1, not 'nan'.");
    CHECK(refused({"--timeout", "-1"}) == "--timeout needs a number from 0 to 86400, not '-1'.");
    CHECK(refused({"--algorithm", "rings"}) == "--algorithm needs one of ring, tree, not 'rings'.");
    CHECK(refused({"--csv", ""}) == "--csv needs a path: write it after the option.");
    CHECK(refused({"--csv="}) == "--csv needs a value: write --csv FILE.");
}

TEST_CASE("a link is a bandwidth and a latency", "[report][options]") {
    for (const char* text : {"fast", "1MB/s", "1MB/s,", ",1ms", "1ms,1MB/s", "0MB/s,1ms",
                             "1MB/s,-1ms", "1MB,1ms", "1MB/s,1ms,2", "1MB/s, 1ms", "nanMB/s,1ms"}) {
        INFO(text);
        CHECK(refused({"--link", text}) ==
              std::string(
                  "--link needs BANDWIDTH,LATENCY such as 100MB/s,1ms or 10Gbit/s,50us, not '") +
                  text + "'.");
    }
    CHECK(parse({"--link", "1MB/s,0s"}).common.link->latency_s == 0);
    for (const char* text : {"1e200GB/s,1ms", "0.1B/s,1ms", "1MB/s,1e300s", "1MB/s,3601s"}) {
        INFO(text);
        CHECK(refused({"--link", text}) ==
              std::string("--link needs 1 to 1e15 bytes a second and at most 3600 s, not '") +
                  text + "'.");
    }
}

TEST_CASE("an option that a program reads itself, and that changes a common one",
          "[report][options]") {
    std::string given = "nothing";
    const auto parse_pair = [&](std::vector<const char*> words) {
        Options parser("pairs", "A program with pairs.");
        parser.add_taken("--pairs", "N", "pairs of ranks",
                         [&](const std::string& text, CommonOptions& common) {
                             if (text != "3")
                                 throw OptionError("--pairs needs a 3, not '" + text + "'.");
                             given = text;
                             common.default_ranks = 6;
                         });
        words.insert(words.begin(), "pairs");
        return parser.parse(static_cast<int>(words.size()), words.data());
    };
    REQUIRE(parse_pair({}).default_ranks == 4);
    REQUIRE(given == "nothing");
    REQUIRE(parse_pair({"--pairs", "3"}).default_ranks == 6);
    REQUIRE(given == "3");
    REQUIRE(thrown<OptionError>([&] {
                parse_pair({"--pairs", "4"});
            }) == "--pairs needs a 3, not '4'.");
    REQUIRE(thrown<OptionError>([&] { parse_pair({"--pairs"}); }) ==
            "--pairs needs a value: write --pairs N.");
}

TEST_CASE("files that cannot be written are refused before the work", "[report][options]") {
    const TemporaryFolder folder;
    const std::string none = (folder / "none" / "run.csv").string(), own = (folder / "").string();
    const auto refusal = [](const char* option, const std::string& path) {
        return refused({option, path});  // by a program without --processes
    };
    const std::string advice = " a file in a folder that exists and is yours.";
    CHECK(refusal("--csv", none) ==
          "'" + none + "' cannot be written (No such file or directory): give --csv" + advice);
    CHECK(refusal("--trace", none) ==
          "'" + none + "' cannot be written (No such file or directory): give --trace" + advice);
    CHECK(refusal("--csv", own) ==
          "'" + own + "' cannot be written (Is a directory): give --csv" + advice);
    const std::string fine = (folder / "run.csv").string();
    CHECK(parse({"--csv", fine}).common.csv == fine);
    REQUIRE(!std::filesystem::exists(fine));  // asked, not made
    std::ofstream(fine) << "old";
    CHECK(parse({"--csv", fine}).common.csv == fine);
    CHECK(parse({"--csv", "in_this_folder.csv"}).common.csv == "in_this_folder.csv");
    // Where there are other processes, the program asks for itself.
    Options parser("ranks", "Who am I?");
    const char* words[] = {"ranks", "--csv", none.c_str()};
    const CommonOptions common = parser.parse(3, words);
    CHECK(thrown<OptionError>([&] { require_writable(common); }) == refusal("--csv", none));
}

TEST_CASE("a missing value and one too many are named", "[report][options]") {
    CHECK(refused({"--ranks"}) == "--ranks needs a value: write --ranks N.");
    CHECK(refused({"--csv", "--quick"}) == "--csv needs a value: write --csv FILE.");
    CHECK(refused({"--algorithm"}) == "--algorithm needs a value: write --algorithm ring|tree.");
    CHECK(refused({"--quick=5"}) == "--quick is a switch and takes no value: write it alone.");
    CHECK(refused({"--plot=false"}) == "--plot is a switch and takes no value: write it alone.");
    CHECK(refused({"--quick", "5"}) ==
          "'5' belongs to no option: options begin with --, and --help lists them.");
}

TEST_CASE("an option that makes no sense is refused with the reason", "[report][options]") {
    const std::string sentence =
        "--processes makes no sense here: one process is the lesson; use --ranks.";
    CHECK(refused({"--processes", "4"}) == sentence);
    CHECK(refused({"--processes=4"}) == sentence);
    CHECK(refused({"--processes"}) == sentence);
    CHECK(refused({"--slowly"}) ==
          "--slowly makes no sense here: one process is the lesson; use --ranks.");
}

TEST_CASE("threads and processes exclude each other", "[report][options]") {
    Options parser("ranks", "Who am I?");
    const char* words[] = {"ranks", "--ranks", "2", "--processes", "2"};
    CHECK(thrown<OptionError>([&] { parser.parse(5, words); }) ==
          "--ranks makes threads and --processes makes processes: give one of them only.");
}

TEST_CASE("a list of numbers, in the place of a common option", "[report][options]") {
    const auto parse_ranks = [](const std::string& word, const char* value) {
        std::vector<int> ranks{1, 2};
        Options parser("bench", "How fast?");
        parser.add_ints("--ranks", ranks, {1, 64}, "numbers of ranks");
        const char* words[] = {"bench", word.c_str(), value};
        const CommonOptions common = parser.parse(value == nullptr ? 2 : 3, words);
        CHECK_FALSE(common.ranks);
        return ranks;
    };
    CHECK(parse_ranks("--quick", nullptr) == std::vector<int>{1, 2});
    CHECK(parse_ranks("--ranks", "4") == std::vector<int>{4});
    CHECK(parse_ranks("--ranks", "1,3,64,3") == std::vector<int>{1, 3, 64, 3});
    for (const char* wrong : {"1,65", ",1", "1,,2", "1,", "1 2", "", "two"})
        CHECK(thrown<OptionError>([&] {
                  parse_ranks("--ranks", wrong);
              }).starts_with("--ranks needs a whole number from 1 to 64, not '"));
    const std::string help = thrown<HelpRequested>([&] { parse_ranks("--help", nullptr); });
    CHECK(help.find("  --ranks N,N,...           numbers of ranks (1,2)\n") != help.npos);
    CHECK(help.find("as threads of this process") == help.npos);
}

TEST_CASE("--help, letter by letter", "[report][options]") {
    const std::string help = thrown<HelpRequested>([] { parse({"--help"}); });
    CHECK(help ==
          "Why 25 MB? Sweeps the size of a bucket.\n"
          "\n"
          "Usage: buckets [options]\n"
          "\n"
          "Options of this chapter:\n"
          "  --steps N                 training steps (100)\n"
          "  --rate X                  learning rate (0.01)\n"
          "  --cap X                   size of a bucket\n"
          "  --algorithm ring|tree     how gradients are summed (ring)\n"
          "  --note TEXT               printed under the table (none)\n"
          "  --plot                    draw the curve\n"
          "\n"
          "Options of every chapter:\n"
          "  --ranks N                 run N ranks, as threads of this process\n"
          "  --seed S                  the seed of all random numbers (1)\n"
          "  --quick                   a short run that shows the same\n"
          "  --csv FILE                write the measurements to FILE\n"
          "  --trace FILE              write a timeline to FILE, for ui.perfetto.dev\n"
          "  --timeout S               give up a wait after S seconds; 0: never (30, with --quick "
          "10)\n"
          "  --link BANDWIDTH,LATENCY  simulate a link, such as 100MB/s,1ms or 10Gbit/s,50us\n"
          "  --data PATH               a folder of pictures as IDX, or a table as .csv\n"
          "  --help                    print this page\n"
          "\n"
          "Examples:\n"
          "  buckets --ranks 4 --link 100MB/s,1ms\n"
          "      four ranks on a slow link\n");
    CHECK(thrown<HelpRequested>([] { parse({"-h"}); }) == help);
    CHECK(thrown<HelpRequested>([] { parse({"--steps", "7", "--help"}); }) == help);
}

TEST_CASE("run_main turns what is thrown into a sentence and an exit status", "[report][options]") {
    const Ended wrong_option = run([] {
        parse({"--ranks", "0"});
        return 0;
    });
    CHECK(wrong_option.status == 2);
    CHECK(wrong_option.err == "error: --ranks needs a whole number from 1 to 64, not '0'.\n");
    CHECK(wrong_option.out.empty());

    const Ended help = run([] {
        parse({"--help"});
        return 3;
    });
    CHECK(help.status == 0);
    CHECK(help.out.find("--ranks") != std::string::npos);
    CHECK(help.err.empty());

    const Ended failure = run(
        []() -> int { throw std::runtime_error("rank 2 \x1b[31mnever came:\nlook at its log."); });
    CHECK(failure.status == 1);
    CHECK(failure.err == "error: rank 2 ?[31mnever came:\nlook at its log.\n");
    const Ended odd = run([]() -> int { throw 42; });
    CHECK(odd.status == 1);
    CHECK(odd.err == "error: an exception was thrown that is not a std::exception: make it one.\n");
    CHECK(run([] { return 5; }).status == 5);

    const Ended memory = run([]() -> int { throw std::bad_alloc(); });
    CHECK(memory.status == 1);
    CHECK(memory.err.starts_with("error: there is not enough memory"));
    const Ended threads =
        run([]() -> int { throw std::system_error(EAGAIN, std::generic_category()); });
    CHECK(threads.err.starts_with("error: the system refuses this program another thread"));
}

TEST_CASE("a run whose output is lost has failed", "[report][options]") {
    const auto lose = [](int status) {
        return run([status] {
            std::cout << "half of it";
            std::cout.setstate(std::ios::badbit);  // as a full disk does
            return status;
        });
    };
    CHECK(lose(0).status == 1);
    CHECK(lose(0).err == "error: the output could not be written: is the disk full?\n");
    CHECK(lose(5).status == 5);
    CHECK(lose(5).err.empty());
}

TEST_CASE("any words at all are parsed or refused in one line", "[report][options][fuzz]") {
    std::mt19937 random(3);
    const std::vector<std::string> pieces = {
        "--ranks", "--link",  "--quick", "--csv", "--seed", "--", "-", "=",
        "4",       "-1",      "1MB/s",   ",",     "1ms",    "[",  "]", "\xFF",
        "{}",      "--steps", "",        " ",     "--plot", "-q", "e", "."};
    int parsed = 0, refusals = 0;
    for (int trial = 0; trial < 2000; trial++) {
        std::vector<std::string> words(random() % 5);
        for (std::string& word : words)
            for (std::size_t count = 1 + random() % 3; count > 0; count--)
                word += pieces[random() % pieces.size()];
        try {
            parse(words);
            parsed++;
        } catch (const OptionError& error) {
            const std::string text = error.what();
            REQUIRE(text.find('\n') == std::string::npos);
            REQUIRE((text.back() == '.' || text.back() == '?'));
            refusals++;
        }
    }
    CHECK(parsed > 100);
    CHECK(refusals > 100);
}

}  // namespace ddp::test
