// The exercise tied_buckets, beside steps of the chapter's own transformer, tied and not.
#include "10_nodes/make_communicator.hpp"
#include "exercises/20_transformer/tied_buckets.hpp"

#include <algorithm>
#include <mutex>

#include "15_overlap/ddp.hpp"
#include "20_transformer/token_loss.hpp"
#include "20_transformer/transformer.hpp"
#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Names = std::vector<std::string>;
using Forward = std::vector<Operation>;

std::string to_string(const Names& names) {
    std::string text;
    for (const std::string& name : names)
        text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? "nothing" : text;
}
std::string to_string(const LastBucket& bucket) {
    return "bucket " + std::to_string(bucket.index) + " with " + std::to_string(bucket.bytes) +
           " bytes, and " + std::to_string(bucket.bytes_before) + " bytes before it";
}

// ---- What the chapter's model does

constexpr int vocabulary = 40;

// What one rank sees in two steps.
struct Run {
    Forward forward;
    Names ready;
    std::vector<ReadyGradient> sizes;  // in ready order
    // By what was launched in the second step before its last gradient was computed, and after.
    LastBucket last;
};

// Returns the tape's operations that use parameters or other operations.
Forward operations_on(const Tape& tape) {
    Forward forward;
    for (const Tape::Node& node : tape.nodes()) {
        if (node.inputs.empty())
            continue;
        forward.push_back({node.operation, {}});
        for (const int input : node.inputs)
            if (const auto& used = tape.nodes()[static_cast<std::size_t>(input)]; used.parameter)
                forward.back().parameters.push_back(used.parameter->name);
    }
    return forward;
}

// Makes two steps, of which the second one has the buckets of the first one's ready order.
Run run_of(bool is_tied, std::size_t cap_bytes) {
    Run run;
    std::mutex mutex;
    on_ranks(2, [&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, std::size_t{16} << 20);
        Random random(1);
        const DropoutMasks masks(1);
        Transformer model(device,
                          {.vocabulary = vocabulary,
                           .width = 8,
                           .heads = 2,
                           .layers = 1,
                           .feed_forward = 16,
                           .longest = 8,
                           .dropout = 0,
                           .tie_embeddings = is_tied},
                          random, masks);
        const auto communicator = make_communicator("native", rank, ddp_arena_bytes(model));
        DistributedDataParallel ddp(*communicator, device, model, {.bucket_cap_bytes = cap_bytes});
        Run mine;
        std::size_t gradients = 0, launched = 0;
        ddp.set_bucket_hook([&](Communicator& communicator, Tensor bucket, Stream& stream,
                                const std::string& name) {
            average_bucket(communicator, bucket, stream, name);
            const std::size_t bytes = ddp.gradients().plan().buckets[launched].bytes;
            if (mine.ready.size() < gradients)
                mine.last.bytes_before += bytes;
            else
                mine.last = {launched, mine.last.bytes + bytes, mine.last.bytes_before};
            launched++;
        });
        Tape tape(device);
        for (int step = 0; step < 2; step++) {
            const Tokens source(device, {2, 3}, std::vector<int>{5, 6, 2, 9, 2, 1});
            const Tokens target(device, {2, 3}, std::vector<int>{1, 7, 8, 11, 12, 2});
            const Variable scores =
                ddp.forward([&] { return model.forward(tape, source, target); });
            const Variable loss =
                token_loss(scores, Labels(device, {6}, std::vector<int>{7, 8, 2, 11, 12, 2}), 0, 6);
            mine.forward = operations_on(tape);
            mine.ready.clear();
            mine.sizes.clear();
            mine.last = {};
            launched = 0;
            gradients = ddp.gradients().parameters().size();
            ddp.backward(loss, [&](Parameter& parameter) {
                mine.ready.push_back(parameter.name);
                mine.sizes.push_back({parameter.name, parameter.value.size() * sizeof(float)});
            });
            communicator->synchronize(device.stream());
            tape.clear();
        }
        rank.barrier();
        const std::lock_guard lock(mutex);
        if (rank.rank() == 0)
            run = mine;
    });
    return run;
}

std::string model_text(bool is_tied) {
    return is_tied ? "The chapter's model with one table for all three uses: "
                   : "The chapter's model with three tables: ";
}

// ---- Task ready_order

