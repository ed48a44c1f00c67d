// The output of ibnetdiscover: switches and channel adapters of an InfiniBand fabric with their ports. A
// cable stands in it twice, once at each end. GPUs are not in it: every adapter becomes one rank, and
// adapters that are aggregation nodes (SHARP) mark their switch as one that reduces.
#include <baton/base/index.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/import/machine_tree.hpp>
#include <baton/topologies/import/network_report.hpp>
#include <baton/topologies/import/pci_slots.hpp>
#include <baton/topologies/import/text_lines.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

namespace baton::topologies {
namespace {

struct LaneRate {
    std::string_view name;
    double gigabits;  // of data, per lane and direction
};

constexpr LaneRate kLaneRates[] = {{"SDR", 2},  {"DDR", 4},  {"QDR", 8},   {"FDR10", 10}, {"FDR", 13.64},
                                   {"EDR", 25}, {"HDR", 50}, {"NDR", 100}, {"XDR", 200}};
constexpr Time kCableLatency{500'000}, kIbSwitchLatency{130'000};

// "4xNDR" as Gb/s; nothing for other words.
std::optional<double> port_rate(std::string_view word) {
    const std::size_t x = word.find('x');
    if (x == 0 || x == std::string_view::npos) return std::nullopt;
    const auto width = integer_in(word.substr(0, x));
    if (!width || *width < 1 || *width > 12) return std::nullopt;
    for (const LaneRate& rate : kLaneRates) {
        if (rate.name == word.substr(x + 1)) return static_cast<double>(*width) * rate.gigabits;
    }
    return std::nullopt;
}

struct IbNode {
    std::string guid;    // "S-0000000000000002"
    std::string name;    // description
    std::string system;  // sysimgguid
    TextLine line;
    bool is_adapter = false, aggregates = false;
    std::string host, device;  // adapters
};

// One port line: what the port at one end is joined to.
struct IbPort {
    int node = 0;
    std::int64_t port = 0, peer_port = 0;
    std::string peer;
    double gigabits = 0;  // 0: not stated
    TextLine line;
};

struct IbFile {
    std::vector<IbNode> nodes;
    std::map<std::string, int, std::less<>> by_guid;
    std::vector<IbPort> ports;
    int other_lines = 0, first_other = 0;
};

// The text between the first two quotes from `from` on; moves `from` behind them.
std::optional<std::string> quoted(std::string_view text, std::size_t& from) {
    const std::size_t begin = text.find('"', from);
    const std::size_t end = begin == std::string_view::npos ? begin : text.find('"', begin + 1);
    if (end == std::string_view::npos) return std::nullopt;
    from = end + 1;
    return std::string(text.substr(begin + 1, end - begin - 1));
}

// "[17]" or "[17][ext 3]" at `from`.
std::optional<std::int64_t> bracketed(std::string_view text, std::size_t& from) {
    if (from >= text.size() || text[from] != '[') return std::nullopt;
    const std::size_t end = text.find(']', from);
    if (end == std::string_view::npos) return std::nullopt;
    const auto number = integer_in(text.substr(from + 1, end - from - 1));
    from = end + 1;
    return number && *number >= 0 && *number < 65536 ? number : std::nullopt;
}

IbPort read_port(const TextLine& line, int node) {
    IbPort port;
    port.node = node;
    port.line = line;
    std::size_t next = 0;
    const auto number = bracketed(line.text, next);
    if (!number) throw line.error("a port line that does not start with [PORT]");
    port.port = *number;
    const auto peer = quoted(line.text, next);
    if (!peer) throw line.error(fmt::format("port {} names no node in quotes", port.port));
    port.peer = *peer;
    const auto peer_port = bracketed(line.text, next);
    if (!peer_port) throw line.error(fmt::format("'{}' has no port in brackets", shown(*peer)));
    port.peer_port = *peer_port;
    // Descriptions may hold anything: the rate is looked for behind the last quote.
    const std::size_t quote = line.text.find_last_of('"');
    const TextLine tail{line.number, line.text.substr(quote + 1), line.file};
    for (const std::string_view word : tail.words()) {
        if (const auto rate = port_rate(word)) port.gigabits = *rate;
    }
    return port;
}

void read_node(const TextLine& line, std::string_view kind, const std::string& system, IbFile& file) {
    IbNode node;
    node.line = line;
    node.system = system;
    node.is_adapter = kind == "Ca";
    std::size_t next = 0;
    const auto guid = quoted(line.text, next);
    if (!guid || guid->empty()) throw line.error(fmt::format("'{}' without a GUID in quotes", kind));
    node.guid = *guid;
    node.name = quoted(line.text, next).value_or("");
    node.aggregates = node.is_adapter && node.name.find("Aggregation Node") != std::string::npos;
    const int index = static_cast<int>(file.nodes.size());
    if (!file.by_guid.try_emplace(node.guid, index).second)
        throw line.error(fmt::format("'{}' comes twice", shown(node.guid)));
    file.nodes.push_back(std::move(node));
}

IbFile read_ib_lines(const ImportSource& source) {
    IbFile file;
    std::string system;
    constexpr std::string_view kSystem = "sysimgguid=";
    for (const TextLine& line : text_lines(source)) {
        const std::vector<std::string_view> words = line.words();
        if (words.empty() || words[0].front() == '#') continue;
        const std::string_view word = words[0];
        if (word.rfind(kSystem, 0) == 0) {
            system = std::string(word.substr(kSystem.size()));
        } else if (word == "Switch" || word == "Ca" || word == "Rt") {
            read_node(line, word, system, file);
        } else if (word.front() == '[') {
            if (file.nodes.empty()) throw line.error("a port line before the first switch or adapter");
            file.ports.push_back(read_port(line, static_cast<int>(file.nodes.size()) - 1));
        } else if (word.find("guid=") == std::string_view::npos && word.rfind("vendid=", 0) != 0 &&
                   word.rfind("devid=", 0) != 0 && file.other_lines++ == 0) {
            file.first_other = line.number;
        }
    }
    if (file.nodes.empty()) throw input_error("there is no switch and no channel adapter in it", source.name);
    return file;
}

// "host001 mlx5_5" and "host018 HCA-6" name a host and its adapter; other descriptions are what the maker of
// the adapter set.
void split_name(IbNode& node) {
    const TextLine line{0, node.name, nullptr};
    const auto words = line.words();
    if (words.size() != 2) return;
    const std::string_view device = words[1];
    constexpr std::string_view kDevices[] = {"HCA-", "mlx", "hfi", "ib", "qib", "bnxt", "irdma", "hns"};
    const bool known = std::any_of(std::begin(kDevices), std::end(kDevices),
                                   [&](std::string_view start) { return device.rfind(start, 0) == 0; });
    if (!known || words[0] == "localhost" || words[0] == "ubuntu" || words[0] == "(none)") return;
    node.host = id_text(words[0]);
    node.device = id_text(device);
}

// Adapters of one name and device twice cannot be one host: their names say nothing.
void name_hosts(IbFile& file) {
    std::map<std::pair<std::string, std::string>, int> uses;
    for (IbNode& node : file.nodes) {
        if (!node.is_adapter || node.aggregates) continue;
        split_name(node);
        if (!node.host.empty()) ++uses[{node.host, node.device}];
    }
    std::set<std::string> doubtful;
    for (const auto& [name, count] : uses) {
        if (count > 1) doubtful.insert(name.first);
    }
    for (IbNode& node : file.nodes) {
        if (!node.is_adapter || node.aggregates) continue;
        if (doubtful.count(node.host) > 0) node.host.clear();
        // Adapters of one system (a card with several) are at least in one host.
        if (node.host.empty() && !node.system.empty()) node.host = id_text("system-" + node.system);
    }
}

// Digits count as numbers: mlx5_9 before mlx5_10.
std::string sort_key(const std::string& text) {
    std::string key, digits;
    const auto flush = [&] {
        if (!digits.empty()) key += std::string(24 - std::min<std::size_t>(digits.size(), 24), '0') + digits;
        digits.clear();
    };
    for (const char c : text) {
        if (c >= '0' && c <= '9') {
            digits += c;
            continue;
        }
        flush();
        key += c;
    }
    flush();
    return key;
}

struct Cable {
    int a = 0, b = 0;
    double gigabits = 0;
    int seen = 1;
};

// Both ends of a cable name each other; returns each cable once.
std::vector<Cable> join_ports(const IbFile& file, Imported& result) {
    std::map<std::pair<int, std::int64_t>, std::pair<std::size_t, const IbPort*>> ends;
    std::vector<Cable> cables;
    std::map<double, int> rates;
    int slower = 0;
    for (const IbPort& port : file.ports) {
        const auto peer = file.by_guid.find(port.peer);
        if (peer == file.by_guid.end())
            throw port.line.error(fmt::format("'{}' is not in the file", shown(port.peer)),
                                  "give the whole output of ibnetdiscover");
        if (peer->second == port.node && port.peer_port == port.port)
            throw port.line.error(fmt::format("port {} is joined to itself", port.port));
        if (port.gigabits > 0) ++rates[port.gigabits];
        const auto here = ends.find({port.node, port.port});
        if (here == ends.end()) {
            ends[{port.node, port.port}] = {cables.size(), &port};
            const auto [there, is_new] =
                ends.try_emplace({peer->second, port.peer_port}, std::pair{cables.size(), nullptr});
            if (!is_new)
                throw port.line.error(fmt::format(
                    "port {} of '{}' is joined to another port in line {} already", port.peer_port,
                    shown(port.peer), there->second.second ? there->second.second->line.number : 0));
            cables.push_back({port.node, peer->second, port.gigabits, 1});
            continue;
        }
        auto& [number, stated] = here->second;
        Cable& cable = cables[number];
        if (stated != nullptr)
            throw port.line.error(
                fmt::format("port {} comes twice, first in line {}", port.port, stated->line.number));
        // This port was named by its peer: they must name each other.
        const auto other = ends.find({peer->second, port.peer_port});
        if (other == ends.end() || other->second.first != number)
            throw port.line.error(fmt::format("port {} of '{}' says that it is joined to another port",
                                              port.peer_port, shown(port.peer)));
        stated = &port;
        ++cable.seen;
        if (port.gigabits > 0 && cable.gigabits > 0 && port.gigabits != cable.gigabits) ++slower;
        if (port.gigabits > 0 && (cable.gigabits == 0 || port.gigabits < cable.gigabits))
            cable.gigabits = port.gigabits;
    }
    int one_end = 0, without = 0;
    double usual = 0;
    for (const auto& [rate, count] : rates) {
        if (usual == 0 || count > rates[usual]) usual = rate;
    }
    for (Cable& cable : cables) {
        one_end += cable.seen == 1;
        if (cable.gigabits > 0) continue;
        if (usual == 0)
            throw input_error("no port has a rate (as 4xNDR)", file.ports.front().line.where(),
                              "take the output of ibnetdiscover without options");
        cable.gigabits = usual;
        ++without;
    }
    if (slower > 0)
        result.warnings.push_back(
            fmt::format("the ends of {} differ in rate: the slower is taken", counted(at(slower), "cable")));
    if (one_end > 0)
        result.warnings.push_back(fmt::format("{} named by one end only: part of the file is missing",
                                              counted(at(one_end), "cable is", "cables are")));
    if (without > 0)
        result.assumptions.push_back(
            fmt::format("{} without a rate: {:g} Gb/s, as most", counted(at(without), "cable"), usual));
    return cables;
}

// Nodes of the topology by nodes of the file; -1 for aggregation nodes.
std::vector<int> add_ib_nodes(const IbFile& file, Topology& topology) {
    std::vector<int> order, index(file.nodes.size(), -1);
    for (std::size_t i = 0; i < file.nodes.size(); ++i) order.push_back(static_cast<int>(i));
    std::vector<std::tuple<bool, std::string, std::string, std::string>> keys;
    for (const IbNode& node : file.nodes)
        keys.emplace_back(!node.is_adapter, sort_key(node.host), sort_key(node.device), node.guid);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return keys[at(a)] < keys[at(b)]; });
    for (const int number : order) {
        const IbNode& from = file.nodes[at(number)];
        if (from.aggregates) continue;
        Node node;
        node.id = id_text(from.guid);
        if (!from.name.empty()) node.attributes["name"] = shown(from.name);
        if (from.is_adapter) {
            node.host = from.host;
        } else {
            node.type = NodeType::switch_node;
            node.latency = kIbSwitchLatency;
        }
        index[at(number)] = topology.add_node(std::move(node));
    }
    return index;
}

}  // namespace

