#include "common/report/main.hpp"

#include <iostream>

#include "common/report/options.hpp"

namespace ddp {
namespace {

// What was printed so far comes first, where both streams go to one place.
int failed(const char* what, int status) {
    std::cout.flush();
    std::cerr << "error: " << what << std::endl;
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
        return failed("something was thrown that is no std::exception: make it one.", 1);
    }
}

}  // namespace ddp