// Returns what a wrong order tells, or "".
std::string cause_of(const Forward& forward, const Names& yours, const Names& right) {
    Names sorted_yours = yours, sorted_right = right;
    std::ranges::sort(sorted_yours);
    std::ranges::sort(sorted_right);
    if (std::ranges::adjacent_find(sorted_yours) != sorted_yours.end())
        return "You name a parameter twice. It has one gradient, which is final once.\n";
    if (sorted_yours != sorted_right)
        return "Every parameter should be named once.\n";
    Names at_last_use;
    for (auto operation = forward.rbegin(); operation != forward.rend(); ++operation) {
        for (const std::string& name : operation->parameters)
            if (std::ranges::find(at_last_use, name) == at_last_use.end())
                at_last_use.push_back(name);
    }
    Names seen;
    for (const Operation& operation : forward)
        for (const std::string& name : operation.parameters)
            if (std::ranges::find(seen, name) == seen.end())
                seen.push_back(name);
    if (yours == seen)
        return "That is the order of forward. Backward begins at the end.\n";
    if (yours == at_last_use)
        return "For you a gradient is final when backward first comes to its parameter. The "
               "parameter has more uses, and they add to it later.\n";
    if (Names reversed(seen.rbegin(), seen.rend()); yours == reversed)
        return "Of the gradients that one operation makes final, the earlier input comes first.\n";
    return "";
}

void check_order(const std::string& what, const Forward& forward, const Names& right,
                 const std::string& hint) {
    const Names yours = ready_order(forward);
    if (yours == right)
        return held();
    std::size_t i = 0;
    while (i < yours.size() && i < right.size() && yours[i] == right[i])
        i++;
    throw Wrong(what + "gradient number " + std::to_string(i) + " to be final is " +
                (i < right.size() ? right[i] : "none") + ", and you say " +
                (i < yours.size() ? yours[i] : "none") + ".\nAll of yours: " + to_string(yours) +
                ".\n" + cause_of(forward, yours, right) + hint);
}

void check_ready_order() {
    check_order("Two layers, (w1 b1) and (w2 b2): ",
                {{"linear", {"w1", "b1"}}, {"relu", {}}, {"linear", {"w2", "b2"}}},
                {"w2", "b2", "w1", "b1"}, "The case: each parameter has one use.");
    check_order("An embedding and scores share a table t, with two layers (w and v) between: ",
                {{"embedding", {"t"}}, {"linear", {"w"}}, {"linear", {"v"}}, {"scores", {"t"}}},
                {"v", "w", "t"}, "The case: the embedding adds to the gradient of t at the end.");
    check_order("Parameter a is used by operations 1 and 2, b by 0 and 3, c by 2: ",
                {{"zero", {"b"}}, {"one", {"a"}}, {"two", {"c", "a"}}, {"three", {"b"}}},
                {"c", "a", "b"}, "The case: an operation is the last use of c only.");
    for (const bool is_tied : {false, true}) {
        const Run run = run_of(is_tied, 4096);
        check_order(model_text(is_tied), run.forward, run.ready,
                    "The case: a backward of the model showed the right order.");
    }
}

// ---- Task last_bucket

// Returns what a wrong bucket tells, or "".
std::string cause_of(const LastBucket& yours, const LastBucket& right, std::size_t all) {
    if (yours.index == right.index + 1 && yours.bytes == right.bytes)
        return "Buckets are counted from 0.\n";
    if (yours.bytes_before == all && yours.bytes == right.bytes)
        return "The last bucket cannot travel during backward: its last gradient is the last of "
               "all.\n";
    if (yours.index == right.index && yours.bytes + yours.bytes_before != all)
        return "Every gradient is either in the last bucket or before it.\n";
    if (yours.index != right.index || yours.bytes != right.bytes)
        return "These buckets are wrong: the gradient that crosses the limit stays in, and a "
               "bucket "
               "with exactly the limit is closed.\n";
    return "";
}

void check_bucket(const std::vector<ReadyGradient>& ready, std::size_t cap, const LastBucket& right,
                  const std::string& what, const std::string& hint) {
    const LastBucket yours = last_bucket(ready, cap);
    if (yours == right)
        return held();
    std::size_t all = 0;
    for (const ReadyGradient& gradient : ready)
        all += gradient.bytes;
    throw Wrong(what + "a cap of " + std::to_string(cap) + " bytes: you say " + to_string(yours) +
                "; right is " + to_string(right) + ".\n" + cause_of(yours, right, all) + hint);
}

