// The exercise referee: the reader's test is tested with the chapter's broadcasts, which it must
// let pass, and with faulty ones, each of which one kind of careless test does not find.
#include "exercises/07_broadcast/referee.hpp"

#include "07_broadcast/broadcast.hpp"
#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

void broadcast(Peers& peers, float* data, std::size_t count, int root, Stream& stream) {
    tree_broadcast(peers, data, count, root, stream);
}
void copy(float* to, const float* from, std::size_t count, Stream& stream) {
    if (count > 0)
        DDP_CHECK(
            cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDeviceToDevice, stream));
}
// Overwrites an element with what no test has there (0 may well be).
void spoil(float* element, Stream& stream) {
    DDP_CHECK(cudaMemsetAsync(element, 0x5a, sizeof(float), stream));
}

// ---- Faulty broadcasts

void do_nothing(Peers&, float*, std::size_t, int, Stream&) {}
void take_rank_0(Peers& peers, float* data, std::size_t count, int, Stream& stream) {
    broadcast(peers, data, count, 0, stream);
}
// The receiving ranks get all elements, but each one place further.
void shift_places(Peers& peers, float* data, std::size_t count, int root, Stream& stream) {
    ArenaBuffer<float> passed_on = peers.allocate<float>(count);
    copy(passed_on.data(), data, count, stream);
    broadcast(peers, passed_on.data(), count, root, stream);
    if (peers.rank().rank() != root && count > 0) {
        copy(data + 1, passed_on.data(), count - 1, stream);
        copy(data, passed_on.data() + count - 1, 1, stream);
    }
    peers.synchronize(stream);
}
// One element in the middle is the one before it.
void spoil_middle(Peers& peers, float* data, std::size_t count, int root, Stream& stream) {
    broadcast(peers, data, count, root, stream);
    if (peers.rank().rank() != root && count > 2)
        copy(data + count / 2, data + count / 2 - 1, 1, stream);
}
// Rank `left_out` joins the broadcast, and drops what it receives.
void leave_out(int left_out, Peers& peers, float* data, std::size_t count, int root,
               Stream& stream) {
    ArenaBuffer<float> own = peers.allocate<float>(count);
    copy(own.data(), data, count, stream);
    broadcast(peers, data, count, root, stream);
    if (peers.rank().rank() == left_out)
        copy(data, own.data(), count, stream);
    peers.synchronize(stream);
}
void leave_out_last(Peers& peers, float* data, std::size_t count, int root, Stream& stream) {
    leave_out(peers.rank().world_size() - 1, peers, data, count, root, stream);
}
void leave_out_0(Peers& peers, float* data, std::size_t count, int root, Stream& stream) {
    leave_out(0, peers, data, count, root, stream);
}
void spoil_root(Peers& peers, float* data, std::size_t count, int root, Stream& stream) {
    broadcast(peers, data, count, root, stream);
    if (peers.rank().rank() == root && count > 0)
        spoil(data, stream);
}
void lose_the_rest(Peers& peers, float* data, std::size_t count, int root, Stream& stream) {
    const auto ranks = static_cast<std::size_t>(peers.rank().world_size());
    broadcast(peers, data, count / ranks * ranks, root, stream);
}
// Sends nothing at all if a rank gets no element of its own.
void drop_few(Peers& peers, float* data, std::size_t count, int root, Stream& stream) {
    broadcast(peers, data, count < static_cast<std::size_t>(peers.rank().world_size()) ? 0 : count,
              root, stream);
}
void stop_at_20000(Peers& peers, float* data, std::size_t count, int root, Stream& stream) {
    broadcast(peers, data, std::min(count, std::size_t{20'000}), root, stream);
}
void write_behind(Peers& peers, float* data, std::size_t count, int root, Stream& stream) {
    broadcast(peers, data, count, root, stream);
    if (peers.rank().rank() != root)
        spoil(data + count, stream);
}
// Does nothing when the same array comes again, as if its flags were still raised. Each rank has
// its own.
Candidate once_per_array() {
    return [last = static_cast<float*>(nullptr)](Peers& peers, float* data, std::size_t count,
                                                 int root, Stream& stream) mutable {
        if (data != last)
            broadcast(peers, data, count, root, stream);
        last = data;
    };
}

// ---- What the reader's test must find

struct Fault {
    std::string what;  // "a broadcast that ..."
    Candidate candidate;
    std::string hint;
};

std::vector<Fault> faults_in_values() {
    return {{"does nothing at all", do_nothing,
             "Before the call the ranks must have different elements."},
            {"moves every element to the place behind, and the last one to the front", shift_places,
             "No two elements of an array may be equal, or the test cannot see that they are mixed "
             "up."},
            {"gives one element in the middle the value of the one before it", spoil_middle,
             "Look at every element, and not only at the first and the last."},
            {"always takes rank 0 for the root", take_rank_0,
             "A broadcast works from every root: try them all."}};
}
std::vector<Fault> faults_of_one_rank() {
    return {{"gives the last rank nothing", leave_out_last,
             "Only the last rank can see that: how does it inform the others?"},
            {"gives rank 0 nothing", leave_out_0,
             "Only rank 0 can see that: do the others listen to it as to all others?"},
            {"spoils an element of the root's own array", spoil_root,
             "Only the root can see that: does it look at its own array?"}};
}
std::vector<Fault> faults_of_size() {
    return {
        {"loses what is left over when the elements are divided evenly among the ranks",
         lose_the_rest, "Try counts that no number divides, and fewer elements than ranks."},
        {"sends nothing if there are fewer elements than ranks", drop_few,
         "Try very few elements: one, for example."},
        {"stops after 20 000 elements", stop_at_20000, "Try a long array as well."},
        {"writes one element past the end of the array", write_behind,
         "Make the array longer than the count, and check that the elements behind it do not "
         "change."},
        {"works for each array once: when it gets the same array again, it does nothing",
         once_per_array(),
         "Use an array again at once, with other elements. Otherwise what you find in it may be "
         "left from the call before."}};
}

std::string ranks_text(int ranks) {
    return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

// Returns the answer of the reader's test on each rank.
std::vector<bool> verdicts_on(Rank& rank, const Candidate& candidate) {
    Peers peers(rank, 100'000 * sizeof(float));
    const bool result = is_broadcast(peers, candidate);
    std::vector<bool> all;
    for (const std::string& each : rank.all_gather(result ? "right" : "wrong"))
        all.push_back(each == "right");
    return all;
}

std::string list_of(const std::vector<bool>& verdicts, bool wanted) {
    std::string list;
    for (std::size_t r = 0; r < verdicts.size(); r++)
        if (verdicts[r] == wanted)
            list += (list.empty() ? "" : ", ") + std::to_string(r);
    return list;
}

// Runs the reader's test of `candidate` on `ranks` ranks, and calls judge(verdicts), which throws
// Wrong if they are not what they should be.
void ask(int ranks, const Candidate& candidate, const std::string& what,
         const std::function<void(const std::vector<bool>&)>& judge) {
    try {
        on_ranks(ranks, [&](Rank& rank) {
            const Candidate own = candidate;  // with a state of its own
            const std::vector<bool> verdicts = verdicts_on(rank, own);
            judge(verdicts);
        });
    } catch (const RunFailed& failure) {
        throw std::runtime_error(
            ranks_text(ranks) + ", " + what +
            ": the run has failed. Do all ranks make the same calls, even when one of them has "
            "found a fault? A rank that returns early leaves the others waiting. And does each "
            "wait for its work (peers.synchronize) before it looks at the array or gives it "
            "back?\n" +
            failure.what());
    }
}

void must_pass(int ranks, const std::string& name, const Candidate& candidate) {
    ask(ranks, candidate, name, [&](const std::vector<bool>& verdicts) {
        if (const std::string refusing = list_of(verdicts, false); !refusing.empty())
            throw Wrong("On " + ranks_text(ranks) + " your test refuses the chapter's " + name +
                        ", which is a broadcast (refused by rank " + refusing +
                        ").\nWhat should each rank have after the call, and what should the root "
                        "have? And was the "
                        "work done when you looked (peers.synchronize)?");
    });
}
void must_fail(int ranks, const Fault& fault, bool everywhere) {
    ask(ranks, fault.candidate, "a broadcast that " + fault.what,
        [&](const std::vector<bool>& verdicts) {
            const std::string passing = list_of(verdicts, true),
                              refusing = list_of(verdicts, false);
            if (refusing.empty())
                throw Wrong("On " + ranks_text(ranks) +
                            " your test lets this one pass: a broadcast that " + fault.what +
                            ".\n" + fault.hint);
            if (everywhere && !passing.empty())
                throw Wrong("On " + ranks_text(ranks) + ", a broadcast that " + fault.what +
                            " is refused by rank " + refusing + ", and passes on rank " + passing +
                            ".\nAll ranks must return the same, whichever rank has seen the "
                            "fault: rank.all_gather() brings every rank's result to all ranks.");
            held();
        });
}

void let_right_ones_pass() {
    for (const int ranks : {1, 3})
        must_pass(ranks, "tree_broadcast", broadcast);
    must_pass(2, "linear_broadcast",
              [](Peers& peers, float* data, std::size_t count, int root, Stream& stream) {
                  linear_broadcast(peers, data, count, root, stream);
              });
    must_pass(4, "chain_broadcast",
              [](Peers& peers, float* data, std::size_t count, int root, Stream& stream) {
                  chain_broadcast(peers, data, count, root, stream);
              });
}

void check_values() {
    let_right_ones_pass();
    for (const Fault& fault : faults_in_values())
        must_fail(3, fault, false);
}
void check_same_verdict() {
    let_right_ones_pass();
    for (const auto& faults : {faults_in_values(), faults_of_one_rank()})
        for (const Fault& fault : faults)
            must_fail(4, fault, true);
    must_fail(1, faults_of_one_rank().back(), true);  // a rank that is alone has an array, too
}
void check_every_size() {
    let_right_ones_pass();
    for (const int ranks : {2, 3})
        for (const Fault& fault : faults_of_size())
            must_fail(ranks, fault, true);
}

}  // namespace

std::vector<Task> tasks() {
    return {{"values", check_values},
            {"same_verdict", check_same_verdict},
            {"every_size", check_every_size}};
}

}  // namespace ddp::test
