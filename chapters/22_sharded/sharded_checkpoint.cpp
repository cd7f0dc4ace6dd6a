// Four ranks have saved an array of 400 elements, with padding behind the last one; three ranks
// read it:
//
//     files      | 0 .......... 127 | 128 ........ 255 | 256 ........ 383 | 384 . 399 ░░░ |
//     ranks      | 0 ............... 159 | 160 ............. 319 | 320 ........ 399 ░░░░░ |
//     rank 1                             | 160 .. 255 | 256 .. 319 |       from files 1 and 2
//
// A file's elements and those that a rank needs are two ranges of one line, and what both have is
// copied. That holds for parameters and moments, for chunks and for whole parameters, whatever the
// numbers of ranks, and says nothing of a stage: at each of them a rank has the same chunks.
//
// A checkpoint is N files, and no file system renames N files at once. So a step counts only if all
// of its files are whole, and say the same of the training and each its own rank:
//
//     rank 0    | save 50 | save 60 | save 70     killed     | whole: 50. Rank 0 still needs the
//     rank 1    | save 50 | save                             | file of two checkpoints before.
#include "22_sharded/sharded_checkpoint.hpp"

#include <algorithm>
#include <iostream>
#include <sstream>

#include "05_ranks/rendezvous.hpp"
#include "19_checkpoint_failover/state/resume.hpp"
#include "common/data/file.hpp"

namespace ddp {
namespace {

// Elements begin, begin + 1, ... of an array that is saved in chunks.
struct Piece {
    std::string array;  // a unit, or one of its moments
    std::size_t begin = 0;
    std::size_t chunk = 0;  // of each file
    std::vector<float> values{};

    std::size_t end() const { return begin + values.size(); }
};

// Copies what the file of rank `rank` has of each piece.
void read_pieces(const ShardFiles& files, const SavedSet& set, int rank, const Safetensors& first,
                 std::vector<Piece>& pieces) {
    const Safetensors file = files.read(set, rank, first);
    for (Piece& piece : pieces) {
        const SafetensorsHeader::Entry* entry = file.find(piece.array);
        if (entry == nullptr || entry->type != "F32" || entry->shape != std::vector{piece.chunk})
            refuse(ShardFiles::name(set, rank), "has no chunk of " + std::to_string(piece.chunk) +
                                                    " elements of '" + piece.array +
                                                    "': it is of another model.");
        const std::size_t saved = static_cast<std::size_t>(rank) * piece.chunk;
        const std::size_t begin = std::max(saved, piece.begin);
        const std::size_t end = std::min(saved + piece.chunk, piece.end());
        if (begin >= end)
            continue;
        const std::vector<float> values = file.values(*entry);
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(begin - saved), end - begin,
                    piece.values.begin() + static_cast<std::ptrdiff_t>(begin - piece.begin));
    }
}

// Reads all files of a checkpoint, one after the other: one is in memory, beside the first.
void read_pieces(const ShardFiles& files, const SavedSet& set, const Safetensors& first,
                 std::vector<Piece>& pieces) {
    for (int rank = 0; rank < set.ranks; rank++)
        read_pieces(files, set, rank, first, pieces);
}

// Returns the tensors that are not sharded: those of frozen parameters, and the buffers.
TrainingTensors whole_tensors(const Module& model) {
    TrainingTensors tensors;
    for (const auto& parameter : model.parameters())
        if (parameter->is_frozen)
            tensors.fixed_in_forward.push_back({parameter->name, parameter->value});
    tensors.buffers = model.buffers();
    return tensors;
}

}  // namespace

// ---- Saving: every rank has a Saver and a folder

// The objects that the writer thread uses. They are run-scoped, so that they outlive the writer. A
// rank begins to write a checkpoint when all ranks have made its step, and they make no step before
// they have written the checkpoint before the last. So another rank may be two checkpoints behind
// this one, and two more must stay for `keep` to be whole.
struct ShardedCheckpoints::Storage {
    Storage(const std::filesystem::path& path, int keep)
        : folder(path), checkpoints(folder, keep + 2) {}

