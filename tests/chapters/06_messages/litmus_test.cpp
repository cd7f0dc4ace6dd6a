// The orders of four accesses, with and without release and acquire.
#include "06_messages/litmus.hpp"

#include <algorithm>
#include <set>

#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("only release and acquire together forbid a new flag with an old record") {
    const auto torn = [](bool release, bool acquire) {
        return std::ranges::count_if(possible_orders(release, acquire), is_torn);
    };
    REQUIRE(torn(false, false) == 6);
    REQUIRE(torn(false, true) == 1);
    REQUIRE(torn(true, false) == 1);
    REQUIRE(torn(true, true) == 0);
}

TEST_CASE("orders: all that are possible, each once") {
    const auto orders = possible_orders(false, false);
    const std::set<AccessOrder> different(orders.begin(), orders.end());
    REQUIRE(orders.size() == 24);  // 4!
    REQUIRE(different.size() == 24);
    for (const AccessOrder& order : possible_orders(true, true)) {
        REQUIRE(std::ranges::find(order, Access::write_record) <
                std::ranges::find(order, Access::write_flag));
        REQUIRE(std::ranges::find(order, Access::read_flag) <
                std::ranges::find(order, Access::read_record));
    }
}

TEST_CASE("torn: the flag is seen, and the record is not") {
    using enum Access;
    REQUIRE(is_torn({write_flag, read_flag, read_record, write_record}));
    REQUIRE(is_torn({read_record, write_record, write_flag, read_flag}));
    REQUIRE_FALSE(is_torn({write_record, write_flag, read_flag, read_record}));
    REQUIRE_FALSE(is_torn({read_flag, read_record, write_flag, write_record}));  // nothing seen yet
}

}  // namespace ddp::test
