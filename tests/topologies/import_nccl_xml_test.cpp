// NCCL's topology XML: one small input of its own for each trap, and the real files where they are at hand.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/import/assemble.hpp>
#include <baton/topologies/import/importer.hpp>
#include <baton/topologies/inspect.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "../support/field.hpp"
#include "../support/imported.hpp"

using namespace baton;
using namespace baton::topologies;
using test::link_between;
using test::says;

namespace {

Imported read_nccl(const std::string& text, const ImportOptions& options = {}) {
    return importer("nccl-xml").read({text, "topo.xml"}, options);
}

std::string in_cpu(const std::string& inside, const std::string& attributes = "numaid=\"0\"") {
    return "<system version=\"1\"><cpu " + attributes + ">" + inside + "</cpu></system>";
}

std::string gpu(int number, const std::string& bus, const std::string& links = "",
                const std::string& slot = "link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"") {
    return fmt::format(
        "<pci busid=\"{}\" class=\"0x030200\" {}><gpu dev=\"{}\" sm=\"80\" rank=\"{}\">{}</gpu></pci>", bus,
        slot, number, number, links);
}

std::string nvlink(const std::string& target, int count, const std::string& of = "0x030200") {
    return fmt::format("<nvlink target=\"{}\" count=\"{}\" tclass=\"{}\"/>", target, count, of);
}

std::string error_of(const std::string& text) {
    try {
        read_nccl(text);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

// Slots between the deepest device and its CPU.
int pci_depth(const Topology& topology) {
    std::vector<int> depth(topology.nodes.size(), -1), reached;
    for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
        if (topology.nodes[i].type != NodeType::cpu) continue;
        depth[i] = 0;
        reached.push_back(static_cast<int>(i));
    }
    for (std::size_t next = 0; next < reached.size(); ++next) {
        for (const int index : topology.out_links[at(reached[next])]) {
            const Link& link = topology.links[at(index)];
            const bool slot = link.kind == LinkKind::pcie || link.kind == LinkKind::c2c;
            if (!slot || depth[at(link.to)] >= 0) continue;
            depth[at(link.to)] = depth[at(link.from)] + 1;
            reached.push_back(link.to);
        }
    }
    return *std::max_element(depth.begin(), depth.end());
}

// What expected.json counts, from the topology that was made.
nlohmann::json facts(const Topology& topology) {
    const auto type = [&](int node) { return topology.nodes[at(node)].type; };
    std::map<std::string, int> numa, counts, rates;
    std::set<int> to_switches;
    std::vector<int> leader(topology.nodes.size());
    std::iota(leader.begin(), leader.end(), 0);
    const std::function<int(int)> find = [&](int n) {
        return leader[at(n)] == n ? n : leader[at(n)] = find(leader[at(n)]);
    };
    int directed = 0, with_switch = 0, nics = 0, without_rate = 0, sharp = 0;
    for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
        const Node& node = topology.nodes[i];
        const auto attribute = [&](const char* name) {
            const auto found = node.attributes.find(name);
            return found == node.attributes.end() ? std::string() : found->second;
        };
        if (node.type == NodeType::nic) {
            ++(attribute("port_rate").empty() ? without_rate : nics);
            if (!attribute("port_rate").empty())
                ++rates[fmt::format("{:.1f}", parse_rate(attribute("port_rate")).value() * 8e-9)];
            sharp += attribute("coll") == "1";
        }
    }
    for (const int node : topology.rank_nodes) {
        const auto& attributes = topology.nodes[at(node)].attributes;
        ++numa[attributes.count("numa") > 0 ? attributes.at("numa") : "none"];
        int switched = 0;
        for (const int link : topology.out_links[at(node)]) {
            const Link& l = topology.links[at(link)];
            if (type(l.to) == NodeType::switch_node) switched += l.count;
            if (type(l.to) != NodeType::gpu) continue;
            ++directed;
            ++counts[std::to_string(l.count)];
            leader[at(find(l.from))] = find(l.to);
        }
        with_switch += switched > 0;
        if (switched > 0) to_switches.insert(switched);
    }
    std::set<int> islands;
    for (const int node : topology.rank_nodes) islands.insert(find(node));
    return {{"gpus", topology.rank_count()},
            {"numa_of_gpus", numa},
            {"gpu_links_directed", directed},
            {"link_counts", counts},
            {"links_to_switches", to_switches},
            {"gpus_with_switch", with_switch},
            {"nics", nics},
            {"nic_devices_without_rate", without_rate},
            {"nic_gbit", rates},
            {"sharp", sharp},
            {"pci_depth", pci_depth(topology)},
            {"islands", islands.size()}};
}

}  // namespace

