#include "01_sgd/show/reports.hpp"

#include <iostream>

#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// Returns the tensor's only number as text.
std::string number(const Tensor& tensor) {
    return format_fixed(tensor.to_host().at(0), 4);
}

// Adds the row of node `index` to `table`, then those of its inputs, indented below it.
// `line_start` is the tree's drawing before the node's name, `below_start` before its inputs'.
void draw_node(const Tape& tape, int index, const std::string& line_start,
               const std::string& below_start, Table& table) {
    const Tape::Node& node = tape.nodes()[static_cast<std::size_t>(index)];
    table.row({line_start + node.operation, number(node.value),
               node.gradient.is_empty() ? "" : number(node.gradient)});
    for (std::size_t i = 0; i < node.inputs.size(); i++) {
        const bool is_last = i + 1 == node.inputs.size();
        draw_node(tape, node.inputs[i], below_start + (is_last ? "└─ " : "├─ "),
                  below_start + (is_last ? "   " : "│  "), table);
    }
}

// Writes a line for each box of the tape; `inputs` are the numbers of boxes, with blanks between.
void write_tape(const std::filesystem::path& csv, const Tape& tape) {
    if (csv.empty())
        return;
    CsvWriter file(csv, {"box", "name", "inputs", "value", "gradient"});
    for (std::size_t i = 0; i < tape.nodes().size(); i++) {
        const Tape::Node& node = tape.nodes()[i];
        std::string inputs;
        for (const int input : node.inputs)
            inputs += (inputs.empty() ? "" : " ") + std::to_string(input);
        file.row({i, node.operation, inputs, node.value.to_host().at(0),
                  node.gradient.is_empty() ? "" : number(node.gradient)});
    }
}

}  // namespace

std::string draw_graph(const Tape& tape, Variable root) {
    Table table("", {"graph", "value", "gradient"});
    draw_node(tape, root.node, "", "", table);
    return table.text();
}

std::vector<std::string> row_of(const std::string& name, const HouseModel& model) {
    std::vector<std::string> cells{name};
    for (const auto& parameter : model.parameters())
        cells.push_back(number(parameter->value));
    return cells;
}

void show_step(HouseModel& model, Optimizer& optimizer, const HouseData& data, int i,
               const std::filesystem::path& csv) {
    Table table("parameters", {"", "w1", "w2", "b"});
    table.row(row_of("before", model));
    const auto house = static_cast<std::size_t>(i);
    Tape tape(model.b->value.device());
    tape.retain_gradients();
    const Variable loss = model.loss(tape, data, i);  // forward
    tape.backward(loss);                              // backward
    std::cout << "Step " << i + 1 << ": " << data.bedrooms.to_host()[house] << " bedrooms, "
              << data.bathrooms.to_host()[house] << " bathrooms, price "
              << data.price.to_host()[house] << draw_graph(tape, loss);
    write_tape(csv, tape);
    optimizer.step();            // step
    optimizer.zero_gradients();  // zero
    table.row(row_of("after", model));
    std::cout << table << "\n";
}

}  // namespace ddp
