// Lanes and routes of an algorithm on a machine.
#include <baton/sim/prepared_algorithm.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>
#include <baton/sim/binding_uses.hpp>
#include <baton/sim/fold.hpp>
#include <baton/sim/step_bytes.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace baton::sim {
namespace {

bool local(const StepNode& step) {
    return step.op == ir::StepOp::copy || step.op == ir::StepOp::reduce ||
           ((step.op == ir::StepOp::send || step.op == ir::StepOp::send_reduce) &&
            step.source == step.destination);
}
bool on_switch(const StepNode& step) {
    return step.op == ir::StepOp::multicast || step.op == ir::StepOp::switch_reduce;
}

/// Gives steps their lanes and paths.
class Binder {
public:
    Binder(PreparedAlgorithm::Data& data, const ir::Algorithm& algorithm, topologies::RoutePolicy policy,
           std::uint64_t seed)
        : data_(data),
          algorithm_(algorithm),
          routes_(*data.topology, policy, seed),
          make_path_(*data.topology),
          by_channel_(policy == topologies::RoutePolicy::ecmp) {}

    void run() {
        const std::int64_t count = data_.graph.size();
        data_.lane_of.assign(at(count), -1);
        data_.path_of.assign(at(count), -1);
        for (std::int64_t s = 0; s < count; ++s) {
            if (s % 1024 == 0) stop_point();
            const StepNode& step = data_.graph.step(s);
            if (local(step)) continue;
            data_.lane_of[at(s)] = lane(step);
            data_.path_of[at(s)] = path(step, s);
        }
        data_.warnings = routes_.warnings();
        if (failures_ > kNamed) data_.unreachable += fmt::format(", and {} more", failures_ - kNamed);
    }

private:
    using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t>;
    struct Hash {
        std::size_t operator()(const Key& key) const {
            std::uint64_t h = static_cast<std::uint32_t>(std::get<0>(key));
            h = (h << 24 ^ static_cast<std::uint32_t>(std::get<1>(key))) * 0x9e3779b97f4a7c15ULL;
            h = (h ^ (h >> 29) ^ static_cast<std::uint32_t>(std::get<2>(key))) * 0xbf58476d1ce4e5b9ULL;
            return static_cast<std::size_t>(h ^ (h >> 32));
        }
    };

    // Switch groups are told from ranks by negative numbers.
    static std::int32_t target(const StepNode& step) {
        if (!on_switch(step)) return step.destination;
        return -2 - 2 * step.destination - (step.op == ir::StepOp::switch_reduce ? 1 : 0);
    }

    std::int32_t lane(const StepNode& step) {
        const auto [place, fresh] =
            lanes_.try_emplace({step.source, target(step), step.channel}, data_.lanes);
        if (fresh) ++data_.lanes;
        return place->second;
    }

    std::int32_t path(const StepNode& step, std::int64_t s) {
        // Channels and vias in one number: vias are negative.
        const std::int32_t variant = step.via >= 0 ? -1 - step.via : by_channel_ ? step.channel : 0;
        const auto [place, fresh] = paths_.try_emplace({step.source, target(step), variant},
                                                       static_cast<std::int32_t>(data_.paths.size()));
        if (fresh) data_.paths.push_back(on_switch(step) ? switch_path(step, s) : rank_path(step, s));
        return place->second;
    }

    void fail(std::int64_t s, const std::string& what) {
        if (++failures_ > kNamed) return;
        data_.unreachable += fmt::format("{}{} (step {})", failures_ == 1 ? "" : ", ", what, s);
    }

    Path rank_path(const StepNode& step, std::int64_t s) {
        if (step.via >= 0) {
            const std::string& via = algorithm_.vias[at(step.via)];
            try {
                const topologies::Route route = routes_.via(step.source, step.destination, via);
                return make_path_(route.links, route.latency);
            } catch (const Error& error) {
                fail(s, fmt::format("rank {} cannot reach rank {} via {}: {}", step.source, step.destination,
                                    via, error.message()));
                return {};
            }
        }
        const topologies::Route& route = routes_.between(step.source, step.destination, step.channel);
        if (!route.reachable) {
            fail(s, fmt::format("rank {} cannot reach rank {}", step.source, step.destination));
            return {};
        }
        return make_path_(route.links, route.latency);
    }

    /// The routes between one rank and all members, each link taken once.
    Path switch_path(const StepNode& step, std::int64_t s) {
        const bool reduce = step.op == ir::StepOp::switch_reduce;
        std::map<int, double> shares;
        std::map<int, std::size_t> nodes;  // how many of the routes pass a node
        std::size_t routes = 0;
        Time latency{};
        for (const int member : algorithm_.switch_groups[at(step.destination)]) {
            if (member == step.source) continue;
            const int from = reduce ? member : step.source, to = reduce ? step.source : member;
            const topologies::Route& route = routes_.between(from, to, step.channel);
            if (!route.reachable) {
                fail(s, fmt::format("rank {} cannot reach rank {}", from, to));
                return {};
            }
            latency = std::max(latency, route.latency);
            ++routes;
            std::map<int, bool> passed;
            for (const topologies::LinkShare& part : route.links) {
                shares[part.link] = std::max(shares[part.link], part.share);
                const topologies::Link& link = data_.topology->links[at(part.link)];
                passed[link.from] = passed[link.to] = true;
            }
            for (const auto& [node, _] : passed) ++nodes[node];
        }
        const bool served = routes < 2 || std::any_of(nodes.begin(), nodes.end(), [&](const auto& entry) {
                                const topologies::Node& node = data_.topology->nodes[at(entry.first)];
                                return reduce ? node.reduce : node.multicast;
                            });
        if (!served)
            fail(s, fmt::format("no switch between rank {} and its group can {}", step.source,
                                reduce ? "reduce" : "multicast"));
        std::vector<topologies::LinkShare> links;
        for (const auto& [link, share] : shares) links.push_back({link, share});
        return make_path_(links, latency);
    }

