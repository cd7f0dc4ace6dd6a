// Alone in its file: the linker takes it from the library only for a program that has no other one.
#include "09_all_reduce/support/further_all_reduces.hpp"

namespace ddp {

std::vector<FurtherAllReduce> further_all_reduces() {
    return {};
}

}  // namespace ddp
