#include "tools/explore/each_call.hpp"

#include <algorithm>
#include <map>

namespace ddp {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
}

TakenAway take_away(const std::string& algorithm, const FlagPlace& place, const Mistake& mistake,
                    const std::vector<ExploredCase>& cases, double seconds) {
    TakenAway call{algorithm, mistake, place.place.name, ""};
    for (std::size_t i = 0; i < cases.size() && call.failure.empty(); i++) {
        const ExploredResult result = explore_case(cases[i], mistake, seconds);
        call.failure = result.failure;
        call.is_complete = call.is_complete && result.exploration.is_complete;
    }
    return call;
}

}  // namespace

std::vector<TakenAway> take_each_call_away(const std::vector<ExploredCase>& cases, double seconds) {
    // A protocol's flag places, over all of its cases.
    std::map<std::string, std::map<FlagPlace, std::vector<ExploredCase>>> all;
    for (const ExploredCase& explored : cases)
        for (const FlagPlace& place : flag_places_of(explored))
            all[explored.algorithm][place].push_back(explored);
    std::vector<TakenAway> calls;
    for (const auto& [algorithm, places] : all)
        for (const auto& [place, having] : places)
            for (const Mistake& mistake : mistakes_at(place))
                calls.push_back(take_away(algorithm, place, mistake, having, seconds));
    return calls;
}

const std::vector<Reason>& reasons() {
    static const std::vector<Reason> all{
        {{"all at once", "all_gather", "chain", "linear", "reduce", "reduce+broadcast",
          "reduce_scatter", "ring", "server", "two-shot"},
         FlagKind::call,
         {"begin_collective"},
         "A rank ends this collective only when all that read its call have read it, so its next "
         "call may overwrite it. After a one-shot that is not so: found in one-shot+linear."},
        {{"one-shot"},
         FlagKind::call,
         {"begin_collective", "one_shot_kernel"},
         "A one-shot that ends has heard of all ranks, so all have ended the one-shot before. "
         "After another collective that is not so: found in one-shot+linear."},
        {{"mixed"},
         FlagKind::call,
         {"one_shot_kernel"},
         "What it overwrites was staged by the reduce, and the root has all of it when it begins "
         "the broadcast between. Found in one-shot+linear."},
        {{"all at once", "linear", "one-shot+linear", "server"},
         FlagKind::post,
         {"consume", "Neighbour::post"},
         "Who posts has had its array since it began, and the handshake has said so. A chain and a "
         "tree, which call the same function, pass on what they get: found there."},
        {{"linear", "one-shot+linear", "reduce+broadcast", "server"},
         FlagKind::acknowledgement,
         {"serve_children", "broadcast_kernel"},
         "Both functions wait for the same acknowledgement, and one of them is enough. Without "
         "both it is found: --algorithm linear --without \"wait for the acknowledgement\"."},
        {{"reduce+broadcast", "server", "mixed"},
         FlagKind::acknowledgement,
         {"tree_reduce_kernel", "sum_on_server"},
         "The broadcast that follows begins when the root has read all arrays. A reduce that "
         "nothing follows needs the wait: found in reduce."},
        {{"mixed"},
         FlagKind::acknowledgement,
         {"serve_children", "broadcast_kernel", "Neighbour::ack"},
         "A one-shot follows, and hears of all ranks before it overwrites what the broadcast has "
         "read. Where nothing follows, the release is found: reduce+broadcast."},
        {{"FIFO"},
         FlagKind::acknowledgement,
         {"send_by_fifo"},
         "The array has been read when its last slice is in a slot, and who fills a slot waits for "
         "it. This wait, at the end, is for those who ask whether the receiver has all of it."},
        {{"FIFO"},
         FlagKind::call,
         {"grant", "can_begin"},
         "What is asked for is a number, and no data is behind it. Slots that nobody has asked for "
         "do no harm either: the proxy is spared to wait for bytes that may never come."},
        {{"mailboxes"},
         FlagKind::post,
         {"full_mailbox"},
         "The search is a hint: who receives from the mailbox waits for its flag once more, with "
         "acquire. Without it the server would wait for one worker while another has sent."},
        {{"mailboxes"},
         FlagKind::acknowledgement,
         {"full_mailbox"},
         "The server has stored this number itself, and no data is behind it."},
        {{"mailboxes"},
         FlagKind::acknowledgement,
         {"send_kernel"},
         "A worker sends on one stream, and its send before has ended with the same wait. On two "
         "streams it is needed: found in send/receive."},
    };
    return all;
}

std::size_t reason_for(const TakenAway& call) {
    for (std::size_t i = 0; i < reasons().size(); i++) {
        const Reason& reason = reasons()[i];
        if (reason.flag == call.mistake.flag && has(reason.algorithms, call.algorithm) &&
            has(reason.functions, call.function))
            return i + 1;
    }
    return 0;
}

}  // namespace ddp
