#pragma once
// Quantities as people write them, in both directions: 1.5 MiB, 12.3 us, 4.56 GB/s.
// Bytes are counted in powers of 1024 (KiB), rates in powers of 1000 (kB/s), as memory and links
// are sold.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddp {

// Three significant digits and the unit that suits them; "n/a" for a NaN, which is how a quantity
// that does not exist (the bus bandwidth of one rank) is passed on.
std::string format_bytes(double bytes);                                  // 512 B, 64 KiB, 1.5 MiB
std::string format_seconds(double seconds);                              // 12.3 us, 1.00 ms, 35.0 s
std::string format_bandwidth(double bytes_per_second);                   // 4.56 GB/s
std::string format_fixed(double value, int decimals);                    // 0.883
std::string format_percent(double fraction);                             // 0.853 -> 85.3 %
std::string format_count(std::int64_t count);                            // 1,234,567
std::string format_count(std::int64_t count, const std::string& thing);  // 1 rank, 4 ranks

// The other way round, strictly: a number, its unit (in the case shown), and nothing else. nullopt
// for anything that is not one, is negative or is not finite.
std::optional<double> parse_seconds(std::string_view text);  // ns, us, ms, s
std::optional<double> parse_bandwidth(
    std::string_view text);  // in bytes per second, from B/s, kB/s, MB/s,
                             // GB/s, KiB/s, MiB/s, GiB/s, bit/s, kbit/s,
                             // Mbit/s, Gbit/s
}  // namespace ddp
