#include <baton/synth/mcf.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>
#include <baton/synth/flow_routing.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace baton::synth {
namespace {

using ir::Buffer;
using Kind = ir::CollectiveKind;

constexpr std::int64_t kMostParcels = 40'000;    // chunks of all pairs: beyond, more would cost tiles
constexpr std::int64_t kMostEntries = 17'000;    // of the full program: routing does without it
constexpr std::int64_t kMostWork = 150'000'000;  // arcs looked at by routing
constexpr std::int64_t kManyPairs = 1000;        // above, two divisions in vain are the end
constexpr double kEnough = 0.006;                // loss that more chunks are not worth
constexpr double kNoticeable = 0.002;            // gain that a second schedule is worth

// A run of chunks of one pair on one way.
struct Parcel {
    int source, destination;  // ranks
    std::int64_t source_index, destination_index, chunks;
    const std::vector<int>* hops;
    int rotation;  // how far apart the two are: spreads what is sent at once
};

class FlowWriter {
public:
    FlowWriter(const FlowNetwork& network, const ir::Collective& collective, const FlowHops& hops)
        : network_(network),
          collective_(collective),
          hops_(hops),
          group_(at(collective.ranks), -1),
          position_(at(collective.ranks), -1),
          scratch_(at(collective.ranks), 0),
          rank_of_(at(network.vertices), -1) {
        for (int g = 0; g < collective.group_count(); ++g) {
            for (int p = 0; p < collective.group_size(g); ++p) {
                group_[at(collective.rank_at(g, p))] = g;
                position_[at(collective.rank_at(g, p))] = p;
            }
        }
        for (std::size_t rank = 0; rank < network.vertex_of_rank.size(); ++rank)
            rank_of_[at(network.vertex_of_rank[rank])] = static_cast<int>(rank);
    }

    FlowAlgorithm write(const FlowRouting& routing) {
        FlowAlgorithm made;
        made.chunks = collective_.chunks = routing.chunks;
        collective_.weights.clear();
        builder_.emplace(fmt::format("mcf {}", ir::to_string(collective_.kind)), collective_);
        for (std::size_t d = 0; d < network_.demands.size(); ++d) collect(d, routing);
        for (const Parcel& parcel : parcels_)
            made.hops = std::max(made.hops, static_cast<int>(parcel.hops->size()));
        copy_own();
        send_all(made.hops);
        made.algorithm = builder_->build();
        return made;
    }

private:
    // Chunks of each pair in runs by way, the longest run first.
    void collect(std::size_t demand_number, const FlowRouting& routing) {
        stop_point();
        const FlowDemand& demand = network_.demands[demand_number];
        const std::int64_t chunks = routing.chunks;
        for (std::size_t s = 0; s < demand.sinks.size(); ++s) {
            std::map<std::vector<int>, std::pair<std::int64_t, const std::vector<int>*>> ways;
            for (std::int64_t k = 0; k < chunks; ++k) {
                const std::vector<int>& path =
                    routing.paths[routing.first[demand_number] + s * at(chunks) + at(k)];
                auto& [count, hops] = ways.emplace(path, std::pair{0, &path}).first->second;
                ++count;
            }
            std::vector<std::pair<std::int64_t, const std::vector<int>*>> runs;
            for (const auto& [path, run] : ways) runs.push_back(run);
            std::stable_sort(runs.begin(), runs.end(),
                             [](const auto& a, const auto& b) { return a.first > b.first; });
            int from = rank_of_[at(demand.source)], to = rank_of_[at(demand.sinks[s])];
            if (network_.turned) std::swap(from, to);
            const int size = collective_.group_size(demand.group);
            const int rotation = (position_[at(to)] - position_[at(from)] + size) % size;
            std::int64_t source_index = 0, destination_index = 0;
            if (collective_.kind == Kind::all_to_all || collective_.kind == Kind::scatter)
                source_index = position_[at(to)] * chunks;
            if (collective_.kind == Kind::all_to_all || collective_.kind == Kind::gather)
                destination_index = position_[at(from)] * chunks;
            for (const auto& [count, hops] : runs) {
                parcels_.push_back({from, to, source_index, destination_index, count, hops, rotation});
                source_index += count, destination_index += count;
            }
        }
    }

    void copy_own() {
        const std::int64_t chunks = collective_.chunks;
        for (int g = 0; g < collective_.group_count(); ++g) {
            for (int p = 0; p < collective_.group_size(g); ++p) {
                const int rank = collective_.rank_at(g, p);
                const bool all = collective_.kind == Kind::all_to_all;
                if (!all && p != collective_.root) continue;
                if (collective_.kind == Kind::send_recv && collective_.receiver(g) != p) continue;
                const bool of_input = all || collective_.kind == Kind::scatter;
                const bool of_output = all || collective_.kind == Kind::gather;
                builder_->copy({rank, Buffer::input, of_input ? p * chunks : 0},
                               {rank, Buffer::output, of_output ? p * chunks : 0}, chunks);
            }
        }
    }

    // In order of the hops that are left. In place, a shard may be written only after what stood there has
    // been sent: first hops of longer ways come before all last hops, and pairs that exchange in one hop do
    // so at once.
    void send_all(int longest) {
        std::vector<const Parcel*> order;
        for (const Parcel& parcel : parcels_) order.push_back(&parcel);
        std::stable_sort(order.begin(), order.end(), [](const Parcel* a, const Parcel* b) {
            return std::tuple(a->rotation, a->source) < std::tuple(b->rotation, b->source);
        });
        std::map<const Parcel*, std::int64_t> held;  // scratch place of the rank that has it now
        for (int left = longest; left >= 1; --left) {
            if (left == 1) exchange(order);
            stop_point();
            for (const Parcel* parcel : order) {
                const int length = static_cast<int>(parcel->hops->size());
                if (length >= left && length > 1) send(*parcel, length - left, held[parcel]);
            }
        }
    }

