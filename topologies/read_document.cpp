#include <baton/base/files.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/load.hpp>
#include <baton/topologies/read.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <numeric>
#include <tuple>
#include <unordered_set>

namespace baton::topologies {
namespace {

Machine read_machine(const JsonReader& entry) {
    entry.only_keys({"launch", "reduction", "step_latency"});
    Machine machine;
    if (const auto launch = entry.find("launch")) machine.launch = launch->time();
    if (const auto reduction = entry.find("reduction")) machine.reduction = reduction->rate();
    if (const auto steps = entry.find("step_latency")) {
        for (const auto& [key, value] : steps->members()) {
            const std::size_t slash = key.find('/');
            const std::string protocol = slash == std::string::npos ? "" : key.substr(slash + 1);
            if (!link_kind_from(key.substr(0, slash)) ||
                (protocol != "simple" && protocol != "ll" && protocol != "ll128")) {
                throw value.error(fmt::format("'{}' is not KIND/PROTOCOL", key.substr(0, 60)),
                                  "write for example nvlink/simple; protocols are simple, ll, ll128");
            }
            machine.step_latency[key] = value.time();
        }
    }
    return machine;
}

void read_limits(const JsonReader& entries, const ReadContext& context, Topology& topology) {
    std::unordered_set<std::string> ids;
    std::int64_t members = 0;
    for (const JsonReader& entry : entries.elements()) {
        entry.only_keys({"id", "links", "bandwidth"});
        Limit limit;
        if (const auto id = entry.find("id")) {
            limit.id = id->string();
            if (limit.id.empty() || limit.id.size() > 256)
                throw id->error("the id of a limit has 1 to 256 bytes");
            if (!ids.insert(limit.id).second)
                throw id->error(fmt::format("two limits have the id '{}'", limit.id));
        }
        limit.bandwidth = entry.at("bandwidth").rate();
        if (limit.bandwidth < Rate{1}) throw entry.at("bandwidth").error("bandwidth must be positive");
        const JsonReader links = entry.at("links");
        if (links.is_array() && links.size() == 0) throw links.error("the limit names no link");
        const auto add = [&](const JsonReader& pattern) {
            if (topology.link_index(pattern.string()) < 0)
                context.state->spend_work(pattern, static_cast<std::int64_t>(topology.links.size()));
            const std::vector<int> found = matching_links(topology, pattern.string());
            members += static_cast<std::int64_t>(found.size());
            if (members > kMaxLinks)
                throw pattern.error(fmt::format("the limits name more than {} links", kMaxLinks));
            if (found.empty())
                throw pattern.error(fmt::format("no link matches '{}'", pattern.string().substr(0, 80)),
                                    "write a link id such as a>b, a<>b or with *");
            limit.links.insert(limit.links.end(), found.begin(), found.end());
        };
        if (links.is_string()) {
            add(links);
        } else {
            for (const JsonReader& pattern : links.elements()) add(pattern);
        }
        topology.limits.push_back(std::move(limit));
    }
}

// Ranks of a host's GPUs without a number: after the numbered ones by device, then bus id, then file order.
void number_host_ranks(Topology& topology) {
    std::vector<int> takers;
    for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
        const Node& node = topology.nodes[i];
        if (node.rank >= 0 || (node.rank == kDefaultRank && node.type == NodeType::gpu))
            takers.push_back(static_cast<int>(i));
    }
    const auto key = [&](int index) {
        const Node& node = topology.nodes[at(index)];
        const auto attribute = [&](const char* name) {
            const auto found = node.attributes.find(name);
            return found == node.attributes.end() ? std::string() : found->second;
        };
        std::int64_t device = INT64_MAX;
        const std::string text = attribute("device");
        std::from_chars(text.data(), text.data() + text.size(), device);
        const std::string bus = attribute("bus_id");
        return std::tuple(node.rank >= 0 ? node.rank : INT32_MAX, device, bus.empty(), bus, index);
    };
    std::stable_sort(takers.begin(), takers.end(), [&](int a, int b) { return key(a) < key(b); });
    for (std::size_t i = 1; i < takers.size(); ++i) {
        const Node &a = topology.nodes[at(takers[i - 1])], &b = topology.nodes[at(takers[i])];
        if (a.rank >= 0 && a.rank == b.rank)
            throw input_error(fmt::format("nodes '{}' and '{}' both have rank {}", a.id, b.id, a.rank),
                              topology.name);
    }
    for (std::size_t i = 0; i < takers.size(); ++i) topology.nodes[at(takers[i])].rank = static_cast<int>(i);
}

}  // namespace

Topology read_document(const JsonReader& root, const ReadContext& context) {
    if (context.depth > 8) throw root.error("topologies use each other more than 8 deep");
    if (!root.is_object()) throw root.error("expected a topology document (an object)");
    const JsonReader tag = root.at("baton");
    if (tag.string() != "topology/1")
        throw tag.error(fmt::format("expected \"topology/1\", found \"{}\"", tag.string().substr(0, 40)));
    Topology topology;
    if (const auto name = root.find("name")) topology.name = name->string();
    const std::string host = root.find("host") ? root.at("host").string() : "";
    const bool generated = root.find("generate").has_value();
    if (generated) {
        if (const auto nodes = root.find("nodes"))
            throw nodes->error("a file holds 'generate' or 'nodes', not both");
        // The rail_optimized generator has a number of hosts of its own.
        if (const auto hosts = root.find("hosts"); hosts && hosts->is_array())
            throw hosts->error("a file holds 'generate' or 'hosts', not both",
                               "give the fabric as \"fabric\": {\"generate\": ...}");
        generate(root, topology);
    } else {
        root.only_keys({"baton", "name", "preset", "description", "host", "nodes", "links", "limits",
                        "machine", "hosts", "fabric", "attach", "overrides"});
        if (root.find("hosts")) {
            compose(root, context, topology);
        } else {
            for (const char* key : {"fabric", "attach"}) {
                if (const auto found = root.find(key))
                    throw found->error(fmt::format("'{}' needs 'hosts'", key));
            }
            root.at("nodes");
        }
        if (const auto nodes = root.find("nodes")) read_nodes(*nodes, host, context, topology);
    }
    if (context.as_host) number_host_ranks(topology);
    // Ids are looked up by what follows.
    topology.finish(root.where());
    if (const auto links = root.find("links")) {
        read_links(*links, context, topology);
        topology.finish(root.where());
    }
    if (const auto machine = root.find("machine")) topology.machine = read_machine(*machine);
    if (const auto limits = root.find("limits")) {
        read_limits(*limits, context, topology);
        topology.finish(root.where());
    }
    if (const auto overrides = root.find("overrides")) read_overrides(*overrides, context, topology);
    return topology;
}

Topology parse_topology(std::string_view text, const std::string& name, const std::string& folder) {
    const JsonDocument document = JsonDocument::parse(text, name);
    Topology topology = read_document(document.root(), {folder, 0, false, std::make_shared<ReadState>()});
    if (topology.name.empty()) topology.name = name;
    return topology;
}

}  // namespace baton::topologies
