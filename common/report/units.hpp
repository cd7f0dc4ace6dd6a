#pragma once
// Quantities as people write them, in both directions: 1.5 MiB, 12.3 us, 4.56 GB/s.
// Bytes are counted in powers of 1024 (KiB), rates in powers of 1000 (kB/s), as is usual for memory
// and for links.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddp {

// The format functions return three significant digits and the unit that suits them. They return
// "n/a" for a NaN, which stands for a quantity that does not exist (the bus bandwidth of one rank).
std::string format_bytes(double bytes);                                  // 512 B, 64 KiB, 1.5 MiB
std::string format_seconds(double seconds);                              // 12.3 us, 1.00 ms, 35.0 s
std::string format_bandwidth(double bytes_per_second);                   // 4.56 GB/s
std::string format_fixed(double value, int decimals);                    // 0.883
std::string format_percent(double fraction);                             // 0.853 -> 85.3 %
std::string format_count(std::int64_t count);                            // 1,234,567
std::string format_count(std::int64_t count, const std::string& thing);  // 1 rank, 4 ranks

// The parse functions read a number and its unit (in the case shown), and nothing else. They return
// nullopt for any other text, and for a number that is negative or not finite.

// Reads ns, us, ms or s; returns seconds.
std::optional<double> parse_seconds(std::string_view text);
// Reads B/s, kB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s, bit/s, kbit/s, Mbit/s or Gbit/s; returns bytes
// per second.
std::optional<double> parse_bandwidth(std::string_view text);

}  // namespace ddp
