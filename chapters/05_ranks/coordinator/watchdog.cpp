#include "05_ranks/coordinator/watchdog.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>

#include "common/gpu/thread_name.hpp"

namespace ddp {
namespace {

constexpr int period_ms = 50;

sigset_t only_sigterm() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    return set;
}

// Runs in a thread that does not block SIGTERM because it is older than the Sigterm (libraries
// start some): sends the signal to the process again, and blocks it in this thread from now on.
void pass_on_sigterm(int, siginfo_t*, void* context) {
    sigaddset(&static_cast<ucontext_t*>(context)->uc_sigmask, SIGTERM);  // when this returns
    kill(getpid(), SIGTERM);
}

}  // namespace

Watchdog::Watchdog(std::function<std::vector<int>()> descriptors, std::function<void()> poll)
    : ended_(eventfd(0, EFD_CLOEXEC)),
      thread_([this, descriptors = std::move(descriptors), poll = std::move(poll)] {
          name_thread("watchdog");
          watch(descriptors, poll);
      }) {}

Watchdog::~Watchdog() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(ended_.number(), &one, sizeof one);
    thread_.join();
}

void Watchdog::watch(const std::function<std::vector<int>()>& descriptors,
                     const std::function<void()>& poll) const {
    for (;;) {
        std::vector<pollfd> ready{{ended_.number(), POLLIN, 0}};
        for (int descriptor : descriptors())
            ready.push_back({descriptor, POLLIN, 0});
        ::poll(ready.data(), ready.size(), period_ms);
        if (ready[0].revents != 0)
            return;
        poll();
    }
}

Sigterm::Sigterm() {
    const sigset_t set = only_sigterm();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    struct sigaction pass_on {};
    pass_on.sa_sigaction = pass_on_sigterm;
    pass_on.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGTERM, &pass_on, nullptr);
    signals_ = Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

Sigterm::~Sigterm() {
    if (std::uncaught_exceptions() > 0)
        return;
    std::signal(SIGTERM, SIG_DFL);
    const sigset_t set = only_sigterm();
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool Sigterm::has_come() const {
    signalfd_siginfo information;
    return read(signals_.number(), &information, sizeof information) == sizeof information;
}

void Sigterm::obey() const {
    std::signal(SIGTERM, SIG_DFL);
    const sigset_t set = only_sigterm();
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    raise(SIGTERM);
    std::abort();  // not reached: the signal's default ends the process
}

}  // namespace ddp
