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

// Ways from sources to single ranks: of least time, then of least load.
class Ways {
public:
    Ways(const GreedyNetwork& network, Bytes bytes) : network_(network), bytes_(bytes) {
        load_.assign(at(network.resources()), 0);
        longest_ = INT64_MAX / 4 / std::max(1, network.ranks());
    }

    /// Distances from a new source.
    void start(int source) {
        source_ = source;
        distance_.assign(at(network_.ranks()), kOutOfReach);
        distance_[at(source)] = 0;
        using Entry = std::pair<std::int64_t, int>;
        std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap;
        heap.emplace(0, source);
        while (!heap.empty()) {
            const auto [reached, v] = heap.top();
            heap.pop();
            if (reached > distance_[at(v)]) continue;
            for (const std::int32_t e : network_.out(v)) {
                const GreedyEdge& edge = network_.edges()[at(e)];
                const std::int64_t next = reached + length(edge);
                if (next >= distance_[at(edge.to)]) continue;
                distance_[at(edge.to)] = next;
                heap.emplace(next, edge.to);
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
            const std::int32_t e = best_in(v);
            for (const GreedyUse& use : network_.uses_of(e)) load_[at(use.resource)] += use.seconds_per_byte;
            v = network_.edges()[at(e)].from;
        }
    }

private:
    std::int64_t length(const GreedyEdge& edge) const {
        // One picosecond more per hop, so that ways without any time do not go in circles.
        return std::min(edge.latency.picoseconds, longest_) + 1 +
               greedy_duration(bytes_, edge.seconds_per_byte, longest_);
    }
    std::int32_t best_in(int v) const {
        std::int32_t best = -1;
        double least = 0;
        for (const std::int32_t e : network_.in(v)) {
            const GreedyEdge& edge = network_.edges()[at(e)];
            const std::int64_t before = distance_[at(edge.from)];
            if (before == kOutOfReach || before + length(edge) != distance_[at(v)]) continue;
            double load = 0;
            for (const GreedyUse& use : network_.uses_of(e))
                load = std::max(load, load_[at(use.resource)] + use.seconds_per_byte);
            if (best >= 0 && load >= least) continue;
            best = e;
            least = load;
        }
        return best;
    }

    const GreedyNetwork& network_;
    Bytes bytes_;
    int source_ = -1;
    std::int64_t longest_;
    std::vector<std::int64_t> distance_;
    std::vector<double> load_;
};

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

}  // namespace

GreedyDemand greedy_demand(const GreedyNetwork& network, const ir::Collective& collective, Bytes bytes,
                           std::int64_t most_bits) {
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
    const bool to_all = (collective.kind == Kind::all_gather || collective.kind == Kind::broadcast) &&
                        collective.group_count() == 1 && collective.group_size() == network.ranks();
    Ways ways(network, bytes);
    const std::int64_t classes = collective.chunks;
    for (int g = 0; g < collective.group_count(); ++g) {
        const int n = collective.group_size(g);
        for (int s = 0; s < n; ++s) {
            const int source = collective.rank_at(g, s);
            const bool root = s == collective.root;
            if (!root && (collective.kind == Kind::broadcast || collective.kind == Kind::scatter ||
                          collective.kind == Kind::send_recv))
                continue;
            stop_point();
            if (!to_all) ways.start(source);
            // Chunk `base + k` of this source for one receiver or for all.
            const auto send = [&](std::int64_t base, int first, int end) {
                for (std::int64_t chunk = base; chunk < base + classes; ++chunk) {
                    demand.source[at(chunk)] = source;
                    for (int d = first; d < end; ++d) {
                        const int to = collective.rank_at(g, d);
                        if (to == source) continue;
                        if (to_all)
                            demand.lack.set(to, chunk), ++demand.deliveries;
                        else
                            ways.mark(to, chunk, demand);
                    }
                }
            };
            const std::int64_t zero = demand.first[at(g)];
            switch (collective.kind) {
                case Kind::broadcast: send(zero, 0, n); break;
                case Kind::all_gather: send(zero + s * classes, 0, n); break;
                case Kind::gather: send(zero + s * classes, collective.root, collective.root + 1); break;
                case Kind::scatter:
                    for (int d = 0; d < n; ++d) send(zero + d * classes, d, d + 1);
                    break;
                case Kind::all_to_all:
                    for (int d = 0; d < n; ++d) {
                        send(zero + (std::int64_t{s} * n + d) * classes, d, d + 1);
                    }
                    break;
                default: send(zero, collective.receiver(g), collective.receiver(g) + 1); break;
            }
        }
    }
    return demand;
}

}  // namespace baton::synth
