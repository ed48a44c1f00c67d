#include <baton/topologies/read.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

namespace baton::topologies {
namespace {

// Notes the {source, assumed} beside a quantity.
void note_provenance(const JsonReader& quantity, Provenance& provenance) {
    if (!quantity.is_object()) return;
    if (const auto source = quantity.find("source")) provenance.source = source->string();
    if (const auto assumed = quantity.find("assumed")) provenance.assumed = assumed->boolean();
}

template <class Enum>
Enum read_name(const JsonReader& value, std::optional<Enum> (*parse)(std::string_view), const char* what,
               const char* list) {
    const std::string text = value.string();
    if (const auto found = parse(text)) return *found;
    throw value.error(fmt::format("unknown {} '{}'", what, text.substr(0, 40)),
                      fmt::format("use one of {}", list));
}

std::string attribute_text(const JsonReader& value) {
    if (value.is_string()) return value.string();
    if (value.is_boolean()) return value.boolean() ? "true" : "false";
    if (value.is_number()) return value.text();
    throw value.error("an attribute is a string, a number or a boolean");
}

// Nodes that a `from` or `to` names.
std::vector<int> read_ends(const JsonReader& value, const ReadContext& context, const Topology& topology) {
    std::vector<int> ends;
    if (value.is_array()) {
        for (const JsonReader& element : value.elements()) {
            if (element.is_array()) throw element.error("expected a node id, found an array");
            const std::vector<int> more = read_ends(element, context, topology);
            ends.insert(ends.end(), more.begin(), more.end());
            if (ends.size() > kMaxNodes)
                throw value.error(fmt::format("the list names more than {} nodes", kMaxNodes));
        }
        if (ends.empty()) throw value.error("the list names no node");
        return ends;
    }
    const std::string text = value.string();
    if (text.find('*') != std::string::npos) {
        context.state->spend_work(value, static_cast<std::int64_t>(topology.nodes.size()));
        for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
            if (glob_match(text, topology.nodes[i].id)) ends.push_back(static_cast<int>(i));
        }
        if (ends.empty()) throw value.error(fmt::format("no node matches '{}'", text));
        return ends;
    }
    for (const std::string& id : expand_braces(value, text)) {
        const int index = topology.node_index(id);
        if (index < 0) {
            std::vector<std::string> ids;
            for (const Node& node : topology.nodes) ids.push_back(node.id);
            throw value.error(fmt::format("there is no node '{}'{}", id.substr(0, 80), near_names(id, ids)));
        }
        ends.push_back(index);
    }
    return ends;
}

}  // namespace

