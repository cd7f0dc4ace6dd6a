#include "09_all_reduce/show/chunk_report.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iostream>
#include <string>

#include "09_all_reduce/cost.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// Returns one digit per chunk: the number of ranks in its sum.
std::string digits_of(const Holdings& holdings, std::size_t chunks) {
    std::string digits;
    for (std::size_t chunk = 0; chunk < chunks; chunk++)
        digits += std::to_string(std::popcount(holdings[chunk]));
    return digits;
}

}  // namespace

int received_chunk(const Step& before, const Step& after, int rank) {
    const auto r = static_cast<std::size_t>(rank);
    for (std::size_t chunk = 0; chunk < after.size(); chunk++)
        if (before[r][chunk] != after[r][chunk])
            return static_cast<int>(chunk);
    return -1;
}

void print_chunks(const std::vector<Step>& steps) {
    const std::size_t ranks = steps[0].size();
    std::vector<std::string> header{"step"};
    for (std::size_t r = 0; r < ranks; r++)
        header.push_back("rank " + std::to_string(r));
    Table table("Who holds what in the ring: " + std::to_string(ranks) + " chunks on each of " +
                    std::to_string(ranks) + " ranks",
                header);
    for (std::size_t step = 0; step < steps.size(); step++) {
        const char* what = step == 0 ? "begin" : step < ranks ? " add" : " copy";
        std::vector<std::string> cells{step == 0 ? what : std::to_string(step) + what};
        for (const Holdings& holdings : steps[step])
            cells.push_back(digits_of(holdings, ranks));
        table.row(cells);
    }
    table.note("One digit per chunk: the number of ranks in its sum. " + std::to_string(ranks) +
               " is the whole sum.");
    std::cout << table << "\n";
}

void write_chunks(const std::vector<Recording>& recordings, const std::filesystem::path& csv) {
    CsvWriter file(beside(csv, "steps"),
                   {"algorithm", "step", "rank", "chunk", "ranks", "received", "sent", "step_us"});
    for (const Recording& each : recordings)
        for (std::size_t step = 0; step < each.steps.size(); step++)
            for (std::size_t rank = 0; rank < each.steps[0].size(); rank++)
                for (std::size_t chunk = 0; chunk < each.steps[0].size(); chunk++)
                    file.row({each.algorithm, step, rank, chunk, each.steps[step][rank][chunk],
                              each.received[step][rank][chunk], each.sent[step][rank][chunk],
                              step == 0 ? 0 : std::llround(each.seconds[step] * 1e6)});
}

void write_ports(const std::filesystem::path& csv) {
    CsvWriter file(beside(csv, "ports"), {"ranks", "server", "reduce_broadcast", "ring"});
    const CostModel bytes_only{0, 1};  // with an array of one byte: arrays
    for (int ranks = 2; ranks <= 64; ranks++)
        file.row({ranks, parameter_server_seconds(bytes_only, ranks, 1),
                  reduce_broadcast_seconds(bytes_only, ranks, 1),
                  ring_seconds(bytes_only, ranks, 1)});
}

// ---- In the terminal

namespace {

// Backgrounds that dark text can be read on, from the 256 colours of a terminal.
constexpr int rank_colors[max_ranks_in_a_picture] = {75, 215, 114, 210, 183, 80, 222, 250};

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
