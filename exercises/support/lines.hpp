#pragma once
// Lines of least squares through times of messages: what some wrong answers are taken for.
#include <cmath>
#include <vector>

#include "06_messages/point_to_point.hpp"

namespace ddp::test {

// Returns the line for which the squares of the errors in seconds, each with the weight
// 1 / seconds^power, have the smallest sum: by Cramer's rule. (With power 2 the errors are
// relative.)
inline CostModel line_by_weight(const std::vector<MessageTime>& times, double power) {
    double ones = 0, bytes = 0, squares = 0, one = 0, byte = 0;
    for (const MessageTime& time : times) {
        const double weight = std::pow(time.seconds, -power), b = static_cast<double>(time.bytes);
        ones += weight;
        bytes += weight * b;
        squares += weight * b * b;
        one += weight * time.seconds;
        byte += weight * b * time.seconds;
    }
    const double determinant = ones * squares - bytes * bytes;
    return {(one * squares - byte * bytes) / determinant,
            (ones * byte - bytes * one) / determinant};
}

}  // namespace ddp::test
