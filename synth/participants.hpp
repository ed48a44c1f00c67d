// Who takes part in a collective on a topology, and how large a unit of its data is.
#pragma once

#include <baton/base/quantities.hpp>
#include <baton/ir/collective.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// True for the nodes that carry a rank of the communicator (0..ranks-1, relays included). Throws an input
/// error when the topology has fewer ranks than the collective.
std::vector<char> member_nodes(const topologies::Topology& topology, const ir::Collective& collective);

/// Bytes of the unit that bounds count in: one shard for kinds with shards (size / ranks of the largest
/// group, rounded down as nccl-tests does), else the whole buffer.
std::int64_t unit_bytes(const ir::Collective& collective, Bytes size);

/// Units of one buffer of `size` bytes: ranks of the largest group for kinds with shards, else 1.
std::int64_t units_per_buffer(const ir::Collective& collective);

}  // namespace baton::synth
