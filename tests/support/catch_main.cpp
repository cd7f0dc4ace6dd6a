// The main of every test program, where Catch2 2 is a header alone: compiled once (see
// tests/CMakeLists.txt).
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