    static constexpr int kNamed = 4;
    PreparedAlgorithm::Data& data_;
    const ir::Algorithm& algorithm_;
    topologies::Routes routes_;
    PathMaker make_path_;
    bool by_channel_;
    std::unordered_map<Key, std::int32_t, Hash> lanes_, paths_;
    int failures_ = 0;
};

/// Below this many operations all numbers of tiles are tried; above, two without gain end the search.
constexpr std::int64_t kCheapOperations = 200'000;

/// Lengths of chunks of equal weight that differ by less count as equal.
constexpr double kEven = 1e-3;

std::string policy_words(topologies::RoutePolicy policy, std::uint64_t seed) {
    switch (policy) {
        case topologies::RoutePolicy::spread: return "messages spread over all least-latency paths";
        case topologies::RoutePolicy::fixed: return "each message on the first of its least-latency paths";
        default:
            return fmt::format(
                "each (source, destination, channel) on one least-latency path by hash, seed {}", seed);
    }
}

}  // namespace

PreparedAlgorithm::PreparedAlgorithm(const topologies::Topology& topology, const ir::Algorithm& algorithm,
                                     topologies::RoutePolicy policy, std::uint64_t seed) {
    if (algorithm.collective.ranks > topology.rank_count())
        throw input_error(fmt::format("the schedule is for {} ranks, but the topology has {}",
                                      algorithm.collective.ranks, topology.rank_count()),
                          algorithm.name,
                          "choose a topology with as many ranks, or make the schedule for this one");
    data_ = std::make_unique<Data>(
        Data{&topology, algorithm.collective, StepGraph(algorithm), {}, {}, {}, 0, {}, {}, {}});
    data_->policy_in_words = policy_words(policy, seed);
    Binder(*data_, algorithm, policy, seed).run();
    find_binding_uses(data_->paths, capacities(topology));
}

PreparedAlgorithm::~PreparedAlgorithm() = default;
PreparedAlgorithm::PreparedAlgorithm(PreparedAlgorithm&&) noexcept = default;

void PreparedAlgorithm::fold() {
    std::optional<Data> fewer = folded(*data_);
    if (!fewer) return;
    folded_ = std::make_unique<Data>(std::move(*fewer));
    find_binding_uses(folded_->paths, capacities(*folded_->topology));
}

const PreparedAlgorithm::Data& PreparedAlgorithm::data(Bytes size) const {
    const bool even =
        folded_ && StepBytes::unevenness(data_->collective, shard_bytes(data_->collective, size)) <= kEven;
    return even ? *folded_ : *data_;
}

std::int64_t PreparedAlgorithm::steps(Bytes size) const { return data(size).graph.size(); }

const std::vector<std::string>& PreparedAlgorithm::warnings() const { return data_->warnings; }

SimulationResult PreparedAlgorithm::run(const SimulationOptions& options) const {
    if (options.tiles < 0 || options.tiles > 65536)
        throw input_error(fmt::format("{} tiles", options.tiles), {},
                          "use 1 to 65536 tiles, or 0 for the best power of two");
    if (options.size.count < 0) throw input_error("the size is negative");
    const Data& prepared = data(options.size);
    if (options.tiles > 0) return execute(prepared, options, options.tiles);
    SimulationOptions quiet = options;
    quiet.trace = false;
    std::vector<SimulationResult> tried{execute(prepared, quiet, 1)};
    // A class of u units has at most u tiles with bytes: more tiles only add empty messages.
    const std::int64_t shard = shard_bytes(prepared.collective, options.size).count;
    const std::int64_t units = (ir::Partition(prepared.collective, shard, 16).largest_class() + 15) / 16;
    Time best = tried.front().time;
    int without_gain = 0;
    for (int tiles = 2; tiles <= 128 && tried.back().outcome == Outcome::finished; tiles *= 2) {
        const std::int64_t operations = prepared.graph.size() * tiles;
        if (tiles / 2 >= units || operations > options.tile_search_limit) break;
        if (without_gain > 1 && operations > kCheapOperations) break;
        tried.push_back(execute(prepared, quiet, tiles));
        if (tried.back().outcome != Outcome::finished) {
            tried.pop_back();
            break;
        }
        without_gain = tried.back().time < best ? 0 : without_gain + 1;
        best = std::min(best, tried.back().time);
    }
    // Fewer tiles where more gain next to nothing: every tile costs a message that the model does not charge
    // for.
    for (SimulationResult& result : tried) {
        if (result.outcome == Outcome::finished &&
            result.time.picoseconds > best.picoseconds + best.picoseconds / 1000)
            continue;
        return options.trace ? execute(prepared, options, result.tiles) : std::move(result);
    }
    return std::move(tried.front());
}

SimulationResult simulate(const topologies::Topology& topology, const ir::Algorithm& algorithm,
                          const SimulationOptions& options) {
    return PreparedAlgorithm(topology, algorithm, options.policy, options.seed).run(options);
}

}  // namespace baton::sim
