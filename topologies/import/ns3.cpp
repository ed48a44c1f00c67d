// Topology files of ns-3's RoCE simulators and of SimAI. ns-3: "nodes switches links", the numbers of the
// switches, then a line "a b rate latency error_rate" for each two-way link. SimAI: the first line is "nodes
// gpus_per_server nvswitches switches links gpu_type", and the NVSwitches come first among the switches.
#include <baton/base/index.hpp>
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

constexpr double kBitPerSecond = 1.0 / 8;  // a bare number of ns-3's DataRate

struct Ns3File {
    std::int64_t nodes = 0, per_server = 0, nvswitches = 0, switches = 0, links = 0;
    std::string gpu;  // SimAI
    bool simai = false;
    std::vector<int> is_switch;  // by node: 0 GPU, 1 switch, 2 NVSwitch
};

bool all_integers(const std::vector<std::string_view>& words, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        if (!integer_in(words[i])) return false;
    }
    return true;
}

Ns3File read_header(const TextLine& line, bool simai) {
    const std::vector<std::string_view> words = line.words();
    const std::size_t numbers = simai ? 5 : 3;
    if (words.size() < numbers || !all_integers(words, numbers))
        throw line.error(simai
                             ? "the first line is 'nodes gpus_per_server nvswitches switches links gpu_type'"
                             : "the first line is 'nodes switches links'");
    Ns3File file;
    file.simai = simai;
    std::int64_t* const ns3[] = {&file.nodes, &file.switches, &file.links};
    std::int64_t* const sim[] = {&file.nodes, &file.per_server, &file.nvswitches, &file.switches,
                                 &file.links};
    for (std::size_t i = 0; i < numbers; ++i) {
        const std::int64_t value = *integer_in(words[i]);
        if (value < 0 || value > kMaxLinks) throw line.error(fmt::format("{} is no count", value));
        *(simai ? sim[i] : ns3[i]) = value;
    }
    if (words.size() > numbers + (simai ? 1 : 0))
        throw line.error(fmt::format("{} where {} were expected", counted(words.size(), "word"),
                                     numbers + (simai ? 1 : 0)));
    if (simai && words.size() == 6) file.gpu = std::string(words[5]);
    check_size(static_cast<double>(file.nodes), 2.0 * static_cast<double>(file.links), line.where());
    if (file.nodes <= file.nvswitches + file.switches)
        throw line.error(fmt::format("{} nodes of which {} are switches: no GPU is left", file.nodes,
                                     file.nvswitches + file.switches));
    return file;
}

// The numbers of the switches, over as many lines as they take. Returns the line after them.
std::size_t read_switches(const std::vector<TextLine>& lines, std::size_t next, Ns3File& file) {
    file.is_switch.assign(at(file.nodes), 0);
    std::int64_t wanted = file.nvswitches + file.switches;
    for (std::int64_t read = 0; read < wanted; ++next) {
        if (next == lines.size())
            throw lines.back().error(fmt::format("the file ends after {} of {} switches", read, wanted));
        for (const std::string_view word : lines[next].words()) {
            const auto number = integer_in(word);
            if (!number) throw lines[next].error(fmt::format("'{}' is no number of a switch", shown(word)));
            if (*number < 0 || *number >= file.nodes)
                throw lines[next].error(fmt::format("switch {} is not among the {} nodes of the first line",
                                                    *number, file.nodes));
            if (read == wanted)
                throw lines[next].error(fmt::format("more switches than the {} of the first line", wanted));
            if (file.is_switch[at(*number)] != 0)
                throw lines[next].error(fmt::format("switch {} comes twice", *number));
            file.is_switch[at(*number)] = read++ < file.nvswitches ? 2 : 1;
        }
    }
    return next;
}

