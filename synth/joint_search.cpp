#include <baton/synth/joint_search.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/joint_trees.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace baton::synth {
namespace {

// The pairs that trees may use. A route past the node of another rank is two edges in a row.
std::vector<std::size_t> single_edges(const RankGraph& graph, const topologies::Topology& topology) {
    std::vector<std::size_t> list;
    std::vector<char> rank_node(topology.nodes.size(), 0);
    for (int rank = 0; rank < graph.ranks(); ++rank) rank_node[at(topology.rank_nodes[at(rank)])] = 1;
    for (std::size_t e = 0; e < graph.edges().size(); ++e) {
        const int end = topology.rank_nodes[at(graph.edges()[e].to)];
        const auto& uses = graph.uses()[e];
        const bool past = std::any_of(uses.begin(), uses.end(), [&](const topologies::LinkShare& use) {
            if (at(use.link) >= topology.links.size()) return false;
            const int head = topology.links[at(use.link)].to;
            return head != end && rank_node[at(head)] != 0;
        });
        if (!past) list.push_back(e);
    }
    return list;
}

// Whether rank 0 reaches all ranks over these edges, and all reach it.
bool reach_each_other(const RankGraph& graph, const std::vector<std::size_t>& list) {
    for (const bool turned : {false, true}) {
        std::vector<std::vector<int>> next(at(graph.ranks()));
        for (const std::size_t e : list) {
            const RankEdge& edge = graph.edges()[e];
            next[at(turned ? edge.to : edge.from)].push_back(turned ? edge.from : edge.to);
        }
        std::vector<char> reached(at(graph.ranks()), 0);
        std::vector<int> queue = {0};
        reached[0] = 1;
        for (std::size_t i = 0; i < queue.size(); ++i) {
            for (const int v : next[at(queue[i])]) {
                if (reached[at(v)]) continue;
                reached[at(v)] = 1;
                queue.push_back(v);
            }
        }
        if (std::ssize(queue) < graph.ranks()) return false;
    }
    return true;
}

// Of very many pairs those that keep to what is inside of a host, and one to every other host and back, of
// equal place there: what is spread over all pairs of ranks behind one fabric gives no pair enough. All where
// these do not join the ranks, or are not alike under the symmetries.
std::vector<std::size_t> thinned(const RankGraph& graph, const topologies::Topology& topology,
                                 const std::vector<std::size_t>& all,
                                 const std::vector<std::vector<int>>& turned) {
    const std::vector<int> hosts = topology.rank_hosts();
    std::map<int, int> members;
    std::vector<int> place;
    for (int rank = 0; rank < graph.ranks(); ++rank) place.push_back(members[hosts[at(rank)]]++);
    std::vector<char> kept(graph.edges().size(), 0);
    std::vector<std::size_t> list;
    for (const std::size_t e : all) {
        const RankEdge& edge = graph.edges()[e];
        const std::string& host = topology.nodes[at(topology.rank_nodes[at(edge.from)])].host;
        const auto outside = [&](const topologies::LinkShare& use) {
            if (at(use.link) >= topology.links.size()) return false;
            return topology.nodes[at(topology.links[at(use.link)].to)].host != host;
        };
        const auto& uses = graph.uses()[e];
        if (hosts[at(edge.from)] == hosts[at(edge.to)] ? std::any_of(uses.begin(), uses.end(), outside)
                                                       : place[at(edge.from)] != place[at(edge.to)])
            continue;
        kept[e] = 1;
        list.push_back(e);
    }
    for (const std::vector<int>& image : turned) {
        for (const std::size_t e : list) {
            if (!kept[at(image[e])]) return all;
        }
    }
    return reach_each_other(graph, list) ? list : all;
}

// Ports that several pairs share idle a little at run time, when no message happens to be ready. Where they
// are but a small part of what the machine can carry, they are planned for less. Returns what that costs of
// the rate.
double spare_shared(const std::vector<int>& users, const std::vector<double>& prices,
                    std::vector<double>& capacities) {
    constexpr double kSpare = 0.015, kMostCost = 0.0025;
    double shared = 0, all = 0;
    for (std::size_t r = 0; r < capacities.size(); ++r) {
        all += prices[r] * capacities[r];
        if (users[r] > 1) shared += prices[r] * capacities[r];
    }
    const double cost = all > 0 ? kSpare * shared / all : 0;
    if (cost > kMostCost) return 0;
    for (std::size_t r = 0; r < capacities.size(); ++r) {
        if (users[r] > 1) capacities[r] *= 1 - kSpare;
    }
    return cost;
}

// What the linear program over trees is about.
struct SearchInput {
    std::vector<std::size_t> numbers;  // per edge, in the graph
    std::vector<TreeEdge> edges;
    std::vector<double> capacities;
    JointTreeOptions options;
};

// What several pairs draw on is divided evenly, by weights, as far as the target allows: resources from
// `first_share` on.
SearchInput whole_machine(const RankGraph& graph, const topologies::Topology& topology,
                          const std::optional<JointOptimum>& optimum,
                          const std::vector<std::vector<int>>& turned) {
    constexpr std::size_t kManyPairs = 6000;
    SearchInput input;
    input.numbers = single_edges(graph, topology);
    if (input.numbers.size() > kManyPairs) input.numbers = thinned(graph, topology, input.numbers, turned);
    input.capacities = graph.capacities();
    std::vector<int> users(input.capacities.size(), 0);
    for (const std::size_t e : input.numbers) {
        for (const topologies::LinkShare& use : graph.uses()[e]) ++users[at(use.link)];
    }
    const double cost = optimum ? spare_shared(users, optimum->prices, input.capacities) : 0;
    input.options.first_share = static_cast<int>(input.capacities.size());
    for (const std::size_t e : input.numbers) {
        input.edges.push_back({graph.edges()[e].from, graph.edges()[e].to, graph.uses()[e]});
        const auto& uses = graph.uses()[e];
        if (std::none_of(uses.begin(), uses.end(), [&](const auto& use) { return users[at(use.link)] > 1; }))
            continue;
        input.edges.back().uses.push_back({static_cast<int>(input.capacities.size()), 1.0});
        input.capacities.push_back(graph.edges()[e].rate);
    }
    if (optimum) {
        input.options.target = optimum->rate * (1 - cost);
        input.options.prices = optimum->prices;
    }
    return input;
}

// What a tree takes together with all its turned copies.
class Folding {
public:
    Folding(const SearchInput& whole, const std::vector<std::vector<int>>& turned) : whole_(whole) {
        std::map<std::size_t, std::size_t> place;
        for (std::size_t i = 0; i < whole.numbers.size(); ++i) place[whole.numbers[i]] = i;
        orbit_.assign(whole.edges.size(), -1);
        for (std::size_t i = 0; i < whole.edges.size(); ++i) {
            if (orbit_[i] >= 0) continue;
            std::map<int, double> sum;
            for (const std::vector<int>& image : turned) {
                const std::size_t other = place.at(at(image[whole.numbers[i]]));
                orbit_[other] = static_cast<int>(sums_.size());
                for (const topologies::LinkShare& use : whole.edges[other].uses) sum[use.link] += use.share;
            }
            sums_.push_back(std::move(sum));
        }
        classify();
    }

