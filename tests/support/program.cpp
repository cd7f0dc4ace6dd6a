#include "tests/support/program.hpp"

#include "tests/support/catch.hpp"

namespace ddp::test {

ProgramRun::ProgramRun(const ChildResult& result)
    : output(result.output),
      shown_(std::make_shared<Catch::ScopedMessage>(
          Catch::MessageBuilder("INFO", CATCH_INTERNAL_LINEINFO, Catch::ResultWas::Info)
          << output)) {
    REQUIRE(result.exit_code == 0);
}

Csv ProgramRun::beside(const std::string& what) const {
    return read_csv(*folder / ("run_" + what + ".csv"));
}

Program::Program(const std::string& path, const Words& always) : command_(Words{path} + always) {}

ProgramRun Program::run(const Words& words) const {
    const auto folder = std::make_shared<const TemporaryFolder>();
    const std::filesystem::path csv = *folder / "run.csv";
    ProgramRun run(call(Words{"--csv", csv.string()} + words));
    run.folder = folder;
    if (std::filesystem::exists(csv))
        run.csv = read_csv(csv);
    return run;
}

std::string Program::refusal(const Words& words, int status) const {
    const ChildResult result = call(words);
    CAPTURE(result.output);
    REQUIRE(result.exit_code == status);
    REQUIRE(result.output.find('\n') == result.output.size() - 1);
    return result.output;
}

ChildResult Program::call(const Words& words) const {
    return run_command(command_ + words, {}, 120);
}

}  // namespace ddp::test
