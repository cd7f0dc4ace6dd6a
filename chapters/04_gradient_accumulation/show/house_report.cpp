#include "04_gradient_accumulation/show/house_report.hpp"

#include <iostream>

#include "04_gradient_accumulation/batch_models.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

using Three = std::vector<float>;  // numbers for w1, w2 and b

// A model whose parameters begin at zero, with its tape and its optimizer.
struct Worker {
    Worker(Device& device, const std::vector<House>& houses, double learning_rate)
        : model(device, houses), tape(device), optimizer({model.weights}, learning_rate) {}

    void backward(const std::vector<MicroBatch>& batch) {
        accumulate(tape, batch, [&](Tape& on, Samples samples) { return model.loss(on, samples); });
    }
    Three values() const { return model.weights->value.to_host(); }
    Three gradient() const { return model.weights->gradient().to_host(); }

    HouseBatchModel model;
    Tape tape;
    PlainSgd optimizer;
};

// Returns a table's row: the name, then the numbers.
std::vector<std::string> cells(std::string name, const Three& numbers) {
    std::vector<std::string> result{std::move(name)};
    for (const float number : numbers)
        result.push_back(format_fixed(number, 4));
    return result;
}

// A table of the parameters and their gradients, with a line for each operation.
class States {
  public:
    States(const std::string& title, const Worker& worker)
        : worker_(worker), table_(title, {"", "w1", "w2", "b", "gradient of w1", "w2", "b"}) {}

    void after(const std::string& moment) {
        std::vector<std::string> row = cells(moment, worker_.values());
        if (worker_.model.weights->has_gradient())
            for (const std::string& cell : cells("", worker_.gradient()))
                row.push_back(cell);
        else
            row.insert(row.end(), {"", "", "", ""});
        row.erase(row.begin() + 4);  // the empty name before the gradient's numbers
        table_.row(row);
    }
    Table& table() { return table_; }

  private:
    const Worker& worker_;
    Table table_;
};

}  // namespace

void show_states(Device& device, const std::vector<House>& two, double learning_rate) {
    Worker each(device, two, learning_rate);
    States alone("Two houses, a step for each", each);
    alone.after("at first");
    for (int house = 0; house < 2; house++) {
        const std::string name = "house " + std::to_string(house + 1);
        each.backward({{{house, 1}, 1.0f}});
        alone.after(name + ": backward");
        each.optimizer.step();
        alone.after("step");
        each.optimizer.zero_gradients();
        alone.after("zero");
    }
    std::cout << alone.table() << "\n";

    const auto two_steps = [&](const std::string& title, bool zeroes) {
        Worker both(device, two, learning_rate);
        States states(title, both);
        for (int step = 1; step <= 2; step++) {
            for (const MicroBatch& micro : micro_batches({0, 2}, 1)) {
                both.backward({micro});
                states.after("house " + std::to_string(micro.samples.first + 1) +
                             ", loss / 2: backward");
            }
            both.optimizer.step();
            states.after("step " + std::to_string(step));
            if (zeroes) {
                both.optimizer.zero_gradients();
                states.after("zero");
            }
        }
        if (!zeroes)
            states.table().note("The first step's gradient is still there and is used again.");
        std::cout << states.table() << "\n";
    };
    two_steps("The same houses accumulated: one step for both, taken twice", true);
    two_steps("A mistake: the same two steps without zero", false);
}

void show_sum_and_mean(Device& device, const std::vector<House>& two, double learning_rate) {
    Table table("One step for two houses",
                {"", "gradient of w1", "w2", "b", "w1 after the step", "w2", "b"});
    const auto row = [&](const std::string& name, const std::vector<MicroBatch>& batch,
                         double rate) {
        Worker worker(device, two, rate);
        worker.backward(batch);
        std::vector<std::string> row = cells(name, worker.gradient());
        worker.optimizer.step();
        for (const float value : worker.values())
            row.push_back(format_fixed(value, 4));
        table.row(row);
    };
    const std::vector<MicroBatch> sum{{{0, 1}, 1.0f}, {{1, 1}, 1.0f}};
    row("a batch of two", micro_batches({0, 2}, 2), learning_rate);
    row("two of one, loss / 2", micro_batches({0, 2}, 1), learning_rate);
    row("two of one, the sum", sum, learning_rate);
    row("the sum, half the rate", sum, learning_rate / 2);
    table.note("The sum is twice the mean. The step is that of twice the learning rate.");
    std::cout << table << "\n";
}

void show_incomplete(Device& device, const std::vector<House>& seven) {
    Table groups("Seven houses, one at a time, a step for every three: the last group has one",
                 {"", "gradient of w1", "w2", "b"});
    const auto gradient = [&](const std::vector<MicroBatch>& batch) {
        Worker worker(device, seven, 1);
        worker.backward(batch);
        return worker.gradient();
    };
    groups.row(cells("houses 1 to 3, loss / 3", gradient(micro_batches({0, 3}, 1))));
    groups.row(cells("houses 4 to 6, loss / 3", gradient(micro_batches({3, 3}, 1))));
    groups.row(cells("house 7, loss / 1", gradient(micro_batches({6, 1}, 1))));
    groups.row(cells("house 7, loss / 3: wrong", gradient({{{6, 1}, 1.0f / 3}})));
    groups.note("Divided by three, the last step is a third as long as it should be.");
    std::cout << groups << "\n";

    Table weights("A batch of seven houses in micro-batches of 3, 3 and 1",
                  {"", "gradient of w1", "w2", "b"});
    std::vector<MicroBatch> batch = micro_batches({0, 7}, 3);
    weights.row(cells("one batch of seven", gradient(micro_batches({0, 7}, 7))));
    weights.row(cells("means times 3/7, 3/7, 1/7", gradient(batch)));
    for (MicroBatch& micro : batch)
        micro.scale = 1.0f / 3;
    weights.row(cells("means times 1/3 each: wrong", gradient(batch)));
    weights.note("With a third for each mean, house 7 counts as much as three other houses.");
    std::cout << weights << "\n";
}

}  // namespace ddp