    SearchInput folded(int copies) const {
        SearchInput input;
        input.numbers = whole_.numbers;
        input.options = whole_.options;
        input.options.first_share = static_cast<int>(first_share_);
        input.options.target /= copies;
        input.capacities = capacities_;
        input.options.prices.assign(whole_.options.prices.empty() ? 0 : first_share_, 0);
        for (std::size_t r = 0; r < whole_.options.prices.size(); ++r) {
            if (class_[r] >= 0) input.options.prices[at(class_[r])] += whole_.options.prices[r];
        }
        std::vector<std::vector<topologies::LinkShare>> uses;
        for (const std::map<int, double>& sum : sums_) {
            std::map<int, double> of_class;
            for (const auto& [resource, share] : sum) of_class[class_[at(resource)]] = share;
            uses.emplace_back();
            for (const auto& [number, share] : of_class) uses.back().push_back({number, share});
        }
        for (std::size_t i = 0; i < whole_.edges.size(); ++i)
            input.edges.push_back({whole_.edges[i].from, whole_.edges[i].to, uses[at(orbit_[i])]});
        return input;
    }

private:
    // Resources that get the same of everything are one, with the least capacity of them.
    void classify() {
        std::vector<std::vector<std::pair<int, std::int64_t>>> used(whole_.capacities.size());
        for (std::size_t o = 0; o < sums_.size(); ++o) {
            for (const auto& [resource, share] : sums_[o])
                used[at(resource)].push_back({static_cast<int>(o), std::llround(share * 1e9)});
        }
        class_.assign(used.size(), -1);
        std::map<std::pair<bool, std::vector<std::pair<int, std::int64_t>>>, int> known;
        for (std::size_t r = 0; r < used.size(); ++r) {
            const bool share = r >= at(whole_.options.first_share);
            if (!share) first_share_ = capacities_.size();
            if (used[r].empty()) continue;
            const auto [entry, fresh] =
                known.emplace(std::pair(share, std::move(used[r])), static_cast<int>(capacities_.size()));
            class_[r] = entry->second;
            if (fresh) capacities_.push_back(whole_.capacities[r]);
            double& least = capacities_[at(class_[r])];
            least = std::min(least, whole_.capacities[r]);
            if (!share) first_share_ = capacities_.size();
        }
    }

