// The network model: a directed multigraph of nodes (GPUs, switches, NICs, ...) and links.
#pragma once

#include <baton/base/quantities.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::topologies {

/// What a node is. Only GPUs never forward traffic; a NIC forwards only between its host side and its
/// fabric side; switches, PCIe bridges and CPUs forward freely.
enum class NodeType : std::uint8_t { gpu, cpu, nic, switch_node, pcie };

/// The technology of a link. nvlink, xgmi, c2c and pcie units stripe one flow over all units; the network
/// kinds (infiniband, roce_v1, roce_v2, ethernet) carry whole flows per unit.
enum class LinkKind : std::uint8_t {
    nvlink,
    xgmi,
    c2c,
    pcie,
    infiniband,
    roce_v1,
    roce_v2,
    ethernet,
    upi,
    custom
};

/// Names as they stand in topology files ("gpu", "switch", "roce_v2", ...).
std::string_view to_string(NodeType type);
std::string_view to_string(LinkKind kind);
/// Inverse; nothing for an unknown name.
std::optional<NodeType> node_type_from(std::string_view name);
std::optional<LinkKind> link_kind_from(std::string_view name);

/// True for kinds whose units carry one flow together; units of the other kinds carry whole flows each.
bool stripes(LinkKind kind);
/// Payload bytes per packet when a file does not say: InfiniBand and RoCE 4096 (the largest verbs MTU),
/// Ethernet 1460 (TCP over 1500-byte frames), 0 for kinds that are not modeled in packets.
std::int64_t default_mtu(LinkKind kind);

/// Where a figure comes from, kept beside quantities given as {value, source, assumed}.
struct Provenance {
    std::string source;    ///< document, measurement or table; empty when not said
    bool assumed = false;  ///< true when a default or a guess stands in for a measured figure
};

/// `Node::rank` before `finish`: GPUs get the lowest free ranks in file order, other nodes none.
inline constexpr int kDefaultRank = -2;

/// One vertex. After `finish`, `rank` is -1 for nodes without one; any node may carry a rank, GPUs do by
/// default (set -1 for a GPU that takes no part).
struct Node {
    std::string id;
    NodeType type = NodeType::gpu;
    std::string host;  ///< name of the host it belongs to; empty for fabric nodes
    int rank = kDefaultRank;
    Time latency{};                                 ///< added once per traversal (switch hop latency)
    Bytes buffer{};                                 ///< switch buffer; 0 = not stated
    bool multicast = false;                         ///< can replicate one incoming message to several ports
    bool reduce = false;                            ///< can combine messages from several ports
    Rate reduce_rate{};                             ///< rate of in-network reduction; 0 = line rate
    Time message_overhead{};                        ///< NIC: occupancy per message
    std::map<std::string, std::string> attributes;  ///< numa, bus_id, device, arch, ...: kept as given
};

/// One directed link. A file's link without `oneway` makes two of these.
struct Link {
    std::string id;          ///< default "a>b", then "a>b#2", ...
    int from = -1, to = -1;  ///< node indices
    int count = 1;           ///< parallel units
    Rate bandwidth{};        ///< raw rate of one unit, one direction
    Rate goodput{};          ///< payload rate of one unit that kernels can use; always set after loading
    Time latency{};
    LinkKind kind = LinkKind::custom;
    std::int64_t mtu = 0;  ///< bytes of payload per packet; 0 = not packetized, or before `finish` the
                           ///< default of the kind
    double loss = 0;       ///< probability that a packet is lost, [0, 1)
    Provenance provenance;
    /// Payload rate of all units together: what bounds, synthesis and the flow model use.
    Rate capacity() const { return {goodput.bytes_per_second * count}; }
};

/// A joint capacity of several links (a port group, a GPU's copy rate, a shared trunk).
struct Limit {
    std::string id;
    std::vector<int> links;
    Rate bandwidth{};
};

/// Execution figures of the machine for Program simulation; not used by bounds.
struct Machine {
    Time launch{};                             ///< kernel launch overhead
    Rate reduction{};                          ///< local reduction rate per rank; 0 = free
    std::map<std::string, Time> step_latency;  ///< by "KIND/PROTOCOL", e.g. "nvlink/simple"
};

/// The whole network. Invariants after `check`: node ids and link ids are unique, link ends exist, ranks are
/// 0..rank_count-1 each once, all goodputs are positive. Plain data; copying copies everything.
struct Topology {
    std::string name;
    std::vector<Node> nodes;
    std::vector<Link> links;
    std::vector<Limit> limits;
    Machine machine;

    /// Number of ranks.
    int rank_count() const { return static_cast<int>(rank_nodes.size()); }
    /// Node index of each rank. Kept by `finish`.
    std::vector<int> rank_nodes;
    /// Link indices leaving and entering each node, in file order. Kept by `finish`.
    std::vector<std::vector<int>> out_links, in_links;
    /// Node and link indices in the order of their ids, for look-ups. Kept by `finish`.
    std::vector<int> nodes_by_id, links_by_id;

    /// Node or link index by id; -1 when absent.
    int node_index(std::string_view id) const;
    int link_index(std::string_view id) const;
    /// Adds a node, or one link for each direction (`oneway`: from -> to only). Before `finish`; for makers
    /// in code.
    int add_node(Node node);
    void add_link(Link link, bool oneway = false);
    /// Index of the host of each rank (hosts numbered by first appearance in rank order; a rank without a
    /// host is a host of its own).
    std::vector<int> rank_hosts() const;

    /// Assigns default ids, derives goodputs, builds the index vectors and checks the invariants. Every maker
    /// of a topology calls it last; calling it again after a change is right. Throws an input error naming
    /// node or link. Limits, so that no input exhausts memory or overflows a sum: 2^20 nodes, 2^22 links, 1 s
    /// of latency per node or link, 1e18 B/s per link.
    void finish(const std::string& where = {});

    /// 64-bit FNV-1a over a canonical text of everything that changes results (names and provenance do not),
    /// as 16 hexadecimal digits. Ties plans to machines. Ids of nodes and links count, because routes name
    /// them.
    std::string hash() const;
};

/// Largest topology that is accepted.
inline constexpr std::int64_t kMaxNodes = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxLinks = std::int64_t{1} << 22;

/// Payload share of the wire for a kind and MTU: (payload, payload + headers) in bytes, so that
/// goodput = bandwidth * first / second. {1, 1} for kinds without packets. Header sizes: InfiniBand 26, RoCE
/// v1 94, RoCE v2 over IPv4 82, Ethernet (TCP/IPv4) 78.
std::pair<std::int64_t, std::int64_t> payload_share(LinkKind kind, std::int64_t mtu);

}  // namespace baton::topologies
