#include "tests/support/text.hpp"

#include <iterator>
#include <regex>
#include <sstream>

#include "tests/support/catch.hpp"

namespace ddp::test {

Words operator+(Words a, const Words& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

int count(const std::string& text, const std::string& part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        found++;
    return found;
}

std::string table_row(const std::string& text, const std::string& name, const std::string& title) {
    CAPTURE(title, name);
    const std::size_t begin = text.find(title);
    REQUIRE(begin != std::string::npos);
    std::istringstream lines(text.substr(begin));
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(name + " "))
            return line.substr(name.size());
    FAIL("no line begins with this name");
    return "";
}

Words words_of(const std::string& line) {
    std::istringstream stream(line);
    return {std::istream_iterator<std::string>(stream), {}};
}

std::vector<double> numbers_of(const std::string& line) {
    std::istringstream stream(line);
    return {std::istream_iterator<double>(stream), {}};
}

Words matches(const std::string& text, const std::string& expression, int group) {
    Words found;
    const std::regex regex(expression);
    for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it)
        found.push_back((*it)[static_cast<std::size_t>(group)]);
    return found;
}

std::string last_hash(const std::string& text) {
    const Words all = matches(text, "hash ([0-9a-f]{16})");
    REQUIRE(!all.empty());
    return all.back();
}

}  // namespace ddp::test