    const FlowHop& hop(const Parcel& parcel, int number) const {
        const std::vector<int>& hops = *parcel.hops;
        return hops_[network_.turned ? hops[hops.size() - 1 - at(number)] : hops[at(number)]];
    }

    void send(const Parcel& parcel, int number, std::int64_t& held) {
        const FlowHop& over = hop(parcel, number);
        ir::Place from{over.from, Buffer::scratch, held}, to{over.to, Buffer::scratch, 0};
        if (number == 0) from = {over.from, Buffer::input, parcel.source_index};
        if (at(number) + 1 == parcel.hops->size()) {
            to = {over.to, Buffer::output, parcel.destination_index};
        } else {
            to.index = held = scratch_[at(over.to)];
            scratch_[at(over.to)] += parcel.chunks;
        }
        if (over.channel != channel_) {
            channel_ = over.channel;
            builder_->channel(channel_);
        }
        if (over.via != via_) {
            via_ = over.via;
            builder_->via(via_ < 0 ? "" : hops_.vias()[at(via_)]);
        }
        builder_->send(from, to, parcel.chunks);
    }

    // Single hops, both directions of a pair in one block.
    void exchange(const std::vector<const Parcel*>& order) {
        std::map<std::pair<int, int>, std::vector<const Parcel*>> pairs;
        std::vector<std::pair<int, int>> first_seen;
        for (const Parcel* parcel : order) {
            if (parcel->hops->size() != 1) continue;
            const std::pair<int, int> key = std::minmax(parcel->source, parcel->destination);
            auto& list = pairs[key];
            if (list.empty()) first_seen.push_back(key);
            list.push_back(parcel);
        }
        for (const auto& key : first_seen) {
            const auto& list = pairs.at(key);
            if (list.size() > 1) builder_->begin_par();
            std::int64_t unused = 0;
            for (const Parcel* parcel : list) send(*parcel, 0, unused);
            if (list.size() > 1) builder_->end_par();
        }
    }

    const FlowNetwork& network_;
    ir::Collective collective_;
    const FlowHops& hops_;
    std::optional<ir::AlgorithmBuilder> builder_;
    std::vector<Parcel> parcels_;
    std::vector<int> group_, position_;  // by rank
    std::vector<std::int64_t> scratch_;  // places in use, by rank
    std::vector<int> rank_of_;           // by vertex
    int via_ = -1, channel_ = -1;
};

void check(const topologies::Topology& topology, const FlowNetwork& network) {
    if (network.pairs() > kMostFlowPairs)
        throw input_error(
            fmt::format("mcf serves up to {} pairs of ranks; here are {}", kMostFlowPairs, network.pairs()));
    for (const FlowResource& resource : network.resources) {
        if (resource.capacity <= 0)
            throw input_error(fmt::format("a link or limit of {} has no bandwidth", topology.name));
    }
}

}  // namespace

void mcf(const topologies::Topology& topology, const ir::Collective& collective, const FlowOptions& options) {
    const FlowNetwork network = routed_flow_network(topology, collective);
    check(topology, network);
    const auto tell = [&](const std::string& stage, double fraction) {
        if (options.progress) options.progress(stage, fraction);
    };
    const topologies::Routes routes(topology, options.policy, options.seed);
    FlowHops hops(network, routes);
    if (network.demands.empty()) {
        options.take(FlowWriter(network, collective, hops).write(FlowRouting()));
        return;
    }
    tell("the optimum of flows", 0);
    FlowLimits limits;
    limits.most_entries = kMostEntries;
    const ConcurrentFlow flow = concurrent_flow(network, limits);
    const auto loss_of = [&](const FlowRouting& routing) {
        return flow.bound > 0 ? routing.seconds_per_byte / flow.bound - 1 : 0;
    };
    const auto keep = [&](FlowRouting& routing) {
        shorten_paths(network, hops, routing);
        FlowAlgorithm made = FlowWriter(network, collective, hops).write(routing);
        made.loss = loss_of(routing);
        options.take(std::move(made));
    };
    constexpr std::int64_t kChunks[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};
    double best = 0;
    int in_vain = 0;
    std::int64_t work = kMostWork;
    FlowRouting kept;
    for (const std::int64_t chunks : kChunks) {
        if (chunks > 1 && network.pairs() * chunks > kMostParcels) break;
        tell(chunks == 1
                 ? "ways of whole shards"
                 : fmt::format("ways of {} chunks a shard, so far {:.2f}% off the flow", chunks, 100 * best),
             1 - static_cast<double>(work) / kMostWork);
        FlowRouting routing = route_chunks(network, hops, flow, chunks, kEnough / 3, work);
        const double loss = loss_of(routing);
        if (chunks == 1) {
            best = loss;
            keep(routing);
        } else if (loss < best - kNoticeable) {
            best = loss;
            kept = std::move(routing);
            in_vain = 0;
        } else {
            ++in_vain;
        }
        if (best <= kEnough || work <= 0 || (in_vain > 1 && network.pairs() > kManyPairs)) break;
    }
    if (!kept.paths.empty()) keep(kept);
}

std::vector<FlowAlgorithm> mcf(const topologies::Topology& topology, const ir::Collective& collective,
                               topologies::RoutePolicy policy, std::uint64_t seed) {
    std::vector<FlowAlgorithm> made;
    FlowOptions options;
    options.policy = policy;
    options.seed = seed;
    options.take = [&](FlowAlgorithm&& one) { made.push_back(std::move(one)); };
    mcf(topology, collective, options);
    return made;
}

}  // namespace baton::synth
