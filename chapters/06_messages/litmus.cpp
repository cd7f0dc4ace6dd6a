// A torn read: the flag has overtaken the record, so the order in memory is W2 R1 R2 W1.
//
//     memory holds          sender              receiver
//     record 6, flag 6
//     record 6, flag 7      W2: flag = 7
//                                               R1: the flag is 7, go on
//                                               R2: record 6, the old one
//     record 7, flag 7      W1: the record
//
// possible_orders makes all orders in two steps: first the orders of each thread's own two
// accesses, then all ways to merge the two threads.
#include "06_messages/litmus.hpp"

#include <algorithm>
#include <iostream>

#include "common/report/table.hpp"

namespace ddp {
namespace {

// Adds to `all` every order that begins with `begin` and goes on with the rest of both threads'
// accesses: each thread keeps its own order, and either of them may be next.
void add_merged(std::vector<AccessOrder>& all, const AccessOrder& begin, const AccessOrder& sender,
                const AccessOrder& receiver) {
    if (sender.empty() && receiver.empty())
        all.push_back(begin);
    const auto take_from = [&](const AccessOrder& thread) {
        AccessOrder longer = begin;
        longer.push_back(thread.front());
        return longer;
    };
    if (!sender.empty())
        add_merged(all, take_from(sender), {sender.begin() + 1, sender.end()}, receiver);
    if (!receiver.empty())
        add_merged(all, take_from(receiver), sender, {receiver.begin() + 1, receiver.end()});
}

// Returns "W2 R1 R2 W1".
std::string joined(const AccessOrder& order) {
    std::string text;
    for (const Access access : order)
        text += (text.empty() ? "" : " ") + name_of(access);
    return text;
}

}  // namespace

std::string name_of(Access access) {
    constexpr const char* names[] = {"W1", "W2", "R1", "R2"};
    return names[static_cast<int>(access)];
}

std::vector<AccessOrder> possible_orders(bool release, bool acquire) {
    using enum Access;
    // Each thread alone: the order of the program, and the exchanged one if nothing forbids it.
    std::vector<AccessOrder> senders{{write_record, write_flag}};
    std::vector<AccessOrder> receivers{{read_flag, read_record}};
    if (!release)
        senders.push_back({write_flag, write_record});
    if (!acquire)
        receivers.push_back({read_record, read_flag});
    // Both together.
    std::vector<AccessOrder> all;
    for (const AccessOrder& sender : senders)
        for (const AccessOrder& receiver : receivers)
            add_merged(all, {}, sender, receiver);
    return all;
}

bool is_torn(const AccessOrder& order) {
    // True: the new value is in memory; for the last two: the receiver has read it.
    bool flag = false, record = false, saw_flag = false, saw_record = false;
    for (const Access access : order) {
        flag |= access == Access::write_flag;
        record |= access == Access::write_record;
        if (access == Access::read_flag)
            saw_flag = flag;
        if (access == Access::read_record)
            saw_record = record;
    }
    return saw_flag && !saw_record;
}

void show_litmus() {
    Table table("The flag without release, or without acquire: all orders of four accesses",
                {"flag is written", "flag is read", "orders", "flag new, record old", "such as"});
    for (const bool release : {false, true})
        for (const bool acquire : {false, true}) {
            const std::vector<AccessOrder> orders = possible_orders(release, acquire);
            const auto torn = std::ranges::find_if(orders, is_torn);
            table.row({release ? "with release" : "plainly", acquire ? "with acquire" : "plainly",
                       std::to_string(orders.size()),
                       std::to_string(std::ranges::count_if(orders, is_torn)),
                       torn == orders.end() ? "none" : joined(*torn)});
        }
    table.note(
        "The sender writes the record (W1) and the flag (W2), the receiver reads the flag (R1) and "
        "the record (R2).");
    std::cout << table << "\n";
}

}  // namespace ddp
