#pragma once
// Catch2, version 2 (Debian 12: one header) or 3, under one name.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
