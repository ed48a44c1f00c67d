#include <baton/synth/greedy_demand.hpp>

#include <baton/base/error.hpp>
#include <baton/base/stop.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <queue>

namespace baton::synth {
namespace {

using Kind = ir::CollectiveKind;

constexpr std::int64_t kOutOfReach = INT64_MAX;

constexpr std::int64_t kOtherWaits = 8;
constexpr std::int64_t kMostParcelBits = std::int64_t{1} << 28;
constexpr std::int64_t kMostRelaxations = 60'000'000;

// Ways from sources to ranks: of least time, waiting for ways chosen before included.
class Ways {
public:
    Ways(const GreedyNetwork& network, Bytes bytes, WaitRule rule)
        : network_(network), bytes_(bytes), rule_(rule) {
        load_.assign(at(network.resources()), 0);
        longest_ = INT64_MAX / 8 / std::max(1, network.ranks());
    }

    /// Distances from a source. Without `loads` they do not change when ways are taken.
    void start(int source, bool loads) {
        source_ = source;
        distance_.assign(at(network_.ranks()), kOutOfReach);
        before_.assign(at(network_.ranks()), -1);
        waits_.assign(at(network_.ranks()), 0);
        distance_[at(source)] = 0;
        using Entry = std::pair<std::int64_t, int>;
        std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap;
        heap.emplace(0, source);
        while (!heap.empty()) {
            const auto [reached, v] = heap.top();
            heap.pop();
            if (reached > distance_[at(v)]) continue;
            for (const std::int32_t e : network_.out(v)) {
                const int to = network_.edges()[at(e)].to;
                std::int64_t wait = waits_[at(v)], next = reached + length(e);
                if (loads) {
                    // Other waits than the longest count little: they pass meanwhile.
                    const std::int64_t here = queue(e);
                    next += rule_ == WaitRule::all
                                ? here
                                : std::max(here - wait, std::int64_t{0}) + std::min(here, wait) / kOtherWaits;
                    wait = std::max(wait, here);
                }
                const bool lighter =
                    !loads && next == distance_[at(to)] && load_of(e) < load_of(before_[at(to)]);
                if (next > distance_[at(to)] || (next == distance_[at(to)] && !lighter)) continue;
                before_[at(to)] = e;
                if (next == distance_[at(to)]) continue;
                distance_[at(to)] = next;
                waits_[at(to)] = wait;
                heap.emplace(next, to);
            }
        }
    }

    /// Marks the ranks on a way to `rank` as lacking the chunk, up to the first that is marked already.
    void mark(int rank, std::int64_t chunk, GreedyDemand& demand) {
        for (int v = rank; v != source_ && !demand.lack.test(v, chunk);) {
            if (distance_[at(v)] == kOutOfReach)
                throw input_error(
                    fmt::format("rank {} is out of reach of rank {} over the pairs of ranks "
                                "that greedy looks at",
                                v, source_));
            demand.lack.set(v, chunk);
            ++demand.deliveries;
            const std::int32_t e = before_[at(v)];
            add(e, 1);
            v = network_.edges()[at(e)].from;
        }
    }

    /// Edges of the way to `rank`, last first.
    std::vector<std::int32_t> way(int rank) const {
        std::vector<std::int32_t> edges;
        for (int v = rank; v != source_;) {
            edges.push_back(before_[at(v)]);
            v = network_.edges()[at(edges.back())].from;
        }
        return edges;
    }
    bool reaches(int rank) const { return distance_[at(rank)] != kOutOfReach; }
    void add(std::int32_t e, int times) {
        for (const GreedyUse& use : network_.uses_of(e))
            load_[at(use.resource)] += times * use.seconds_per_byte;
    }

private:
    std::int64_t length(std::int32_t e) const {
        const GreedyEdge& edge = network_.edges()[at(e)];
        // One picosecond more per hop, so that ways without any time do not go in circles.
        return std::min(edge.latency.picoseconds, longest_) + 1 +
               greedy_duration(bytes_, edge.seconds_per_byte, longest_);
    }
    double load_of(std::int32_t e) const {
        double load = 0;
        for (const GreedyUse& use : network_.uses_of(e)) load = std::max(load, load_[at(use.resource)]);
        return load;
    }
    std::int64_t queue(std::int32_t e) const { return greedy_duration(bytes_, load_of(e), longest_); }