    DiskFolder folder;
    Checkpoints checkpoints;
    std::optional<Saver> saver;
};

ShardedCheckpoints::ShardedCheckpoints(Communicator& communicator, Device& device,
                                       const Blocks& blocks, ShardedDataParallel& replica,
                                       Optimizer& optimizer, const CheckpointPlan& plan,
                                       std::map<std::string, std::string> configuration,
                                       const Saver::OnEvent& on_event)
    : communicator_(communicator),
      blocks_(blocks),
      replica_(replica),
      optimizer_(optimizer),
      plan_(plan),
      files_(plan.folder),
      whole_(whole_tensors(blocks.model)) {
    for (const auto& chunk : replica.chunks())
        chunks_.fixed_in_forward.push_back({chunk->name, chunk->value});
    for (const auto& [name, value] : optimizer.state().tensors)
        chunks_.fixed_in_forward.push_back({optimizer_prefix + name, value});
    state_.configuration = std::move(configuration);
    state_.buckets.plan = encode_plan(units_of(blocks, communicator.world_size()).plan);
    if (plan.folder.empty())
        return;
    Rank& rank = communicator.rank();
    storage_ = &make_run_scoped<Storage>(
        rank, files_.of_rank(communicator.index(), communicator.world_size()), plan.keep);
    TrainingTensors saved = chunks_;
    if (communicator.index() == 0) {  // all ranks have the same ones
        saved.fixed_in_forward.insert(saved.fixed_in_forward.end(), whole_.fixed_in_forward.begin(),
                                      whole_.fixed_in_forward.end());
        saved.buffers = whole_.buffers;
    }
    storage_->saver.emplace(
        communicator, device, saved, storage_->checkpoints,
        on_event ? on_event : [](const std::string&, int) {},
        ShardFiles::place(communicator.index(), communicator.world_size()));
    if (plan.takes_sigterm)
        preemption_.emplace(communicator, device);
}

// The writer asks the communicator, which may end next.
ShardedCheckpoints::~ShardedCheckpoints() {
    if (storage_ != nullptr)
        storage_->saver->end();
}

void ShardedCheckpoints::wait_for_copy() {
    if (storage_ != nullptr)
        storage_->saver->wait_for_copy();
}

void ShardedCheckpoints::save_if_due() {
    if (preemption_ && preemption_->is_told_to_end())
        throw ToldToEnd();
    if (state_.step % plan_.every == 0)
        save();
}

void ShardedCheckpoints::save() {
    if (storage_ == nullptr)
        return;
    for (const auto& [name, number] : optimizer_.state().numbers)
        state_.optimizer_numbers[name] = *number;
    storage_->saver->save(state_);
}

void ShardedCheckpoints::finish() {
    save();
    if (storage_ != nullptr)
        storage_->saver->finish();
}

// ---- Going on

// The start is saved, too, before the first step. So from then on a whole checkpoint is always
// there: where none is, files have been lost or damaged, and were not just never written.
std::optional<SavedSet> ShardedCheckpoints::resume() {
    if (storage_ == nullptr)
        return std::nullopt;
    std::vector<std::string> errors;
    const std::optional<SavedSet> set = find_newest(errors);
    if (!set && !errors.empty())
        throw std::runtime_error("no checkpoint in '" + plan_.folder.string() +
                                 "' is whole: " + errors.front() +
                                 " Put the right files back, or remove all to begin again.");
    if (communicator_.index() == 0)
        for (const std::string& error : errors)
            std::cerr << "note: " << error << " The one before it is used." << std::endl;
    if (set)
        load(*set);
    begin_generation(set ? set->step : 0);
    if (!set) {
        // A word of this training, by which its files know each other.
        state_.configuration["training"] =
            communicator_.rank().broadcast(new_job_name(), communicator_.group().rank(0));
        finish();
        communicator_.rank().barrier();  // all files of the start are on the disk
    }
    return set;
}

