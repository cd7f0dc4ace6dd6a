// The exercise shards, on a folder that goes down in every call.
#include "exercises/19_checkpoint_failover/shards.hpp"

#include <algorithm>

#include "exercises/support/crashing_folder.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr int never = -1;

// Shard r of step s tells both.
Shards shards_of(int step, int count) {
    Shards shards;
    for (int rank = 0; rank < count; rank++) {
        shards.push_back({static_cast<std::uint8_t>(rank)});
        for (int bits = 0; bits < 32; bits += 8)
            shards.back().push_back(static_cast<std::uint8_t>(step >> bits));
    }
    return shards;
}

// Returns shards as the contract draws them: "2a 2b".
std::string to_string(const std::optional<Shards>& shards) {
    if (!shards)
        return "nothing";
    std::string text;
    for (const auto& shard : *shards) {
        int step = 0;
        for (std::size_t i = shard.size(); i-- > 1;)
            step = step * 256 + shard[i];
        text += text.empty() ? "" : " ";
        text += shard.size() == 5 ? std::to_string(step) + static_cast<char>('a' + shard[0])
                                  : "(" + std::to_string(shard.size()) + " bytes)";
    }
    return text.empty() ? "no shard" : text;
}

// Returns in words what load_shards finds.
std::string loaded(const Contents& contents) {
    try {
        return to_string(load_shards(CrashingFolder(contents, never)));
    } catch (const NotImplemented&) {
        throw;
    } catch (const std::exception& error) {
        return std::string("no shards, but throws: ") + error.what();
    }
}

void require(const std::optional<Shards>& found, const std::optional<Shards>& expected,
             const std::string& hint) {
    if (found != expected)
        throw Wrong("load_shards has found " + to_string(found) + "; it should find " +
                    to_string(expected) + ".\n" + hint);
}

void check_save_and_load() {
    require(load_shards(CrashingFolder({}, never)), std::nullopt,
            "The case: nothing has been saved yet.");
    CrashingFolder folder({}, never);
    for (const auto& [step, count] : {std::pair{0, 2}, {1, 3}, {2, 2}, {10, 4}, {11, 1}}) {
        trying("Step " + std::to_string(step) + " with " + std::to_string(count) +
               " shards is saved, and then loaded.");
        save_shards(folder, step, shards_of(step, count));
        require(load_shards(folder), shards_of(step, count),
                "Step " + std::to_string(step) +
                    " was saved last. Do you mix up the shards of several steps, or compare steps "
                    "as text? And a folder gives its names in any order.");
        if (folder.names().size() < static_cast<std::size_t>(count))
            throw Wrong("There are fewer files than shards: each should be a file of its own.");
    }
    trying("");
    CrashingFolder many({}, never);
    save_shards(many, 3, shards_of(3, 12));
    require(
        load_shards(many), shards_of(3, 12),
        "The case: twelve shards. As text, shard 10 comes before shard 2. Sort numbers, or write "
        "the names down in their order.");
    const Shards with_empty{{1, 2}, {}, {3}};
    save_shards(folder, 12, with_empty);
    require(load_shards(folder), with_empty, "The case: one shard is empty.");
}

// Calls `act`, which the messages call `name`, and crashes in each of its calls on the folder, each
// time with `start` on the disk. After that load_shards must find one of `allowed`, and after a
// whole run the last of them.
void crash_everywhere(const std::string& name, const Contents& start,
                      const std::function<void(Folder&)>& act,
                      const std::vector<std::string>& allowed) {
    bool is_done = false;
    for (int call = 0; !is_done; call++) {
        CrashingFolder folder(start, call);
        try {
            act(folder);
            is_done = true;
        } catch (const Crash&) {
        }
        const std::string when = is_done ? " after " + name + " has returned"
                                         : " in " + name + ", " + folder.last_call();
        const auto check = [&](const Contents& left, const std::string& crash) {
            const std::string found = loaded(left);
            if (found == allowed.back() || (!is_done && found == allowed.front()))
                return;
            std::string expected = allowed.back();
            if (!is_done && allowed.size() > 1)
                expected = "all of the old ones (" + allowed[0] + ") or all of the new ones (" +
                           allowed[1] + ")";
            throw Wrong(crash + "\nThen load_shards finds " + found + "; it should find " +
                        expected +
                        (allowed.size() == 1
                             ? ", as before.\nSomething that load_shards needs was removed."
                             : ".\nAt the moment when the new ones begin to count, all of them "
                               "must be on the disk; and until then the old ones must stay."));
        };
        check(folder.after_kill(), "The process is killed" + when + ".");
        for (const auto& [left, lost] : folder.after_power_failure())
            check(left, "The power fails" + when + "." + lost);
    }
}