void add_ns3_nodes(const Ns3File& file, Topology& topology) {
    std::int64_t gpu = 0;
    for (std::int64_t i = 0; i < file.nodes; ++i) {
        Node node;
        node.id = fmt::format("{}{}",
                              file.is_switch[at(i)] == 0   ? "gpu"
                              : file.is_switch[at(i)] == 1 ? "switch"
                                                           : "nvswitch",
                              i);
        if (file.is_switch[at(i)] != 0) {
            node.type = NodeType::switch_node;
        } else {
            if (file.per_server > 0) node.host = fmt::format("server{}", gpu / file.per_server);
            if (!file.gpu.empty()) node.attributes["device"] = shown(file.gpu);
            ++gpu;
        }
        topology.add_node(std::move(node));
    }
}

LinkKind ns3_kind(const Ns3File& file, std::int64_t a, std::int64_t b) {
    if (file.is_switch[at(a)] == 2 || file.is_switch[at(b)] == 2) return LinkKind::nvlink;
    if (file.is_switch[at(a)] == 1 || file.is_switch[at(b)] == 1) return LinkKind::roce_v2;
    return LinkKind::custom;
}

Link ns3_link(const TextLine& line, const Ns3File& file) {
    const std::vector<std::string_view> words = line.words();
    if (words.size() != 5)
        throw line.error(fmt::format("{} where a link has five: a b rate latency error_rate",
                                     counted(words.size(), "word")));
    Link link;
    const auto end = [&](std::string_view word) {
        const auto number = integer_in(word);
        if (!number) throw line.error(fmt::format("'{}' is no number of a node", shown(word)));
        if (*number < 0 || *number >= file.nodes)
            throw line.error(
                fmt::format("node {} is not among the {} nodes of the first line", *number, file.nodes));
        return static_cast<int>(*number);
    };
    link.from = end(words[0]);
    link.to = end(words[1]);
    if (link.from == link.to) throw line.error(fmt::format("node {} is linked to itself", link.from));
    const auto rate = written_rate(words[2], kBitPerSecond);
    const auto latency = written_time(words[3], 1);
    const auto loss = number_in(words[4]);
    if (!rate || !rate_of(*rate))
        throw line.error(fmt::format("'{}' is no rate", shown(words[2])), "as 400Gbps");
    if (!latency || !latency_of(*latency))
        throw line.error(fmt::format("'{}' is no latency", shown(words[3])), "as 0.0005ms");
    if (!loss || *loss < 0 || *loss >= 1)
        throw line.error(fmt::format("'{}' is no error rate", shown(words[4])), "from 0 to below 1");
    link.bandwidth = *rate_of(*rate);
    link.latency = *latency_of(*latency);
    link.loss = *loss;
    link.kind = ns3_kind(file, link.from, link.to);
    return link;
}

struct Ns3Pairs {
    std::map<std::pair<int, int>, int> first_line;
    std::size_t repeated = 0;
    std::string example;

    void add(const Link& link, int line) {
        const auto [found, is_new] = first_line.try_emplace(std::minmax(link.from, link.to), line);
        if (is_new) return;
        if (++repeated == 1)
            example =
                fmt::format("lines {} and {} both join {} and {}", found->second, line, link.from, link.to);
    }
};

bool is_ns3_link(const TextLine& line) {
    const auto words = line.words();
    return words.size() == 5 && integer_in(words[0]) && integer_in(words[1]) &&
           written_rate(words[2], kBitPerSecond);
}

void add_ns3_links(const std::vector<TextLine>& lines, std::size_t next, const Ns3File& file,
                   Imported& result) {
    Ns3Pairs pairs;
    std::int64_t read = 0;
    for (; next < lines.size(); ++next) {
        if (lines[next].words().empty()) continue;
        if (read == file.links) break;
        const Link link = ns3_link(lines[next], file);
        pairs.add(link, lines[next].number);
        result.topology.add_link(link);
        ++read;
    }
    if (read < file.links)
        throw lines.back().error(fmt::format(
            "the file ends after {} of the {} links that the first line promises", read, file.links));
    int after = 0;
    for (std::size_t i = next; i < lines.size(); ++i) {
        if (is_ns3_link(lines[i]))
            throw lines[i].error(fmt::format("a link more than the {} of the first line", file.links));
        after += !lines[i].words().empty();
    }
    if (after > 0)
        result.warnings.push_back(fmt::format("left out, text after the last link: {} from line {}",
                                              counted(at(after), "line"), lines[next].number));
    if (pairs.repeated > 0)
        result.warnings.push_back(
            fmt::format("{} that an earlier line joins already ({}): read as parallel two-way links, as ns-3 "
                        "makes them; if "
                        "they are the two directions of one link, remove one of the lines",
                        counted(pairs.repeated, "line joins nodes", "lines join nodes"), pairs.example));
}

