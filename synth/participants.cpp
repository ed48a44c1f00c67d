#include <baton/synth/participants.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace baton::synth {

std::vector<char> member_nodes(const topologies::Topology& topology, const ir::Collective& collective) {
    if (collective.ranks > topology.rank_count()) {
        throw input_error(fmt::format("the collective has {} ranks, the topology only {}", collective.ranks,
                                      topology.rank_count()),
                          topology.name);
    }
    std::vector<char> member(topology.nodes.size(), 0);
    for (int rank = 0; rank < collective.ranks; ++rank)
        member[static_cast<std::size_t>(topology.rank_nodes[static_cast<std::size_t>(rank)])] = 1;
    return member;
}

std::int64_t units_per_buffer(const ir::Collective& collective) {
    if (!ir::has_shards(collective.kind)) return 1;
    std::int64_t largest = 1;
    for (int g = 0; g < collective.group_count(); ++g)
        largest = std::max<std::int64_t>(largest, collective.group_size(g));
    return largest;
}

std::int64_t unit_bytes(const ir::Collective& collective, Bytes size) {
    return size.count / units_per_buffer(collective);
}

}  // namespace baton::synth
