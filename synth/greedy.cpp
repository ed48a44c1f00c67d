#include <baton/synth/greedy.hpp>

#include <baton/base/error.hpp>
#include <baton/ir/transform.hpp>
#include <baton/synth/by_group.hpp>
#include <baton/synth/participants.hpp>
#include <baton/synth/relay.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace baton::synth {
namespace {

using Kind = ir::CollectiveKind;
using topologies::Topology;

constexpr int kSeedsPerChunks = 3;

// Searches for one kind that does not reduce, on one network.
class GreedyAttempts {
public:
    GreedyAttempts(const GreedyNetwork& network, const ir::Collective& collective,
                   const GreedyOptions& options)
        : network_(network), collective_(collective), options_(options) {
        collective_.weights.clear();
        for (const GreedyEdge& edge : network.edges()) between_hosts_ |= edge.between_hosts;
    }

    GreedyAlgorithm best() {
        const std::int64_t unit = unit_bytes(collective_, options_.size);
        std::vector<std::int64_t> numbers = {options_.chunks};
        if (options_.chunks == 0) {
            numbers.clear();
            for (std::int64_t c = 1; c <= options_.most_chunks && (c == 1 || c * 16 <= unit); c *= 2)
                numbers.push_back(c);
        }
        for (const std::int64_t chunks : numbers) {
            if (best_ && spent_ + last_ * 2 > options_.work) break;
            collective_.chunks = chunks;
            try_chunks({std::max<std::int64_t>(1, unit / chunks)});
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
    void try_chunks(Bytes bytes) {
        const GreedyDemand demand = greedy_demand(network_, collective_, bytes);
        if (demand.deliveries > options_.step_limit) {
            if (best_) return;
            throw input_error(fmt::format("{} messages, more than the limit of {} steps", demand.deliveries,
                                          options_.step_limit));
        }
        last_ = std::max<std::int64_t>(1, demand.deliveries);
        bool better = false, some_slow = true;
        for (int attempt = 0; attempt < kSeedsPerChunks; ++attempt) {
            for (const bool only_fastest : {false, true}) {
                for (const bool once_per_host : {true, false}) {
                    if ((!once_per_host && !between_hosts_) || (only_fastest && !some_slow)) continue;
                    if (best_ && spent_ + last_ > options_.work) break;
                    GreedySearchOptions search;
                    search.bytes = bytes;
                    search.seed = options_.seed * 1'000'003 + static_cast<std::uint64_t>(attempt);
                    search.once_per_host = once_per_host;
                    search.only_fastest = only_fastest;
                    GreedySchedule found = greedy_search(network_, demand, search);
                    spent_ += last_;
                    ++attempts_;
                    if (only_fastest) some_slow = found.pairs_left_out > 0;
                    if (options_.progress)
                        options_.progress(
                            std::min(1.0, static_cast<double>(spent_) / static_cast<double>(options_.work)));
                    // More chunks must be worth their steps.
                    const double wanted = collective_.chunks == best_chunks_ ? 1 : 0.99;
                    if (best_ && found.time.seconds() >= wanted * best_->time.seconds()) continue;
                    best_ = std::move(found);
                    best_chunks_ = collective_.chunks;
                    better = true;
                }
            }
        }
        if (better) best_demand_ = demand;
    }

    const GreedyNetwork& network_;
    ir::Collective collective_;
    const GreedyOptions& options_;
    bool between_hosts_ = false;
    std::optional<GreedySchedule> best_;
    GreedyDemand best_demand_;
    std::int64_t best_chunks_ = 0, spent_ = 0, last_ = 0;
    int attempts_ = 0;
};

GreedyAlgorithm backwards(const GreedyNetwork& network, const ir::Collective& collective,
                          const GreedyOptions& options) {
    GreedyAlgorithm made = GreedyAttempts(network.turned(), ir::reverse(collective), options).best();
    made.algorithm = ir::reverse(made.algorithm);
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
    if (collective.kind == Kind::reduce || collective.kind == Kind::reduce_scatter)
        return backwards(network, plain, options);
    if (collective.kind != Kind::all_reduce) return GreedyAttempts(network, plain, options).best();
    plain.kind = Kind::all_gather;
    GreedyOptions half = options;
    half.work = options.work / 2;
    half.step_limit = options.step_limit / 2;
    GreedyAlgorithm made = GreedyAttempts(network, plain, half).best();
    plain.kind = Kind::reduce_scatter;
    half.chunks = made.chunks;
    GreedyAlgorithm first = backwards(network, plain, half);
    made.algorithm = ir::concatenate(first.algorithm, made.algorithm);
    made.algorithm.name = "greedy all_reduce";
    made.planned = made.planned + first.planned;
    made.attempts += first.attempts;
    return made;
}

}  // namespace baton::synth