void check_sizes(const std::vector<std::size_t>& sizes, std::size_t cap, const LastBucket& right,
                 const std::string& hint) {
    std::vector<ReadyGradient> ready;
    std::string what = "Gradients of ";
    for (const std::size_t size : sizes) {
        what += (ready.empty() ? "" : ", ") + std::to_string(size);
        ready.push_back({"g" + std::to_string(ready.size()), size});
    }
    check_bucket(ready, cap, right, what + " bytes and ", hint);
}

void check_last_bucket() {
    check_sizes({900, 200, 300, 900}, 500, {2, 900, 1400}, "The case: one full bucket of two.");
    check_sizes({400, 400, 400, 400}, 800, {1, 800, 800}, "The case: two buckets, just full.");
    check_sizes({400, 400, 400, 400}, 700, {1, 800, 800}, "The case: two buckets, above the cap.");
    check_sizes({400, 400, 40}, 800, {1, 40, 800}, "The case: the last bucket is not full.");
    check_sizes({40, 40, 4000}, 100, {0, 4080, 0}, "The case: there is only one bucket.");
    check_sizes({40, 80, 20}, 0, {2, 20, 120}, "The case: a bucket for each gradient.");
    for (const bool is_tied : {false, true}) {
        const Run run = run_of(is_tied, 2000);
        check_bucket(run.sizes, 2000, run.last, model_text(is_tied),
                     "The case: a step of DistributedDataParallel showed the right one.");
    }
}

// ---- Task tying

void check_tied(const std::string& what, const Forward& forward, std::vector<ReadyGradient> sizes,
                const Names& tables, std::size_t cap, const LastBucket& right,
                const std::string& hint) {
    std::ranges::sort(sizes, {}, &ReadyGradient::name);
    std::ranges::rotate(sizes, sizes.begin() + 1);  // in no order at all
    const LastBucket yours = last_bucket_if_tied(forward, sizes, tables, cap);
    if (yours == right)
        return held();
    std::size_t all = 0;
    for (const ReadyGradient& gradient : sizes)
        all += gradient.bytes;
    const std::size_t table = std::ranges::find(sizes, tables[0], &ReadyGradient::name)->bytes;
    const std::size_t said = yours.bytes + yours.bytes_before,
                      tied = right.bytes + right.bytes_before;
    std::string cause;
    if (said == all)
        cause = "You count each table. Tied, they are one parameter with one gradient.\n";
    else if (said == tied - table)
        cause = "You have left out the shared table.\n";
    else
        cause =
            "The shared gradient is final when the FIRST use of forward has been walked; and "
            "`sizes` is in no order.\n";
    throw Wrong(what + "with a cap of " + std::to_string(cap) + " bytes you say " +
                to_string(yours) + "; right is " + to_string(right) + ".\n" + cause + hint);
}

void check_tying() {
    const Forward small = {
        {"embedding", {"s"}}, {"linear", {"w"}}, {"linear", {"v"}}, {"scores", {"t"}}};
    const std::vector<ReadyGradient> sizes = {{"s", 900}, {"w", 300}, {"v", 200}, {"t", 900}};
    check_tied(
        "The tables s and t of 900 bytes, used first and last, are tied, w (300) and v (200) "
        "are between: ",
        small, sizes, {"s", "t"}, 500, {1, 900, 500},
        "The case: without t the first bucket has v and w.");
    check_tied("The same, named the other way round: ", small, sizes, {"t", "s"}, 500,
               {1, 900, 500}, "The case: the order of names says nothing about the order of uses.");
    check_tied("The tables s and t are used by one operation, and w by the next: ",
               {{"two", {"s", "t"}}, {"linear", {"w"}}}, {{"s", 900}, {"t", 900}, {"w", 300}},
               {"s", "t"}, 300, {1, 900, 300},
               "The case: one operation has two uses of the table, and still it is one gradient.");
    const Forward forward = run_of(false, 2000).forward;
    const std::vector<ReadyGradient> untied = run_of(false, 2000).sizes;
    for (const std::size_t cap : {std::size_t{0}, std::size_t{1000}, std::size_t{2000}})
        check_tied("The three tables of the chapter's model are tied, and ", forward, untied,
                   {"source_embedding.weight", "target_embedding.weight", "output.weight"}, cap,
                   run_of(true, cap).last,
                   "The case: a step of DistributedDataParallel showed the right one.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"ready_order", check_ready_order},
            {"last_bucket", check_last_bucket},
            {"tying", check_tying}};
}

}  // namespace ddp::test