void ReadState::spend_work(const JsonReader& place, std::int64_t steps) {
    work_ += steps;
    if (work_ > 4'000'000'000)
        throw place.error("the patterns of this document are too much work",
                          "name links and nodes by id, or with fewer patterns");
}

void ReadState::spend_text(const JsonReader& place, std::int64_t bytes) {
    text_ += bytes;
    if (text_ > std::int64_t{1} << 28)
        throw place.error("attributes and sources of this document are larger than 256 MiB when spelled out");
}

void require_room(const JsonReader& place, const Topology& topology, std::int64_t nodes, std::int64_t links) {
    const std::int64_t all_nodes = static_cast<std::int64_t>(topology.nodes.size()) + nodes;
    const std::int64_t all_links = static_cast<std::int64_t>(topology.links.size()) + links;
    if (all_nodes > kMaxNodes) {
        throw place.error(fmt::format("this makes {} nodes", all_nodes),
                          fmt::format("at most {} nodes are accepted", kMaxNodes));
    }
    if (all_links > kMaxLinks) {
        throw place.error(fmt::format("this makes {} links", all_links),
                          fmt::format("at most {} directed links are accepted", kMaxLinks));
    }
}

std::vector<std::string> expand_braces(const JsonReader& place, const std::string& text) {
    const std::size_t open = text.find('{');
    if (open == std::string::npos) return {text};
    const std::size_t dots = text.find("..", open), close = text.find('}', open);
    std::int64_t low = 0, high = -1;
    const auto read = [&](std::size_t begin, std::size_t end, std::int64_t& number) {
        const auto [stop, status] = std::from_chars(text.data() + begin, text.data() + end, number);
        return status == std::errc() && stop == text.data() + end;
    };
    if (dots == std::string::npos || close == std::string::npos || close < dots ||
        !read(open + 1, dots, low) || !read(dots + 2, close, high) || low < 0 || high < low ||
        high - low >= kMaxNodes || text.find('{', close) != std::string::npos) {
        throw place.error(fmt::format("'{}' is not a range of ids", text.substr(0, 80)),
                          "write for example gpu{0..7}");
    }
    std::vector<std::string> ids;
    for (std::int64_t i = low; i <= high; ++i)
        ids.push_back(text.substr(0, open) + std::to_string(i) + text.substr(close + 1));
    return ids;
}

namespace {

std::int64_t read_attributes(const JsonReader& attributes, Node& node) {
    std::int64_t bytes = 0;
    for (const auto& [key, value] : attributes.members()) {
        const std::string text = attribute_text(value);
        bytes += static_cast<std::int64_t>(key.size() + text.size()) + 64;
        node.attributes[key] = text;
    }
    return bytes;
}

// Everything but id and rank.
Node read_node_properties(const JsonReader& entry, const std::string& default_host) {
    entry.only_keys({"id", "type", "host", "rank", "latency", "buffer", "multicast", "reduce",
                     "message_overhead", "attributes"});
    Node node;
    node.host = default_host;
    node.type =
        read_name<NodeType>(entry.at("type"), node_type_from, "node type", "gpu, cpu, nic, switch, pcie");
    if (const auto host = entry.find("host")) node.host = host->string();
    if (node.host.size() > 256) throw entry.at("host").error("a host name is longer than 256 bytes");
    if (const auto latency = entry.find("latency")) node.latency = latency->time();
    if (const auto buffer = entry.find("buffer")) node.buffer = buffer->bytes();
    if (const auto overhead = entry.find("message_overhead")) node.message_overhead = overhead->time();
    if (const auto multicast = entry.find("multicast")) node.multicast = multicast->boolean();
    if (const auto reduce = entry.find("reduce")) {
        node.reduce = reduce->is_boolean() ? reduce->boolean() : true;
        if (!reduce->is_boolean()) node.reduce_rate = reduce->rate();
    }
    const bool can_reduce = node.type == NodeType::switch_node || node.type == NodeType::nic;
    if ((node.multicast || node.reduce) && !can_reduce) {
        throw entry.error("multicast and reduce are properties of switches and NICs");
    }
    return node;
}

// Ids and ranks that are there already.
struct Taken {
    std::unordered_set<std::string> ids;
    std::unordered_map<int, std::string> ranks;
    std::vector<std::pair<int, JsonReader>> stated;  // ranks of this list
};

void read_node(const JsonReader& entry, const std::string& default_host, const ReadContext& context,
               Taken& taken, Topology& topology) {
    Node node = read_node_properties(entry, default_host);
    const JsonReader id_place = entry.at("id");
    const std::vector<std::string> ids = expand_braces(id_place, id_place.string());
    const auto copies = static_cast<std::int64_t>(ids.size());
    require_room(entry, topology, copies, 0);
    if (const auto attributes = entry.find("attributes"))
        context.state->spend_text(*attributes, copies * read_attributes(*attributes, node));
    if (const auto rank = entry.find("rank")) {
        if (rank->is_null() || (rank->is_boolean() && !rank->boolean())) {
            node.rank = -1;
        } else if (ids.size() > 1) {
            throw rank->error("several nodes cannot share a rank",
                              "leave it out, or list the nodes one by one");
        } else {
            node.rank = static_cast<int>(rank->integer(0, kMaxNodes - 1));
            const auto [place, fresh] = taken.ranks.emplace(node.rank, ids.front());
            if (!fresh)
                throw rank->error(fmt::format("nodes '{}' and '{}' both have rank {}",
                                              place->second.substr(0, 80), ids.front().substr(0, 80),
                                              node.rank));
            taken.stated.emplace_back(node.rank, *rank);
        }
    }
    for (const std::string& id : ids) {
        node.id = id;
        check_node(node, id_place.where());
        if (!taken.ids.insert(id).second)
            throw id_place.error(fmt::format("two nodes have the id '{}'", id), "ids are unique");
        topology.nodes.push_back(node);
    }
}

}  // namespace

void read_nodes(const JsonReader& list, const std::string& default_host, const ReadContext& context,
                Topology& topology) {
    Taken taken;
    for (const Node& node : topology.nodes) {
        taken.ids.insert(node.id);
        if (node.rank >= 0) taken.ranks.emplace(node.rank, node.id);
    }
    for (const JsonReader& entry : list.elements()) read_node(entry, default_host, context, taken, topology);
    if (context.as_host) return;  // ranks of a host file may have gaps
    const auto has_rank = [](const Node& node) {
        return node.rank >= 0 || (node.rank == kDefaultRank && node.type == NodeType::gpu);
    };
    const auto ranks = std::count_if(topology.nodes.begin(), topology.nodes.end(), has_rank);
    for (const auto& [rank, place] : taken.stated) {
        if (rank >= ranks)
            throw place.error(fmt::format("rank {} is too high: the number of ranks is {}", rank, ranks),
                              "ranks are 0 to the number of ranks minus 1, each once");
    }
}

Link read_link_properties(const JsonReader& entry, Link defaults) {
    Link link = std::move(defaults);
    const auto bandwidth = entry.find("bandwidth"), goodput = entry.find("goodput");
    if (bandwidth) {
        link.bandwidth = bandwidth->rate();
        link.goodput = {};
        note_provenance(*bandwidth, link.provenance);
    }
    if (goodput) {
        link.goodput = goodput->rate();
        if (!bandwidth) link.bandwidth = std::max(link.bandwidth, link.goodput);
        if (link.goodput.bytes_per_second < 1) throw goodput->error("goodput must be positive");
        note_provenance(*goodput, link.provenance);
    }
    if (link.bandwidth.bytes_per_second < 1) {
        if (bandwidth) throw bandwidth->error("bandwidth must be positive");
        throw entry.error("the key 'bandwidth' is missing");
    }
    if (link.goodput > link.bandwidth) {
        throw goodput.value_or(entry).error(fmt::format("goodput {} is above bandwidth {}",
                                                        to_string(link.goodput), to_string(link.bandwidth)));
    }
    if (const auto count = entry.find("count")) link.count = static_cast<int>(count->integer(1, 1 << 20));
    if (const auto latency = entry.find("latency")) link.latency = latency->time();
    if (const auto kind = entry.find("kind")) {
        link.kind = read_name<LinkKind>(
            *kind, link_kind_from, "link kind",
            "nvlink, xgmi, c2c, pcie, infiniband, roce_v1, roce_v2, ethernet, upi, custom");
    }
    if (const auto mtu = entry.find("mtu")) link.mtu = mtu->bytes().count;
    if (const auto loss = entry.find("loss")) {
        link.loss = loss->number();
        if (!(link.loss >= 0 && link.loss < 1))
            throw loss->error(fmt::format("a loss of {} is not within [0, 1)", link.loss),
                              "loss is the probability that a packet is lost");
    }
    if (const auto source = entry.find("source")) link.provenance.source = source->string();
    if (const auto assumed = entry.find("assumed")) link.provenance.assumed = assumed->boolean();
    if (link.provenance.source.size() > 256)
        throw entry.error("a source is longer than 256 bytes", "name the document; explain it in a comment");
    Link checked = link;
    checked.from = 0;
    checked.to = 1;
    if (checked.goodput == Rate{}) checked.goodput = checked.bandwidth;
    check_link(checked, entry.where());
    return link;
}

void only_link_keys(const JsonReader& entry, std::initializer_list<std::string_view> more) {
    const auto known = [&](const std::string& key) {
        return std::find(std::begin(kLinkProperties), std::end(kLinkProperties), key) !=
                   std::end(kLinkProperties) ||
               std::find(more.begin(), more.end(), key) != more.end();
    };
    for (const auto& [key, value] : entry.members()) {
        if (known(key)) continue;
        std::vector<std::string> names(std::begin(kLinkProperties), std::end(kLinkProperties));
        names.insert(names.end(), more.begin(), more.end());
        throw value.error("unknown key" + near_names(key, names));
    }
}

namespace {

void read_link(const JsonReader& entry, const ReadContext& context, std::unordered_set<std::string>& ids,
               Topology& topology) {
    only_link_keys(entry, {"from", "to", "id", "oneway"});
    Link link = read_link_properties(entry, {});
    const bool oneway = entry.find("oneway") ? entry.at("oneway").boolean() : false;
    const std::vector<int> from = read_ends(entry.at("from"), context, topology),
                           to = read_ends(entry.at("to"), context, topology);
    const std::int64_t pairs = static_cast<std::int64_t>(from.size()) * static_cast<std::int64_t>(to.size());
    require_room(entry, topology, 0, oneway ? pairs : 2 * pairs);
    context.state->spend_text(entry, 2 * pairs * static_cast<std::int64_t>(link.provenance.source.size()));
    if (const auto id = entry.find("id")) {
        link.id = id->string();
        if (pairs > 1)
            throw id->error("several links cannot share an id", "leave it out: the default is 'from>to'");
        if (!ids.insert(link.id).second)
            throw id->error(fmt::format("two links have the id '{}'", link.id.substr(0, 80)),
                            "ids are unique");
    }
    for (const int a : from) {
        for (const int b : to) {
            if (a == b)
                throw entry.error(fmt::format("a link leads from '{}' to itself",
                                              topology.nodes[static_cast<std::size_t>(a)].id));
            link.from = a;
            link.to = b;
            topology.add_link(link, oneway);
        }
    }
}

}  // namespace

void read_links(const JsonReader& list, const ReadContext& context, Topology& topology) {
    std::unordered_set<std::string> ids;
    for (const JsonReader& entry : list.elements()) read_link(entry, context, ids, topology);
}

bool glob_match(std::string_view pattern, std::string_view text) {
    // Linear in practice: on a mismatch only the last star is widened.
    std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            mark = t;
        } else if (p < pattern.size() && pattern[p] == text[t]) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

std::string near_names(std::string_view name, const std::vector<std::string>& names, std::size_t most) {
    // Edit distance by one row; names are short.
    std::size_t least = 3;
    const std::string* nearest = nullptr;
    std::size_t tried = 0;
    for (const std::string& other : names) {
        if (name.size() > 64 || other.size() > 64 || ++tried > 10000) break;
        std::vector<std::size_t> row(other.size() + 1);
        for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
        for (std::size_t i = 1; i <= name.size(); ++i) {
            std::size_t diagonal = row[0];
            row[0] = i;
            for (std::size_t j = 1; j < row.size(); ++j) {
                const std::size_t above = row[j];
                row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (name[i - 1] != other[j - 1])});
                diagonal = above;
            }
        }
        if (row.back() < least) {
            least = row.back();
            nearest = &other;
        }
    }
    if (nearest != nullptr) return fmt::format(": did you mean '{}'?", *nearest);
    std::string list;
    for (std::size_t i = 0; i < names.size() && i < most; ++i) list += (i ? ", " : "") + names[i];
    if (list.empty()) return "";
    return fmt::format(" (known: {}{})", list, names.size() > most ? ", ..." : "");
}

}  // namespace baton::topologies
