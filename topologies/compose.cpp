// Hosts, a fabric, and how they are attached.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/read.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <set>

namespace baton::topologies {
namespace {

// A host document from elsewhere, read once however often it is used.
const Topology& read_once(const std::string& key, const JsonDocument& document, const ReadContext& inner) {
    std::shared_ptr<const Topology>& known = inner.state->used[key];
    if (!known) known = std::make_shared<const Topology>(read_document(document.root(), inner));
    return *known;
}

// What "use" names: a preset, a file beside this one, or a document written in place.
Topology read_used(const JsonReader& use, const ReadContext& context) {
    ReadContext inner{context.folder, context.depth + 1, true, context.state};
    if (inner.depth > kMaxUseDepth)
        throw use.error(fmt::format("topologies use each other more than {} deep", kMaxUseDepth),
                        "does a file use itself?");
    if (use.is_object()) return read_document(use, inner);
    const std::string name = use.string();
    if (name.rfind("preset:", 0) == 0) {
        if (const auto known = context.state->used.find(name);
            known != context.state->used.end() && known->second)
            return *known->second;
        return read_once(name, JsonDocument::parse(preset_text(name.substr(7), use.where()), name), inner);
    }
    std::filesystem::path path(name);
    if (path.is_relative()) path = std::filesystem::path(context.folder) / path;
    inner.folder = path.parent_path().empty() ? "." : path.parent_path().string();
    std::error_code ignored;
    const std::filesystem::path canonical = std::filesystem::weakly_canonical(path, ignored);
    const std::string key = ignored ? path.string() : canonical.string();
    if (const auto known = context.state->used.find(key); known != context.state->used.end() && known->second)
        return *known->second;
    try {
        return read_once(key, JsonDocument::load(path.string()), inner);
    } catch (const Error& error) {
        // Of a chain of files the innermost place is the one to mend; a missing file is named where it is
        // used.
        if (error.where().find('#') == std::string::npos && !std::filesystem::exists(path, ignored)) {
            throw use.error(fmt::format("there is no file '{}'", path.string().substr(0, 200)),
                            "relative paths start at the folder of the file that uses them; presets are "
                            "named preset:NAME");
        }
        throw;
    }
}

// Ids and hosts of a host file, with the prefix of one copy.
class HostCopy {
public:
    HostCopy(const Topology& host, const std::string& prefix) : host_(host), prefix_(prefix) {
        std::set<std::string> hosts;
        for (const Node& node : host.nodes) {
            if (!node.host.empty()) hosts.insert(node.host);
        }
        single_ = hosts.size() <= 1;
    }

    void add_to(Topology& topology, int first_rank) const {
        const int first_node = static_cast<int>(topology.nodes.size());
        const int first_link = static_cast<int>(topology.links.size());
        for (Node node : host_.nodes) {
            node.id = prefix_ + "/" + node.id;
            if (single_)
                node.host = prefix_;
            else if (!node.host.empty())
                node.host = prefix_ + "/" + node.host;
            if (node.rank >= 0) node.rank += first_rank;
            topology.nodes.push_back(std::move(node));
        }
        for (Link link : host_.links) {
            link.id = link_id(link);
            link.from += first_node;
            link.to += first_node;
            topology.links.push_back(std::move(link));
        }
        for (Limit limit : host_.limits) {
            limit.id = prefix_ + "/" + limit.id;
            for (int& link : limit.links) link += first_link;
            topology.limits.push_back(std::move(limit));
        }
    }

private:
    std::string link_id(const Link& link) const {
        const std::string &from = host_.nodes[at(link.from)].id, &to = host_.nodes[at(link.to)].id;
        const std::string plain = from + ">" + to;
        if (link.id.rfind(plain, 0) != 0) return prefix_ + "/" + link.id;
        return prefix_ + "/" + from + ">" + prefix_ + "/" + to + link.id.substr(plain.size());
    }