    const SearchInput& whole_;
    std::vector<int> orbit_, class_;           // per edge, per resource
    std::vector<std::map<int, double>> sums_;  // per orbit: resource, shares of all edges together
    std::vector<double> capacities_;           // per class
    std::size_t first_share_ = 0;
};

}  // namespace

SearchedPlan search_joint_plan(const RankGraph& graph, const topologies::Topology& topology,
                               const std::optional<JointOptimum>& optimum, const RankGroup& group,
                               double most_loss) {
    SearchedPlan found;
    found.group = group;
    found.turned = turned_edges(graph, group);
    if (found.turned.empty()) {
        found.group.resize(1);
        found.turned = turned_edges(graph, found.group);
    }
    SearchInput input = whole_machine(graph, topology, optimum, found.turned);
    if (found.group.size() > 1) {
        const SearchInput whole = std::move(input);
        input = Folding(whole, found.turned).folded(static_cast<int>(found.group.size()));
        std::vector<char> taken(at(graph.ranks()), 0);
        for (int v = 0; v < graph.ranks(); ++v) {
            if (!taken[at(v)]) input.options.roots.push_back(v);
            for (const std::vector<int>& image : group) taken[at(image[at(v)])] = 1;
        }
    }
    const JointTrees trees = joint_trees(graph.ranks(), input.edges, input.capacities, input.options);
    if (trees.rate <= 0) return found;
    const std::size_t first_share = at(input.options.first_share);
    found.loads.resize(graph.edges().size());
    for (std::size_t i = 0; i < input.edges.size(); ++i) {
        for (const topologies::LinkShare& use : input.edges[i].uses) {
            const double stretch = at(use.link) < first_share ? 1 : trees.stretch;
            found.loads[input.numbers[i]].push_back(
                {at(use.link), use.share / input.capacities[at(use.link)] / stretch});
        }
    }
    found.plan = whole_shares(graph, trees, input.numbers, found.loads, std::ssize(found.group), most_loss);
    for (auto& of_edge : found.loads)
        std::erase_if(of_edge, [&](const auto& load) { return load.first >= first_share; });
    return found;
}

}  // namespace baton::synth
