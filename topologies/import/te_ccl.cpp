// Inputs of TE-CCL: JSON with TopologyParams, GurobiParams and InstanceParams. The machine is one of five
// that TE-CCL builds in its code; the tables here say what it builds. Rates do not depend on chunk_size,
// which only scales TE-CCL's chunks per second.
#include <baton/base/index.hpp>
#include <baton/base/json_reader.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/import/machine_tree.hpp>
#include <baton/topologies/import/network_report.hpp>
#include <baton/topologies/import/pci_slots.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>

namespace baton::topologies {
namespace {

constexpr double kTecclGiga = 1e9;

// The cube mesh of DGX-1 and NDv2, and a chassis of AMD. A link of a chassis in both directions: so many
// units of the machine's unit rate.
struct ChassisLink {
    int a, b, units;
};

constexpr ChassisLink kCubeMeshLinks[] = {{0, 1, 2}, {0, 2, 1}, {0, 3, 1}, {0, 4, 2}, {1, 2, 1}, {1, 3, 2},
                                          {1, 5, 1}, {2, 3, 2}, {2, 6, 2}, {3, 7, 1}, {4, 5, 2}, {4, 6, 1},
                                          {4, 7, 1}, {5, 6, 1}, {5, 7, 2}, {6, 7, 2}};
constexpr ChassisLink kAmdLinks[] = {
    {0, 1, 4},   {0, 4, 2},   {0, 8, 1},   {1, 5, 1},   {1, 9, 1},   {1, 10, 1},  {2, 3, 4},
    {2, 6, 1},   {2, 10, 1},  {2, 9, 1},   {3, 7, 2},   {3, 11, 1},  {4, 6, 1},   {4, 5, 4},
    {5, 7, 1},   {5, 6, 1},   {6, 7, 4},   {8, 9, 4},   {8, 12, 2},  {9, 13, 1},  {10, 11, 4},
    {10, 14, 1}, {11, 15, 2}, {12, 13, 4}, {12, 14, 1}, {13, 15, 1}, {13, 14, 1}, {14, 15, 4}};

struct TecclInput {
    JsonReader topology;
    std::int64_t chassis = 1, side = 4;
    Time link_alpha{}, switch_alpha{};
};

// Builds links between nodes by their numbers.
class TecclMachine {
public:
    explicit TecclMachine(Topology& topology) : topology_(topology) {}

