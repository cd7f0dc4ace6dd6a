#include "tools/cluster/places.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// ---- What a rank sends to the others: a line, with tabs between the fields

std::string line_of_place(const RankPlace& place) {
    std::string line =
        place.machine + '\t' + std::to_string(place.cores_of_machine) + '\t' + place.device + '\t';
    for (const int core : place.cores)
        line += std::to_string(core) + ' ';
    return line;
}

RankPlace place_of_line(const std::string& line) {
    std::istringstream words(line);
    RankPlace place;
    std::string cores_of_machine;
    for (std::string* field : {&place.machine, &cores_of_machine, &place.device})
        std::getline(words, *field, '\t');
    place.cores_of_machine = std::stoi(cores_of_machine);
    place.cores.assign(std::istream_iterator<int>(words), {});
    return place;
}

}  // namespace

RankPlace place_of_process() {
    RankPlace place;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> place.machine;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof cores, &cores) == 0)
        for (int core = 0; core < CPU_SETSIZE; core++)
            if (CPU_ISSET(core, &cores))
                place.cores.push_back(core);
    place.cores_of_machine = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
    return place;
}

std::string text_of_cores(const std::vector<int>& cores) {
    std::string text;
    for (std::size_t i = 0; i < cores.size();) {
        std::size_t last = i;
        while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1)
            last++;
        text += (text.empty() ? "" : ",") + std::to_string(cores[i]);
        if (last > i)
            text += "-" + std::to_string(cores[last]);
        i = last + 1;
    }
    return text.empty() ? "not known" : text;
}

std::string shared_core(const std::vector<RankPlace>& places) {
    for (std::size_t b = 0; b < places.size(); b++)
        for (std::size_t a = 0; a < b; a++) {
            const RankPlace &one = places[a], &other = places[b];
            if (one.machine != other.machine || one.cores != other.cores || one.cores.size() != 1 ||
                one.cores_of_machine == 1)
                continue;
            const std::string where = one.node == other.node
                                          ? one.node
                                          : one.node + " and " + other.node + ", one machine";
            return "ranks " + std::to_string(a) + " and " + std::to_string(b) +
                   " are both bound to core " + std::to_string(one.cores[0]) + " of " + where +
                   ", which has " + std::to_string(one.cores_of_machine) +
                   ": they take turns there; start the ranks unbound (mpirun "
                   "--bind-to none, srun "
                   "--cpu-bind=none), or each on cores of its own.";
        }
    return "";
}

std::vector<RankPlace> gather_places(Rank& rank, RankPlace mine) {
    const int device = rank.select_device();
    cudaDeviceProp properties;
    DDP_CHECK(cudaGetDeviceProperties(&properties, device));
    mine.device = std::to_string(device) + ": " + properties.name;
    std::vector<RankPlace> places;
    for (const std::string& line : rank.all_gather(line_of_place(mine))) {
        places.push_back(place_of_line(line));
        places.back().node = rank.job().members[places.size() - 1].node;
    }
    return places;
}

}  // namespace ddp
