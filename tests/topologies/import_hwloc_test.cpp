// lstopo's XML: small inputs of its own for each trap, and the real file where it is at hand.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/import/importer.hpp>
#include <baton/topologies/inspect.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>

#include "../support/field.hpp"
#include "../support/imported.hpp"

using namespace baton;
using namespace baton::topologies;
using test::link_between;
using test::says;

namespace {

Imported read_lstopo(const std::string& text, const ImportOptions& options = {}) {
    return importer("hwloc").read({text, "host.xml"}, options);
}

std::string document(const std::string& objects, const std::string& matrix = "") {
    return "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n"
           "<object type=\"Machine\">" +
           objects + "</object>\n" + matrix + "</topology>";
}

std::string package(int number, const std::string& inside) {
    return fmt::format(
        "<object type=\"Package\" os_index=\"{0}\"><info name=\"CPUVendor\" value=\"GenuineIntel\"/><info "
        "name=\"CPUModelNumber\" value=\"143\"/><object type=\"NUMANode\" os_index=\"{0}\"/>"
        "<object type=\"Bridge\" bridge_type=\"0-1\">{1}</object></object>",
        number, inside);
}

std::string gpu(int number, const std::string& model = "NVIDIA H100 80GB HBM3",
                const std::string& speed = "63.015385") {
    return fmt::format(
        "<object type=\"PCIDev\" gp_index=\"{0}\" pci_busid=\"0000:{1:02x}:00.0\" pci_type=\"0302 "
        "[10de:0000] "
        "[10de:0000] a1 00\" pci_link_speed=\"{3}\"><object type=\"OSDev\" gp_index=\"{4}\" name=\"nvml{5}\">"
        "<info name=\"GPUModel\" value=\"{2}\"/></object></object>",
        100 + number, 16 + number, model, speed, 200 + number, number);
}

std::string bridge(const std::string& inside, const std::string& speed = "63.015385",
                   const std::string& bus = "0000:02:00.0") {
    return fmt::format(
        "<object type=\"Bridge\" bridge_type=\"1-1\" pci_busid=\"{}\" pci_type=\"0604 [8086:0000] [0:0] 0 "
        "0\" "
        "pci_link_speed=\"{}\">{}</object>",
        bus, speed, inside);
}

std::string matrix(const std::string& name, const std::string& indexes, const std::string& values,
                   const std::string& attributes = "nbobjs=\"2\"") {
    return fmt::format(
        "<distances2 type=\"OSDev\" {} name=\"{}\" indexing=\"gp\"><indexes "
        "length=\"1\">{}</indexes><u64values "
        "length=\"1\">{}</u64values></distances2>",
        attributes, name, indexes, values);
}

std::string error_of(const std::string& text) {
    try {
        read_lstopo(text);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("a matrix of rates gives links of as many units as the rate holds") {
    const Imported got = read_lstopo(document(package(0, bridge(gpu(0)) + bridge(gpu(1))),
                                              matrix("NVLinkBandwidth", "200 201", "0 150000 150000 0")));
    const Link& link = link_between(got.topology, "gpu0", "gpu1");
    CHECK(link.count == 6);
    CHECK(link.bandwidth.bytes_per_second == 25'000'000'000);
    CHECK(link.goodput.bytes_per_second == 20'600'000'000);
    CHECK(got.topology.nodes[0].attributes.at("arch") == "sm_90");
    CHECK(got.topology.nodes[0].attributes.at("numa") == "0");
    // The bridges below a host bridge are its ports, not switches.
    CHECK(got.topology.node_index("pcie0") < 0);
    CHECK(link_between(got.topology, "gpu0", "cpu0").bandwidth.bytes_per_second == 63'015'385'000);
}

TEST_CASE("an upper port of a switch is a shared bridge, its lower ports are not") {
    const std::string lower = bridge(gpu(0), "63", "0000:04:00.0") + bridge(gpu(1), "63", "0000:04:01.0");
    const Imported got =
        read_lstopo(document(package(0, bridge(bridge(lower, "31.507692", "0000:03:00.0")))));
    CHECK(got.topology.node_index("pcie1") < 0);
    CHECK(link_between(got.topology, "pcie0", "cpu0").bandwidth.bytes_per_second == 31'507'692'000);
    CHECK(link_between(got.topology, "gpu1", "pcie0").bandwidth.bytes_per_second == 63'015'385'000);
}

TEST_CASE("packages are joined by the figures of their vendor") {
    const Imported got = read_lstopo(document(package(0, bridge(gpu(0))) + package(1, bridge(gpu(1)))));
    CHECK(link_between(got.topology, "cpu0", "cpu1").bandwidth.bytes_per_second == 22'000'000'000);
    CHECK(got.topology.nodes[1].attributes.at("numa") == "1");
    REQUIRE(!got.warnings.empty());
    CHECK(got.warnings[0].find("NO INFORMATION ON NVLINK") == 0);
}

TEST_CASE("a matrix with switches joins each GPU to its switches") {
    const auto nvswitch = [](int number) {
        return bridge(
            fmt::format(
                "<object type=\"PCIDev\" gp_index=\"{}\" subtype=\"NVSwitch\" pci_busid=\"0000:{}:00.0\" "
                "pci_type=\"0000 [0000:0000] [0000:0000] 00 00\" pci_link_speed=\"1.0\"/>",
                300 + number, 60 + number),
            "1.0");
    };
    const std::string values = "0 0 50000 50000 0 0 50000 50000 50000 50000 0 0 50000 50000 0 0";
    const std::string hetero =
        "<distances2hetero nbobjs=\"4\" name=\"NVLinkBandwidth\"><indexes>OSDev:200 OSDev:201</indexes>"
        "<indexes>PCIDev:300 PCIDev:301</indexes><u64values>" +
        values + "</u64values></distances2hetero>";
    const Imported got = read_lstopo(
        document(package(0, bridge(gpu(0)) + bridge(gpu(1)) + nvswitch(0) + nvswitch(1)), hetero));
    CHECK(link_between(got.topology, "gpu0", "nvswitch0").count == 2);
    CHECK(link_between(got.topology, "gpu1", "nvswitch1").count == 2);
    CHECK(got.topology.nodes.size() == 5);
    CHECK(got.topology.links.size() == 12);
}

TEST_CASE("hops are no links, and XGMI has its own matrix") {
    const auto amd = [](int number) {
        return fmt::format(
            "<object type=\"PCIDev\" gp_index=\"{0}\" pci_busid=\"0000:{1}:00.0\" pci_type=\"0380 "
            "[1002:740c] [1002:0b0c] 01 00\" "
            "pci_link_speed=\"31.5\"><object type=\"OSDev\" gp_index=\"{2}\" name=\"rsmi{3}\"/></object>",
            100 + number, 10 + number, 200 + number, number);
    };
    const std::string gpus = package(0, amd(0) + amd(1) + amd(2));
    const std::string hops = matrix("XGMIHops", "200 201 202", "0 1 1 1 0 1 1 1 0", "nbobjs=\"3\"");
    const std::string rates =
        matrix("XGMIBandwidth", "200 201 202", "0 200000 0 200000 0 50000 0 50000 0", "nbobjs=\"3\"");
    const Imported got = read_lstopo(document(gpus, hops + rates));
    CHECK(link_between(got.topology, "gpu0", "gpu1").count == 4);
    CHECK(link_between(got.topology, "gpu0", "gpu1").kind == LinkKind::xgmi);
    CHECK(link_between(got.topology, "gpu1", "gpu2").count == 1);
    CHECK(got.topology.link_index("gpu0>gpu2") < 0);
    CHECK(says(got.warnings, "ignored: matrix XGMIHops"));
}

TEST_CASE("a GPU at rest says 4 GB/s, which is not its slot") {
    const Imported got =
        read_lstopo(document(package(0, bridge(gpu(0, "NVIDIA A100-SXM4-80GB", "4.000000"), "4.000000"))));
    CHECK(link_between(got.topology, "gpu0", "cpu0").bandwidth.bytes_per_second == 31'507'692'308);
    CHECK(says(got.warnings, "a GPU at rest lowers the speed"));
}

TEST_CASE("network adapters with RDMA devices are the ports, and functions share a slot") {
    const auto adapter = [](int function, const std::string& inside) {
        return fmt::format(
            "<object type=\"PCIDev\" pci_busid=\"0000:40:00.{}\" pci_type=\"0207 [15b3:1021] [15b3:1] 0 0\" "
            "pci_link_speed=\"63\">{}</object>",
            function, inside);
    };
    const std::string rdma = "<object type=\"OSDev\" name=\"mlx5_0\"/>",
                      plain = "<object type=\"OSDev\" name=\"eno1\"/>";
    const std::string other =
        "<object type=\"PCIDev\" pci_busid=\"0000:41:00.0\" pci_type=\"0200 [8086:1] [0:0] 0 0\" "
        "pci_link_speed=\"1\">" +
        plain + "</object>";
    const Imported got = read_lstopo(
        document(package(0, bridge(gpu(0)) + bridge(adapter(0, rdma) + adapter(1, rdma)) + bridge(other))));
    CHECK(link_between(got.topology, "nic0", "pcie0").bandwidth ==
          link_between(got.topology, "pcie0", "cpu0").bandwidth);
    CHECK(got.topology.node_index("nic1") >= 0);
    CHECK(got.topology.node_index("nic2") < 0);
    CHECK(says(got.warnings, "left out: 1 network adapter without an RDMA device"));
    CHECK(says(got.warnings, "no rates of network ports (2)"));
}

TEST_CASE("version 1 nests sockets in NUMA nodes and has no matrix of links") {
    const std::string text =
        "<topology><object type=\"Machine\" os_index=\"0\"><object type=\"NUMANode\" os_index=\"1\"><object "
        "type=\"Socket\" os_index=\"0\">"
        "<info name=\"CPUVendor\" value=\"AuthenticAMD\"/></object><object type=\"Bridge\" "
        "bridge_type=\"0-1\">" +
        gpu(0) + "</object></object></object></topology>";
    CHECK(std::string(recognize({text, "a.xml"}).name) == "hwloc");
    const Topology topology = read_lstopo(text).topology;
    CHECK(topology.nodes[0].attributes.at("numa") == "1");
    CHECK(topology.nodes.size() == 2);
    CHECK(topology.nodes[1].attributes.at("numa") == "1");
}

TEST_CASE("a matrix that does not fit is refused with its line") {
    const std::string gpus = package(0, bridge(gpu(0)) + bridge(gpu(1)));
    CHECK(error_of(document(gpus, matrix("NVLinkBandwidth", "200 201", "0 25000 25000")))
              .find("2 indexes and 3 values for a matrix of 2 objects") != std::string::npos);
    CHECK(error_of(document(gpus, matrix("NVLinkBandwidth", "200 201", "0 -1 25000 0")))
              .find("'-1' is no rate") != std::string::npos);
    CHECK(error_of(document(gpus, matrix("NVLinkBandwidth", "200 201", "0 25000 25000 0 1")))
              .find("more than 4 words") != std::string::npos);
    CHECK(error_of(document(gpus, matrix("NVLinkBandwidth", "200 201", "0 1 1 0", "nbobjs=\"9999999999\"")))
              .find("nbobjs") != std::string::npos);
    CHECK(error_of(document(gpus, matrix("NVLinkBandwidth", "200 201", "0 1 1 0"))).find("no error") == 0);
    CHECK(error_of(document("")).find("no GPU") != std::string::npos);
    CHECK(error_of("<topology version=\"2.0\"/>").find("no <object>") != std::string::npos);
    CHECK(error_of("<system/>").find("not <topology>") != std::string::npos);
}

TEST_CASE("the hwloc file of the field is read as it is meant") {
    const auto text = test::field_file("hwloc/dgx2-16gpu-nvswitch.xml");
    if (!text) return;
    CHECK(std::string(recognize({*text, "dgx2.xml"}).name) == "hwloc");
    const Imported got = read_lstopo(*text);
    std::map<NodeType, int> nodes;
    for (const Node& node : got.topology.nodes) ++nodes[node.type];
    CHECK(nodes[NodeType::gpu] == 16);
    CHECK(nodes[NodeType::switch_node] == 12);
    CHECK(nodes[NodeType::cpu] == 2);
    std::map<int, int> of_gpu;
    for (const Link& link : got.topology.links) {
        if (link.kind != LinkKind::nvlink || got.topology.nodes[at(link.from)].type != NodeType::gpu)
            continue;
        CHECK(link.bandwidth.bytes_per_second == 25'000'000'000);
        CHECK(link.count == 1);
        ++of_gpu[link.from];
    }
    CHECK(of_gpu.size() == 16);
    for (const auto& [node, links] : of_gpu) CHECK(links == 6);
    CHECK(says(got.warnings, "links between the switches of the two boards are not in the file"));
    CHECK(problems(got.topology) == std::vector<std::string>{});
}
