// The exercise shards, on a folder that goes down in every call.
#include "exercises/19_checkpoint_failover/shards.hpp"

#include "exercises/support/crashing_folder.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr int never = -1;

// Shards as the contract draws them: those of step 2 hold the letters 2a, 2b and so on.
Shards shards_of(int step, int count) {
    Shards shards;
    for (int rank = 0; rank < count; rank++) {
        const std::string text = std::to_string(step) + static_cast<char>('a' + rank);
        shards.emplace_back(text.begin(), text.end());
    }
    return shards;
}

std::string to_string(const Shards& shards) {
    std::string text;
    for (const auto& shard : shards)
        text += (text.empty() ? "" : " ") + std::string(shard.begin(), shard.end());
    return text;
}

// Returns what load_shards finds in the folder.
std::string loaded(const Folder& folder) {
    try {
        const std::optional<Shards> shards = load_shards(folder);
        return shards ? to_string(*shards) : "nothing";
    } catch (const NotImplemented&) {
        throw;
    } catch (const std::exception& error) {
        return std::string("no shards, but throws: ") + error.what();
    }
}

void require(const Folder& folder, const std::string& right, const std::string& hint) {
    if (loaded(folder) != right)
        throw Wrong("load_shards finds " + loaded(folder) + "; it should find " + right + ".\n" +
                    hint);
}

void check_save_and_load() {
    CrashingFolder folder({}, never);
    require(folder, "nothing", "Nothing has been saved yet.");
    for (const auto& [step, count] :
         {std::pair{0, 2}, {1, 3}, {2, 2}, {10, 4}, {11, 1}, {12, 12}}) {
        trying("Step " + std::to_string(step) + " is saved, and then loaded.");
        save_shards(folder, step, shards_of(step, count));
        require(folder, to_string(shards_of(step, count)),
                count > 10 ? "As text, shard 10 comes before shard 2. Sort numbers, or write the "
                             "names down in their order."
                           : "Do you mix up the shards of several steps, or compare steps as text? "
                             "And a folder gives its names in any order.");
    }
    if (folder.names().size() < 12)
        throw Wrong("There are fewer files than shards: each should be a file of its own.");
    const Shards with_empty{{'x'}, {}, {'z'}};
    save_shards(folder, 13, with_empty);
    require(folder, to_string(with_empty), "One shard is empty.");
}

// Calls `act`, named `name`, and crashes in each of its calls on the folder, each time with `start`
// on the disk. After a crash load_shards must find one of `allowed`, and after none the last one.
void crash_everywhere(const std::string& name, const Contents& start,
                      const std::function<void(Folder&)>& act,
                      const std::vector<std::string>& allowed, const std::string& hint) {
    bool is_done = false;
    for (int call = 0; !is_done; call++) {
        CrashingFolder folder(start, call);
        try {
            act(folder);
        } catch (const Crash&) {
        }
        is_done = folder.crash().empty();
        const std::string when = is_done ? "after " + name : "in " + name + ", " + folder.crash();
        for (const auto& [contents, lost] : folder.after_power_failure()) {
            const std::string found = loaded(CrashingFolder(contents, never));
            if (found != allowed.back() && (is_done || found != allowed.front()))
                throw Wrong("A crash " + when + "." + lost + "\nThen load_shards finds " + found +
                            "; it should find " + allowed.back() +
                            (is_done || allowed.size() == 1 ? "" : ", or still " + allowed[0]) +
                            ".\n" + hint);
        }
    }
}

void check_crash_safe() {
    CrashingFolder folder({}, never);
    std::string old = "nothing";
    for (const auto& [step, count] : {std::pair{1, 2}, {2, 3}, {11, 1}}) {
        const Shards newer = shards_of(step, count);
        const auto save = [&, number = step](Folder& into) { save_shards(into, number, newer); };
        crash_everywhere("save_shards", folder.after_kill(), save, {old, to_string(newer)},
                         "At the moment when the new ones begin to count, all of them must be on "
                         "the disk; and until then the old ones must stay.");
        save(folder);
        old = to_string(newer);
    }
}

// Forgets shards after a save that may have crashed. Throws Wrong if more than `files` are left.
void save_and_forget(Folder& folder, std::size_t files) {
    try {
        save_shards(folder, 4, shards_of(4, 2));
    } catch (const Crash&) {
    }
    const std::string found = loaded(folder);
    forget_shards(folder);
    std::string names;
    for (const std::string& name : folder.names())
        names += " " + name;
    if (folder.names().size() > (found == "nothing" ? 0 : files))
        throw Wrong("After save_shards, whole or crashed, forget_shards leaves" + names +
                    "; load_shards finds " + found +
                    ": ask what it needs, and remove everything else." +
                    (names.find(unfinished) == std::string::npos
                         ? ""
                         : "\nWhat ends in .unfinished was left by a killed save_atomically."));
}

void check_forget_shards() {
    CrashingFolder folder({}, never);
    save_shards(folder, 1, shards_of(1, 2));
    const std::size_t files = folder.names().size();
    save_shards(folder, 2, shards_of(2, 2));
    const std::string old = loaded(folder), newer = to_string(shards_of(4, 2));
    crash_everywhere("forget_shards", folder.after_kill(), forget_shards, {old},
                     "Something that load_shards needs was removed.");
    for (const Contents& start : {folder.after_kill(), Contents{}})
        crash_everywhere(
            "save_shards, with forget_shards called since", start,
            [&](Folder& into) { save_and_forget(into, files); },
            {loaded(CrashingFolder(start, never)), newer},
            "Was on the disk what load_shards finds, before you removed the older files?");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"save_and_load", check_save_and_load},
            {"crash_safe", check_crash_safe},
            {"forget_shards", check_forget_shards}};
}

}  // namespace ddp::test
