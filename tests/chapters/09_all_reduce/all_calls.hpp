#pragma once
// Every call of a communicator, with values that show their rank and index, and with sums that are
// rounded: their bits show the order of the additions.
#include <string>
#include <vector>

#include "09_all_reduce/communicator.hpp"

namespace ddp::test {

// One operation with elements of one type, for all counts.
struct CallResult {
    std::string call;       // "all_reduce average float32"
    std::size_t wrong = 0;  // elements on this rank that differ from the documented result
    std::string bits;       // a hash of all results on this rank
};

// The documented order of sums. The ring has the ranks at the indices `ring`, one after the other.
// An all-reduce first sums neighbours there, `local` of them, which share a node on two levels.
// With is_any, every order is right: the data gives the same sum in each.
struct OrderOfSums {
    std::vector<int> ring;
    int local = 1;
    bool is_any = false;
};
// Returns the order of `ranks` ranks on one node.
OrderOfSums order_on_one_node(int ranks);
// Returns that of a library that documents none.
OrderOfSums any_order(int ranks);

// Makes all calls, in place and out of place, with every type and each of `counts`, and with
// `large` floats. All ranks call this function. A reduce adds in one order on one node and in
// another between nodes, so its data gives the same sum in every order.
std::vector<CallResult> make_all_calls(Communicator& communicator,
                                       const std::vector<std::size_t>& counts, std::size_t large,
                                       const OrderOfSums& order);

// Returns the bytes of arena that make_all_calls needs on `ranks` ranks.
std::size_t arena_bytes_for(int ranks, const std::vector<std::size_t>& counts, std::size_t large);

}  // namespace ddp::test