// NVSwitches belong to the server of the GPUs that they join.
void place_nvswitches(const Ns3File& file, Topology& topology) {
    for (const Link& link : topology.links) {
        const Node& gpu = topology.nodes[at(link.from)];
        Node& other = topology.nodes[at(link.to)];
        if (file.is_switch[at(link.from)] == 0 && file.is_switch[at(link.to)] == 2 && other.host.empty())
            other.host = gpu.host;
    }
}

Imported read_ns3_file(const ImportSource& source, bool simai) {
    const std::vector<TextLine> lines = text_lines(source);
    std::size_t next = 0;
    while (next < lines.size() && lines[next].words().empty()) ++next;
    if (next == lines.size()) throw input_error("there is no line in it", source.name);
    Ns3File file = read_header(lines[next], simai);
    const TextLine header = lines[next];
    next = read_switches(lines, next + 1, file);
    Imported result;
    add_ns3_nodes(file, result.topology);
    add_ns3_links(lines, next, file, result);
    place_nvswitches(file, result.topology);
    finish_network(source, result);
    const std::int64_t gpus = file.nodes - file.nvswitches - file.switches;
    if (simai)
        result.found.push_back(counted(at(file.nvswitches), "NVSwitch", "NVSwitches") + ", " +
                               counted(at(file.switches), "other switch", "other switches"));
    if (file.per_server > 0 && gpus % file.per_server != 0)
        result.warnings.push_back(fmt::format("{}: {} GPUs are no multiple of {} GPUs a server",
                                              header.where(), gpus, file.per_server));
    std::set<LinkKind> kinds;
    for (const Link& link : result.topology.links) kinds.insert(link.kind);
    if (kinds.count(LinkKind::nvlink) > 0)
        result.assumptions.push_back(
            "links of NVSwitches are NVLinks that carry payload at the rate of the file");
    if (kinds.count(LinkKind::roce_v2) > 0)
        result.assumptions.push_back(
            "other links of switches are RoCE v2, the network that this simulator models: headers of a 4096 "
            "byte "
            "packet are taken off the rate");
    if (file.nvswitches + file.switches > 0)
        result.assumptions.push_back("switches add no latency of their own, as in the simulator's file");
    return result;
}

// The first lines that are not empty.
std::vector<TextLine> first_lines(const ImportSource& source, std::size_t count) {
    std::vector<TextLine> first;
    const std::string_view start = source.text.substr(0, 65536);
    for (const TextLine& line : text_lines({start, source.name})) {
        if (line.words().empty()) continue;
        first.push_back({line.number, line.text, &source.name});
        if (first.size() == count) break;
    }
    return first;
}

bool looks_like_ns3(std::string_view text, std::size_t integers, std::size_t words) {
    const ImportSource source{text, ""};
    const std::vector<TextLine> first = first_lines(source, 3);
    if (first.empty()) return false;
    const auto header = first.front().words();
    if (header.size() < integers || header.size() > words || !all_integers(header, integers)) return false;
    return first.size() > 1 && std::any_of(first.begin() + 1, first.end(), is_ns3_link);
}

}  // namespace

bool recognizes_ns3(std::string_view text) { return looks_like_ns3(text, 3, 3); }
bool recognizes_simai(std::string_view text) { return looks_like_ns3(text, 5, 6); }

Imported read_ns3(const ImportSource& source, const ImportOptions& /*options*/) {
    return read_ns3_file(source, false);
}
Imported read_simai(const ImportSource& source, const ImportOptions& /*options*/) {
    return read_ns3_file(source, true);
}

}  // namespace baton::topologies
