// `./book predict`: buckets, their steps and the ranks that pay, against numbers made by hand.
#include "tools/cluster/prediction.hpp"

#include <fstream>

#include "common/report/options.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

namespace ddp::test {
namespace {

const Program predict(PREDICT_PROGRAM);

// Parameters of 1000, 2000 and 3000 floats; a message costs 1 ms and a microsecond for each byte.
ForeignTraining small_training() {
    return {.parameters = {{"first", 1000}, {"second", 2000}, {"third", 3000}},
            .times_s = {},
            .forward_s = 0.010,
            .backward_s = 0.030,
            .link = simulator::straight_link(1e-3, 1e6)};
}

// 40 parameters of 4 MiB.
ForeignTraining large_training(double alpha_s, double bytes_per_second) {
    ForeignTraining training{.parameters = {},
                             .times_s = {},
                             .forward_s = 0.05,
                             .backward_s = 0.1,
                             .link = simulator::straight_link(alpha_s, bytes_per_second)};
    for (int i = 0; i < 40; i++)
        training.parameters.push_back({"weight" + std::to_string(i), 1 << 20});
    return training;
}

}  // namespace

TEST_CASE("prediction: one bucket hides nothing, two hide what backward leaves them time for") {
    const PredictedStep one = predict_step(small_training(), 4, std::size_t{24'000});
    CHECK(one.buckets == 1);
    CHECK(one.compute_s == Approx(0.040));
    CHECK(one.communication_s == Approx(0.042));  // 6 messages of 6,000 bytes
    CHECK(one.step_s == Approx(0.082));
    CHECK(one.hidden() == Approx(0).margin(1e-9));
    // The last parameter fills the first bucket. Its all-reduce lasts from 25 to 49 ms, and the
    // other one from then on.
    const PredictedStep two = predict_step(small_training(), 4, std::size_t{12'000});
    CHECK(two.buckets == 2);
    CHECK(two.communication_s == Approx(0.048));
    CHECK(two.step_s == Approx(0.073));
    CHECK(two.hidden() == Approx(0.3125));
    // A rank that computes half as much has less to hide it behind.
    CHECK(predict_step(small_training(), 4, std::size_t{12'000}, 0.5).step_s == Approx(0.0605));
    const PredictedStep alone = predict_step(small_training(), 1, std::nullopt);
    CHECK(alone.step_s == Approx(0.040));
    CHECK(alone.hidden() == 1);
}

TEST_CASE("prediction: where each gradient's time is known, it decides when a bucket is ready") {
    ForeignTraining training = small_training();
    training.times_s = {0.005, 0.005, 0.020};
    // The third one is ready after 30 ms instead of 25, so all is over 5 ms later.
    CHECK(predict_step(training, 4, std::size_t{12'000}).step_s == Approx(0.078));
    CHECK(predict_step(training, 4, std::size_t{24'000}).step_s == Approx(0.082));
}

TEST_CASE("prediction: slow messages want few buckets, and a narrow link wants several") {
    const std::vector<PredictedStep> costly = predict_caps(large_training(0.05, 1e10), 8);
    CHECK(costly.front().cap == std::nullopt);
    CHECK(costly.back().buckets == 1);
    CHECK(best_of(costly).buckets == 1);
    const std::vector<PredictedStep> narrow = predict_caps(large_training(1e-6, 4e9), 8);
    CHECK(best_of(narrow).buckets > 3);
    CHECK(best_of(narrow).hidden() > 0.5);
    CHECK(narrow.back().hidden() < 0.1);
    // Of those that are nearly the same it is the first, PyTorch's own.
    CHECK(best_of(predict_caps(large_training(1e-9, 1e13), 2)).cap == std::nullopt);
}

TEST_CASE("prediction: ranks pay as long as twice as many are 1.5 times as fast") {
    // No communication to speak of: all pay.
    CHECK(ranks_that_pay(large_training(1e-9, 1e14), 64, false) == 64);
    CHECK(ranks_that_pay(large_training(1e-9, 1e14), 64, true) == 64);
    CHECK(ranks_that_pay(large_training(1e-9, 1e14), 63, true) == 32);
    // 168 MB at 2 GB/s: a second rank makes the step twice as long.
    CHECK(ranks_that_pay(large_training(1e-6, 5e8), 64, false) == 1);
    CHECK(ranks_that_pay(large_training(1e-6, 5e8), 64, true) == 1);
    // A batch that is shared leaves each rank less behind which it can hide anything.
    const int own = ranks_that_pay(large_training(1e-5, 1e10), 64, false);
    const int shared = ranks_that_pay(large_training(1e-5, 1e10), 64, true);
    CHECK(own == 64);
    CHECK(shared == 4);
}

TEST_CASE("prediction: a list of parameters, and lines that are none") {
    const TemporaryFolder folder;
    const std::filesystem::path list = folder / "list";
    std::ofstream(list) << "fc1.weight 200704 float32\n\nfc1.bias 256 bfloat16\n";
    const GradientSizes expected{{"fc1.weight", 200704, ElementType::float32},
                                 {"fc1.bias", 256, ElementType::bfloat16}};
    CHECK(read_training(list).parameters == expected);
    CHECK(read_training(list).times_s.empty());
    CHECK_THROWS_WITH(read_training(folder / "none"),
                      ContainsSubstring("cannot be read: --parameters takes a file."));
    std::ofstream(list) << "second 7 float32 3ms\nfirst 5 float32 0.5ms\n";
    CHECK(read_training(list).times_s == std::vector{3e-3, 5e-4});
    CHECK(read_training(list).backward_s == Approx(3.5e-3));
    std::ofstream(list) << "second 7 float32 3ms\nfirst 5 float32\n";
    CHECK_THROWS_WITH(read_training(list), ContainsSubstring("it needs them for all, or for none"));
    for (const char* line :
         {"a", "a 3", "a 3 int64", "a three float32", "a 3 float32 more", "a 3 float32 3ms more",
          "a 0 float32", "a -3 float32", "a 99999999999999999999 float32"}) {
        std::ofstream(list) << "fc1.weight 200704 float32\n" << line << "\n";
        CHECK_THROWS_WITH(read_training(list),
                          ContainsSubstring("Line 2 of " + list.string()) &&
                              ContainsSubstring("but is '" + std::string(line) + "'."));
    }
    std::ofstream(list) << std::string((1 << 20) + 1, 'a');
    CHECK_THROWS_WITH(read_training(list), ContainsSubstring("is longer than 1 MiB"));
    std::ofstream(list) << "\n";
    CHECK_THROWS_WITH(read_training(list),
                      ContainsSubstring("has none: it needs a line for each."));
}

TEST_CASE("prediction program: two tables, and a sentence for what is missing or wrong") {
    const TemporaryFolder folder;
    const std::string list = (folder / "list").string();
    std::ofstream file(list);
    for (int i = 0; i < 8; i++)
        file << "layer" << i << ".weight 1048576 float32\n";
    file.close();
    const ProgramRun run = predict.run(
        {"--parameters", list, "--link", "50us,1GB/s", "--backward", "100ms", "--quick"});
    CHECK(run.count("8 parameters, 32 MiB of gradients; forward 50.0 ms, backward 100 ms.") == 1);
    CHECK(run.count(" best\n") == 1);
    CHECK(run.count("Twice the ranks pay if they are 1.5 times as fast: up to ") == 1);
    Words recorded{"--parameters", list, "--link", "50us,1GB/s", "--backward", "100ms", "--quick"};
    recorded.insert(recorded.end(), {"--recorded", "200ms,8", "--late", "20ms"});
    const ProgramRun beside = predict.run(recorded);
    CHECK(beside.count("Recorded: 200 ms, with 8 buckets; simulated with as many: ") == 1);
    CHECK(beside.count("as it is, and no rank late ") == 1);
    CHECK(run.count("Recorded") + run.count("no rank late") == 0);
    for (const char* wrong : {"200", "200ms", "200ms,", "200ms,-1", "200ms,3x", "0ms,3"}) {
        recorded[8] = wrong;
        CHECK(predict.refusal(recorded).find("--recorded must be TIME,BUCKETS") !=
              std::string::npos);
    }
    const Words right{"--parameters", list, "--link", "50us,1GB/s", "--backward", "100ms"};
    for (const auto& [place, text, sentence] :
         std::vector<std::tuple<std::size_t, std::string, std::string>>{
             {3, "1GB/s,50us", "--link must be ALPHA,BETA"},
             {3, "50us", "--link must be ALPHA,BETA"},
             {5, "100", "--backward must be a time, such as 120ms, but is '100'."},
             {5, "", "predict takes --parameters LIST"},
             {1, "", "predict takes --parameters LIST"},
             {1, (folder / "none").string(), "cannot be read"}}) {
        Words wrong = right;
        wrong[place] = text;
        CHECK(predict.refusal(wrong).find(sentence) != std::string::npos);
    }
}

}  // namespace ddp::test
