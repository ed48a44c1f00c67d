#include <baton/synth/greedy.hpp>

#include <baton/base/error.hpp>
#include <baton/base/stop.hpp>
#include <baton/ir/transform.hpp>
#include <baton/synth/by_group.hpp>
#include <baton/synth/embed.hpp>
#include <baton/synth/participants.hpp>
#include <baton/synth/relay.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

namespace baton::synth {
namespace {

using Kind = ir::CollectiveKind;
using topologies::Topology;

constexpr int kMostAtOnce = 256;  // ranks of an all_reduce in one phase
constexpr std::int64_t kMostWayBits = std::int64_t{1} << 28;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr std::uint64_t kMoreSeeds = 4;  // for the best number of chunks and the best rules

// Searches for one kind that does not reduce, on one network.
class GreedyAttempts {
public:
    GreedyAttempts(const GreedyNetwork& network, const ir::Collective& collective,
                   const GreedyOptions& options)
        : network_(network), collective_(collective), options_(options) {
        collective_.weights.clear();
        single_ = collective_.kind != Kind::all_gather && collective_.kind != Kind::broadcast;
        for (const GreedyEdge& edge : network.edges()) between_hosts_ |= edge.between_hosts;
    }

    GreedyAlgorithm best() {
        try {
            for (const std::int64_t chunks : numbers()) {
                const std::int64_t ways = work_of_ways(chunks);
                if (best_ && spent_ + last_ * 4 + ways > options_.work) break;
                spent_ += ways;
                rules_for(chunks, WaitRule::all);
                if (single_) rules_for(chunks, WaitRule::longest);
            }
            more_seeds();
        } catch (const Stopped&) {
            if (!best_) throw;  // else the best so far
        }
        collective_.chunks = best_chunks_;
        GreedyAlgorithm made;
        made.algorithm = greedy_algorithm(network_, collective_, best_demand_, *best_);
        made.chunks = best_chunks_;
        made.planned = best_->time;
        made.attempts = attempts_;
        return made;
    }

private:
    Bytes bytes(std::int64_t chunks) const {
        return {std::max<std::int64_t>(1, unit_bytes(collective_, options_.size) / chunks)};
    }

    std::vector<std::int64_t> numbers() const {
        if (options_.chunks > 0) return {options_.chunks};
        std::vector<std::int64_t> list;
        // A broadcast of N chunks is as many messages as an all_gather of one chunk per shard.
        const bool whole = collective_.kind == Kind::broadcast;
        const std::int64_t most = options_.most_chunks * (whole ? collective_.group_size() : 1);
        for (std::int64_t c = 1; c <= most && (c == 1 || bytes(c).count >= 16); c *= whole ? 4 : 2)
            list.push_back(c);
        return list;
    }

    // Every message has a look at the pairs that leave its ranks.
    std::int64_t work_of(const GreedyDemand& demand) const {
        const auto pairs = static_cast<std::int64_t>(network_.edges().size());
        return std::max<std::int64_t>(1, demand.deliveries) * (12 + pairs / network_.ranks()) / 16 + 1;
    }

    // Every way of a single parcel looks at all pairs, some ten of them in the time of a message.
    std::int64_t work_of_ways(std::int64_t chunks) const {
        const std::int64_t n = collective_.group_size();
        std::int64_t parcels = 0;
        if (collective_.kind == Kind::scatter || collective_.kind == Kind::gather) parcels = n;
        if (collective_.kind == Kind::all_to_all) parcels = n * n * collective_.group_count();
        return parcels * chunks * static_cast<std::int64_t>(network_.edges().size()) * 2 / 5;
    }

