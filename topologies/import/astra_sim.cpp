// Network files of ASTRA-sim's analytical models: YAML with one entry a dimension in `topology` (Ring,
// FullyConnected, Switch), `npus_count`, `bandwidth` and `latency`. The first dimension is the innermost: NPU
// numbers count along it first.
#include <baton/base/index.hpp>
#include <baton/base/yaml_reader.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/import/machine_tree.hpp>
#include <baton/topologies/import/network_report.hpp>
#include <baton/topologies/import/pci_slots.hpp>

#include <fmt/format.h>
#include <algorithm>

namespace baton::topologies {
namespace {

struct AstraDimension {
    std::string shape;  // ring, fullyconnected, switch
    std::int64_t npus = 1;
    Rate bandwidth{};
    Time latency{};
};

std::string lower_case(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

// Lists of one element are written as plain values in some files.
std::vector<YamlReader> list_or_one(const YamlReader& value) {
    return value.is_list() ? value.elements() : std::vector<YamlReader>{value};
}

std::string astra_shape(const YamlReader& name) {
    const std::string shape = lower_case(name.text());
    if (shape == "ring" || shape == "switch") return shape;
    if (shape == "fullyconnected" || shape == "fully_connected") return "fullyconnected";
    throw name.error(fmt::format("'{}' is no shape that is known", shown(name.text())),
                     "Ring, FullyConnected and Switch are");
}

std::vector<AstraDimension> astra_dimensions(const YamlReader& root) {
    const YamlReader shapes = root.at("topology");
    std::vector<AstraDimension> dimensions;
    for (const YamlReader& name : list_or_one(shapes)) dimensions.push_back({astra_shape(name), 1, {}, {}});
    if (dimensions.empty()) throw shapes.error("there is no dimension");
    const auto values = [&](std::string_view key) {
        const YamlReader list = root.at(key);
        std::vector<YamlReader> all = list_or_one(list);
        if (all.size() != dimensions.size())
            throw list.error(fmt::format("{} for {} of 'topology'", counted(all.size(), "value"),
                                         counted(dimensions.size(), "dimension")),
                             "give one value a dimension");
        return all;
    };
    const std::vector<YamlReader> npus = values("npus_count"), rates = values("bandwidth"),
                                  latencies = values("latency");
    for (std::size_t d = 0; d < dimensions.size(); ++d) {
        dimensions[d].npus = npus[d].integer(1, kMaxNodes);
        const auto rate = rate_of(rates[d].number() * 1e9);
        if (!rate) throw rates[d].error(fmt::format("'{}' is no rate in GB/s", shown(rates[d].text())));
        dimensions[d].bandwidth = *rate;
        const auto latency = latency_of(latencies[d].number() * 1e-9);
        if (!latency)
            throw latencies[d].error(fmt::format("'{}' is no latency in ns", shown(latencies[d].text())));
        dimensions[d].latency = *latency;
    }
    return dimensions;
}

// Nodes and directed links that a dimension takes, over all its groups.
std::pair<double, double> astra_size(const AstraDimension& dimension, double npus) {
    const double n = static_cast<double>(dimension.npus);
    if (n < 2) return {0, 0};
    if (dimension.shape == "switch") return {npus / n, 2 * npus};
    if (dimension.shape == "ring") return {0, 2 * npus};
    return {0, npus * (n - 1)};
}

void add_group(const AstraDimension& dimension, std::size_t number, const std::vector<int>& members,
               Topology& topology) {
    Link link;
    link.bandwidth = dimension.bandwidth;
    link.latency = dimension.latency;
    const auto join = [&](int from, int to) {
        link.from = from;
        link.to = to;
        topology.add_link(link);
    };
    const std::size_t n = members.size();
    if (dimension.shape == "switch") {
        Node node;
        node.id = fmt::format("switch{}.{}", number + 1, members.front());
        node.type = NodeType::switch_node;
        const int center = topology.add_node(std::move(node));
        for (const int member : members) join(member, center);
    } else if (dimension.shape == "ring") {
        // A ring of two is one two-way link.
        for (std::size_t i = 0; i < (n == 2 ? 1 : n); ++i) join(members[i], members[(i + 1) % n]);
    } else {
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = i + 1; j < n; ++j) join(members[i], members[j]);
    }
}

}  // namespace

bool recognizes_astra_sim(std::string_view text) {
    const auto has = [&](std::string_view key) { return text.find(key) != std::string_view::npos; };
    return has("npus_count") && has("topology") && has("bandwidth");
}

Imported read_astra_sim(const ImportSource& source, const ImportOptions& /*options*/) {
    const YamlDocument document = YamlDocument::parse(source.text, source.name);
    const YamlReader root = document.root();
    const std::vector<AstraDimension> dimensions = astra_dimensions(root);
    double npus = 1;
    for (const AstraDimension& dimension : dimensions) npus *= static_cast<double>(dimension.npus);
    double nodes = npus, links = 0;
    for (const AstraDimension& dimension : dimensions) {
        nodes += astra_size(dimension, npus).first;
        links += astra_size(dimension, npus).second;
    }
    check_size(nodes, links, source.name);

    Imported result;
    for (std::int64_t npu = 0; npu < static_cast<std::int64_t>(npus); ++npu) {
        Node node;
        node.id = fmt::format("npu{}", npu);
        result.topology.add_node(std::move(node));
    }
    std::int64_t stride = 1;
    bool switched = false;
    for (std::size_t d = 0; d < dimensions.size(); ++d) {
        const std::int64_t n = dimensions[d].npus;
        switched = switched || (n > 1 && dimensions[d].shape == "switch");
        for (std::int64_t first = 0; n > 1 && first < static_cast<std::int64_t>(npus); ++first) {
            if (first / stride % n != 0) continue;
            std::vector<int> members;
            for (std::int64_t i = 0; i < n; ++i) members.push_back(static_cast<int>(first + i * stride));
            add_group(dimensions[d], d, members, result.topology);
        }
        stride *= n;
    }
    for (std::size_t d = 0; d < dimensions.size(); ++d)
        result.found.push_back(fmt::format("dimension {}: {} of {}, {}, {}", d + 1, dimensions[d].shape,
                                           dimensions[d].npus, to_string(dimensions[d].bandwidth),
                                           to_string(dimensions[d].latency)));
    finish_network(source, result);
    result.assumptions.push_back(
        "units as the comments in ASTRA-sim's files say: GB/s of 1e9 bytes, each link and direction, and ns");
    if (switched)
        result.assumptions.push_back(
            "the latency holds for each of the two links over a switch; switches add none");
    std::vector<std::string> left_out;
    for (const auto& [key, value] : root.members()) {
        if (key != "topology" && key != "npus_count" && key != "bandwidth" && key != "latency")
            left_out.push_back(fmt::format("{} (line {})", shown(key), value.line()));
    }
    warn_left_out(left_out, "keys without a counterpart", result);
    return result;
}

}  // namespace baton::topologies
