#include <baton/synth/by_group.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/ir/refine.hpp>
#include <baton/synth/embed.hpp>
#include <baton/topologies/routes.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <climits>

namespace baton::synth {
namespace {

// A rank alone has everything it needs in its input.
ir::Algorithm alone(const ir::Collective& collective) {
    ir::AlgorithmBuilder builder("alone", collective);
    builder.copy({0, ir::Buffer::input, 0}, {0, ir::Buffer::output, 0}, collective.chunks);
    return builder.build();
}

bool joined(const topologies::Topology& seen) {
    const topologies::Routes routes(seen);
    // Strongly connected: everyone is reached from rank 0, and rank 0 from everyone.
    for (const bool forward : {true, false}) {
        std::vector<char> reached(at(seen.rank_count()), 0);
        std::vector<int> queue = {0};
        reached[0] = 1;
        for (std::size_t i = 0; i < queue.size(); ++i) {
            for (int other = 0; other < seen.rank_count(); ++other) {
                if (reached[at(other)]) continue;
                if (!(forward ? routes.between(queue[i], other) : routes.between(other, queue[i])).reachable)
                    continue;
                reached[at(other)] = 1;
                queue.push_back(other);
            }
        }
        if (static_cast<int>(queue.size()) < seen.rank_count()) return false;
    }
    return true;
}

ir::Algorithm made_for_group(const topologies::Topology& topology, const ir::Collective& plain,
                             const std::vector<int>& members, const MakeForAll& make) {
    if (plain.ranks == 1) return alone(plain);
    topologies::Topology seen = seen_by_group(topology, members, false);
    if (joined(seen)) return make(seen, plain);
    seen = seen_by_group(topology, members, true);
    if (!joined(seen))
        throw input_error(
            fmt::format("rank {} and others of its group cannot reach each other, not even "
                        "over the ranks outside the group",
                        members.front()));
    ir::Algorithm made = make(seen, plain);
    if (!made.vias.empty())
        throw input_error("routes chosen over the ranks outside of a group are none of the machine's");
    return made;
}

}  // namespace

topologies::Topology seen_by_group(const topologies::Topology& topology, const std::vector<int>& members,
                                   bool relays) {
    topologies::Topology seen = topology;
    for (const int node : topology.rank_nodes) {
        topologies::Node& other = seen.nodes[at(node)];
        other.rank = -1;
        if (relays && other.type == topologies::NodeType::gpu) other.type = topologies::NodeType::switch_node;
    }
    for (std::size_t p = 0; p < members.size(); ++p) {
        const int node = topology.rank_nodes[at(members[p])];
        seen.nodes[at(node)] = topology.nodes[at(node)];
        seen.nodes[at(node)].rank = static_cast<int>(p);
    }
    if (relays) {  // traffic that enters a host ends at a rank of it, unless a rank there passes it on
        for (topologies::Node& node : seen.nodes) node.host.clear();
    }
    seen.finish(topology.name);
    return seen;
}

ir::Algorithm by_group(const topologies::Topology& topology, const ir::Collective& collective,
                       const MakeForAll& make) {
    if (collective.groups.empty()) return make(topology, collective);
    std::vector<ir::Algorithm> parts;
    std::vector<std::vector<std::int64_t>> divisions;
    for (const std::vector<int>& members : collective.groups) {
        ir::Collective plain = collective;
        plain.groups.clear();
        plain.ranks = static_cast<int>(members.size());
        plain.chunks = 1;
        plain.weights.clear();
        parts.push_back(made_for_group(topology, plain, members, make));
        const ir::Collective& made = parts.back().collective;
        divisions.push_back(made.weights);
        if (made.weights.empty()) divisions.back().assign(at(made.chunks), 1);
    }
    const bool alike = std::equal(divisions.begin() + 1, divisions.end(), divisions.begin());
    if (!alike) {
        const ir::CommonDivision common = ir::common_division(divisions);
        for (std::size_t g = 0; g < parts.size(); ++g) parts[g] = ir::refine(parts[g], common.pieces[g]);
    }
    ir::Collective whole = collective;
    whole.chunks = parts.front().collective.chunks;
    whole.weights = parts.front().collective.weights;
    std::vector<ir::Step> steps;
    std::vector<std::string> vias;
    for (std::size_t g = 0; g < parts.size(); ++g) {
        if (!parts[g].switch_groups.empty())
            throw input_error("steps of switches are not put together from several groups");
        const std::size_t before = steps.size();
        embed(
            parts[g], collective.groups[g],
            [](int, ir::Buffer buffer, std::int64_t index) {
                return Placed{buffer, index, INT32_MAX};
            },
            steps);
        for (std::size_t s = before; s < steps.size(); ++s) {
            if (steps[s].via >= 0) steps[s].via += static_cast<std::int32_t>(vias.size());
        }
        vias.insert(vias.end(), parts[g].vias.begin(), parts[g].vias.end());
    }
    ir::Algorithm made = explicit_algorithm(parts.front().name, std::move(whole), std::move(steps));
    made.vias = std::move(vias);
    if (!made.vias.empty()) {
        made.topology_name = topology.name;
        made.topology_hash = topology.hash();
    }
    return made;
}

}  // namespace baton::synth
