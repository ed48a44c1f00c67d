// GraphML: nodes and edges with named values, as NetworkX, igraph, yEd and the Internet Topology Zoo write
// them. The format fixes no names for values; the tables below have those that are read, with or without a
// unit in the name ("bandwidth_gbps", "latency_us").
#include <baton/base/index.hpp>
#include <baton/base/xml_reader.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/import/machine_tree.hpp>
#include <baton/topologies/import/network_report.hpp>
#include <baton/topologies/import/pci_slots.hpp>
#include <baton/topologies/import/text_lines.hpp>
#include <baton/topologies/import/written_units.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

namespace baton::topologies {
namespace {

enum class GraphValue { type, host, rank, name, rate, goodput, latency, count, kind, loss };

struct GraphName {
    std::string_view name;  // lower case, without '_', '-' and blanks
    GraphValue value;
};

constexpr GraphName kGraphNodeNames[] = {
    {"type", GraphValue::type},       {"nodetype", GraphValue::type}, {"role", GraphValue::type},
    {"host", GraphValue::host},       {"server", GraphValue::host},   {"rank", GraphValue::rank},
    {"latency", GraphValue::latency}, {"name", GraphValue::name},     {"label", GraphValue::name}};
// Longer names first: what follows a name is its unit.
constexpr GraphName kGraphEdgeNames[] = {
    {"linkspeedraw", GraphValue::rate}, {"bandwidth", GraphValue::rate},     {"capacity", GraphValue::rate},
    {"linkspeed", GraphValue::rate},    {"speed", GraphValue::rate},         {"rate", GraphValue::rate},
    {"bw", GraphValue::rate},           {"goodput", GraphValue::goodput},    {"latency", GraphValue::latency},
    {"delay", GraphValue::latency},     {"multiplicity", GraphValue::count}, {"count", GraphValue::count},
    {"kind", GraphValue::kind},         {"type", GraphValue::kind},          {"loss", GraphValue::loss}};

// Words for nodes beside Baton's own.
constexpr std::pair<std::string_view, NodeType> kGraphTypes[] = {{"npu", NodeType::gpu},
                                                                 {"accelerator", NodeType::gpu},
                                                                 {"rank", NodeType::gpu},
                                                                 {"host", NodeType::gpu},
                                                                 {"server", NodeType::gpu},
                                                                 {"compute", NodeType::gpu},
                                                                 {"endpoint", NodeType::gpu},
                                                                 {"terminal", NodeType::gpu},
                                                                 {"router", NodeType::switch_node},
                                                                 {"nvswitch", NodeType::switch_node},
                                                                 {"tor", NodeType::switch_node},
                                                                 {"leaf", NodeType::switch_node},
                                                                 {"spine", NodeType::switch_node},
                                                                 {"core", NodeType::switch_node},
                                                                 {"aggregation", NodeType::switch_node},
                                                                 {"edge", NodeType::switch_node},
                                                                 {"hca", NodeType::nic}};

// What a <key> declares: the value that Baton reads from it, and the factor of the unit in its name.
struct GraphKey {
    std::string name;
    std::optional<GraphValue> value;
    double unit = 0;  // of numbers without one; 0: not in the name
    std::optional<std::string> otherwise;
};

struct GraphFile {
    std::map<std::string, GraphKey> node_keys, edge_keys;
    std::map<std::string, int> nodes;
    std::map<std::string, int> not_read;  // names of values, and how often
    std::map<std::string, int> odd_types;
    int bare_rates = 0, bare_latencies = 0, without_rate = 0, without_latency = 0, loops = 0, ports = 0;
    int switches_by_name = 0, by_label = 0, without_arrow = 0;
    bool types_stated = false;
};

std::string plain_name(std::string_view name) {
    std::string plain;
    for (const char c : name) {
        if (std::string_view("_- ()[]").find(c) != std::string_view::npos) continue;
        plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return plain;
}

// The unit in a name: "Gbps" of "bandwidth_Gbps". Blanks and brackets around it do not count.
std::string unit_in_name(std::string_view name, std::size_t letters) {
    std::string unit;
    for (const char c : name) {
        if (std::string_view("_- ()[]").find(c) != std::string_view::npos) continue;
        if (letters > 0)
            --letters;
        else
            unit += c;
    }
    return unit;
}

GraphKey read_graph_key(const XmlReader& element, bool edge) {
    GraphKey key;
    key.name = element.find("attr.name").value_or(element.find("yfiles.type").value_or(element.at("id")));
    const auto otherwise = element.children("default");
    if (!otherwise.empty()) key.otherwise = otherwise.front().text();
    const std::string plain = plain_name(key.name);
    const std::span<const GraphName> names =
        edge ? std::span<const GraphName>(kGraphEdgeNames) : std::span<const GraphName>(kGraphNodeNames);
    for (const GraphName& known : names) {
        if (plain.rfind(known.name, 0) != 0) continue;
        const std::string unit = unit_in_name(key.name, known.name.size());
        if (unit.empty()) {
            if (known.name == "linkspeedraw") key.unit = 1.0 / 8;  // the Topology Zoo: bits per second
            key.value = known.value;
            return key;
        }
        const bool rate = known.value == GraphValue::rate || known.value == GraphValue::goodput;
        if (!rate && known.value != GraphValue::latency) continue;
        const auto factor = rate ? rate_unit(unit) : time_unit(unit);
        if (!factor) continue;
        key.unit = *factor;
        key.value = known.value;
        return key;
    }
    return key;
}

void read_graph_keys(const XmlReader& root, GraphFile& file) {
    for (const XmlReader& element : root.children("key")) {
        const std::string whose = element.find("for").value_or("all"), id = element.at("id");
        bool is_new = true;
        if (whose == "node" || whose == "all")
            is_new = file.node_keys.try_emplace(id, read_graph_key(element, false)).second && is_new;
        if (whose == "edge" || whose == "all")
            is_new = file.edge_keys.try_emplace(id, read_graph_key(element, true)).second && is_new;
        if (!is_new) throw element.error(fmt::format("the key '{}' comes twice", shown(id)));
    }
}

// A value of a node or edge with the element that it stands in.
struct GraphDatum {
    XmlReader element;
    std::string text;
    const GraphKey* key;
};

// Values of an element by what they are; defaults of keys where it has none.
std::map<GraphValue, GraphDatum> graph_data(const XmlReader& element,
                                            const std::map<std::string, GraphKey>& keys, GraphFile& file) {
    std::map<GraphValue, GraphDatum> data;
    const auto take = [&](const XmlReader& place, const std::string& text, const GraphKey& key) {
        if (!key.value)
            ++file.not_read[shown(key.name)];
        else if (!text.empty() && !data.try_emplace(*key.value, GraphDatum{place, text, &key}).second)
            ++file.not_read[shown(key.name)];
    };
    std::set<std::string> seen;
    for (const XmlReader& datum : element.children("data")) {
        const std::string id = datum.at("key");
        const auto key = keys.find(id);
        if (key == keys.end()) throw datum.error(fmt::format("there is no <key> '{}'", shown(id)));
        seen.insert(id);
        take(datum, datum.text(), key->second);
    }
    for (const auto& [id, key] : keys) {
        if (key.otherwise && key.value && seen.count(id) == 0 && data.count(*key.value) == 0)
            take(element, *key.otherwise, key);
    }
    return data;
}

// Text inside the drawing of a node (yEd's <y:NodeLabel>).
std::string drawn_label(const XmlReader& element) {
    for (const XmlReader& child : element.children()) {
        if (child.name() == "y:NodeLabel") return child.text();
        if (std::string label = drawn_label(child); !label.empty()) return label;
    }
    return {};
}

// Labels inside the drawing of an edge (yEd's <y:EdgeLabel>), and whether an arrow tells its direction.
struct EdgeDrawing {
    std::vector<XmlReader> labels;
    int drawings = 0, arrows = 0;
};

void read_edge_drawing(const XmlReader& element, EdgeDrawing& drawing) {
    for (const XmlReader& child : element.children()) {
        const std::string name = child.name();
        if (name == "y:EdgeLabel" && child.text().find_first_not_of(" \t\r\n") != std::string::npos)
            drawing.labels.push_back(child);
        if (name == "y:Arrows") {
            ++drawing.drawings;
            // One arrow is a direction; none, or one at each end, is none.
            const bool source = child.find("source").value_or("none") != "none";
            drawing.arrows += source != (child.find("target").value_or("none") != "none");
        }
        read_edge_drawing(child, drawing);
    }
}

std::optional<NodeType> graph_type(const std::string& word) {
    const std::string plain = plain_name(word);
    if (const auto type = node_type_from(plain)) return type;
    for (const auto& [name, type] : kGraphTypes) {
        if (name == plain) return type;
    }
    return std::nullopt;
}

Rate graph_rate(const GraphDatum& datum, GraphFile& file) {
    constexpr double kBareUnit = 1e9;
    const auto number = number_in(datum.text);
    const bool bare = number && datum.key->unit == 0;
    if (bare && *number >= 1e6)
        throw datum.element.error(fmt::format("{} {} has no unit", datum.key->name, datum.text.substr(0, 40)),
                                  "write it with its unit, as 400Gb/s, or name the key bandwidth_Gbps");
    file.bare_rates += bare;
    const auto value = written_rate(datum.text, datum.key->unit == 0 ? kBareUnit : datum.key->unit);
    const auto rate = value ? rate_of(*value) : std::nullopt;
    if (!rate)
        throw datum.element.error(fmt::format("{} '{}' is no rate", datum.key->name, shown(datum.text)),
                                  "as 400Gb/s or 50GB/s");
    return *rate;
}

Time graph_latency(const GraphDatum& datum, GraphFile& file) {
    const auto number = number_in(datum.text);
    const bool bare = number && datum.key->unit == 0 && *number != 0;
    if (bare && *number >= 0.01)
        throw datum.element.error(fmt::format("{} {} has no unit", datum.key->name, datum.text.substr(0, 40)),
                                  "write it with its unit, as 2us, or name the key latency_us");
    file.bare_latencies += bare;
    const auto value = written_time(datum.text, datum.key->unit == 0 ? 1 : datum.key->unit);
    const auto latency = value ? latency_of(*value) : std::nullopt;
    if (!latency)
        throw datum.element.error(fmt::format("{} '{}' is no latency", datum.key->name, shown(datum.text)),
                                  "as 700ns or 2us");
    return *latency;
}

std::int64_t graph_count(const GraphDatum& datum, std::int64_t low, std::int64_t high) {
    const auto number = number_in(datum.text);  // NetworkX writes whole numbers as "2.0" too
    if (!number ||
        *number != static_cast<double>(static_cast<std::int64_t>(std::clamp(*number, -1e9, 1e9))) ||
        *number < static_cast<double>(low) || *number > static_cast<double>(high))
        throw datum.element.error(fmt::format("{} '{}' is no whole number from {} to {}", datum.key->name,
                                              shown(datum.text), low, high));
    return static_cast<std::int64_t>(*number);
}

void add_graph_node(const XmlReader& element, GraphFile& file, Topology& topology) {
    if (!element.children("graph").empty())
        throw element.error("a graph inside a node has no reading", "write all nodes into one graph");
    const std::string id = element.at("id");
    const auto data = graph_data(element, file.node_keys, file);
    Node node;
    node.id = id_text(id);
    if (node.id.empty()) throw element.error("the attribute 'id' is empty");
    std::string name;
    if (const auto found = data.find(GraphValue::name); found != data.end()) name = found->second.text;
    if (name.empty()) name = drawn_label(element);
    if (!name.empty()) node.attributes["name"] = shown(name);
    std::optional<NodeType> type;
    if (const auto found = data.find(GraphValue::type); found != data.end()) {
        type = graph_type(found->second.text);
        if (!type) ++file.odd_types[shown(found->second.text)];
    }
    file.types_stated = file.types_stated || type;
    if (!type) {
        const bool named = is_switch_name(plain_name(id)) || is_switch_name(plain_name(name));
        file.switches_by_name += named;
        type = named ? NodeType::switch_node : NodeType::gpu;
    }
    node.type = *type;
    if (const auto found = data.find(GraphValue::host); found != data.end())
        node.host = id_text(found->second.text);
    if (const auto found = data.find(GraphValue::rank); found != data.end())
        node.rank = static_cast<int>(graph_count(found->second, -1, kMaxNodes));
    if (const auto found = data.find(GraphValue::latency); found != data.end())
        node.latency = graph_latency(found->second, file);
    if (!file.nodes.try_emplace(id, static_cast<int>(topology.nodes.size())).second)
        throw element.error(fmt::format("the node '{}' comes twice", shown(id)));
    topology.add_node(std::move(node));
}

void set_link_figures(const std::map<GraphValue, GraphDatum>& data, GraphFile& file, Link& link) {
    link.bandwidth = kAssumedRate;
    link.latency = kAssumedLatency;
    link.provenance.assumed = data.count(GraphValue::rate) + data.count(GraphValue::goodput) == 0;
    file.without_rate += link.provenance.assumed;
    file.without_latency += data.count(GraphValue::latency) == 0;
    for (const auto& [value, datum] : data) {
        if (value == GraphValue::rate) link.bandwidth = graph_rate(datum, file);
        if (value == GraphValue::goodput) link.goodput = graph_rate(datum, file);
        if (value == GraphValue::latency) link.latency = graph_latency(datum, file);
        if (value == GraphValue::count) link.count = static_cast<int>(graph_count(datum, 1, 65536));
        if (value == GraphValue::kind) {
            const auto kind = link_kind_from(plain_name(datum.text));
            if (kind)
                link.kind = *kind;
            else
                ++file.not_read[fmt::format("{} '{}'", datum.key->name, shown(datum.text))];
        }
        if (value == GraphValue::loss) {
            const auto loss = number_in(datum.text);
            if (!loss || !(*loss >= 0 && *loss < 1))
                throw datum.element.error(fmt::format("loss '{}' is not within [0, 1)", shown(datum.text)));
            link.loss = *loss;
        }
    }
    if (data.count(GraphValue::rate) == 0 && link.goodput.bytes_per_second > 0) link.bandwidth = link.goodput;
}

// What the labels of a drawing say that no value of the edge does: "400Gb/s", or "400Gb/s, 2us".
void take_labels(const EdgeDrawing& drawing, const std::map<GraphValue, GraphDatum>& data, GraphFile& file,
                 Link& link) {
    bool rated = data.count(GraphValue::rate) + data.count(GraphValue::goodput) > 0;
    bool timed = data.count(GraphValue::latency) > 0;
    for (const XmlReader& label : drawing.labels) {
        std::string text = label.text();
        std::replace_if(
            text.begin(), text.end(), [](char c) { return c == '\n' || c == ';'; }, ',');
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = std::min(text.find(',', begin), text.size());
            const std::string word = text.substr(begin, end - begin);
            begin = end + 1;
            if (word.find_first_not_of(" \t\r") == std::string::npos) continue;
            const auto written = written_rate(word, 0), waited = written_time(word, 0);
            const auto rate = written ? rate_of(*written) : std::nullopt;
            const auto latency = waited ? latency_of(*waited) : std::nullopt;
            if (rate && !rated) {
                rated = true;
                link.bandwidth = *rate;
                link.provenance.assumed = false;
                --file.without_rate;
            } else if (latency && !timed) {
                timed = true;
                link.latency = *latency;
                --file.without_latency;
            } else {
                ++file.not_read[fmt::format("label '{}'", shown(word))];
                continue;
            }
            ++file.by_label;
        }
    }
}

void add_graph_edge(const XmlReader& element, bool directed, GraphFile& file, Topology& topology) {
    Link link;
    const auto end = [&](std::string_view attribute) {
        const std::string id = element.at(attribute);
        const auto found = file.nodes.find(id);
        if (found == file.nodes.end()) throw element.error(fmt::format("there is no node '{}'", shown(id)));
        return found->second;
    };
    link.from = end("source");
    link.to = end("target");
    if (link.from == link.to) {
        ++file.loops;
        return;
    }
    file.ports += element.find("sourceport") || element.find("targetport");
    const auto data = graph_data(element, file.edge_keys, file);
    set_link_figures(data, file, link);
    EdgeDrawing drawing;
    read_edge_drawing(element, drawing);
    take_labels(drawing, data, file, link);
    if (directed && drawing.drawings > 0 && drawing.arrows == 0) {
        directed = false;
        ++file.without_arrow;
    }
    const auto own = element.find("directed");
    if (own && *own != "true" && *own != "false")
        throw element.error(fmt::format("directed=\"{}\" is neither true nor false", shown(*own)));
    topology.add_link(std::move(link), own ? *own == "true" : directed);
}

void report_graph(const GraphFile& file, Imported& result) {
    if (file.bare_rates > 0)
        result.assumptions.push_back("rates without a unit are GB/s (1e9 bytes per second)");
    if (file.bare_latencies > 0) result.assumptions.push_back("latencies without a unit are seconds");
    if (file.without_rate > 0)
        result.assumptions.push_back(fmt::format("{} without a rate: {} assumed",
                                                 counted(at(file.without_rate), "edge"),
                                                 to_string(kAssumedRate)));
    if (file.without_latency > 0)
        result.assumptions.push_back(fmt::format("{} without a latency: {} assumed",
                                                 counted(at(file.without_latency), "edge"),
                                                 to_string(kAssumedLatency)));
    if (file.by_label > 0)
        result.found.push_back(fmt::format("{} of edges from their labels in the drawing",
                                           counted(at(file.by_label), "figure")));
    if (file.without_arrow > 0)
        result.assumptions.push_back(
            fmt::format("{} drawn without an arrow, or with one at each end: links in both directions",
                        counted(at(file.without_arrow), "edge")));
    if (file.switches_by_name > 0)
        result.assumptions.push_back(fmt::format("{} by their names, which start with 'switch' or 'sw'",
                                                 counted(at(file.switches_by_name), "switch", "switches")));
    if (!file.types_stated)
        result.assumptions.push_back(
            "the file does not say what its nodes are: each one but switches is a rank");
    for (const auto& [type, count] : file.odd_types)
        result.warnings.push_back(
            fmt::format("type '{}' of {} says nothing that is known; gpu, host, switch, "
                        "nic, cpu and pcie do",
                        type, counted(at(count), "node")));
    if (file.loops > 0)
        result.warnings.push_back(
            fmt::format("left out: {} from a node to itself", counted(at(file.loops), "edge")));
    if (file.ports > 0)
        result.warnings.push_back(fmt::format("left out: the ports of {}", counted(at(file.ports), "edge")));
    std::vector<std::string> left_out;
    for (const auto& [name, count] : file.not_read) left_out.push_back(fmt::format("{} ({})", name, count));
    warn_left_out(left_out, "values without a counterpart", result);
}

}  // namespace

bool recognizes_graphml(std::string_view text) { return xml_root_name(text) == "graphml"; }

Imported read_graphml(const ImportSource& source, const ImportOptions& /*options*/) {
    const XmlDocument document = XmlDocument::parse(source.text, source.name);
    const XmlReader root = document.root();
    if (root.name() != "graphml") throw root.error("the outermost element is not <graphml>");
    GraphFile file;
    read_graph_keys(root, file);
    const std::vector<XmlReader> graphs = root.children("graph");
    if (graphs.empty()) throw root.error("there is no <graph>");
    if (graphs.size() > 1) throw graphs[1].error("a second graph: a file is one machine");
    const XmlReader& graph = graphs.front();
    const std::string direction = graph.at("edgedefault");
    if (direction != "directed" && direction != "undirected")
        throw graph.error(
            fmt::format("edgedefault=\"{}\" is neither directed nor undirected", shown(direction)));
    const std::vector<XmlReader> nodes = graph.children("node"), edges = graph.children("edge");
    check_size(static_cast<double>(nodes.size()), 2.0 * static_cast<double>(edges.size()), source.name);
    if (const auto hyper = graph.children("hyperedge"); !hyper.empty())
        throw hyper.front().error("a hyperedge has no reading",
                                  "write a node of type switch and edges to it");
    Imported result;
    for (const XmlReader& node : nodes) add_graph_node(node, file, result.topology);
    for (const XmlReader& edge : edges) add_graph_edge(edge, direction == "directed", file, result.topology);
    finish_network(source, result);
    report_graph(file, result);
    if (result.topology.rank_count() == 0) result.warnings.push_back("no node is a rank");
    return result;
}

}  // namespace baton::topologies
