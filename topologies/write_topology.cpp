// A topology as a document with nodes and links spelled out.
#include <baton/topologies/load.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace baton::topologies {
namespace {

using Json = nlohmann::ordered_json;

// The short form where it is exact.
Json rate_text(Rate rate) {
    const std::string text = to_string(rate);
    return parse_rate(text) == rate ? text : fmt::format("{}B/s", rate.bytes_per_second);
}
Json time_text(Time time) {
    const std::string text = to_string(time);
    return parse_time(text) == time ? text : fmt::format("{}ps", time.picoseconds);
}

Json with_provenance(Json value, const Provenance& provenance) {
    if (provenance.source.empty() && !provenance.assumed) return value;
    Json quantity = {{"value", std::move(value)}};
    if (!provenance.source.empty()) quantity["source"] = provenance.source;
    if (provenance.assumed) quantity["assumed"] = true;
    return quantity;
}

Json node_json(const Node& node) {
    Json out = {{"id", node.id}, {"type", to_string(node.type)}};
    if (!node.host.empty()) out["host"] = node.host;
    if (node.rank >= 0)
        out["rank"] = node.rank;
    else if (node.type == NodeType::gpu)
        out["rank"] = nullptr;
    if (node.latency > Time{}) out["latency"] = time_text(node.latency);
    if (node.buffer > Bytes{}) out["buffer"] = to_string(node.buffer);
    if (node.multicast) out["multicast"] = true;
    if (node.reduce) out["reduce"] = node.reduce_rate > Rate{} ? rate_text(node.reduce_rate) : Json(true);
    if (node.message_overhead > Time{}) out["message_overhead"] = time_text(node.message_overhead);
    if (!node.attributes.empty()) out["attributes"] = node.attributes;
    return out;
}

// True when `b` is what reading `a` without "oneway" adds.
bool is_back_of(const Topology& topology, const Link& a, const Link& b) {
    const auto id = [&](int node) -> const std::string& {
        return topology.nodes[static_cast<std::size_t>(node)].id;
    };
    const std::string plain = id(a.from) + ">" + id(a.to), back = id(a.to) + ">" + id(a.from);
    const bool ids =
        a.id.rfind(plain, 0) == 0 ? b.id == back + a.id.substr(plain.size()) : b.id == a.id + "~";
    return ids && a.from == b.to && a.to == b.from && a.count == b.count && a.bandwidth == b.bandwidth &&
           a.goodput == b.goodput && a.latency == b.latency && a.kind == b.kind && a.mtu == b.mtu &&
           a.loss == b.loss;
}

Json link_json(const Topology& topology, const Link& link, bool oneway) {
    const std::string &from = topology.nodes[static_cast<std::size_t>(link.from)].id,
                      &to = topology.nodes[static_cast<std::size_t>(link.to)].id;
    Json out = {{"from", from}, {"to", to}};
    // A numbered id ("a>b#2") is written too when the direction stands alone: its place in the numbering may
    // be lost.
    const bool plain = link.id == from + ">" + to;
    if (!plain && (oneway || link.id.rfind(from + ">" + to + "#", 0) != 0)) out["id"] = link.id;
    if (link.count != 1) out["count"] = link.count;
    out["bandwidth"] = with_provenance(rate_text(link.bandwidth), link.provenance);
    out["goodput"] = rate_text(link.goodput);
    out["latency"] = time_text(link.latency);
    out["kind"] = to_string(link.kind);
    if (link.mtu != default_mtu(link.kind)) out["mtu"] = link.mtu;
    if (link.loss > 0) out["loss"] = link.loss;
    if (oneway) out["oneway"] = true;
    return out;
}

// Numbered ids of pairs are left out only when reading numbers them alike; otherwise every link stands alone.
Json links_json(const Topology& topology) {
    std::map<std::string, int> used;
    Json links = Json::array();
    const auto numbered_alike = [&](const Link& link) {
        const std::string plain = topology.nodes[static_cast<std::size_t>(link.from)].id + ">" +
                                  topology.nodes[static_cast<std::size_t>(link.to)].id;
        if (link.id.rfind(plain, 0) != 0) return true;
        const int number = used[plain] + 1;
        return link.id == (number == 1 ? plain : fmt::format("{}#{}", plain, number));
    };
    const auto count = [&](const Link& link) {
        ++used[topology.nodes[static_cast<std::size_t>(link.from)].id + ">" +
               topology.nodes[static_cast<std::size_t>(link.to)].id];
    };
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
        const Link& link = topology.links[i];
        const bool pair = i + 1 < topology.links.size() &&
                          is_back_of(topology, link, topology.links[i + 1]) && numbered_alike(link) &&
                          numbered_alike(topology.links[i + 1]);
        links.push_back(link_json(topology, link, !pair));
        count(link);
        if (pair) count(topology.links[++i]);
    }
    return links;
}

}  // namespace

std::string to_json(const Topology& topology) {
    Json document = {{"baton", "topology/1"}, {"name", topology.name}};
    document["nodes"] = Json::array();
    for (const Node& node : topology.nodes) document["nodes"].push_back(node_json(node));
    document["links"] = links_json(topology);
    if (!topology.limits.empty()) {
        document["limits"] = Json::array();
        for (const Limit& limit : topology.limits) {
            Json links = Json::array();
            for (const int link : limit.links)
                links.push_back(topology.links[static_cast<std::size_t>(link)].id);
            document["limits"].push_back(
                {{"id", limit.id}, {"links", links}, {"bandwidth", rate_text(limit.bandwidth)}});
        }
    }
    const Machine& machine = topology.machine;
    if (machine.launch > Time{}) document["machine"]["launch"] = time_text(machine.launch);
    if (machine.reduction > Rate{}) document["machine"]["reduction"] = rate_text(machine.reduction);
    for (const auto& [key, latency] : machine.step_latency)
        document["machine"]["step_latency"][key] = time_text(latency);
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace baton::topologies
