// The exercise outer_momentum: a prediction beside the chapter's own local SGD on real ranks, and
// an optimizer beside the numbers of PyTorch's.
#include "10_nodes/make_communicator.hpp"
#include "exercises/13_async/outer_momentum.hpp"

#include <cmath>

#include "11_data_parallel/replica.hpp"
#include "13_async/local_sgd.hpp"
#include "common/report/units.hpp"
#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

// ---- Task resting_point

// What the chapter's local SGD comes to, after `meetings` of them.
double measured_point(const std::vector<LocalLoss>& losses, double learning_rate, int every,
                      int meetings) {
    double found = 0;
    on_ranks(static_cast<int>(losses.size()), [&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, std::size_t{1} << 20);
        const auto communicator = make_communicator("native", rank, 1 << 16);
        const auto w = std::make_shared<Parameter>(
            "w", Tensor(device, {1}, communicator->allocate<float>(1).share()));
        w->value.copy_from(std::vector<float>{0});
        PlainSgd optimizer({w}, learning_rate);
        const LocalLoss& loss = losses[static_cast<std::size_t>(rank.rank())];
        rank.barrier();
        local_sgd(*communicator, w->value, optimizer, meetings * every, every, [&](int) {
            const double value = static_cast<double>(w->value.to_host()[0]);
            w->gradient_for_writing().copy_from(
                std::vector<float>{static_cast<float>(loss.curvature * (value - loss.target))});
        });
        if (rank.rank() == 0)
            found = static_cast<double>(w->value.to_host()[0]);
        rank.barrier();
    });
    return found;
}

// How far a rank goes towards its target between two meetings, wrongly computed.
struct WrongWeight {
    const char* words;
    double (*weight)(double curvature, double learning_rate, int every);
};
constexpr WrongWeight wrong_weights[] = {
    {"That is the mean of the targets, but ranks don't get all the way.\n",
     [](double, double, int) { return 1.0; }},
    {"That is the minimum of the mean loss, which local SGD does not rest at.\n",
     [](double c, double, int) { return c; }},
    {"You take the part of the way that is LEFT for the part that is gone.\n",
     [](double c, double rate, int every) { return std::pow(1 - rate * c, every); }},
    {"You count one step too few between two meetings.\n",
     [](double c, double rate, int every) { return 1 - std::pow(1 - rate * c, every - 1); }}};

// Returns what a wrong prediction tells, or "".
std::string cause_of(const std::vector<LocalLoss>& losses, double learning_rate, int every,
                     double predicted) {
    double right_sum = 0;
    for (const LocalLoss& loss : losses)
        right_sum += (1 - std::pow(1 - learning_rate * loss.curvature, every)) * loss.target;
    if (std::abs(predicted - right_sum / static_cast<double>(losses.size())) <= 1e-6)
        return "You divide by the number of ranks; a weighted mean is divided by the sum of its "
               "weights.\n";
    for (const WrongWeight& wrong : wrong_weights) {
        double sum = 0, weights = 0;
        for (const LocalLoss& loss : losses) {
            const double weight = wrong.weight(loss.curvature, learning_rate, every);
            sum += weight * loss.target;
            weights += weight;
        }
        if (std::abs(predicted - sum / weights) <= 1e-6)
            return wrong.words;
    }
    return "";
}

void check_point(const std::vector<LocalLoss>& losses, double learning_rate, int every,
                 int meetings, const std::string& hint) {
    const double predicted = resting_point(losses, learning_rate, every);
    const double measured = measured_point(losses, learning_rate, every, meetings);
    if (std::abs(predicted - measured) <= 0.001)
        return held();
    std::string text;
    for (const LocalLoss& loss : losses)
        text += "curvature " + format_fixed(loss.curvature, 1) + " target " +
                format_fixed(loss.target, 1) + ", ";
    throw Wrong(text + "learning rate " + format_fixed(learning_rate, 2) + ", a meeting every " +
                std::to_string(every) + " steps: you predict w = " + format_fixed(predicted, 4) +
                ", and the chapter's local SGD rests at " + format_fixed(measured, 4) + ".\n" +
                cause_of(losses, learning_rate, every, predicted) + hint);
}

void check_resting_point() {
    check_point({{1, 2}, {1, 6}}, 0.5, 4, 10, "The case: both ranks pull equally hard.");
    check_point({{1, 0}, {3, 8}}, 0.25, 1, 30,
                "The case: they meet after every step. That is averaging gradients, and it rests "
                "where the mean gradient is 0.");
    check_point({{1, 0}, {3, 8}}, 0.25, 4, 10,
                "The case: they meet rarely. Each goes far towards its own target in between, and "
                "no farther, so who pulls harder counts for less than with a meeting after every "
                "step.");
    check_point({{1, 0}, {3, 8}, {0.5, -4}}, 0.25, 3, 30,
                "The case: three ranks. Each weighs by the part of the way to its target that it "
                "goes between two meetings.");
}