    // All rules once, with the first seed.
    void rules_for(std::int64_t chunks, WaitRule rule) {
        collective_.chunks = chunks;
        const GreedyDemand demand = greedy_demand(network_, collective_, bytes(chunks), rule);
        if (demand.deliveries > options_.step_limit) {
            if (best_) return;
            throw input_error(fmt::format("{} messages, more than the limit of {} steps", demand.deliveries,
                                          options_.step_limit));
        }
        if (best_ && demand.deliveries > options_.wanted_steps) return;
        last_ = work_of(demand);
        for (const bool only_shortest : {false, true}) {
            if (only_shortest && (single_ || !may_find_shortest(demand))) continue;
            for (const bool once_per_host : {true, false}) {
                if (!once_per_host && !between_hosts_) continue;
                if (best_ && spent_ + last_ > options_.work) break;
                attempt(demand, {bytes(chunks), options_.seed, once_per_host, only_shortest, false});
            }
            // From one host to several the line of hosts is the way of least load.
            if (collective_.kind != Kind::broadcast || !between_hosts_ || only_shortest) continue;
            if (best_ && spent_ + last_ > options_.work) break;
            attempt(demand, {bytes(chunks), options_.seed, true, false, true});
        }
    }

    // Memory for a bit per pair and chunk, and time for the pairs of every source.
    bool may_find_shortest(const GreedyDemand& demand) {
        const auto pairs = static_cast<std::int64_t>(network_.edges().size());
        const std::int64_t work = network_.ranks() * pairs / 5;
        if (pairs * demand.chunks() > kMostWayBits || work > options_.work / 4) return false;
        spent_ += work;
        return true;
    }

    void more_seeds() {
        collective_.chunks = best_chunks_;
        GreedySearchOptions search = best_rules_;
        for (std::uint64_t more = 1; more <= kMoreSeeds; ++more) {
            if (spent_ + work_of(best_demand_) > options_.work) return;
            search.seed = options_.seed + more * 1'000'003;
            attempt(best_demand_, search);
        }
    }

    double cost(const GreedySchedule& schedule) const {
        if (options_.tiles <= 1) return schedule.time.seconds();
        return schedule.busiest.seconds() + schedule.time.seconds() / static_cast<double>(options_.tiles);
    }

    void attempt(const GreedyDemand& demand, const GreedySearchOptions& search) {
        GreedySchedule found = greedy_search(network_, demand, search);
        spent_ += work_of(demand);
        ++attempts_;
        if (options_.progress)
            options_.progress(
                std::min(1.0, static_cast<double>(spent_) / static_cast<double>(options_.work)));
        // More chunks must be worth their steps.
        const double wanted = collective_.chunks == best_chunks_ ? 1 : 0.99;
        if (best_ && cost(found) >= wanted * cost(*best_)) return;
        best_ = std::move(found);
        best_chunks_ = collective_.chunks;
        best_rules_ = search;
        if (&demand != &best_demand_) best_demand_ = demand;
    }

