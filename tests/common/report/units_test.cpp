#include "common/report/units.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("bytes are printed in powers of 1024, without needless zeros", "[report][units]") {
    CHECK(format_bytes(0) == "0 B");
    CHECK(format_bytes(1000) == "1000 B");
    CHECK(format_bytes(1024) == "1 KiB");
    CHECK(format_bytes(1536 * 1024) == "1.5 MiB");
    CHECK(format_bytes(1024.0 * 1024 - 1) == "1 MiB");
    CHECK(format_bytes(25 * 0x1p30) == "25 GiB");
    CHECK(format_bytes(5000 * 0x1p40) == "5000 TiB");
    CHECK(format_bytes(-2048) == "-2 KiB");
    CHECK(format_bytes(std::nan("")) == "n/a");
}

TEST_CASE("times and rates have three significant digits and the unit that suits them",
          "[report][units]") {
    CHECK(format_seconds(0) == "0 s");
    CHECK(format_seconds(12.3e-6) == "12.3 us");
    CHECK(format_seconds(1e-3) == "1.00 ms");
    CHECK(format_seconds(999.4e-6) == "999 us");
    CHECK(format_seconds(999.7e-6) == "1.00 ms");
    CHECK(format_seconds(9.996e-3) == "10.0 ms");
    CHECK(format_seconds(0.5e-9) == "0.50 ns");
    CHECK(format_seconds(12345) == "12345 s");
    CHECK(format_seconds(-2e-3) == "-2.00 ms");
    CHECK(format_seconds(std::nan("")) == "n/a");
    CHECK(format_bandwidth(4.56e9) == "4.56 GB/s");
    CHECK(format_bandwidth(4.74e5) == "474 kB/s");
    CHECK(format_bandwidth(4.8e12) == "4.80 TB/s");
    CHECK(format_bandwidth(std::nan("")) == "n/a");
}

TEST_CASE("plain numbers", "[report][units]") {
    CHECK(format_fixed(0.88251, 3) == "0.883");
    CHECK(format_fixed(-1e300, 0).size() == 302);
    CHECK(format_percent(0.8534) == "85.3 %");
    CHECK(format_count(999) == "999");
    CHECK(format_count(1000) == "1,000");
    CHECK(format_count(1234567) == "1,234,567");
    CHECK(format_count(-123456) == "-123,456");
    CHECK(format_count(1, "rank") == "1 rank");
    CHECK(format_count(1234, "rank") == "1,234 ranks");
    CHECK(format_count(std::numeric_limits<std::int64_t>::min()) == "-9,223,372,036,854,775,808");
}

TEST_CASE("quantities are read back strictly", "[report][units]") {
    const auto rate = [](const char* text) { return parse_bandwidth(text).value_or(-1); };
    CHECK(rate("1kB/s") == 1e3);
    CHECK(rate("2.5GB/s") == 2.5e9);
    CHECK(rate("10Gbit/s") == 1.25e9);
    CHECK(rate("8bit/s") == 1);
    CHECK(rate("3KiB/s") == 3072);
    const auto time = [](const char* text) { return parse_seconds(text).value_or(-1); };
    CHECK(time("50us") == Approx(50e-6));
    CHECK(time("7ns") == Approx(7e-9));
    CHECK(time("0s") == 0);
    for (const char* text :
         {"", "1", "MB/s", "1 MB/s", "1mb/s", "1MB", "-1MB/s", "nanMB/s", "infMB/s", "1MB/s ",
          "+1MB/s", "0x10MB/s", "1,5MB/s", "1e308GB/s", "1e999MB/s", "-0B/s"}) {
        INFO(text);
        CHECK_FALSE(parse_bandwidth(text));
    }
    for (const char* text : {"", "1", "s", "1 s", "1S", "1min", "-1s", "nans", "1ms,", "1µs"}) {
        INFO(text);
        CHECK_FALSE(parse_seconds(text));
    }
}

}  // namespace ddp::test