void check_crash_safe() {
    const Shards old = shards_of(1, 2);
    crash_everywhere("save_shards", {}, [&](Folder& folder) { save_shards(folder, 1, old); },
                     {"nothing", to_string(old)});
    CrashingFolder first({}, never);
    save_shards(first, 1, old);
    for (const auto& [step, count] :  // whatever the names are made of
         {std::pair{2, 2}, {11, 1}}) {
        const Shards newer = shards_of(step, count);
        crash_everywhere("save_shards", first.after_kill(),
                         [&](Folder& folder) { save_shards(folder, step, newer); },
                         {to_string(old), to_string(newer)});
    }
}

// Throws Wrong unless forget_shards leaves at most as many files as a checkpoint has, and loses
// nothing wherever it is interrupted.
void check_forgets(const Contents& left, std::size_t files_of_one, const std::string& about) {
    crash_everywhere("forget_shards", left, forget_shards, {loaded(left)});
    CrashingFolder all(left, never);
    forget_shards(all);
    if (all.names().size() <= files_of_one)
        return;
    std::string names;
    for (const std::string& name : all.names())
        names += (names.empty() ? "" : ", ") + name;
    const bool has_unfinished = names.find("unfinished") != std::string::npos;
    throw Wrong(about + " forget_shards leaves " + std::to_string(all.names().size()) + " files (" +
                names + "), and load_shards needs " + std::to_string(files_of_one) + " at most.\n" +
                (has_unfinished ? "What ends in .unfinished was left by a killed save_atomically. "
                                  "Remove it, too.\n"
                                : "") +
                "Ask what load_shards needs, and remove everything else.");
}

void check_forget_shards() {
    CrashingFolder folder({}, never);
    std::size_t once = 0;
    for (const int step : {1, 2, 3}) {
        save_shards(folder, step, shards_of(step, 2));
        if (once == 0)
            once = folder.names().size();
    }
    check_forgets(folder.after_kill(), once, "Steps 1, 2 and 3 were saved.");
    for (int call = 0;; call++) {
        CrashingFolder killed(folder.after_kill(), call);
        try {
            save_shards(killed, 4, shards_of(4, 2));
            break;
        } catch (const Crash&) {
        }
        check_forgets(
            killed.after_kill(), once,
            "Steps 1, 2 and 3 were saved, and 4 was interrupted in " + killed.last_call() + ".");
    }
    // Files of the last step itself, and of another program: load_shards needs none of them.
    for (int call = 0;; call++) {
        CrashingFolder killed({}, call);
        try {
            save_shards(killed, 4, shards_of(4, 3));
            break;
        } catch (const Crash&) {
        }
        CrashingFolder again(killed.after_kill(), never);
        if (loaded(again.after_kill()) != "nothing")
            continue;
        save_shards(again, 4, shards_of(4, 2));
        const Contents saved = again.after_kill();
        check_forgets(saved, once,
                      "Step 4 was interrupted when it had three shards, and saved again with two.");
        again.write("core.4711", {});
        check_forgets(again.after_kill(), once,
                      "Step 4 was saved, and a process that was killed has left a core.4711.");
    }
    // Killed in the first save of all: there is no checkpoint yet, and no file is needed.
    CrashingFolder first({}, 3);
    try {
        save_shards(first, 1, shards_of(1, 2));
    } catch (const Crash&) {
    }
    check_forgets(first.after_kill(), loaded(first.after_kill()) == "nothing" ? 0 : once,
                  "The first save of all was interrupted, so nothing is needed.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"save_and_load", check_save_and_load},
            {"crash_safe", check_crash_safe},
            {"forget_shards", check_forget_shards}};
}

}  // namespace ddp::test