    const Topology& host_;
    std::string prefix_;
    bool single_ = true;
};

// What a copy of a host holds besides nodes and links.
std::int64_t text_bytes(const Topology& host) {
    std::size_t bytes = 0;
    for (const Node& node : host.nodes) {
        for (const auto& [key, value] : node.attributes) bytes += key.size() + value.size() + 64;
    }
    for (const Link& link : host.links) bytes += link.provenance.source.size();
    for (const Limit& limit : host.limits)
        bytes += limit.id.size() + limit.links.size() * sizeof(int) + sizeof(Limit);
    return static_cast<std::int64_t>(bytes);
}

void add_hosts(const JsonReader& hosts, const ReadContext& context, Topology& topology) {
    int number = 0, ranks = 0;
    bool machine_known = false;
    for (const JsonReader& entry : hosts.elements()) {
        entry.only_keys({"use", "repeat", "name"});
        const Topology host = read_used(entry.at("use"), context);
        const std::int64_t repeat = entry.find("repeat") ? entry.at("repeat").integer(1, kMaxNodes) : 1;
        const auto nodes = static_cast<std::int64_t>(host.nodes.size()),
                   links = static_cast<std::int64_t>(host.links.size());
        require_room(entry, topology, nodes * repeat, links * repeat);
        context.state->spend_text(entry, repeat * text_bytes(host));
        std::string base = "h";
        if (const auto name = entry.find("name")) base = name->string();
        if (base.empty() || base.size() > 100)
            throw entry.at("name").error("a host's name has 1 to 100 bytes");
        if (!machine_known) topology.machine = host.machine;
        machine_known = true;
        for (std::int64_t i = 0; i < repeat; ++i) {
            HostCopy(host, base + std::to_string(number++)).add_to(topology, ranks);
            ranks += host.rank_count();
        }
    }
    if (number == 0) throw hosts.error("the list of hosts is empty");
}

// NICs host by host in file order, or the ranks of a host that has none.
std::vector<Port> find_ports(const JsonReader& root, const Topology& topology) {
    struct Found {
        std::vector<int> nics, ranks;
    };
    std::vector<std::string> order;
    std::map<std::string, Found> by_host;
    for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
        const Node& node = topology.nodes[i];
        if (node.host.empty()) continue;
        const auto [place, fresh] = by_host.emplace(node.host, Found{});
        if (fresh) order.push_back(node.host);
        if (node.type == NodeType::nic)
            place->second.nics.push_back(static_cast<int>(i));
        else if (node.rank >= 0)
            place->second.ranks.push_back(static_cast<int>(i));
    }
    std::vector<Port> ports;
    int host = 0;
    for (const std::string& name : order) {
        Found& found = by_host[name];
        std::sort(found.ranks.begin(), found.ranks.end(),
                  [&](int a, int b) { return topology.nodes[at(a)].rank < topology.nodes[at(b)].rank; });
        int index = 0;
        for (const int node : found.nics.empty() ? found.ranks : found.nics) {
            Port port{node, host, index++, {}};
            const auto& attributes = topology.nodes[at(node)].attributes;
            if (const auto rate = attributes.find("port_rate"); rate != attributes.end())
                port.most = parse_rate(rate->second, root.where() + " node " + topology.nodes[at(node)].id);
            ports.push_back(port);
        }
        ++host;
    }
    if (ports.empty()) throw root.at("fabric").error("the hosts have neither NICs nor ranks to attach");
    return ports;
}

// Which way a fabric is attached when nothing is said; an error for a name that does not go with it.
void check_attach(const JsonReader& attach, const std::string& fabric) {
    const std::string way = attach.string();
    const std::string own = fabric == "rail_optimized" ? "rail" : "ports";
    if (way != own) {
        throw attach.error(
            fmt::format("a {} fabric is attached by \"{}\", not \"{}\"", fabric, own, way.substr(0, 40)),
            "\"rail\": port i of each host to rail i; \"ports\": all ports in host order; or a list of "
            "links");
    }
}

}  // namespace

void compose(const JsonReader& root, const ReadContext& context, Topology& topology) {
    add_hosts(root.at("hosts"), context, topology);
    const auto fabric = root.find("fabric");
    const auto attach = root.find("attach");
    if (!fabric) {
        if (attach) throw attach->error("'attach' needs 'fabric'");
        return;
    }
    if (fabric->find("generate")) {
        if (attach) check_attach(*attach, fabric->at("generate").string());
        generate_fabric(*fabric, find_ports(root, topology), topology);
        return;
    }
    // A fabric spelled out: its nodes and links as they stand, attached by a list of links.
    fabric->only_keys({"nodes", "links"});
    read_nodes(fabric->at("nodes"), "", context, topology);
    topology.finish(fabric->where());
    if (const auto links = fabric->find("links")) read_links(*links, context, topology);
    if (!attach)
        throw fabric->error("a fabric that is spelled out needs 'attach'",
                            "give a list of links between hosts and fabric");
    read_links(*attach, context, topology);
}

}  // namespace baton::topologies