// ---- Task outer_step

struct Meeting {
    float mean, agreed;
};

// One element before and after a step.
struct Element {
    float old, old_velocity, agreed, velocity;
};

// Returns what a wrong step tells, or "".
std::string cause_of_step(const OuterOptions& options, const Element& yours, float mean) {
    const auto rate = static_cast<float>(options.learning_rate);
    const auto momentum = static_cast<float>(options.momentum);
    const float gradient = yours.old - mean;
    const auto is = [](float one, float other) { return std::abs(one - other) <= 1e-4f; };
    const float velocity = momentum * yours.old_velocity + gradient;
    const float look_ahead = gradient + momentum * velocity;
    if (is(yours.velocity, yours.old_velocity) && !is(velocity, yours.old_velocity))
        return "`velocity` is as it was before: it is kept for the next meeting.\n";
    if (rate < 1 && is(yours.velocity, momentum * yours.old_velocity + rate * gradient))
        return "The learning rate is in your velocity. In PyTorch's SGD it is not.\n";
    if (momentum > 0 &&
        is(yours.velocity, momentum * yours.old_velocity + (1 - momentum) * gradient))
        return "You weigh the gradient by 1 - momentum, as an average does (PyTorch's dampening). "
               "Here it is added as it is.\n";
    if (momentum > 0 &&
        (is(yours.agreed, yours.old - rate * velocity) ||
         is(yours.agreed, yours.old - rate * (gradient + momentum * yours.old_velocity))))
        return "That is plain momentum, or you look ahead with the OLD velocity.\n";
    if (is(yours.agreed, mean - rate * look_ahead))
        return "Your step begins at the mean; it begins at `agreed`.\n";
    if (is(yours.agreed, yours.old - look_ahead))
        return "The learning rate is missing in your step.\n";
    return "";
}

void check_meetings(const OuterOptions& options, float begin, const std::vector<Meeting>& meetings,
                    const std::string& hint) {
    // The second element goes twice as far, and the other way: elements must not be mixed up.
    const auto second = [](float first) { return 20 - 2 * first; };
    std::vector<float> agreed = {begin, second(begin)}, velocity = {0, 0};
    for (std::size_t m = 0; m < meetings.size(); m++) {
        const Meeting& meeting = meetings[m];
        const std::vector<float> old = agreed, old_velocity = velocity;
        const std::vector<float> means = {meeting.mean, second(meeting.mean)};
        outer_step(options, agreed, velocity, means);
        for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
            const float right = i == 0 ? meeting.agreed : second(meeting.agreed);
            if (agreed.size() == 2 && std::abs(agreed[i] - right) <= 1e-4f)
                continue;
            throw Wrong(
                "Learning rate " + format_fixed(options.learning_rate, 2) + ", momentum " +
                format_fixed(options.momentum, 2) + ", meeting number " + std::to_string(m + 1) +
                ", element " + std::to_string(i) + ", the mean is " + std::to_string(means[i]) +
                ": you go on from " + std::to_string(agreed.at(i)) + ", and should from " +
                std::to_string(right) + ".\n" +
                cause_of_step(options, {old[i], old_velocity[i], agreed[i], velocity[i]},
                              means[i]) +
                (i > 0 ? "Each element has a gradient and a velocity of its own.\n" : "") + hint);
        }
    }
    held();
}

void check_outer_step() {
    check_meetings(
        {1, 0}, 8, {{6, 6}, {7, 7}, {1, 1}},
        "That is local SGD: all go on from the mean. Which way does the gradient point?");
    check_meetings(
        {0.5, 0}, 8, {{6, 7}, {6, 6.5f}},
        "Without momentum it goes a part of the way to the mean, as much as the learning "
        "rate says.");
    const std::string hint =
        "The velocity is momentum times the old one, plus the gradient. Nesterov's step looks "
        "ahead: it is made of the gradient, and momentum times the NEW velocity.";
    check_meetings({0.5, 0.25}, 8, {{6, 6.75f}, {6, 6.21875f}, {6, 6.04296875f}}, hint);
    // By torch.optim.SGD(lr=0.5, momentum=0.5, nesterov=True), whose gradient is agreed - mean.
    check_meetings({0.5, 0.5}, 8, {{6, 6.5f}, {6, 5.875f}, {6, 5.78125f}, {8, 7.3671875f}}, hint);
}

}  // namespace

std::vector<Task> tasks() {
    return {{"resting_point", check_resting_point}, {"outer_step", check_outer_step}};
}

}  // namespace ddp::test
