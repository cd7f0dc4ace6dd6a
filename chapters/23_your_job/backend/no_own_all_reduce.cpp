#include "23_your_job/backend/own_all_reduce.hpp"

namespace ddp {

OwnAllReduce own_all_reduce() {
    return {};
}

}  // namespace ddp