bool recognizes_ibnetdiscover(std::string_view text) {
    const std::string_view start = text.substr(0, 65536);
    const auto has = [&](std::string_view mark) { return start.find(mark) != std::string_view::npos; };
    return (has("switchguid=") || has("caguid=")) &&
           (has("Switch\t") || has("Switch ") || has("Ca\t") || has("Ca "));
}

Imported read_ibnetdiscover(const ImportSource& source, const ImportOptions& /*options*/) {
    IbFile file = read_ib_lines(source);
    check_size(static_cast<double>(file.nodes.size()), 2.0 * static_cast<double>(file.ports.size()),
               source.name);
    name_hosts(file);
    Imported result;
    const std::vector<Cable> cables = join_ports(file, result);
    const std::vector<int> index = add_ib_nodes(file, result.topology);
    std::map<std::tuple<int, int, double>, int> links;
    std::size_t aggregation = 0, adapters = 0;
    for (const Cable& cable : cables) {
        const bool a = file.nodes[at(cable.a)].aggregates, b = file.nodes[at(cable.b)].aggregates;
        if (a || b) {
            Node* there = index[at(a ? cable.b : cable.a)] < 0
                              ? nullptr
                              : &result.topology.nodes[at(index[at(a ? cable.b : cable.a)])];
            if (there && there->type == NodeType::switch_node) there->reduce = there->multicast = true;
            continue;
        }
        const auto [low, high] = std::minmax(index[at(cable.a)], index[at(cable.b)]);
        ++links[{low, high, cable.gigabits}];
    }
    for (const auto& [ends, count] : links) {
        Link link;
        link.from = std::get<0>(ends);
        link.to = std::get<1>(ends);
        link.count = count;
        link.bandwidth = *rate_of(std::get<2>(ends) * 1e9 / 8);
        link.latency = kCableLatency;
        link.kind = LinkKind::infiniband;
        result.topology.add_link(std::move(link));
    }
    std::size_t switches = 0;
    for (const IbNode& node : file.nodes) {
        aggregation += node.aggregates;
        adapters += node.is_adapter;
        switches += !node.is_adapter;
    }
    result.found.push_back(fmt::format("{}, {}, {} of cables", counted(switches, "switch", "switches"),
                                       counted(adapters, "channel adapter"),
                                       counted(file.ports.size(), "end")));
    if (aggregation > 0)
        result.found.push_back(counted(aggregation, "adapter is an aggregation node (SHARP) and no rank",
                                       "adapters are aggregation nodes (SHARP) and no ranks"));
    if (adapters == aggregation)
        throw input_error("there is no channel adapter that can be a rank", source.name);
    finish_network(source, result);
    result.assumptions.push_back(
        "GPUs are not in the file: each channel adapter is one rank, as on hosts with one adapter for each "
        "GPU; "
        "links inside hosts are not there");
    result.assumptions.push_back(
        "ranks are numbered by host name, adapter and GUID; adapters whose description names no host are "
        "grouped "
        "by sysimgguid");
    result.assumptions.push_back(fmt::format("latencies: {} a cable, {} a switch", to_string(kCableLatency),
                                             to_string(kIbSwitchLatency)));
    if (file.other_lines > 0)
        result.warnings.push_back(
            fmt::format("left out: {} that no port, switch or adapter is, first line {}",
                        counted(at(file.other_lines), "line"), file.first_other));
    return result;
}

}  // namespace baton::topologies
