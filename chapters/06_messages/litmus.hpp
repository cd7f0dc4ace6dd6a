#pragma once
// The orders in which a record and its flag can be written and read, if the flag is written without
// release, or read without acquire.
//
//     sender's accesses           receiver's accesses
//     W1  writes the record       R1  reads the flag
//     W2  writes the flag         R2  reads the record
//
// A GPU, or an ARM processor, may exchange two writes of a thread, and two reads, unless they are
// told not to. Release keeps W1 before W2, acquire keeps R1 before R2. This machine may have a
// stricter processor, so the rule is not tried on it: every order that the rule allows is listed.
#include <string>
#include <vector>

namespace ddp {

// The access of one thread to one of the two places.
enum class Access { write_record, write_flag, read_flag, read_record };

// Returns "W1", "W2", "R1" or "R2".
std::string name_of(Access access);

// One order in which the four accesses reach memory.
using AccessOrder = std::vector<Access>;

// Returns every order that is possible with or without release and acquire.
std::vector<AccessOrder> possible_orders(bool release, bool acquire);

// Returns whether the receiver, in this order, sees the flag raised and still reads the old record.
bool is_torn(const AccessOrder& order);

// Prints how many orders are possible in each of the four cases, and how many of them are torn.
void show_litmus();

}  // namespace ddp
