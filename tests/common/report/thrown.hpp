#pragma once
// The text of what `work` throws, which must be an E; "(nothing)" or "(another kind) ..." if it is
// not.
#include <exception>
#include <string>

namespace ddp::test {

template <class E, class Work>
std::string thrown(Work&& work) {
    try {
        work();
    } catch (const E& error) {
        return error.what();
    } catch (const std::exception& error) {
        return std::string("(another kind) ") + error.what();
    }
    return "(nothing)";
}

}  // namespace ddp::test
