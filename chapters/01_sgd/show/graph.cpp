#include "01_sgd/show/graph.hpp"

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

}  // namespace

std::string draw_graph(const Tape& tape, Variable root) {
    Table table("", {"graph", "value", "gradient"});
    draw_node(tape, root.node, "", "", table);
    return table.text();
}

}  // namespace ddp
