// Text of nvidia-smi topo -m: one small input of its own for each way in which it is met, and the real files
// where they are at hand.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/import/assemble.hpp>
#include <baton/topologies/import/importer.hpp>
#include <baton/topologies/inspect.hpp>
#include <baton/topologies/routes.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "../support/field.hpp"
#include "../support/imported.hpp"

using namespace baton;
using namespace baton::topologies;
using test::says;

namespace {

Imported read_smi(const std::string& text, const ImportOptions& options = {}) {
    return importer("nvidia-smi").read({text, "topo.txt"}, options);
}

std::string smi_error(const std::string& text, const ImportOptions& options = {}) {
    try {
        read_smi(text, options);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "";
}

const Link* smi_link(const Topology& topology, const std::string& from, const std::string& to) {
    const int index = topology.link_index(from + ">" + to);
    return index < 0 ? nullptr : &topology.links[at(index)];
}

// The bridge or CPU that a node hangs on: parents stand before their children.
std::string above(const Topology& topology, const std::string& id) {
    const int node = topology.node_index(id);
    REQUIRE_MESSAGE(node >= 0, id);
    const bool bridge = topology.nodes[at(node)].type == NodeType::pcie;
    for (const int link : topology.out_links[at(node)]) {
        const int to = topology.links[at(link)].to;
        const NodeType type = topology.nodes[at(to)].type;
        if (type == NodeType::cpu || (type == NodeType::pcie && (!bridge || to < node)))
            return topology.nodes[at(to)].id;
    }
    return "";
}

// A matrix in which every two of `gpus` are joined by `cell`.
std::string uniform(int gpus, const std::string& cell) {
    std::string text;
    for (int i = 0; i < gpus; ++i) text += fmt::format("\tGPU{}", i);
    for (int i = 0; i < gpus; ++i) {
        text += fmt::format("\nGPU{}", i);
        for (int j = 0; j < gpus; ++j) text += "\t" + (i == j ? " X " : cell);
    }
    return text + "\n";
}

const std::string kPair =
    "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV4\t0-7\t0\n"
    "GPU1\tNV4\t X \t0-7\t0\n";

// kPair as it must come out of every disguise.
void check_pair(const std::string& text) {
    CAPTURE(text);
    const std::string name = "pasted.txt";
    const ImportSource source{text, name};
    CHECK(std::string(recognize(source).name) == "nvidia-smi");
    const Imported plain = read_smi(kPair), got = read_smi(text);
    CHECK(got.topology.hash() == plain.topology.hash());
    CHECK(got.topology.rank_count() == 2);
}

}  // namespace

TEST_CASE("a topo matrix gives ranks, NVLinks, sockets and slots") {
    const Imported got = read_smi(
        "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\n"
        "GPU0\t X \tNV2\tSYS\tSYS\tPIX\tSYS\t0-3\t0\n"
        "GPU1\tNV2\t X \tSYS\tSYS\tPHB\tSYS\t0-3\t0\n"
        "GPU2\tSYS\tSYS\t X \tPXB\tSYS\tPIX\t4-7\t1\n"
        "GPU3\tSYS\tSYS\tPXB\t X \tSYS\tPXB\t4-7\t1\n"
        "NIC0\tPIX\tPHB\tSYS\tSYS\t X \tSYS\n"
        "NIC1\tSYS\tSYS\tPIX\tPXB\tSYS\t X \n\n"
        "NIC Legend:\n\n  NIC0: mlx5_4\n  NIC1: mlx5_bond_0\n");
    const Topology& t = got.topology;
    CHECK(t.rank_count() == 4);
    REQUIRE(smi_link(t, "gpu0", "gpu1"));
    CHECK(smi_link(t, "gpu0", "gpu1")->count == 2);
    CHECK(above(t, "gpu0") == above(t, "nic0"));
    CHECK(above(t, "gpu0") != above(t, "gpu1"));
    CHECK(above(t, above(t, "gpu0")) == above(t, "gpu1"));
    // GPU2 and NIC1 on a switch of their own, below one that GPU3 shares.
    CHECK(above(t, "gpu2") == above(t, "nic1"));
    CHECK(above(t, above(t, "gpu2")) == above(t, "gpu3"));
    CHECK(above(t, above(t, "gpu3")) == "cpu1");
    CHECK(smi_link(t, "cpu0", "cpu1")->kind == LinkKind::upi);
    CHECK(t.nodes[at(t.node_index("nic1"))].attributes.at("name") == "mlx5_bond_0");
    CHECK(t.nodes[at(t.node_index("cpu1"))].attributes.at("numa") == "1");
    CHECK(smi_link(t, "gpu0", above(t, "gpu0"))->provenance.assumed);
    CHECK(says(got.assumptions, "the matrix has no rates"));
    CHECK(says(got.warnings, "rates of network ports"));
    CHECK(problems(t).empty());
}

TEST_CASE("a pasted topo matrix is read through quoting, prompts, colours and wrapped lines") {
    check_pair(kPair);
    check_pair("$ nvidia-smi topo -m\n" + kPair);
    check_pair("```\nuser@host:~$ nvidia-smi topo -m\n" + kPair + "```\n");
    check_pair(
        "> \tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n> GPU0\t X \tNV4\t0-7\t0\n"
        ">GPU1\tNV4\t X \t0-7\t0\n");
    check_pair(
        "| | GPU0 | GPU1 | CPU Affinity | NUMA Affinity |\n|---|---|---|---|---|\n"
        "| GPU0 | X | NV4 | 0-7 | 0 |\n| GPU1 | NV4 | X | 0-7 | 0 |\n");
    check_pair("1:  GPU0 GPU1 CPU Affinity NUMA Affinity\n2:GPU0 X NV4 0-7 0\n3: GPU1 NV4 X 0-7 0\n");
    check_pair(" 1. GPU0 GPU1 CPU Affinity NUMA Affinity\n 2. GPU0 X NV4 0-7 0\n 3. GPU1 NV4 X 0-7 0\n");
    check_pair(
        "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\x1b[0m\n\x1b[1mGPU0\x1b[0m\t X \tNV4\t0-7\t0\n"
        "GPU1\tNV4\t X \t0-7\t0\n");
    check_pair(
        "\xef\xbb\xbf\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\r\nGPU0\t X \tNV4\t0-7\t0\r\n\r\n"
        "GPU1\tNV4\t X \t0-7\t0\r\n");
    check_pair(
        "\xc2\xa0GPU0\xc2\xa0GPU1\xe2\x80\x83"
        "CPU Affinity\xc2\xa0NUMA Affinity\n"
        "GPU0\xc2\xa0X\xe3\x80\x80NV4 0-7\xe2\x80\xaf"
        "0\nGPU1 NV4 X 0-7 0\n");
    // Broken by a terminal, also inside of words.
    check_pair(
        "\tGPU0\tGP\nU1\tCPU Aff\ninity\tNUMA Affinity\nGPU0\t X \tNV\n4\t0-7\t0\n"
        "GPU1\tNV4\t X \t0-\n7\t0\n");
    check_pair(
        "[1,0]<stdout>:\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
        "[1,0]<stdout>:GPU0\t X \tNV4\t0-7\t0\n[1,0]<stdout>:GPU1\tNV4\t X \t0-7\t0\n");
}

TEST_CASE("lines around a topo matrix that were not read are counted") {
    const Imported got = read_smi("Thu GPU0 is fine\nwarning 3 things\n" + kPair + "bye\n");
    CHECK(says(got.warnings, "3 lines outside of the matrix not read (first: line 1)"));
    CHECK_FALSE(
        says(read_smi(kPair + "\nLegend:\n\n  X    = Self\n  NV#  = NVLinks\n").warnings, "not read"));
}

TEST_CASE("more NVLinks than a GPU has lead through a switch, fewer do not") {
    const auto through_switch = [](const Imported& got) { return got.topology.node_index("nvswitch0") >= 0; };
    const Imported eight = read_smi(uniform(8, "NV18"));
    REQUIRE(through_switch(eight));
    CHECK(smi_link(eight.topology, "gpu3", "nvswitch0")->count == 18);
    CHECK(says(eight.assumptions, "one NVSwitch"));
    CHECK(says(eight.assumptions, "no PCIe"));
    CHECK(eight.topology.nodes.size() == 9);
    const Imported sixteen = read_smi(uniform(16, "NV6"));
    REQUIRE(through_switch(sixteen));
    CHECK(smi_link(sixteen.topology, "gpu15", "nvswitch0")->count == 6);
    CHECK(through_switch(read_smi(uniform(8, "NV12"))));
    CHECK(through_switch(read_smi(uniform(2, "NV18"))));
    const Imported four = read_smi(uniform(4, "NV6"));
    CHECK_FALSE(through_switch(four));
    CHECK(smi_link(four.topology, "gpu0", "gpu3")->count == 6);
    CHECK(says(four.assumptions, "without a switch"));
    CHECK_FALSE(through_switch(read_smi(uniform(2, "NV12"))));
    CHECK_FALSE(through_switch(read_smi(uniform(4, "NV4"))));
    // Three GPUs of a machine whose GPUs have six links.
    ImportOptions volta;
    volta.arch = "sm_70";
    CHECK(through_switch(read_smi(uniform(3, "NV6"), volta)));
    CHECK_FALSE(through_switch(read_smi(uniform(3, "NV6"))));
}

TEST_CASE("a GPU that lost links on the switch keeps its peers whole") {
    const Imported got = read_smi(
        "GPU0 GPU1 GPU2 GPU3\nGPU0 X NV18 NV18 NV16\nGPU1 NV18 X NV18 NV16\n"
        "GPU2 NV18 NV18 X NV16\nGPU3 NV16 NV16 NV16 X\n");
    CHECK(smi_link(got.topology, "gpu0", "nvswitch0")->count == 18);
    CHECK(smi_link(got.topology, "gpu3", "nvswitch0")->count == 16);
    CHECK(says(got.warnings, "gpu3 has 16 links to other GPUs or switches, most GPUs have 18"));
}

TEST_CASE("rates follow the architecture: named, given, by rate, or by the number of links") {
    const auto raw = [](const Imported& got) {
        return smi_link(got.topology, "gpu0", "nvswitch0")->bandwidth.bytes_per_second;
    };
    const std::string matrix = uniform(4, "NV18");
    CHECK(raw(read_smi(matrix)) == 25'000'000'000);
    CHECK(says(read_smi(matrix).assumptions, "Hopper is taken"));
    ImportOptions blackwell;
    blackwell.arch = "sm_100";
    CHECK(raw(read_smi(matrix, blackwell)) == 50'000'000'000);
    CHECK(raw(read_smi("| 0  NVIDIA B200  On |\n" + matrix)) == 50'000'000'000);
    ImportOptions wrong;
    wrong.arch = "fast";
    CHECK(smi_error(matrix, wrong).find("'fast' is no architecture") != std::string::npos);
    std::string status;
    for (int gpu = 0; gpu < 4; ++gpu) {
        status += fmt::format("GPU {}: Some GPU (UUID: GPU-{})\n", gpu, gpu);
        for (int link = 0; link < 18; ++link)
            status +=
                fmt::format("\t Link {}: {}\n", link, gpu == 2 && link == 5 ? "<inactive>" : "53.125 GB/s");
    }
    ImportOptions beside;
    beside.nvlink_status = {status, "status.txt"};
    const Imported by_rate = read_smi(matrix, beside);
    CHECK(raw(by_rate) == 53'125'000'000);
    CHECK(smi_link(by_rate.topology, "gpu0", "nvswitch0")->goodput.bytes_per_second == 40'100'000'000);
    CHECK(says(by_rate.warnings, "GPU 2 has 1 of 18 NVLinks inactive"));
    CHECK(says(by_rate.warnings, "71 active NVLinks"));
    const Imported together = read_smi(matrix + "\n" + status);
    CHECK(together.topology.hash() == by_rate.topology.hash());
    CHECK_FALSE(says(together.warnings, "not read"));
    // The bridge of workstation cards.
    const Imported bridge = read_smi(uniform(2, "NV4"));
    CHECK(smi_link(bridge.topology, "gpu0", "gpu1")->bandwidth.bytes_per_second == 14'062'500'000);
    const Imported placed = read_smi(
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t0-7\t0\nGPU1\tNV4\t X \t0-7\t0\n");
    CHECK(says(placed.assumptions, "as sm_86 is built for (taken from NV4 between pairs)"));
}

TEST_CASE("words of old drivers have their modern places") {
    const Imported got = read_smi(
        "GPU0 GPU1 GPU2 GPU3 mlx5_1 mlx5_0 CPU Affinity\n"
        "GPU0 X PSB PHB SOC PIX SOC 0-7\nGPU1 PSB X PHB SOC PIX SOC 0-7\n"
        "GPU2 PHB PHB X SOC PHB SOC 0-7\nGPU3 SOC SOC SOC X SOC PHB 8-15\n"
        "mlx5_1 PIX PIX PHB SOC X SOC\nmlx5_0 SOC SOC SOC PHB SOC X\n");
    const Topology& t = got.topology;
    CHECK(above(t, "gpu0") == above(t, "gpu1"));
    CHECK(above(t, "gpu0") == above(t, "nic1"));  // mlx5_1 by its number, not by its column
    CHECK(t.nodes[at(t.node_index("nic1"))].attributes.at("name") == "mlx5_1");
    CHECK(above(t, "gpu2") == "cpu0");
    CHECK(above(t, "gpu3") == "cpu1");
    CHECK(above(t, "nic0") == "cpu1");
}

TEST_CASE("several slots of a host bridge do not share one slot's rate") {
    const Imported got = read_smi("GPU0 GPU1 GPU2\nGPU0 X PHB NODE\nGPU1 PHB X NODE\nGPU2 NODE NODE X\n");
    const Topology& t = got.topology;
    CHECK(above(t, "gpu0") == above(t, "gpu1"));
    CHECK(above(t, "gpu2") == "cpu0");
    CHECK(smi_link(t, above(t, "gpu0"), "cpu0")->count == 2);
    const Imported same = read_smi(uniform(3, "PHB"));
    CHECK(above(same.topology, "gpu2") == "cpu0");
    CHECK(same.topology.nodes.size() == 4);
}

TEST_CASE("GPUs that only NVLink joins are placed by NUMA node, by CPUs, or where nothing keeps them apart") {
    const auto placed = [](const std::string& text) { return read_smi(text).topology; };
    const Topology numa = placed(
        "GPU0 GPU1 CPU Affinity NUMA Affinity GPU NUMA ID\n"
        "GPU0 X NV18 0-7 0 N/A\nGPU1 NV18 X 8-15 1 N/A\n");
    CHECK(above(numa, "gpu0") == "cpu0");
    CHECK(above(numa, "gpu1") == "cpu1");
    const Topology cpus = placed("GPU0 GPU1 CPU Affinity\nGPU0 X NV18 0,2,4\nGPU1 NV18 X 1,3,5\n");
    CHECK(above(cpus, "gpu1") == "cpu1");
    // A square of NVLinks whose diagonals cross sockets.
    const Imported square = read_smi(
        "GPU0 GPU1 GPU2 GPU3\nGPU0 X NV2 SYS NV1\nGPU1 NV2 X NV1 SYS\n"
        "GPU2 SYS NV1 X NV2\nGPU3 NV1 SYS NV2 X\n");
    CHECK(above(square.topology, "gpu0") == above(square.topology, "gpu1"));
    CHECK(above(square.topology, "gpu2") == above(square.topology, "gpu3"));
    CHECK(above(square.topology, "gpu0") != above(square.topology, "gpu2"));
    CHECK(says(square.assumptions, "nothing keeps apart"));
}

TEST_CASE("a matrix without locality says so") {
    const Imported got = read_smi(
        "GPU0 GPU1 NIC0 NIC1\nGPU0 X NV18 PHB PHB\nGPU1 NV18 X PHB PHB\n"
        "NIC0 PHB PHB X PHB\nNIC1 PHB PHB PHB X\n");
    CHECK(says(got.warnings, "no locality"));
    CHECK(says(got.warnings, "no legend of the network adapters"));
}

TEST_CASE("cells that contradict each other are named") {
    const Imported uneven = read_smi("GPU0 GPU1 GPU2\nGPU0 X NV2 PIX\nGPU1 NV1 X SYS\nGPU2 NODE SYS X\n");
    CHECK(says(uneven.warnings, "GPU0 to GPU1 is not as GPU1 to GPU0"));
    CHECK(smi_link(uneven.topology, "gpu0", "gpu1")->count == 1);
    CHECK(above(uneven.topology, "gpu0") == "cpu0");  // NODE, not PIX
    const Imported triangle = read_smi("GPU0 GPU1 GPU2\nGPU0 X PIX NODE\nGPU1 PIX X PIX\nGPU2 NODE PIX X\n");
    CHECK(says(triangle.warnings, "GPU0 and GPU2 are NODE apart, but what lies between makes it PIX"));
}

TEST_CASE("rows that are missing or cut off are taken from the columns") {
    const Imported whole = read_smi(uniform(3, "PIX"));
    const Imported cut = read_smi("GPU0 GPU1 GPU2\nGPU0 X PIX PIX\nGPU1 PIX X PIX\n");
    CHECK(cut.topology.hash() == whole.topology.hash());
    CHECK(says(cut.warnings, "GPU2"));
    const Imported narrow = read_smi("GPU0 GPU1 GPU2\nGPU0 X PIX PIX\nGPU1 PIX X\nGPU2 PIX PIX X\n");
    CHECK(narrow.topology.hash() == whole.topology.hash());
    const Imported no_nic_rows = read_smi("GPU0 GPU1 NIC0 NIC1\nGPU0 X NV4 PIX SYS\nGPU1 NV4 X SYS PIX\n");
    CHECK(above(no_nic_rows.topology, "nic1") == above(no_nic_rows.topology, "gpu1"));
    CHECK(above(no_nic_rows.topology, "nic1") != above(no_nic_rows.topology, "nic0"));
    CHECK(says(no_nic_rows.warnings, "NIC0, NIC1"));
    CHECK(smi_error("GPU0 GPU1 GPU2\nGPU0 X PIX PIX\n").find("neither the row of GPU1 nor that of GPU2") !=
          std::string::npos);
}

TEST_CASE("several matrices in one text are one host, or refused") {
    const std::string links = uniform(2, "NV12");
    CHECK(says(read_smi(links + "\n$ nvidia-smi topo -m\n" + links).warnings, "2 matrices that agree"));
    // topo -mp beside it tells where the pairs with NVLink sit.
    const Imported both = read_smi(links + "\n" + uniform(2, "PIX"));
    CHECK(smi_link(both.topology, "gpu0", "gpu1")->count == 12);
    CHECK(above(both.topology, "gpu0") == above(both.topology, "gpu1"));
    CHECK(smi_error(links + "\n" + uniform(2, "NV4")).find("topo.txt:5: a second matrix") == 0);
    CHECK(smi_error(links + "\n" + uniform(3, "NV12")).find("other columns") != std::string::npos);
    const std::string access =
        "\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n\nLegend:\n\n  X  = Self\n  OK = Status Ok\n";
    CHECK(says(read_smi(access + links).warnings, "topo -p2p (peer access): left out"));
    CHECK(smi_error(access) ==
          "topo.txt:1: this is the output of topo -p2p (peer access), the topology is topo -m");
}

TEST_CASE("a legend without NV# hints at topo -mp") {
    CHECK(says(read_smi(uniform(2, "PIX") + "\nLegend:\n  X = Self\n  PIX = One bridge\n").warnings,
               "topo -mp"));
    CHECK_FALSE(
        says(read_smi(uniform(2, "PIX") + "\nLegend:\n  PIX = One bridge\n  NV# = NVLinks\n").warnings,
             "topo -mp"));
}

TEST_CASE("a topo matrix that cannot be right is refused with its line") {
    CHECK(smi_error("GPU0 GPU1\nGPU0 X N/A\nGPU1 N/A X\n")
              .find("topo.txt:2: not a topology matrix: unknown "
                    "cell \"N/A\" in row GPU0, column GPU1") == 0);
    CHECK(smi_error("GPU0 GPU1\nGPU0 X [Unknown\nGPU1 PIX X\n").find("topo.txt:2") == 0);
    // Lines of a log in front do not hide which cell it is.
    CHECK(smi_error("12:00 starting\n\tGPU0\tGPU1\nGPU0\tX\t[N/A]\nGPU1\t[N/A]\tX\n")
              .find("topo.txt:3: not a topology matrix: unknown cell \"[N/A]\" in row GPU0, column GPU1") ==
          0);
    CHECK(
        smi_error("\tGPU0\tGPU1\nGPU0\tX\t[Insufficient Permissions]\nGPU1\t[Insufficient Permissions]\tX\n")
            .find("topo.txt:2: not a topology matrix: unknown cell \"[Insufficient") == 0);
    CHECK(smi_error("GPU0 GPU1\nGPU0 X NV0\nGPU1 NV0 X\n").find("\"NV0\"") != std::string::npos);
    CHECK(smi_error("GPU0 GPU1\nGPU0 X NV99999999999\nGPU1 NV1 X\n").find("topo.txt:2") == 0);
    CHECK(smi_error("GPU0 GPU1 GPU2\nGPU0 X PIX PIX\nGPU1 X PIX PIX\nGPU2 PIX PIX X\n").find("topo.txt:3") ==
          0);
    CHECK(smi_error("GPU0 GPU1 CPU Affinity\nGPU0 X PIX 0-3\nGPU1 X 0-3\n").find("topo.txt:3") == 0);
    CHECK(smi_error("GPU0 GPU1\nGPU0 X PIX SYS\nGPU1 PIX X\n").find("more cells") != std::string::npos);
    CHECK(smi_error("GPU0 GPU1\nGPU0 X PIX\nGPU0 X PIX\nGPU1 PIX X\n").find("comes twice") !=
          std::string::npos);
    CHECK(smi_error("hello\n").find("there is no matrix") != std::string::npos);
    CHECK(smi_error("").find("there is no matrix") != std::string::npos);
}

TEST_CASE("sister outputs are named") {
    const auto named = [](const std::string& text, const std::string& part) {
        CAPTURE(text);
        CHECK(smi_error(text).find(part) != std::string::npos);
        const std::string name = "out.txt";
        const ImportSource source{text, name};
        std::string recognized = "read";
        try {
            recognize(source).read(source, {});
        } catch (const Error& error) {
            recognized = error.what();
        }
        CHECK(recognized.find(part) != std::string::npos);
    };
    named("GPU 0: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n", "--nvlink-status");
    named("GPU 0: NVIDIA H100 (UUID: GPU-1)\n", "nvidia-smi -L");
    named("| NVIDIA-SMI 550.1   Driver Version: 550.1  CUDA Version: 12.4 |\n", "overview of nvidia-smi");
    named("       NPU0  NPU1\nNPU0   X    HCCS\nNPU1  HCCS  X\n", "Ascend");
    named("LINK TYPE TABLE:\n   0000:01:00.0 0000:02:00.0\n", "amd-smi");
    named("+ HL-SMI Version: hl-1 +\n", "Gaudi");
}

TEST_CASE("imported topo matrices are joined by a fabric and can be routed") {
    const Imported host = read_smi(
        "GPU0 GPU1 NIC0 NIC1\nGPU0 X NV12 PIX SYS\nGPU1 NV12 X SYS PIX\n"
        "NIC0 PIX SYS X SYS\nNIC1 SYS PIX SYS X\n");
    const Topology two = assemble_hosts({host.topology}, 2, "hdr-rail");
    CHECK(two.rank_count() == 4);
    CHECK(problems(two).empty());
    const Routes routes(two);
    CHECK(routes.between(0, 3).reachable);
    const Imported far = read_smi(uniform(3, "SYS"));
    const Routes alone(far.topology);
    CHECK(alone.between(0, 2).reachable);
}

namespace {

// The facts that expected.json counts, from a topology that was imported.
nlohmann::json facts_of(const Topology& topology) {
    std::map<std::string, int> kinds;
    std::vector<int> leader(topology.nodes.size());
    std::iota(leader.begin(), leader.end(), 0);
    const auto find = [&](int node) {
        while (leader[at(node)] != node) node = leader[at(node)];
        return node;
    };
    int nics = 0;
    for (const Node& node : topology.nodes) nics += node.type == NodeType::nic;
    const auto units_between = [&](int a, int b) {
        int units = 0;
        for (const int i : topology.out_links[at(a)]) {
            const Link& link = topology.links[at(i)];
            if (link.kind != LinkKind::nvlink) continue;
            if (link.to == b) units += link.count;
            if (topology.nodes[at(link.to)].type != NodeType::switch_node) continue;
            for (const int j : topology.out_links[at(link.to)])
                if (topology.links[at(j)].to == b) units += std::min(link.count, topology.links[at(j)].count);
        }
        return units;
    };
    for (const int a : topology.rank_nodes) {
        for (const int b : topology.rank_nodes) {
            const int units = a == b ? 0 : units_between(a, b);
            if (units == 0) continue;
            ++kinds[fmt::format("NV{}", units)];
            leader[at(find(a))] = find(b);
        }
    }
    std::set<int> islands;
    for (const int node : topology.rank_nodes) islands.insert(find(node));
    return {{"gpus", topology.rank_count()}, {"nics", nics}, {"kinds", kinds}, {"islands", islands.size()}};
}

}  // namespace

TEST_CASE("real topo matrices give what an independent reader counted") {
    int read = 0;
    for (const std::string& path : test::field_files("smi")) {
        const nlohmann::json facts = test::expected(path);
        if (facts.is_null()) continue;
        CAPTURE(path);
        const std::string text = *test::field_file(path);
        const ImportSource source{text, path};
        CHECK(std::string(recognize(source).name) == "nvidia-smi");
        const Imported got = importer("nvidia-smi").read(source, {});
        const nlohmann::json made = facts_of(got.topology);
        CHECK(made["gpus"] == facts["gpus"]);
        CHECK(made["nics"] == facts["nics"]);
        CHECK(made["islands"] == facts["nvlink_islands"]);
        nlohmann::json nvlinks = nlohmann::json::object();
        for (const auto& [kind, count] : facts["kinds"].items())
            if (kind.rfind("NV", 0) == 0) nvlinks[kind] = count;
        if (made["kinds"].is_null())
            CHECK(nvlinks.empty());
        else
            CHECK(made["kinds"] == nvlinks);
        CHECK_FALSE(says(got.warnings, "is not as"));
        CHECK_FALSE(says(got.warnings, "not read"));
        CHECK_FALSE(says(got.warnings, "missing or cut off"));
        CHECK(problems(got.topology).empty());
        ++read;
    }
    if (test::field_present()) CHECK(read == 10);
}
