// The exercise outer_momentum: a prediction beside the chapter's own local SGD on real ranks, and
// an optimizer beside the numbers of PyTorch's.
#include "exercises/12_async/outer_momentum.hpp"

#include <cmath>
#include <cstdio>

#include "10_data_parallel/replica.hpp"
#include "12_async/local_sgd.hpp"
#include "tests/exercises/support/ranks.hpp"
#include "tests/exercises/support/tasks.hpp"

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

void check_point(const std::vector<LocalLoss>& losses, double learning_rate, int every,
                 int meetings, const std::string& hint) {
    const double predicted = resting_point(losses, learning_rate, every);
    const double measured = measured_point(losses, learning_rate, every, meetings);
    if (std::abs(predicted - measured) <= 0.001)
        return;
    std::string ranks;
    for (const LocalLoss& loss : losses) {
        char text[80];
        std::snprintf(text, sizeof text, "%scurvature %g target %g", ranks.empty() ? "" : ", ",
                      loss.curvature, loss.target);
        ranks += text;
    }
    char text[200];
    std::snprintf(text, sizeof text,
                  "; learning rate %g, a meeting every %d steps: you predict w = %.4f, and the "
                  "chapter's local SGD rests at %.4f.\n",
                  learning_rate, every, predicted, measured);
    throw Wrong(ranks + text + hint);
}

void check_resting_point() {
    check_point({{1, 2}, {1, 6}}, 0.5, 4, 10, "Both ranks pull equally hard.");
    check_point({{1, 0}, {3, 8}}, 0.25, 1, 30,
                "They meet after every step: that is averaging gradients, and it rests where the "
                "mean gradient is 0.");
    check_point({{1, 0}, {3, 8}}, 0.25, 4, 10,
                "They meet rarely: each goes far towards its own target in between, and no farther "
                "than there. So who pulls harder counts for less than with a meeting after every "
                "step.");
    check_point({{1, 0}, {3, 8}, {0.5, -4}}, 0.25, 3, 30,
                "Three ranks: each weighs by the part of the way to its target that it goes "
                "between two meetings.");
}

// ---- Task outer_step

struct Meeting {
    float mean, agreed;
};

void check_meetings(const OuterOptions& options, float begin, const std::vector<Meeting>& meetings,
                    const std::string& hint) {
    // The second element is always one more: elements must not be mixed up.
    std::vector<float> agreed = {begin, begin + 1}, velocity = {0, 0};
    for (std::size_t m = 0; m < meetings.size(); m++) {
        const Meeting& meeting = meetings[m];
        outer_step(options, agreed, velocity, {meeting.mean, meeting.mean + 1});
        for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
            const float right = meeting.agreed + static_cast<float>(i);
            if (agreed.size() == 2 && std::abs(agreed[i] - right) <= 1e-4f)
                continue;
            char text[200];
            std::snprintf(
                text, sizeof text,
                "Learning rate %g, momentum %g, meeting number %d, the mean is %g: you go "
                "on from %g, right is %g.\n",
                options.learning_rate, options.momentum, static_cast<int>(m) + 1,
                static_cast<double>(meeting.mean) + static_cast<double>(i),
                static_cast<double>(agreed.at(i)), static_cast<double>(right));
            throw Wrong(text + hint);
        }
    }
}

void check_outer_step() {
    check_meetings(
        {1, 0}, 8, {{6, 6}, {7, 7}, {1, 1}},
        "That is local SGD: all go on from the mean. Which way does the gradient point?");
    check_meetings(
        {0.5, 0}, 8, {{6, 7}, {6, 6.5f}},
        "Without momentum it goes a part of the way to the mean, as much as the learning "
        "rate says.");
    // By torch.optim.SGD(lr=0.5, momentum=0.5, nesterov=True), whose gradient is agreed - mean.
    check_meetings({0.5, 0.5}, 8, {{6, 6.5f}, {6, 5.875f}, {6, 5.78125f}, {8, 7.3671875f}},
                   "The velocity is momentum times the old one, plus the gradient. Nesterov's step "
                   "looks ahead: it is made of the gradient, and momentum times the NEW velocity.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"resting_point", check_resting_point}, {"outer_step", check_outer_step}};
}

}  // namespace ddp::test