    const GreedyNetwork& network_;
    Bytes bytes_;
    WaitRule rule_;
    int source_ = -1;
    std::int64_t longest_;
    std::vector<std::int64_t> distance_;
    std::vector<std::int64_t> waits_;   // [rank]: the longest wait on the way to it
    std::vector<std::int32_t> before_;  // [rank]: last edge of the way to it
    std::vector<double> load_;          // [resource]: seconds per byte of all ways so far
};

// A chunk and the rank that must get it.
struct Parcel {
    std::int64_t chunk = 0;
    std::int32_t source = 0, destination = 0;
};

// One destination each: every way is chosen, then chosen again with all others known.
void send_singly(const GreedyNetwork& network, Bytes bytes, WaitRule rule, const std::vector<Parcel>& parcels,
                 GreedyDemand& demand) {
    Ways ways(network, bytes, rule);
    const auto pairs = static_cast<std::int64_t>(network.edges().size());
    const bool loads = static_cast<std::int64_t>(parcels.size()) * pairs <= kMostRelaxations;
    std::vector<std::vector<std::int32_t>> chosen(parcels.size());
    for (int round = 0; round < (loads ? 2 : 1); ++round) {
        int source = -1;
        for (std::size_t i = 0; i < parcels.size(); ++i) {
            stop_point();
            for (const std::int32_t e : chosen[i]) ways.add(e, -1);
            if (loads || parcels[i].source != source) ways.start(source = parcels[i].source, loads);
            if (!ways.reaches(parcels[i].destination))
                throw input_error(
                    fmt::format("rank {} is out of reach of rank {} over the pairs of ranks "
                                "that greedy looks at",
                                parcels[i].destination, source));
            chosen[i] = ways.way(parcels[i].destination);
            for (const std::int32_t e : chosen[i]) ways.add(e, 1);
        }
    }
    demand.hops.assign(demand.source.size(), 0);
    if (pairs * demand.chunks() <= kMostParcelBits) demand.ways = BitRows(pairs, demand.chunks());
    for (std::size_t i = 0; i < parcels.size(); ++i) {
        demand.hops[at(parcels[i].chunk)] = static_cast<std::uint32_t>(chosen[i].size());
        demand.deliveries += static_cast<std::int64_t>(chosen[i].size());
        for (const std::int32_t e : chosen[i]) {
            demand.lack.set(network.edges()[at(e)].to, parcels[i].chunk);
            if (!demand.ways.empty()) demand.ways.set(e, parcels[i].chunk);
        }
    }
}

std::int64_t chunks_of_group(const ir::Collective& collective, int group) {
    const std::int64_t n = collective.group_size(group);
    switch (collective.kind) {
        case Kind::broadcast:
        case Kind::send_recv: return collective.chunks;
        case Kind::all_gather:
        case Kind::scatter:
        case Kind::gather: return n * collective.chunks;
        case Kind::all_to_all: return n * n * collective.chunks;
        default: throw internal_error("no greedy demand for this kind");
    }
}

// all_gather and broadcast: to all members of a group; all ranks outside may relay.
void send_to_all(const GreedyNetwork& network, const ir::Collective& collective, Bytes bytes, WaitRule rule,
                 GreedyDemand& demand) {
    const bool everyone = collective.group_count() == 1 && collective.group_size() == network.ranks();
    const auto pairs = static_cast<std::int64_t>(network.edges().size());
    const bool loads = demand.chunks() * pairs <= kMostRelaxations;
    Ways ways(network, bytes, rule);
    for (int g = 0; g < collective.group_count(); ++g) {
        const int n = collective.group_size(g);
        const bool gather = collective.kind == Kind::all_gather;
        for (int s = gather ? 0 : collective.root; s < (gather ? n : collective.root + 1); ++s) {
            stop_point();
            const int source = collective.rank_at(g, s);
            const std::int64_t base = demand.first[at(g)] + (gather ? s * collective.chunks : 0);
            if (!everyone && !loads) ways.start(source, false);
            for (std::int64_t chunk = base; chunk < base + collective.chunks; ++chunk) {
                demand.source[at(chunk)] = source;
                if (!everyone && loads) ways.start(source, true);
                for (int d = 0; d < n; ++d) {
                    const int to = collective.rank_at(g, d);
                    if (to == source) continue;
                    if (everyone)
                        demand.lack.set(to, chunk), ++demand.deliveries;
                    else
                        ways.mark(to, chunk, demand);
                }
            }
        }
    }
}

// Everything with one destination that moves; sources take turns, so that none has its choice of ways first.
std::vector<Parcel> parcels_of(const ir::Collective& collective, GreedyDemand& demand) {
    std::vector<Parcel> parcels;
    const std::int64_t classes = collective.chunks;
    for (int g = 0; g < collective.group_count(); ++g) {
        const int n = collective.group_size(g);
        for (int i = 0; i < n; ++i) {
            for (int s = 0; s < n; ++s) {
                const int d = (s + i) % n;
                std::int64_t first = demand.first[at(g)];
                switch (collective.kind) {
                    case Kind::scatter:
                        if (s != collective.root) continue;
                        first += d * classes;
                        break;
                    case Kind::gather:
                        if (d != collective.root) continue;
                        first += s * classes;
                        break;
                    case Kind::all_to_all: first += (std::int64_t{s} * n + d) * classes; break;
                    default:
                        if (s != collective.root || d != collective.receiver(g)) continue;
                        break;
                }
                for (std::int64_t chunk = first; chunk < first + classes; ++chunk) {
                    demand.source[at(chunk)] = collective.rank_at(g, s);
                    if (s != d)
                        parcels.push_back({chunk, collective.rank_at(g, s), collective.rank_at(g, d)});
                }
            }
        }
    }
    return parcels;
}

}  // namespace

GreedyDemand greedy_demand(const GreedyNetwork& network, const ir::Collective& collective, Bytes bytes,
                           WaitRule rule, std::int64_t most_bits) {
    GreedyDemand demand;
    std::int64_t total = 0;
    for (int g = 0; g < collective.group_count(); ++g) {
        demand.first.push_back(static_cast<std::int32_t>(total));
        total += chunks_of_group(collective, g);
        if (total > most_bits / std::max(1, network.ranks()))
            throw input_error(fmt::format("{} chunks at {} ranks are more than greedy keeps track of", total,
                                          network.ranks()));
    }
    demand.source.assign(at(total), 0);
    demand.lack = BitRows(network.ranks(), total);
    if (collective.kind == Kind::all_gather || collective.kind == Kind::broadcast)
        send_to_all(network, collective, bytes, rule, demand);
    else
        send_singly(network, bytes, rule, parcels_of(collective, demand), demand);
    return demand;
}

}  // namespace baton::synth
