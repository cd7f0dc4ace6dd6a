#pragma once
// An all-reduce as a list of rounds, and the time that they take on a cluster.
//
//     round 0    0 ──▶ 1 ──▶ 2 ──▶ 3 ──▶ 0      in a round every rank sends one message or none;
//     round 1    0 ──▶ 1 ──▶ 2 ──▶ 3 ──▶ 0      it leaves when its sender has what earlier rounds
//     ...                                       have sent it, and waits for its turn at each port
#include <algorithm>
#include <functional>
#include <vector>

namespace ddp::simulator {

// A message keeps a port at either end busy for busy_s(bytes), and arrives latency_s after that.
struct Link {
    struct Point {
        double bytes, seconds;
    };
    double latency_s = 0;
    std::vector<Point> busy;  // of growing size, from 0 bytes on; beyond them the last line goes on

    double busy_s(double bytes) const {
        const auto upper = std::find_if(busy.begin() + 1, busy.end() - 1,
                                        [=](const Point& point) { return point.bytes >= bytes; });
        const Point &a = *(upper - 1), &b = *upper;
        return a.seconds + (b.seconds - a.seconds) * (bytes - a.bytes) / (b.bytes - a.bytes);
    }
};

inline Link straight_link(double alpha_s, double bytes_per_second) {
    return {alpha_s, {{0, 0}, {bytes_per_second, 1}}};
}

struct Cluster {
    int nodes = 1, ranks_per_node = 1;
    Link inside, between;  // between: one port of a node
    int ports = 1;         // of a node; its ranks share them, in turn
    // Nodes under a leaf switch (0: all), and how many times the bandwidth of the leaf's uplink
    // their ports have together.
    int nodes_per_leaf = 0;
    double oversubscription = 1;

    int ranks() const { return nodes * ranks_per_node; }
};

// Returns whom a rank sends to; -1: to nobody. Ranks are numbered node by node here.
using Partner = std::function<int(int rank)>;

struct Round {
    Partner partner;
    double bytes;           // of each message
    bool waits = true;      // for what the rounds before have sent
    bool reversed = false;  // the rank receives from its partner instead
};
using Rounds = std::vector<Round>;

struct Schedule {
    std::vector<Rounds> parts;  // of the data, reduced at the same time; all have as many rounds
    int slices = 1;  // of each part: while one is in a round, the one before is in the next round
    double pace_s = 0;  // a slice gives way to the one before for as long
    int copies = 1;  // equal schedules side by side, each with a port of its own: one is simulated
};

// by_node: the flat ring in which rank r is on node r % nodes (mpirun --map-by node).
enum class Algorithm { flat, by_node, two_level, tree, direct };

// Returns the rounds in which all ranks add up an array. Chunks are not rounded to elements.
Schedule schedule(Algorithm algorithm, const Cluster& cluster, double bytes);

// Sends all messages, keeps since when each rank has its data and how long each port is busy, and
// returns when the last message has arrived.
double simulated_s(const Cluster& cluster, const Schedule& schedule);

inline double all_reduce_s(Algorithm algorithm, const Cluster& cluster, double bytes) {
    return simulated_s(cluster, schedule(algorithm, cluster, bytes));
}

}  // namespace ddp::simulator
