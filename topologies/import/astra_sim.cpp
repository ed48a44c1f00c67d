// Network files of ASTRA-sim's analytical models: YAML with one entry a dimension in `topology` (Ring,
// FullyConnected, Switch), `npus_count`, `bandwidth` and `latency`; and the JSON of ASTRA-sim 1, with other
// names for these, links for each NPU, and latencies of NICs and routers. The first dimension is the
// innermost: NPU numbers count along it first.
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
    Time latency{}, router{};
    int units = 1;  // parallel links
};

// Names of the values in ASTRA-sim 2 (YAML) and 1 (JSON).
struct AstraNames {
    const char *shapes, *npus, *bandwidth, *latency;
};
constexpr AstraNames kAstra2 = {"topology", "npus_count", "bandwidth", "latency"};
constexpr AstraNames kAstra1 = {"topologies-per-dim", "units-count", "link-bandwidth", "link-latency"};

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

// Other NPUs, or switches, that an NPU is joined to.
std::int64_t astra_neighbors(const AstraDimension& dimension) {
    if (dimension.npus < 2) return 0;
    if (dimension.shape == "switch") return 1;
    if (dimension.shape == "ring") return dimension.npus == 2 ? 1 : 2;
    return dimension.npus - 1;
}

// What ASTRA-sim 1 adds: links of an NPU shared among its neighbors, and latencies once a message at each NIC
// and at the router.
void add_astra1(const YamlReader& root, std::vector<AstraDimension>& dimensions, Imported& result) {
    const auto value = [&](const char* key, std::size_t d) -> std::optional<YamlReader> {
        const auto list = root.find(key);
        if (!list) return std::nullopt;
        const std::vector<YamlReader> all = list_or_one(*list);
        if (all.size() != dimensions.size())
            throw list->error(fmt::format("{} for {}", counted(all.size(), "value"),
                                          counted(dimensions.size(), "dimension")));
        return all[d];
    };
    const auto nanoseconds = [&](const char* key, std::size_t d) {
        const auto given = value(key, d);
        const auto time = latency_of(given ? given->number() * 1e-9 : 0);
        if (!time) throw given->error(fmt::format("'{}' is no latency in ns", shown(given->text())));
        return *time;
    };
    for (std::size_t d = 0; d < dimensions.size(); ++d) {
        AstraDimension& dimension = dimensions[d];
        const Time nic = nanoseconds("nic-latency", d);
        const bool direct = dimension.shape != "switch";
        dimension.router = nanoseconds("router-latency", d);
        dimension.latency = dimension.latency + nic;
        if (direct) dimension.latency = dimension.latency + nic + dimension.router;
        const auto links = value("links-count", d);
        const std::int64_t neighbors = astra_neighbors(dimension);
        if (!links || neighbors == 0) continue;
        const std::int64_t count = links->integer(1, 65536);
        if (count % neighbors == 0) {
            dimension.units = static_cast<int>(count / neighbors);
            continue;
        }
        const auto rate = rate_of(dimension.bandwidth.value() * static_cast<double>(count) /
                                  static_cast<double>(neighbors));
        if (!rate) throw links->error("the links leave no rate for each neighbor");
        dimension.bandwidth = *rate;
        result.warnings.push_back(fmt::format("{}: {} for {} of an NPU: their rate is spread evenly",
                                              links->where(), counted(at(count), "link"),
                                              counted(at(neighbors), "neighbor")));
    }
    result.assumptions.push_back(
        "ASTRA-sim 1: links-count are the links of an NPU, shared evenly among its neighbors; nic-latency "
        "counts at "
        "both ends of a message, router-latency once");
}

std::vector<AstraDimension> astra_dimensions(const YamlReader& root, const AstraNames& names) {
    const YamlReader shapes = root.at(names.shapes);
    std::vector<AstraDimension> dimensions;
    for (const YamlReader& name : list_or_one(shapes))
        dimensions.push_back({astra_shape(name), 1, {}, {}, {}, 1});
    if (dimensions.empty()) throw shapes.error("there is no dimension");
    const auto values = [&](std::string_view key) {
        const YamlReader list = root.at(key);
        std::vector<YamlReader> all = list_or_one(list);
        if (all.size() != dimensions.size())
            throw list.error(fmt::format("{} for {} of '{}'", counted(all.size(), "value"),
                                         counted(dimensions.size(), "dimension"), names.shapes),
                             "give one value a dimension");
        return all;
    };
    const std::vector<YamlReader> npus = values(names.npus), rates = values(names.bandwidth),
                                  latencies = values(names.latency);
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
    link.count = dimension.units;
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
        node.latency = dimension.router;
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
    return (has("npus_count") && has("topology") && has("bandwidth")) ||
           (has("\"topologies-per-dim\"") && has("\"units-count\"") && has("\"link-bandwidth\""));
}

Imported read_astra_sim(const ImportSource& source, const ImportOptions& /*options*/) {
    const YamlDocument document = YamlDocument::parse(source.text, source.name);
    const YamlReader root = document.root();
    const bool first_version = root.is_map() && root.find(kAstra1.shapes).has_value();
    const AstraNames& names = first_version ? kAstra1 : kAstra2;
    std::vector<AstraDimension> dimensions = astra_dimensions(root, names);
    double npus = 1;
    for (const AstraDimension& dimension : dimensions) npus *= static_cast<double>(dimension.npus);
    double nodes = npus, links = 0;
    for (const AstraDimension& dimension : dimensions) {
        nodes += astra_size(dimension, npus).first;
        links += astra_size(dimension, npus).second;
    }
    check_size(nodes, links, source.name);

    Imported result;
    if (first_version) add_astra1(root, dimensions, result);
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
    if (switched && !first_version)
        result.assumptions.push_back(
            "the latency holds for each of the two links over a switch; switches add none");
    std::vector<std::string> left_out;
    for (const auto& [key, value] : root.members()) {
        const bool read = key == names.shapes || key == names.npus || key == names.bandwidth ||
                          key == names.latency ||
                          (first_version && (key == "links-count" || key == "nic-latency" ||
                                             key == "router-latency" || key == "dimensions-count"));
        if (!read) left_out.push_back(fmt::format("{} (line {})", shown(key), value.line()));
    }
    warn_left_out(left_out, "keys without a counterpart", result);
    return result;
}

}  // namespace baton::topologies
