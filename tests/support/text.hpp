#pragma once
// What programs print, read back.
#include <string>
#include <vector>

namespace ddp::test {

using Words = std::vector<std::string>;

Words operator+(Words a, const Words& b);

// Returns whether `part` occurs in `text`.
bool has(const std::string& text, const std::string& part);

// Returns how often `part` occurs in `text`.
int count(const std::string& text, const std::string& part);

// Returns the rest of the first line behind `title` that begins with `name` and a space. Fails the
// test if there is no such line.
std::string table_row(const std::string& text, const std::string& name,
                      const std::string& title = "");

// Splits a line at its spaces.
Words words_of(const std::string& line);

// Returns the numbers that a line begins with, up to the first word that is none.
std::vector<double> numbers_of(const std::string& line);

// Returns group `group` of every match of a regular expression, in order.
Words matches(const std::string& text, const std::string& expression, int group = 1);

// Returns the last "hash ..." of 16 digits. Fails the test if there is none.
std::string last_hash(const std::string& text);

}  // namespace ddp::test
