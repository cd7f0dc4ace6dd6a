#include "common/report/main.hpp"

#include <iostream>
#include <string>

#include "common/report/options.hpp"

namespace ddp {
namespace {

// Prints the error and returns `status`. stdout is flushed first, so the order is right where both
// streams go to one place. The sentence is written by one call: if a launcher ends the whole job,
// this process may not live long enough for a second one.
int failed(const std::string& what, int status) {
    std::cout.flush();
    std::cerr << "error: " + what + "\n" << std::flush;
    return status;
}

}  // namespace

int run_main(const std::function<int()>& work) {
    try {
        return work();
    } catch (const HelpRequested& help) {
        std::cout << help.text << std::flush;
        return 0;
    } catch (const OptionError& error) {
        return failed(error.what(), 2);
    } catch (const std::exception& error) {
        return failed(error.what(), 1);
    } catch (...) {
        return failed("an exception was thrown that is not a std::exception: make it one.", 1);
    }
}

}  // namespace ddp