    const GreedyNetwork& network_;
    ir::Collective collective_;
    const GreedyOptions& options_;
    bool single_ = false, between_hosts_ = false;
    std::optional<GreedySchedule> best_;
    GreedyDemand best_demand_;
    GreedySearchOptions best_rules_;
    std::int64_t best_chunks_ = 0, spent_ = 0, last_ = 0;
    int attempts_ = 0;
};

GreedyAlgorithm backwards(const GreedyNetwork& network, const ir::Collective& collective,
                          const GreedyOptions& options) {
    GreedyAlgorithm made = GreedyAttempts(network.turned(), ir::reverse(collective), options).best();
    made.algorithm = ir::reverse(made.algorithm);
    return made;
}

// reduce_scatter, then all_gather.
GreedyAlgorithm in_two_phases(const GreedyNetwork& network, const ir::Collective& collective,
                              GreedyOptions options) {
    ir::Collective half = collective;
    half.kind = Kind::all_gather;
    options.work /= 2;
    options.step_limit /= 2;
    GreedyAlgorithm made = GreedyAttempts(network, half, options).best();
    half.kind = Kind::reduce_scatter;
    options.chunks = made.chunks;
    const GreedyAlgorithm first = backwards(network, half, options);
    made.algorithm = ir::concatenate(first.algorithm, made.algorithm);
    made.algorithm.name = "greedy all_reduce";
    made.planned = made.planned + first.planned;
    made.attempts += first.attempts;
    return made;
}

// All whole buffers to everyone, who then adds them up in the order of ranks: one phase, for small sizes.
std::optional<GreedyAlgorithm> in_one_phase(const GreedyNetwork& network, const ir::Collective& collective,
                                            GreedyOptions options) {
    const std::int64_t n = collective.group_size();
    if (options.size.count > kMostBytes / n || n * n * collective.group_count() > options.step_limit / 4)
        return std::nullopt;
    ir::Collective all = collective;
    all.kind = Kind::all_gather;
    options.size.count *= n;
    options.most_chunks = 1;
    options.work /= 4;
    GreedyAlgorithm made = GreedyAttempts(network, all, options).best();
    std::vector<std::int32_t> position(at(collective.ranks), -1);
    std::vector<int> same(at(collective.ranks));
    std::iota(same.begin(), same.end(), 0);
    for (int g = 0; g < collective.group_count(); ++g) {
        for (int p = 0; p < n; ++p) position[at(collective.rank_at(g, p))] = p;
    }
    // The buffer of position s stands in scratch place s, one's own stays in the input.
    std::vector<ir::Step> steps;
    embed(
        made.algorithm, same,
        [&](int rank, ir::Buffer buffer, std::int64_t index) -> Placed {
            if (buffer == ir::Buffer::scratch) return {buffer, n + index, 1};
            if (buffer == ir::Buffer::input || index == position[at(rank)]) return {ir::Buffer::input, 0, 1};
            return {ir::Buffer::scratch, index, 1};
        },
        steps);
    for (int rank = 0; rank < collective.ranks; ++rank) {
        const std::int32_t p = position[at(rank)];
        if (p < 0) continue;
        const auto add = [&](ir::StepOp op, ir::Buffer from, std::int32_t source, ir::Buffer to) {
            ir::Step step;
            step.op = op;
            step.src_rank = step.dst_rank = rank;
            step.src_buffer = from;
            step.src_index = source;
            step.dst_buffer = to;
            steps.push_back(step);
        };
        using enum ir::Buffer;
        if (p == 0) add(ir::StepOp::copy, input, 0, scratch);
        for (std::int32_t s = 1; s < n; ++s)
            add(ir::StepOp::reduce, s == p ? input : scratch, s == p ? 0 : s, scratch);
        add(ir::StepOp::copy, scratch, 0, output);
    }
    made.algorithm = explicit_algorithm("greedy all_reduce", collective, std::move(steps));
    return made;
}

bool groups_alike(const ir::Collective& collective) {
    for (int g = 1; g < collective.group_count(); ++g) {
        if (collective.group_size(g) != collective.group_size()) return false;
    }
    return true;
}

}  // namespace

GreedyAlgorithm greedy(const Topology& topology, const ir::Collective& collective,
                       const GreedyOptions& options) {
    if (collective.kind == Kind::custom) throw input_error("greedy is not made for custom collectives");
    if (collective.kind == Kind::all_reduce && !groups_alike(collective)) {
        GreedyAlgorithm whole;
        const auto make = [&](const Topology& machine, const ir::Collective& plain) {
            GreedyAlgorithm made = greedy(machine, plain, options);
            whole.planned = std::max(whole.planned, made.planned);
            whole.attempts += made.attempts;
            return std::move(made.algorithm);
        };
        const topologies::Routes routes(topology, options.policy, options.policy_seed);
        whole.algorithm = with_relays(by_group(topology, collective, make), routes, options.step_limit);
        return whole;
    }
    if (collective.ranks > topology.rank_count())
        throw input_error(fmt::format("the collective has {} ranks, the topology only {}", collective.ranks,
                                      topology.rank_count()));
    const GreedyNetwork network(topology, collective.ranks, options.policy, options.policy_seed);
    if (collective.groups.empty() && !network.connected())
        throw input_error("the pairs of ranks with a route do not connect all ranks");
    ir::Collective plain = collective;
    plain.weights.clear();
    plain.chunks = 1;
    if (collective.kind == Kind::reduce || collective.kind == Kind::reduce_scatter ||
        collective.kind == Kind::gather)
        return backwards(network, plain, options);
    if (collective.kind != Kind::all_reduce) return GreedyAttempts(network, plain, options).best();
    GreedyAlgorithm two = in_two_phases(network, plain, options);
    if (options.tiles > 1 || collective.group_size() > kMostAtOnce) return two;
    std::optional<GreedyAlgorithm> one = in_one_phase(network, plain, options);
    return one && one->planned < two.planned ? std::move(*one) : std::move(two);
}

}  // namespace baton::synth