TEST_CASE("links between GPUs are stated by both ends and counted once") {
    const Imported got = read_nccl(in_cpu(gpu(0, "0000:01:00.0", nvlink("0000:02:00.0", 4)) +
                                          gpu(1, "0000:02:00.0", nvlink("0000:01:00.0", 4))));
    REQUIRE(got.topology.rank_count() == 2);
    const Link& link = link_between(got.topology, "gpu0", "gpu1");
    CHECK(link.count == 4);
    CHECK(link.kind == LinkKind::nvlink);
    CHECK(link.bandwidth.bytes_per_second == 25'000'000'000);
    CHECK(link.goodput.bytes_per_second == 20'000'000'000);
    CHECK(link_between(got.topology, "gpu0", "cpu0").bandwidth.bytes_per_second == 31'507'692'308);
    CHECK(got.topology.links.size() == 6);
    CHECK(says(got.assumptions, "NVLink 3"));
}

TEST_CASE("bus ids match in upper case, with a long domain and without one") {
    const Imported got = read_nccl(in_cpu(gpu(0, "00000000:AB:00.0", nvlink("0000:0c:00.0", 1)) +
                                          gpu(1, "0c:00.0", nvlink("0000:ab:00.0", 1))));
    CHECK(link_between(got.topology, "gpu0", "gpu1").count == 1);
    CHECK(got.warnings == std::vector<std::string>{});
}

TEST_CASE("a link of a GPU to itself is left out with a warning") {
    const Imported got =
        read_nccl(in_cpu(gpu(0, "0001:00:00.0", nvlink("0001:00:00.0", 12)) + gpu(1, "0002:00:00.0")));
    CHECK(says(got.warnings, "1 link of 1 GPU lead to the GPU itself"));
    CHECK(got.topology.links.size() == 4);
}

TEST_CASE("uneven statements of two GPUs are taken in both directions, with a warning") {
    const Imported got =
        read_nccl(in_cpu(gpu(0, "0:1:0.0", nvlink("0:2:0.0", 2)) + gpu(1, "0:2:0.0", nvlink("0:1:0.0", 4)) +
                         gpu(2, "0:3:0.0", nvlink("0:1:0.0", 1))));
    CHECK(link_between(got.topology, "gpu0", "gpu1").count == 4);
    CHECK(link_between(got.topology, "gpu0", "gpu2").count == 1);
    CHECK(says(got.warnings, "gpu0 states 2 links to gpu1, which states 4 back"));
    CHECK(says(got.warnings, "gpu0 states 0 links to gpu2"));
}

TEST_CASE("one GPU with fewer links than its peers is named") {
    std::string gpus;
    for (int i = 0; i < 8; ++i)
        gpus +=
            gpu(i, fmt::format("0:{}:0.0", i + 1), nvlink("fffffff:ff:ff.0", i == 5 ? 2 : 12, "0x068000"));
    const Imported got = read_nccl(in_cpu(gpus));
    CHECK(says(got.warnings, "gpu5 has 2 links to other GPUs or switches, most GPUs have 12"));
    CHECK(says(got.assumptions, "hidden"));
    CHECK(link_between(got.topology, "gpu0", "nvswitch0").count == 12);
    CHECK(link_between(got.topology, "gpu0", "nvswitch0").latency.picoseconds == 250'000);
}

TEST_CASE("a target of a CPU's class is the CPU, and of a GPU that is not there is left out") {
    const Imported got =
        read_nccl(in_cpu(gpu(0, "0:1:0.0", nvlink("0:9:0.0", 3, "0x068001") + nvlink("0:8:0.0", 2)),
                         "numaid=\"0\" arch=\"ppc64\""));
    const int cpu = got.topology.node_index("cpu0");
    int nvlinks = 0;
    for (const Link& link : got.topology.links) {
        if (link.to == cpu && link.kind == LinkKind::nvlink) nvlinks += link.count;
    }
    CHECK(nvlinks == 3);
    CHECK(says(got.warnings, "GPU that is not in the file (0000:08:00.0)"));
}

TEST_CASE("unknown slots get NCCL's defaults, and say so") {
    const Imported got = read_nccl(in_cpu(gpu(0, "0:1:0.0", "", "link_speed=\"\" link_width=\"0\"") +
                                          gpu(1, "0:2:0.0", "", "link_speed=\"Unknown speed\"")));
    CHECK(link_between(got.topology, "gpu0", "cpu0").bandwidth.bytes_per_second == 15'753'846'154);
    CHECK(link_between(got.topology, "gpu0", "cpu0").provenance.assumed);
    CHECK(says(got.assumptions, "1 PCI device with no link_speed: 8 GT/s (Gen3)"));
    CHECK(says(got.assumptions, "link_speed=\"Unknown speed\""));
    CHECK(says(got.assumptions, "2 PCI devices with link_width 0 or none: 16 lanes"));
}

TEST_CASE("the 2.5 GT/s of a virtual bridge is no rate; a slow real bridge is one") {
    const std::string virtual_bridge =
        "<pci busid=\"0:9:0.0\" class=\"0x060400\" link_speed=\"2.5 GT/s PCIe\" link_width=\"1\">" +
        gpu(0, "0:1:0.0") + "</pci>";
    const Imported vm = read_nccl(in_cpu(virtual_bridge));
    CHECK(link_between(vm.topology, "pcie0", "cpu0").bandwidth.bytes_per_second == 31'507'692'308);
    CHECK(says(vm.warnings, "2.5 GT/s PCIe x1 taken as 16 GT/s x16"));
    const std::string slow_bridge =
        "<pci busid=\"0:9:0.0\" class=\"0x060400\" link_speed=\"5.0 GT/s PCIe\" link_width=\"16\">" +
        gpu(0, "0:1:0.0") + "</pci>";
    const Imported slow = read_nccl(in_cpu(slow_bridge));
    CHECK(link_between(slow.topology, "pcie0", "cpu0").bandwidth.bytes_per_second == 8'000'000'000);
    CHECK(slow.warnings == std::vector<std::string>{});
}

TEST_CASE("ports of one card share its slot, in one element or as functions") {
    const std::string net =
        "<nic><net name=\"a\" dev=\"0\" speed=\"100000\"/><net name=\"b\" dev=\"1\" speed=\"200000\" "
        "coll=\"1\"/></nic>";
    const Imported one = read_nccl(
        in_cpu(gpu(0, "0:1:0.0") +
               "<pci busid=\"0:5:0.0\" class=\"0x020700\" link_speed=\"16 GT/s\" link_width=\"16\">" + net +
               "</pci>"));
    CHECK(one.topology.nodes[at(one.topology.node_index("nic1"))].attributes.at("port_rate") == "200Gb/s");
    CHECK(link_between(one.topology, "nic0", "pcie0").bandwidth ==
          link_between(one.topology, "pcie0", "cpu0").bandwidth);
    CHECK(says(one.found, "can reduce in the network"));
    std::string functions;
    for (int i = 0; i < 2; ++i)
        functions += fmt::format(
            "<pci busid=\"0:5:0.{}\" class=\"0x020700\" link_speed=\"16 GT/s\" link_width=\"16\"><nic><net "
            "name=\"m{}\" dev=\"{}\" speed=\"200000\"/></nic></pci>",
            i, i, 1 - i);
    const Imported two = read_nccl(in_cpu(gpu(0, "0:1:0.0") + functions));
    CHECK(link_between(two.topology, "nic0", "pcie0").count == 1);
    CHECK(link_between(two.topology, "nic1", "pcie0").count == 1);
    CHECK(two.topology.nodes[at(two.topology.node_index("nic0"))].attributes.at("name") == "m1");
}

TEST_CASE("files that are written loosely: a net in its pci, several GPUs in one, devices without a class") {
    const Imported net =
        read_nccl(in_cpu(gpu(0, "0:1:0.0") + "<pci busid=\"0:5:0.0\" class=\"0x020000\" link_speed=\"100000 "
                                             "MT/s\"><net name=\"efa_0\" speed=\"100000\"/></pci>"));
    CHECK(net.topology.nodes[at(net.topology.node_index("nic0"))].attributes.at("port_rate") == "100Gb/s");
    CHECK(says(net.assumptions, "link_speed=\"100000 MT/s\""));
    const Imported two =
        read_nccl(in_cpu("<pci busid=\"0:1:0.0\" class=\"0x060000\" link_speed=\"16 GT/s\"><gpu dev=\"0\" "
                         "sm=\"89\" rank=\"0\"/><gpu dev=\"1\" sm=\"89\" rank=\"1\"/></pci>"));
    CHECK(two.topology.link_index("gpu1>pcie0") >= 0);
    CHECK(error_of(in_cpu("<pci busid=\"0:1:0.0\"/><pci busid=\"0:2:0.0\"/>"))
              .find("of its 2 PCI devices none is known to be a GPU") != std::string::npos);
}

TEST_CASE("a port without a rate has 10 Gb/s, and one on a CPU no slot") {
    const Imported got =
        read_nccl(in_cpu(gpu(0, "0:1:0.0") + "<nic><net name=\"eth0\" speed=\"-1\"/></nic>"));
    CHECK(got.topology.nodes[at(got.topology.node_index("nic0"))].attributes.at("port_rate") == "10Gb/s");
    CHECK(says(got.assumptions, "network ports without a rate (1)"));
    CHECK(says(got.assumptions, "network port without a PCI device"));
}

TEST_CASE("a repeated bus id is no key of network ports") {
    std::string bridges = gpu(0, "0:1:0.0");
    for (int i = 0; i < 3; ++i)
        bridges += fmt::format(
            "<pci busid=\"0:2{}:0.0\" class=\"0x060400\" link_speed=\"8 GT/s\" link_width=\"16\"><pci "
            "busid=\"0:5:0.0\" class=\"0x020700\" link_speed=\"8 GT/s\" link_width=\"16\"><nic><net "
            "name=\"m{}\" dev=\"{}\" speed=\"200000\"/></nic></pci></pci>",
            i, i, i);
    const Topology topology = read_nccl(in_cpu(bridges)).topology;
    CHECK(topology.node_index("nic2") >= 0);
    CHECK(topology.link_index("nic2>pcie2") >= 0);
}

TEST_CASE("ranks order the GPUs, and GPUs without one take no part") {
    const std::string first = "<pci busid=\"0:1:0.0\"><gpu dev=\"0\" sm=\"80\" rank=\"9\"/></pci>",
                      second = "<pci busid=\"0:2:0.0\"><gpu dev=\"1\" sm=\"80\" rank=\"4\"/></pci>",
                      third = "<pci busid=\"0:3:0.0\"><gpu dev=\"-1\" sm=\"80\"/></pci>";
    const Imported got = read_nccl(in_cpu(first + second + third));
    REQUIRE(got.topology.rank_count() == 2);
    CHECK(got.topology.nodes[at(got.topology.rank_nodes[0])].attributes.at("device") == "1");
    CHECK(says(got.warnings, "1 GPU without a rank take no part"));
    CHECK(says(got.warnings, "the ranks in the file are not 0 to 1"));
}

TEST_CASE("GPUs known by their class only come with a loud warning") {
    const std::string text = in_cpu(
        "<pci busid=\"0:2:0.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x20b0\" link_speed=\"16 "
        "GT/s\" link_width=\"16\"/>"
        "<pci busid=\"0:1:0.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x20b0\" link_speed=\"16 "
        "GT/s\" link_width=\"16\"/>"
        "<pci busid=\"0:3:0.0\" class=\"0x030000\" vendor=\"0x1a03\"/>"
        "<pci busid=\"0:4:0.0\" class=\"0x020000\" link_speed=\"16 GT/s\" link_width=\"16\"/>");
    const Imported got = read_nccl(text);
    CHECK(got.topology.rank_count() == 2);
    CHECK(got.topology.nodes[0].attributes.at("bus_id") == "0000:01:00.0");
    CHECK(got.topology.nodes[0].attributes.at("arch") == "sm_80");
    REQUIRE(!got.warnings.empty());
    CHECK(got.warnings[0].find("NO NVLINK INFORMATION") == 0);
    CHECK(got.warnings[0].find("--nvlink-status") != std::string::npos);
    CHECK(says(got.warnings, "left out: 1 x PCI device without a GPU"));
    CHECK(got.topology.node_index("nic0") >= 0);
}

TEST_CASE("the status of NVLinks adds them where the file knows none, and their rates where it does") {
    std::string status = "$ nvidia-smi nvlink -s\n";
    for (int i = 0; i < 2; ++i) {
        status += fmt::format("\x1b[1mGPU {}: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\x1b[0m\n", i);
        for (int l = 0; l < 12; ++l)
            status += fmt::format("\t Link {}: {}\n", l, l == 11 ? "<inactive>" : "25.781 GB/s");
    }
    ImportOptions options;
    options.nvlink_status = {status, "status.txt"};
    const std::string bare =
        "<pci busid=\"0:{}:0.0\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\"/>";
    const Imported got = read_nccl(in_cpu(fmt::format(fmt::runtime(bare + bare), 1, 2)), options);
    CHECK(link_between(got.topology, "gpu0", "nvswitch0").count == 11);
    CHECK(link_between(got.topology, "gpu0", "nvswitch0").bandwidth.bytes_per_second == 25'781'000'000);
    CHECK(got.topology.nodes[0].attributes.at("arch") == "sm_80");
    CHECK(!says(got.warnings, "NO NVLINK"));
    CHECK(says(got.assumptions, "which GPUs the 22 NVLinks join is not said"));
    const Imported linked = read_nccl(
        in_cpu(gpu(0, "0:1:0.0", nvlink("0:2:0.0", 11)) + gpu(1, "0:2:0.0", nvlink("0:1:0.0", 11))), options);
    CHECK(link_between(linked.topology, "gpu0", "gpu1").bandwidth.bytes_per_second == 25'781'000'000);
    CHECK(linked.warnings == std::vector<std::string>{});
    CHECK_THROWS_WITH(
        read_nccl(in_cpu(gpu(0, "0:1:0.0")), options),
        "status.txt: it lists 2 GPUs, the machine has 1; give the text of one host of the same kind");
    options.nvlink_status = {"nothing here", "status.txt"};
    CHECK_THROWS_AS(read_nccl(in_cpu(gpu(0, "0:1:0.0")), options), Error);
}

TEST_CASE("what is not known is ignored by name, and nothing else") {
    const Imported got =
        read_nccl(in_cpu("<pci busid=\"0:1:0.0\"><gpu dev=\"0\" sm=\"90\" rank=\"0\" "
                         "color=\"red\"><fan/></gpu></pci><memory/>"));
    CHECK(says(got.warnings, "ignored: attribute color of <gpu> (1 times)"));
    CHECK(says(got.warnings, "ignored: element <fan> in <gpu> (1 times)"));
    CHECK(says(got.warnings, "ignored: element <memory> in <cpu> (1 times)"));
}

TEST_CASE("bridges that pcilink joins are one switch") {
    const auto bridge = [](int number, const std::string& target) {
        return fmt::format(
            "<pci busid=\"{}:0:0.0\" class=\"0x060400\" link_speed=\"16 GT/s\" "
            "link_width=\"16\"><pcilink target=\"0000:{}:00.0\"/><pci busid=\"1{}:0:0.0\" "
            "link_speed=\"16 GT/s\" link_width=\"16\"><gpu dev=\"{}\" sm=\"80\" "
            "rank=\"{}\"/></pci></pci>",
            number, target, number, number, number);
    };
    const Imported got = read_nccl(in_cpu(bridge(0, "01") + bridge(1, "00")));
    CHECK(link_between(got.topology, "pcie0", "pcie1").bandwidth.bytes_per_second == 5'000'000'000'000);
    CHECK(got.topology.links.size() == 2 * (2 + 2 + 1));
    CHECK(says(got.assumptions, "pcilink"));
    const Imported alone = read_nccl(in_cpu(bridge(0, "7f")));
    CHECK(alone.topology.links.size() == 4);
    CHECK(says(alone.warnings, "no bridge 0000:7f:00.0 links back"));
}

TEST_CASE("a GPU on a CPU chip has its C2C links in place of its PCI entry") {
    const Imported got =
        read_nccl(in_cpu("<pci busid=\"f:1:0.0\" link_speed=\"2.5 GT/s PCIe\" link_width=\"16\"><gpu "
                         "dev=\"0\" sm=\"121\" rank=\"0\"><c2c bw=\"43125\" count=\"8\"/></gpu></pci>",
                         "arch=\"arm64\""));
    const Link& link = link_between(got.topology, "gpu0", "cpu0");
    CHECK(link.kind == LinkKind::c2c);
    CHECK(link.count == 8);
    CHECK(link.bandwidth.bytes_per_second == 43'125'000'000);
    CHECK(got.topology.links.size() == 2);
}

TEST_CASE("sockets are joined by the figures of their vendor") {
    const auto rate = [](const std::string& cpu) {
        const Imported got = read_nccl("<system><cpu " + cpu + ">" + gpu(0, "0:1:0.0") + "</cpu><cpu " + cpu +
                                       ">" + gpu(1, "0:2:0.0") + "</cpu></system>");
        return link_between(got.topology, "cpu0", "cpu1").bandwidth.bytes_per_second / 1'000'000'000;
    };
    CHECK(rate("arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"175\" modelid=\"1\"") == 16);
    CHECK(rate("arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"79\"") == 6);
    CHECK(rate("arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\"") == 10);
    CHECK(rate("arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\"") == 22);
    CHECK(rate("arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"207\"") == 40);
    CHECK(rate("arch=\"arm64\"") == 6);
    CHECK(rate("arch=\"ppc64\" numaid=\"8\"") == 32);
}

TEST_CASE("hosts of one dump share their switches, and hosts of several files a fabric") {
    const std::string host = "<cpu host_hash=\"{}\" numaid=\"0\" arch=\"arm64\">{}</cpu>";
    std::string text = "<system version=\"1\">";
    for (int h = 0; h < 2; ++h) {
        std::string gpus;
        for (int i = 0; i < 2; ++i)
            gpus += gpu(2 * h + i, fmt::format("000{}:1:0.0", i), nvlink("fffffff:ff:ff.0", 18, "0x068000"));
        text += fmt::format(fmt::runtime(host), h, gpus);
    }
    const Imported got = read_nccl(text + "</system>");
    CHECK(got.topology.rank_count() == 4);
    CHECK(got.topology.rank_hosts() == std::vector<int>{0, 0, 1, 1});
    CHECK(link_between(got.topology, "h0/gpu0", "nvswitch0").count == 18);
    CHECK(link_between(got.topology, "h1/gpu1", "nvswitch0").count == 18);
    const Topology one =
        read_nccl(in_cpu(gpu(0, "0:1:0.0") + "<pci busid=\"0:5:0.0\" link_speed=\"32 GT/s\"><nic><net "
                                             "dev=\"0\" speed=\"400000\"/></nic></pci>"))
            .topology;
    const Topology both = assemble_hosts({one, one}, 1, "ndr-rail");
    CHECK(both.rank_count() == 2);
    CHECK(problems(both) == std::vector<std::string>{});
}

TEST_CASE("AMD's architecture is in gcn, and sm counts its units") {
    const std::string text = in_cpu(
        "<pci busid=\"0:1:0.0\" class=\"0x038000\"><gpu dev=\"0\" sm=\"104\" gcn=\"910\" rank=\"0\"><xgmi "
        "target=\"0:2:0.0\" count=\"4\" tclass=\"0x038000\"/></gpu></pci>"
        "<pci busid=\"0:2:0.0\" class=\"0x038000\"><gpu dev=\"1\" sm=\"104\" gcn=\"gfx90a:sramecc+\" "
        "rank=\"1\"><xgmi target=\"0:1:0.0\" count=\"4\" tclass=\"0x038000\"/></gpu></pci>");
    const Topology topology = read_nccl(text).topology;
    CHECK(topology.nodes[0].attributes.at("arch") == "gfx90a");
    CHECK(topology.nodes[1].attributes.at("arch") == "gfx90a");
    CHECK(link_between(topology, "gpu0", "gpu1").kind == LinkKind::xgmi);
    CHECK(link_between(topology, "gpu0", "gpu1").goodput.bytes_per_second == 36'000'000'000);
}

TEST_CASE("errors name file, line and element") {
    CHECK(error_of("<system>\n<cpu>\n<pci busid=\"0:1:0.0\" link_width=\"wide\"><gpu/></pci></cpu></system>")
              .find("topo.xml:3 <pci>: link_width=\"wide\" is not an integer") == 0);
    CHECK(error_of("<graphs version=\"1\"/>").find("graph file of NCCL") != std::string::npos);
    CHECK(error_of("<algo name=\"a\"/>").find("algorithm of MSCCL") != std::string::npos);
    CHECK(error_of("<system version=\"1\"/>").find("there is no <cpu>") != std::string::npos);
    CHECK(error_of(in_cpu("")).find("no GPU") != std::string::npos);
    CHECK(error_of("<system>\n<cpu></system>").find("topo.xml:2: not well-formed") == 0);
    CHECK(error_of(in_cpu(gpu(0, "0:1:0.0", "<nvlink count=\"2\"/>")))
              .find("<nvlink>: the attribute 'target' is missing") != std::string::npos);
    CHECK(error_of("\xff\xfe<system/>").find("UTF-16") != std::string::npos);
    std::string cpus;
    for (int i = 0; i < 300; ++i) cpus += "<cpu/>";
    CHECK(error_of("<system><cpu>" + gpu(0, "0:1:0.0") + "</cpu>" + cpus + "</system>")
              .find("301 CPUs in one host") != std::string::npos);
}

TEST_CASE("recognition passes over marks, comments and document types") {
    const std::string start =
        "\xef\xbb\xbf<?xml version=\"1.0\"?>\r\n<!-- <graph> -->\n<!DOCTYPE system [<!ENTITY a "
        "\"b\">]>\n<system version=\"2\"/>";
    CHECK(std::string(recognize({start, "a.xml"}).name) == "nccl-xml");
    // Entities of a document type are never expanded.
    std::string bomb = "<!DOCTYPE system [<!ENTITY a \"aaaaaaaaaa\">";
    for (char c = 'b'; c < 'z'; ++c)
        bomb += fmt::format("<!ENTITY {} \"{}\">", c,
                            fmt::format("&{0};&{0};&{0};&{0};", static_cast<char>(c - 1)));
    CHECK(read_nccl(bomb + "]>" + in_cpu("<pci busid=\"&y;\"><gpu rank=\"0\" dev=\"0\"/></pci>"))
              .topology.rank_count() == 1);
}

TEST_CASE("topology files of the field are read as they are meant") {
    for (const std::string& path : test::field_files("nccl-topo")) {
        CAPTURE(path);
        const nlohmann::json want = test::expected(path);
        const std::string text = *test::field_file(path);
        const ImportSource source{text, path};
        CHECK(std::string(recognize(source).name) == "nccl-xml");
        const Imported got = read_nccl(text);
        nlohmann::json counted = facts(got.topology);
        for (const auto& [name, value] : counted.items()) {
            CAPTURE(name);
            if (name == "numa_of_gpus" && (want.at(name).contains("None") || want.at(name).contains("-1")))
                CHECK(value == nlohmann::json{{"none", got.topology.rank_count()}});
            else
                CHECK(value == want.at(name));
        }
        const int self_links = want.at("self_links_dropped");
        CHECK(says(got.warnings, "lead to the GPU itself") == (self_links > 0));
        if (self_links > 0)
            CHECK(says(got.warnings, fmt::format("{} links of {} GPUs lead", self_links, self_links)));
        CHECK(says(got.warnings, "taken in both directions") == (want.at("asymmetric") > 0));
        CHECK(says(got.warnings, "NO NVLINK INFORMATION") == (want.at("nic_devices_without_rate") > 0));
        CHECK(problems(got.topology) == std::vector<std::string>{});
    }
}
