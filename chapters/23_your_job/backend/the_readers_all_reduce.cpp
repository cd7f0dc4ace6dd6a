#include "23_your_job/backend/own_all_reduce.hpp"
#include "exercises/09_all_reduce/halving_doubling.hpp"

namespace ddp {

OwnAllReduce own_all_reduce() {
    return halving_doubling_all_reduce;
}

}  // namespace ddp
