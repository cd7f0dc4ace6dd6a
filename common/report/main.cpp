#include "common/report/main.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <new>
#include <string>
#include <system_error>

#include "common/report/options.hpp"

namespace ddp {
namespace {

// Opens /dev/null in the place of each of stdin, stdout and stderr that this program was started
// without (`>&-`, daemons): the next socket or pipe would get its number, and be printed into.
void open_standard_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(stream, F_GETFD) < 0)
            open("/dev/null", O_RDWR);  // gets the lowest number that is free: this one
}

// Prints the error and returns `status`. stdout is flushed first, so the order is right where both
// streams go to one place. The sentence is written by one call: if a launcher ends the whole job,
// this process may not live long enough for a second one. What it quotes may hold anything.
int failed(std::string what, int status) {
    std::ranges::replace_if(
        what, [](unsigned char c) { return c < ' ' && c != '\n'; }, '?');
    std::cout.flush();
    std::cerr << "error: " + what + "\n" << std::flush;
    return status;
}

// Returns the status of `work`, and prints what it throws.
int status_of(const std::function<int()>& work) {
    try {
        return work();
    } catch (const HelpRequested& help) {
        std::cout << help.text;
        return 0;
    } catch (const OptionError& error) {
        return failed(error.what(), 2);
    } catch (const std::exception& error) {
        return failed(sentence_of(error), 1);
    } catch (...) {
        return failed("an exception was thrown that is not a std::exception: make it one.", 1);
    }
}

}  // namespace

std::string sentence_of(const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
        return "there is not enough memory, or a limit on it is too low (ulimit -v, a batch "
               "system's): with fewer --ranks it may do.";
    const auto* system = dynamic_cast<const std::system_error*>(&error);
    if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
        return "the system refuses this program another thread or process: start fewer --ranks, "
               "or raise the limit (ulimit -u).";
    return error.what();
}

int run_main(const std::function<int()>& work) {
    open_standard_streams();
    std::signal(SIGXFSZ, SIG_IGN);  // a file over the limit (ulimit -f) is then an error of write
    const int status = status_of(work);
    if (std::cout.flush() || status != 0)
        return status;
    return failed(output_is_lost, 1);
}

}  // namespace ddp
