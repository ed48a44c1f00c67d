#include <baton/topologies/forwarding.hpp>

#include <baton/base/index.hpp>

#include <algorithm>
#include <unordered_map>

namespace baton::topologies {
Forwarding::Forwarding(const Topology& topology) : topology_(topology) {
    std::unordered_map<std::string_view, int> numbers;
    for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
        const std::string& name = topology.nodes[i].host;
        int number = -1;
        if (!name.empty()) {
            const auto [place, fresh] = numbers.emplace(name, static_cast<int>(host_nodes_.size()));
            if (fresh) host_nodes_.emplace_back();
            number = place->second;
        }
        hosts_.push_back(number);
        places_.push_back(number < 0 ? -1 : static_cast<int>(host_nodes_[at(number)].size()));
        if (number >= 0) host_nodes_[at(number)].push_back(static_cast<int>(i));
    }
    entry_links_.resize(host_nodes_.size());
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
        const Link& link = topology.links[i];
        if (host(link.to) >= 0 && host(link.from) != host(link.to))
            entry_links_[at(host(link.to))].push_back(static_cast<int>(i));
    }
}

bool Forwarding::host_side(int nic, int other) const {
    if (host(nic) >= 0) return host(nic) == host(other);
    const NodeType type = topology_.nodes[at(other)].type;
    return type == NodeType::gpu || type == NodeType::cpu || type == NodeType::pcie;
}

bool Forwarding::has_fabric_link(int nic) const {
    const auto& out = topology_.out_links[at(nic)];
    const auto& in = topology_.in_links[at(nic)];
    return std::any_of(out.begin(), out.end(),
                       [&](int l) { return !host_side(nic, topology_.links[at(l)].to); }) ||
           std::any_of(in.begin(), in.end(),
                       [&](int l) { return !host_side(nic, topology_.links[at(l)].from); });
}

bool Forwarding::step(int source, const std::vector<int>& nics, Phase phase, int link, Phase& next) const {
    const int u = topology_.links[at(link)].from, v = topology_.links[at(link)].to;
    if (u != source) {
        const NodeType type = topology_.nodes[at(u)].type;
        if (type == NodeType::gpu) return false;
        if (type == NodeType::nic) {
            const bool from_host_side = phase != Phase::fabric;
            if (host_side(u, v) == from_host_side) return false;
            if (phase == Phase::home && !nics.empty() && std::find(nics.begin(), nics.end(), u) == nics.end())
                return false;
        }
    }
    if (host(v) < 0) {
        const bool nic_from_host = topology_.nodes[at(v)].type == NodeType::nic && host_side(v, u);
        next = nic_from_host ? Phase::fabric_host_side : Phase::fabric;
    } else {
        next = phase == Phase::home && host(v) == host(u) ? Phase::home : Phase::away;
    }
    return true;
}

bool Forwarding::step_away(int link, bool just_entered) const {
    const int u = topology_.links[at(link)].from, v = topology_.links[at(link)].to;
    const NodeType type = topology_.nodes[at(u)].type;
    if (type == NodeType::gpu || host(u) != host(v)) return false;
    return type != NodeType::nic || just_entered;
}

Time Forwarding::cost(int link, bool first) const {
    const Link& crossed = topology_.links[at(link)];
    return first ? crossed.latency : crossed.latency + topology_.nodes[at(crossed.from)].latency;
}

}  // namespace baton::topologies