// Returns the newest checkpoint of which all files are whole. Rank 0 says which there are, so that
// all ranks look at the same ones; each of them reads its share of the files.
std::optional<SavedSet> ShardedCheckpoints::find_newest(std::vector<std::string>& errors) {
    Rank& rank = communicator_.rank();
    std::ostringstream text;
    if (communicator_.index() == 0)
        for (const auto& [step, ranks] : files_.sets())
            text << step << " " << ranks << " ";
    std::istringstream sets(rank.broadcast(text.str(), communicator_.group().rank(0)));
    for (SavedSet set; sets >> set.step >> set.ranks;) {
        const std::vector<std::string> found = rank.all_gather(error_in(set));
        const auto error = std::ranges::find_if_not(found, &std::string::empty);
        if (error == found.end())
            return set;
        if (set.step > 0)  // 0: the start was not saved, and no step has been made
            errors.push_back(*error);
    }
    return std::nullopt;
}

// Returns what is wrong with this rank's share of the files, or "".
std::string ShardedCheckpoints::error_in(const SavedSet& set) const {
    try {
        const Safetensors first = files_.read(set, 0);
        for (int r = communicator_.index(); r < set.ranks; r += communicator_.world_size())
            files_.read(set, r, first);
        return "";
    } catch (const DataError& error) {
        return error.what();
    }
}

// Takes this rank's elements from whatever files have them.
void ShardedCheckpoints::load(const SavedSet& set) {
    const Safetensors first = files_.read(set, 0);
    const std::string name = ShardFiles::name(set, 0);
    TrainingState state = to_state(first.header.metadata, name);
    require_same_configuration(state, state_.configuration);
    state.buckets = state_.buckets;
    state_ = state;
    // An array begins at the same element for any number of ranks; its chunks have other lengths.
    const Units saved = units_of(blocks_, set.ranks);
    std::vector<Piece> pieces;
    for (const NamedTensor& chunk : chunks_.fixed_in_forward) {
        const auto unit = std::ranges::find_if(saved.units, [&](const Unit& each) {
            return chunk.name == each.name ||
                   chunk.name.starts_with(optimizer_prefix + each.name + ".");
        });
        pieces.push_back({chunk.name,
                          static_cast<std::size_t>(communicator_.index()) * chunk.value.size(),
                          unit->chunk, std::vector<float>(chunk.value.size())});
    }
    read_pieces(files_, set, first, pieces);
    for (std::size_t i = 0; i < pieces.size(); i++)
        Tensor(chunks_.fixed_in_forward[i].value).copy_from(pieces[i].values);
    for (const auto* list : {&whole_.fixed_in_forward, &whole_.buffers})
        load_tensors(first, *list, name);
    for (const auto& [key, number] : optimizer_.state().numbers)
        *number = state_.optimizer_numbers.at(key);
    replica_.gather_changed_chunks();
}

// Ends what earlier starts of the training may still write, whatever their number of ranks: their
// folders are dealt out. Removes what they have saved behind `step`, where the training goes on, so
// that no file of an abandoned step is ever taken for one of this start.
void ShardedCheckpoints::begin_generation(int step) {
    Rank& rank = communicator_.rank();
    const int ranks = communicator_.world_size();
    const std::string own = files_.of_rank(communicator_.index(), ranks);
    std::vector<DiskFolder> folders;
    int newest = storage_->checkpoints.newest_generation(), others = 0;
    rank.barrier();  // all have made their folders
    for (const auto& path : files_.all()) {
        const bool is_of_a_rank_here = path.string().ends_with("-of-" + std::to_string(ranks));
        if (is_of_a_rank_here ? path == own : others++ % ranks == communicator_.index())
            folders.emplace_back(path);
    }
    for (DiskFolder& folder : folders)
        newest = std::max(newest, Checkpoints(folder, 1).newest_generation());
    newest = std::ranges::max(rank.all_gather(newest));
    storage_->checkpoints.begin_generation(newest + 1);
    for (DiskFolder& folder : folders) {
        Checkpoints checkpoints(folder, 1);
        checkpoints.begin_generation(newest + 1);
        for (const int saved : checkpoints.steps())
            if (saved > step)
                folder.remove(Checkpoints::file_name(saved));
    }
    rank.barrier();  // nobody saves before the others' folders are in order
}

