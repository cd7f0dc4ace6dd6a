#include "common/report/progress.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "common/report/bench.hpp"
#include "common/report/table.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Both ends of a pseudo-terminal (or a pipe): what is drawn on `drawn` is read from `seen`.
struct Terminal {
    int seen = -1, drawn = -1;

    explicit Terminal(unsigned short columns) {
        winsize size{24, columns, 0, 0};
        if (openpty(&seen, &drawn, nullptr, nullptr, &size) != 0)
            throw std::runtime_error("openpty failed");
    }
    ~Terminal() {
        close(seen);
        close(drawn);
    }
    Terminal(const Terminal&) = delete;

    std::string text() const {
        std::string result;
        char bytes[4096];
        for (pollfd ready{seen, POLLIN, 0}; poll(&ready, 1, 50) > 0;) {
            const ssize_t count = read(seen, bytes, sizeof bytes);
            if (count <= 0)
                break;
            result.append(bytes, static_cast<std::size_t>(count));
        }
        return result;
    }
};

// What stands on the line once `text` was written: "\r" starts it over.
std::string on_screen(const std::string& text) {
    std::string line;
    std::size_t column = 0;
    for (const char c : text) {
        if (c == '\r') {
            column = 0;
            continue;
        }
        line.resize(std::max(line.size(), column + 1), ' ');
        line[column++] = c;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
}

void nap() {
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
}

}  // namespace

TEST_CASE("the line shows share and time left", "[report][progress]") {
    CHECK(progress_line("epoch 2", 0, 30, 0, 79) ==
          "epoch 2 [----------------------------------------]   0 %");
    CHECK(progress_line("epoch 2", 10, 30, 6, 79) ==
          "epoch 2 [#############---------------------------]  33 %  0:12 left");
    CHECK(progress_line("epoch 2", 30, 30, 6, 79) ==
          "epoch 2 [########################################] 100 %  0:00 left");
    CHECK(progress_line("x", 1, 100, 60, 50) ==
          "x [--------------------------]   1 %  1:39:00 left");
    CHECK(progress_line("x", 1, 2, 95, 50) == "x [##############---------------]  50 %  1:35 left");
    CHECK(progress_line("x", 1, 4, 1000, 50) ==
          "x [#######---------------------]  25 %  50:00 left");
}

TEST_CASE("more than all is all", "[report][progress]") {
    CHECK(progress_line("x", 9, 3, 1, 20).find("100 %") != std::string::npos);
    CHECK(progress_line("x", -9, 3, 1, 20).find("  0 %") != std::string::npos);
}

TEST_CASE("without a total it counts", "[report][progress]") {
    CHECK(progress_line("packets", 0, 0, 0, 79) == "packets 0  0:00");
    CHECK(progress_line("packets", 12, 0, 61, 79) == "packets 12  1:01");
}

TEST_CASE("no line is wider than the terminal", "[report][progress]") {
    for (std::size_t width = 0; width < 120; width++)
        for (const int total : {0, 7}) {
            INFO("width " << width << ", total " << total);
            CHECK(display_width(progress_line("perché", 3, total, 100000, width)) <= width);
        }
    CHECK(progress_line("epoch 2", 10, 30, 6, 28) == "epoch 2  33 %  0:12 left");
    CHECK(progress_line("epoch 2", 10, 30, 6, 10) == "epoch 2  …");
}

TEST_CASE("on a terminal it draws, and leaves a clean line", "[report][progress]") {
    const Terminal terminal(60);
    std::string text;
    {
        Progress progress("train", 3, terminal.drawn);
        text += terminal.text();
        CHECK(on_screen(text) == "train [" + std::string(40, '-') + "]   0 %");
        nap();
        progress.advance(2);
        text += terminal.text();
        CHECK(on_screen(text).find(" 66 %  0:0") != std::string::npos);
        nap();
        winsize narrow{24, 30, 0, 0};
        REQUIRE(ioctl(terminal.drawn, TIOCSWINSZ, &narrow) == 0);
        progress.advance();
        const std::string drawn = terminal.text();
        text += drawn;
        CHECK(on_screen(drawn) == "train 100 %  0:00 left");
    }
    text += terminal.text();
    CHECK(on_screen(text).empty());
    CHECK(text.back() == '\r');
    CHECK(text.find('\n') == std::string::npos);
}

TEST_CASE("a new label is drawn with the next step", "[report][progress]") {
    const Terminal terminal(80);
    Progress progress("epoch 1", 2, terminal.drawn);
    nap();
    progress.set_label("epoch 1  5,120 tokens/s");
    progress.advance();
    CHECK(on_screen(terminal.text()).starts_with("epoch 1  5,120 tokens/s [##"));
}

TEST_CASE("a million steps are drawn ten times a second", "[report][progress]") {
    const Terminal terminal(80);
    const Stopwatch stopwatch;
    {
        Progress progress("steps", 0, terminal.drawn);
        for (int i = 0; i < 1000000; i++)
            progress.advance();
    }
    const std::string text = terminal.text();
    const auto draws = std::count(text.begin(), text.end(), '\r');
    CHECK(draws <= 3 + static_cast<long>(10 * stopwatch.seconds()));
    CHECK(draws >= 2);
}

TEST_CASE("a pipe and a closed terminal see nothing", "[report][progress]") {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    {
        Progress progress("train", 3, ends[1]);
        nap();
        progress.advance(3);
    }
    char byte = 0;
    CHECK(read(ends[0], &byte, 1) == -1);
    CHECK(errno == EAGAIN);
    close(ends[0]);
    close(ends[1]);
    Progress nowhere("train", 3, -1);
    nowhere.advance();
}

}  // namespace ddp::test
