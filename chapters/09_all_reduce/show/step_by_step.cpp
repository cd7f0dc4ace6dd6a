#include "09_all_reduce/show/step_by_step.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "common/report/units.hpp"

namespace ddp {
namespace {

// Backgrounds that dark text can be read on, from the 256 colours of a terminal.
constexpr int rank_colors[most_ranks_in_a_picture] = {75, 215, 114, 210, 183, 80, 222, 250};

// Returns `text`, whose bytes are one column each, in `width` columns.
std::string padded(std::string text, std::size_t width) {
    text.resize(std::max(text.size(), width), ' ');
    return text;
}

// Returns "01·3": a digit for each rank in the set, a dot for each that is missing.
std::string cell_of(RankSet set, int ranks, bool in_color) {
    std::string cell;
    for (int r = 0; r < ranks; r++) {
        const std::string digit = std::to_string(r);
        if ((set >> r & 1) == 0)
            cell += "·";
        else if (in_color)
            cell += "\033[30;48;5;" + std::to_string(rank_colors[r]) + "m" + digit + "\033[0m";
        else
            cell += digit;
    }
    return cell;
}

// Returns a bar for the steps in which a port was busy, and the part of an array that passed it.
std::string port_of(std::size_t chunks, std::size_t ranks) {
    std::string bar;
    for (std::size_t i = 0; i < chunks; i++)
        bar += "█";
    for (std::size_t i = chunks; i < 2 * (ranks - 1); i++)
        bar += "░";
    return bar + " " + format_fixed(static_cast<double>(chunks) / static_cast<double>(ranks), 2);
}

std::string without_trailing_blanks(const std::string& text) {
    std::string tidy;
    for (const char c : text) {
        if (c == '\n')
            tidy.erase(tidy.find_last_not_of(' ') + 1);
        tidy += c;
    }
    return tidy.erase(tidy.find_last_not_of(' ') + 1);
}

}  // namespace

std::string picture_of_step(const std::vector<Step>& steps, std::size_t step, bool in_color) {
    const std::size_t ranks = steps[0].size();
    const int count = static_cast<int>(ranks);
    const std::size_t width = 2 * (ranks - 1) + 8;
    std::string text =
        step == 0 ? "The beginning: every rank has its own numbers.\n"
                  : "Step " + std::to_string(step) + " of " + std::to_string(2 * (ranks - 1)) +
                        ": every rank receives a chunk from the left" +
                        (step < ranks ? ", and adds its own.\n" : ", and keeps it.\n");
    text += padded("", 11);
    for (int r = 0; r < count; r++)
        text += padded("rank " + std::to_string(r), width);
    for (std::size_t chunk = 0; chunk < ranks; chunk++) {
        text += "\n" + padded("  chunk " + std::to_string(chunk), 11);
        for (const Holdings& holdings : steps[step])
            text += cell_of(holdings[chunk], count, in_color) + std::string(width - ranks, ' ');
    }
    text += "\n" + padded("  came in", 11);
    for (int r = 0; r < count; r++) {
        const int came = step == 0 ? -1 : received_chunk(steps[step - 1], steps[step], r);
        text += padded(came < 0 ? "-" : "chunk " + std::to_string(came), width);
    }
    text += "\n" + padded("  port", 11);
    for (int r = 0; r < count; r++) {
        std::size_t chunks = 0;  // that came in, one in each step
        for (std::size_t i = 1; i <= step; i++)
            chunks += received_chunk(steps[i - 1], steps[i], r) >= 0 ? 1 : 0;
        text += port_of(chunks, ranks) + "   ";
    }
    return without_trailing_blanks(text) + "\n";
}

void show_step_by_step(const std::vector<Step>& steps) {
    const bool is_terminal = isatty(STDOUT_FILENO) == 1;
    std::cout << "A digit for each rank whose numbers are in the sum. Port: the arrays that have "
                 "come in so far;\nas much goes out.\n";
    for (std::size_t step = 0; step < steps.size(); step++) {
        std::cout << "\n" << picture_of_step(steps, step, is_terminal) << std::flush;
        if (std::string line; is_terminal && isatty(STDIN_FILENO) == 1 && step + 1 < steps.size()) {
            std::cout << "(Enter for the next step) " << std::flush;
            if (!std::getline(std::cin, line))
                return;
        }
    }
}

}  // namespace ddp