// ---- One file of it

namespace {

// A checkpoint of whole parameters, before its values are read.
struct WholeCheckpoint {
    SafetensorsHeader header;
    std::vector<Piece> pieces;  // one for each tensor of the header
    std::map<std::string, int> optimizer_numbers;
};

// Adds a parameter, and each moment that `saved` has of it. A unit's moments have its name, and the
// optimizer of a whole model names them by the parameter.
void add_parameter(const Unit& unit, const Parameter& parameter, std::size_t offset,
                   const SafetensorsHeader& saved, WholeCheckpoint& whole) {
    const Shape& shape = parameter.value.shape();
    const auto add = [&](const std::string& name, const std::string& array) {
        whole.header.add(name, {shape.begin(), shape.end()});
        whole.pieces.push_back(
            {array, offset, unit.chunk, std::vector<float>(parameter.value.size())});
    };
    add(parameter.name, unit.name);
    const std::string moments = optimizer_prefix + unit.name;
    for (const auto& tensor : saved.tensors)
        if (tensor.name.starts_with(moments + "."))
            add(optimizer_prefix + parameter.name + tensor.name.substr(moments.size()),
                tensor.name);
}

// Does the same with a unit's numbers, such as its count of steps.
void add_numbers(const Unit& unit, const Parameter& parameter,
                 const std::map<std::string, int>& saved, WholeCheckpoint& whole) {
    for (const auto& [key, number] : saved)
        if (key.starts_with(unit.name + "."))
            whole.optimizer_numbers[parameter.name + key.substr(unit.name.size())] = number;
}

}  // namespace

// A whole parameter is a piece of its unit's array, like a rank's chunk.
int save_whole_checkpoint(const std::filesystem::path& folder, const Blocks& blocks,
                          Folder& target) {
    const ShardFiles files(folder);
    const std::vector<SavedSet> sets = files.sets();
    if (sets.empty())
        refuse(folder, "has no checkpoint of a sharded training.");
    const SavedSet set = sets.front();
    const Safetensors first = files.read(set, 0);
    TrainingState state = to_state(first.header.metadata, ShardFiles::name(set, 0));
    const Units units = units_of(blocks, set.ranks);
    WholeCheckpoint whole;
    for (const Unit& unit : units.units)
        for (std::size_t i = 0; i < unit.parameters.size(); i++) {
            const Parameter& parameter = *unit.parameters[i];
            const std::size_t offset = units.plan.places[unit.numbers[i]].offset;
            add_parameter(unit, parameter, offset, first.header, whole);
            add_numbers(unit, parameter, state.optimizer_numbers, whole);
        }
    read_pieces(files, set, first, whole.pieces);
    std::vector<std::uint8_t> data;
    const auto append = [&](Bytes bytes) { data.insert(data.end(), bytes.begin(), bytes.end()); };
    for (const Piece& piece : whole.pieces)
        append({reinterpret_cast<const std::uint8_t*>(piece.values.data()),
                piece.values.size() * sizeof(float)});
    // The file of rank 0 has the others as they are.
    const TrainingTensors others = whole_tensors(blocks.model);
    for (const auto* list : {&others.fixed_in_forward, &others.buffers})
        for (const NamedTensor& tensor : *list)
            if (const SafetensorsHeader::Entry* entry = first.find(tensor.name)) {
                whole.header.add(tensor.name, entry->shape);
                append(first.data().subspan(entry->begin, entry->end - entry->begin));
            }
    state.optimizer_numbers = whole.optimizer_numbers;
    whole.header.metadata = to_metadata(state);
    Checkpoints(target, 1).save(set.step, whole.header, data);
    return set.step;
}

}  // namespace ddp
