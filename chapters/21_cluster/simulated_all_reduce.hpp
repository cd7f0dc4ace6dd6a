#pragma once
// An all-reduce as a list of rounds, and the time that they take on a cluster.
//
//     round 0    0 ──▶ 1 ──▶ 2 ──▶ 3 ──▶ 0      every rank sends at most one message per round;
//     round 1    0 ──▶ 1 ──▶ 2 ──▶ 3 ──▶ 0      it leaves once its sender has received everything
//     ...                                       from earlier rounds, and queues at each port
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
    std::vector<Point>
        busy;  // from 0 bytes upwards; the last segment extends beyond the last point

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
    // Nodes under a leaf switch (0: all), and the bandwidth of all their ports divided by the
    // bandwidth of the leaf's uplink.
    int nodes_per_leaf = 0;
    double oversubscription = 1;

    int ranks() const { return nodes * ranks_per_node; }
    // Returns the number of rings, or pairs of trees, that can each use a port of their own.
    int copies() const { return nodes > 1 ? std::min(ports, ranks_per_node) : 1; }
};

// Returns the rank that `rank` sends to, or -1. Ranks are numbered node by node here.
using Partner = std::function<int(int rank)>;

struct Round {
    Partner partner;
    double bytes;           // of each message
    bool waits = true;      // for the messages of earlier rounds
    bool reversed = false;  // the rank receives from its partner instead
};
using Rounds = std::vector<Round>;

struct Schedule {
    std::vector<Rounds> parts;  // of the data, reduced at the same time; all have as many rounds
    int slices = 1;     // of each part: while one is in a round, its predecessor is in the next
    double pace_s = 0;  // each slice starts this much later than its predecessor
    int copies = 1;  // equal schedules side by side, each with a port of its own: one is simulated
};

enum class Algorithm { flat, two_level, tree };

// Returns the rounds of an all-reduce. Chunks are not rounded to whole elements.
Schedule schedule(Algorithm algorithm, const Cluster& cluster, double bytes);

// Returns the rounds of the double tree (double_tree.cpp).
Schedule double_tree(const Cluster& cluster, double bytes);

// Sends all messages, tracks when each rank has its data and until when each port is busy, and
// returns the time at which the last message arrives.
double simulated_s(const Cluster& cluster, const Schedule& schedule);

inline double all_reduce_s(Algorithm algorithm, const Cluster& cluster, double bytes) {
    return simulated_s(cluster, schedule(algorithm, cluster, bytes));
}

}  // namespace ddp::simulator