    int gpu(std::int64_t chassis, std::int64_t gpu) {
        Node node;
        node.id = fmt::format("chassis{}/gpu{}", chassis, gpu);
        node.host = fmt::format("chassis{}", chassis);
        return topology_.add_node(std::move(node));
    }
    int center(std::string id, std::string host) {
        Node node;
        node.id = std::move(id);
        node.host = std::move(host);
        node.type = NodeType::switch_node;
        return topology_.add_node(std::move(node));
    }
    void link(int from, int to, double gigabytes, Time alpha, LinkKind kind, int units = 1,
              bool oneway = false) {
        Link link;
        link.from = from;
        link.to = to;
        link.kind = kind;
        link.count = units;
        link.bandwidth = *rate_of(gigabytes * kTecclGiga);
        link.latency = alpha;
        topology_.add_link(std::move(link), oneway);
    }

private:
    Topology& topology_;
};

Time microseconds(double count) { return *latency_of(count * 1e-6); }

std::vector<int> add_chassis(TecclMachine& machine, std::int64_t chassis, std::int64_t gpus,
                             std::span<const ChassisLink> links, double unit, Time alpha, LinkKind kind) {
    std::vector<int> nodes;
    for (std::int64_t i = 0; i < gpus; ++i) nodes.push_back(machine.gpu(chassis, i));
    for (const ChassisLink& link : links)
        machine.link(nodes[at(link.a)], nodes[at(link.b)], unit, alpha, kind, link.units);
    return nodes;
}

void build_dgx1(const TecclInput& input, TecclMachine& machine, Imported& result) {
    add_chassis(machine, 0, 8, kCubeMeshLinks, 25, input.link_alpha, LinkKind::nvlink);
    if (input.chassis > 1)
        result.warnings.push_back(
            fmt::format("chassis {}: TE-CCL's DGX1 is one chassis whatever it says; for "
                        "several import one and give --hosts and --fabric",
                        input.chassis));
}

// Odd GPUs send to the other chassis, even ones receive.
void build_dgx2(const TecclInput& input, TecclMachine& machine, Imported& result) {
    std::vector<std::vector<int>> gpus;
    for (std::int64_t chassis = 0; chassis < 2; ++chassis) {
        const std::string host = fmt::format("chassis{}", chassis);
        gpus.push_back(add_chassis(machine, chassis, 16, {}, 0, {}, LinkKind::nvlink));
        const int center = machine.center(host + "/switch", host);
        for (const int gpu : gpus.back())
            machine.link(gpu, center, 125, microseconds(0.35), LinkKind::nvlink);
    }
    for (int from = 0; from < 2; ++from)
        for (std::size_t gpu = 0; gpu < 16; gpu += 2)
            machine.link(gpus[at(from)][gpu + 1], gpus[at(1 - from)][gpu], 12.5, microseconds(2.6),
                         LinkKind::custom, 1, true);
    if (input.chassis != 2)
        result.warnings.push_back(
            fmt::format("chassis {}: TE-CCL's DGX2 is two chassis whatever it says", input.chassis));
}

// GPU 0 of each chassis sends to others, GPU 1 receives.
void build_ndv2(const TecclInput& input, TecclMachine& machine, Imported& result) {
    std::vector<std::vector<int>> gpus;
    const Time inside = microseconds(0.7), between = microseconds(1.3);
    for (std::int64_t chassis = 0; chassis < input.chassis; ++chassis)
        gpus.push_back(add_chassis(machine, chassis, 8, kCubeMeshLinks, 25, inside, LinkKind::nvlink));
    if (input.chassis == 2) {
        machine.link(gpus[0][0], gpus[1][1], 12.5, between, LinkKind::custom, 1, true);
        machine.link(gpus[1][0], gpus[0][1], 12.5, between, LinkKind::custom, 1, true);
        result.warnings.push_back(
            "two chassis are joined directly; TE-CCL takes GPU 0 of the first one for a switch there");
        return;
    }
    if (input.chassis == 1) {
        result.warnings.push_back(
            "left out: the switch between chassis, which TE-CCL keeps as a path from GPU 0 to GPU 1");
        return;
    }
    const int center = machine.center("switch", "");
    for (const std::vector<int>& chassis : gpus) {
        machine.link(chassis[0], center, 12.5, between, LinkKind::custom, 1, true);
        machine.link(center, chassis[1], 12.5, between, LinkKind::custom, 1, true);
    }
}

void build_amd(const TecclInput& input, TecclMachine& machine, Imported& result) {
    std::vector<std::vector<int>> gpus;
    for (std::int64_t chassis = 0; chassis < input.chassis; ++chassis)
        gpus.push_back(add_chassis(machine, chassis, 16, kAmdLinks, 50, input.link_alpha, LinkKind::xgmi));
    if (input.chassis == 1) return;
    const int center = machine.center("switch", "");
    for (std::int64_t chassis = 0; chassis < input.chassis; ++chassis) {
        const std::string host = fmt::format("chassis{}", chassis);
        for (std::size_t pair = 0; pair < 8; ++pair) {
            const int small = machine.center(fmt::format("{}/switch{}", host, pair), host);
            for (std::size_t i = 0; i < 2; ++i)
                machine.link(gpus[at(chassis)][2 * pair + i], small, 25, input.switch_alpha, LinkKind::pcie);
            machine.link(small, center, 25, input.switch_alpha, LinkKind::custom);
        }
    }
    result.warnings.push_back(
        "AMD of several chassis is read as meant: a switch of each two GPUs leads to the one between "
        "chassis. "
        "TE-CCL's code numbers these switches one too low, so that GPU 15 takes the place of the last one, "
        "and "
        "gives the first one 50 instead of 25 GB/s");
}

void build_mesh(const TecclInput& input, TecclMachine& machine, Imported& result) {
    const std::int64_t side = input.side, nodes = side * side;
    std::vector<int> gpus;
    for (std::int64_t i = 0; i < nodes; ++i) gpus.push_back(machine.gpu(0, i));
    for (std::int64_t i = 0; i < nodes; ++i) {
        for (const std::int64_t step : {std::int64_t{1}, side}) {
            if (i + step < nodes)
                machine.link(gpus[at(i)], gpus[at(i + step)], 100, input.link_alpha, LinkKind::custom);
        }
    }
    if (side > 1)
        result.warnings.push_back(
            "TE-CCL's Mesh also links the end of each row to the start of the next one; so "
            "does this machine");
    if (input.chassis > 1)
        result.warnings.push_back(
            fmt::format("chassis {}: TE-CCL's Mesh is one whatever it says", input.chassis));
}

struct TecclTopology {
    std::string_view name;
    void (*build)(const TecclInput&, TecclMachine&, Imported&);
    std::string_view what;
    bool own_alpha;  // figures are in TE-CCL's code, not in the file
};

constexpr TecclTopology kTecclTopologies[] = {
    {"DGX1", build_dgx1, "the cube mesh of DGX-1, 25 GB/s an NVLink", false},
    {"DGX2", build_dgx2, "two DGX-2, 125 GB/s a GPU and 12.5 GB/s from each odd GPU to an even one", true},
    {"NDv2", build_ndv2,
     "NDv2, 25 GB/s an NVLink; GPU 0 sends and GPU 1 receives between chassis at 12.5 GB/s", true},
    {"AMD", build_amd, "16 GPUs a chassis, 50 GB/s an XGMI link, 25 GB/s to the fabric", false},
    {"Mesh", build_mesh, "a square mesh, 100 GB/s a link", false},
};

TecclInput teccl_input(const JsonReader& root) {
    TecclInput input{root.at("TopologyParams"), 1, 4, {}, {}};
    if (const auto chassis = input.topology.find("chassis")) input.chassis = chassis->integer(1, 65536);
    // Files of the other machines have it too, of any value.
    const auto side = input.topology.find("side_length");
    if (side && input.topology.at("name").string() == "Mesh") input.side = side->integer(1, 1024);
    const auto alpha = input.topology.find("alpha");
    if (!alpha) return input;
    const std::vector<JsonReader> values = alpha->elements();
    if (values.size() != 2)
        throw alpha->error(fmt::format("{} where two are needed: of links and of switches, in seconds",
                                       counted(values.size(), "value")));
    const auto seconds = [](const JsonReader& value) {
        const auto latency = latency_of(value.number());
        if (!latency) throw value.error(fmt::format("{:g} is no latency in seconds", value.number()));
        return *latency;
    };
    input.link_alpha = seconds(values[0]);
    input.switch_alpha = seconds(values[1]);
    return input;
}

void report_teccl(const TecclInput& input, const TecclTopology& machine, const JsonReader& root,
                  Imported& result) {
    result.assumptions.push_back(
        fmt::format("the file names the machine only; links and rates are TE-CCL's own for {}: {}",
                    machine.name, machine.what));
    if (machine.own_alpha && input.topology.find("alpha"))
        result.warnings.push_back(
            fmt::format("alpha of the file is not used: TE-CCL has its own for {}", machine.name));
    if (!machine.own_alpha && !input.topology.find("alpha"))
        result.assumptions.push_back("there is no alpha: TE-CCL takes 0");
    std::vector<std::string> left_out;
    for (const auto& [key, value] : root.members()) {
        if (key != "TopologyParams") left_out.push_back(shown(key));
    }
    constexpr std::array kUsed = {"name", "chassis", "alpha", "side_length"};
    for (const auto& [key, value] : input.topology.members()) {
        if (std::find(kUsed.begin(), kUsed.end(), key) == kUsed.end())
            left_out.push_back("TopologyParams." + shown(key));
    }
    warn_left_out(left_out, "of the problem and the solver, not the machine", result);
}

}  // namespace

bool recognizes_te_ccl(std::string_view text) {
    return text.find("\"TopologyParams\"") != std::string_view::npos &&
           text.find('{') == text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
}

Imported read_te_ccl(const ImportSource& source, const ImportOptions& /*options*/) {
    const JsonDocument document = JsonDocument::parse(source.text, source.name);
    const TecclInput input = teccl_input(document.root());
    const JsonReader name = input.topology.at("name");
    const auto machine =
        std::find_if(std::begin(kTecclTopologies), std::end(kTecclTopologies),
                     [&](const TecclTopology& known) { return known.name == name.string(); });
    if (machine == std::end(kTecclTopologies))
        throw name.error(fmt::format("'{}' is none of TE-CCL's machines", shown(name.string())),
                         "DGX1, DGX2, NDv2, AMD and Mesh are");
    const double gpus = machine->name == "Mesh" ? static_cast<double>(input.side * input.side)
                                                : 25.0 * static_cast<double>(input.chassis);
    check_size(gpus + 1, 8 * gpus, name.where());
    Imported result;
    result.topology.name = fmt::format("TE-CCL {}", machine->name);
    TecclMachine builder(result.topology);
    machine->build(input, builder, result);
    finish_network(source, result);
    report_teccl(input, *machine, document.root(), result);
    return result;
}

}  // namespace baton::topologies
