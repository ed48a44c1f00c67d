// Text of rocm-smi --showtopo: one small input of its own for each way in which it is met, and the real file
// where it is at hand.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/import/importer.hpp>
#include <baton/topologies/inspect.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "../support/field.hpp"
#include "../support/imported.hpp"

using namespace baton;
using namespace baton::topologies;
using test::says;

namespace {

Imported read_rocm(const std::string& text, const ImportOptions& options = {}) {
    return importer("rocm-smi").read({text, "showtopo.txt"}, options);
}

std::string rocm_error(const std::string& text) {
    try {
        read_rocm(text);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "";
}

using CellText = std::function<std::string(int, int)>;

std::string rocm_table(const std::string& title, int gpus, const CellText& cell) {
    std::string text = "=========== " + title + " ===========\n      ";
    for (int i = 0; i < gpus; ++i) text += fmt::format("{:<13}", fmt::format("GPU{}", i));
    for (int i = 0; i < gpus; ++i) {
        text += fmt::format("\nGPU{}   ", i);
        for (int j = 0; j < gpus; ++j) text += fmt::format("{:<13}", i == j ? "0" : cell(i, j));
    }
    return text + "\n\n";
}

std::string link_types(int gpus, const CellText& cell) {
    return rocm_table("Link Type between two GPUs", gpus, cell);
}

// Islands of `island` GPUs each, all their pairs joined.
CellText by_island(int island, const std::string& inside, const std::string& outside) {
    return [=](int i, int j) { return i / island == j / island ? inside : outside; };
}

int xgmi_units(const Topology& topology, int a, int b) {
    const int index = topology.link_index(fmt::format("gpu{}>gpu{}", a, b));
    return index < 0 ? 0 : topology.links[at(index)].count;
}

std::string cpu_above(const Topology& topology, int gpu) {
    for (const int link : topology.out_links[at(topology.node_index(fmt::format("gpu{}", gpu)))]) {
        if (topology.links[at(link)].kind == LinkKind::pcie)
            return topology.nodes[at(topology.links[at(link)].to)].id;
    }
    return "";
}

}  // namespace

TEST_CASE("rocm-smi's matrices give XGMI islands and sockets") {
    const std::string text = rocm_table("Weight between two GPUs", 4, by_island(2, "15", "72")) +
                             rocm_table("Hops between two GPUs", 4, by_island(2, "1", "3")) +
                             link_types(4, by_island(2, "XGMI", "PCIE")) +
                             "============ Numa Nodes ============\n"
                             "GPU[0]\t\t: (Topology) Numa Node: 0\nGPU[0]\t\t: (Topology) Numa Affinity: 0\n"
                             "GPU[1]\t\t: (Topology) Numa Node: 0\nGPU[2]\t\t: (Topology) Numa Node: 1\n"
                             "GPU[3]\t\t: (Topology) Numa Node: 1\n====== End of ROCm SMI Log ======\n";
    const ImportSource source{text, "showtopo.txt"};
    CHECK(std::string(recognize(source).name) == "rocm-smi");
    const Imported got = read_rocm(text);
    CHECK(got.topology.rank_count() == 4);
    CHECK(xgmi_units(got.topology, 0, 1) == 1);
    CHECK(xgmi_units(got.topology, 0, 2) == 0);
    CHECK(cpu_above(got.topology, 1) == "cpu0");
    CHECK(cpu_above(got.topology, 2) == "cpu1");
    CHECK(says(got.found, "2 islands"));
    CHECK(says(got.assumptions, "architecture is not known"));
    CHECK(says(got.warnings, "no network adapters"));
    CHECK_FALSE(says(got.warnings, "not read"));
    CHECK(problems(got.topology).empty());
}

TEST_CASE("one hop over XGMI is no link where the weight or the bandwidth says otherwise") {
    // A ring of four: the diagonals are XGMI with one hop too.
    const auto ring = [](const std::string& side, const std::string& diagonal) {
        return [=](int i, int j) { return (i + j) % 2 == 1 ? side : diagonal; };
    };
    const std::string types = link_types(4, ring("XGMI", "XGMI"));
    const std::string hops = rocm_table("Hops between two GPUs", 4, ring("1", "1"));
    const Imported weighed =
        read_rocm(rocm_table("Weight between two GPUs", 4, ring("15", "30")) + hops + types);
    CHECK(xgmi_units(weighed.topology, 0, 1) == 1);
    CHECK(xgmi_units(weighed.topology, 0, 2) == 0);
    CHECK(says(weighed.warnings, "2 pairs of GPUs reach each other over XGMI through a third GPU"));
    const Imported measured =
        read_rocm(hops + types + rocm_table("Bandwidth", 4, ring("50000-200000", "0-0")));
    CHECK(xgmi_units(measured.topology, 0, 1) == 4);
    CHECK(xgmi_units(measured.topology, 0, 2) == 0);
    const Imported neither = read_rocm(hops + types);
    CHECK(xgmi_units(neither.topology, 0, 2) == 1);
    CHECK(says(neither.warnings, "without the matrix of weights"));
}

TEST_CASE("GPUs over PCIe are placed by NUMA nodes, or on one CPU, where nothing else is told") {
    const std::string types = link_types(3, by_island(2, "XGMI", "PCIE"));
    const Imported bare = read_rocm(types);
    CHECK(cpu_above(bare.topology, 0) == "cpu0");
    CHECK(cpu_above(bare.topology, 2) == "cpu0");
    CHECK(says(bare.assumptions, "all on one"));
    CHECK(problems(bare.topology).empty());
    const Imported numa = read_rocm(types +
                                    "===== Numa Nodes =====\nGPU[0] : (Topology) Numa Node: 0\n"
                                    "GPU[1] : (Topology) Numa Node: 0\nGPU[2] : (Topology) Numa Node: 1\n");
    CHECK(cpu_above(numa.topology, 1) == "cpu0");
    CHECK(cpu_above(numa.topology, 2) == "cpu1");
    CHECK_FALSE(says(numa.assumptions, "all on one"));
}

TEST_CASE("rates of XGMI follow the architecture") {
    const auto raw = [](const Imported& got) {
        return got.topology.links[at(got.topology.link_index("gpu0>gpu1"))].bandwidth.bytes_per_second;
    };
    const std::string eight = link_types(8, by_island(8, "XGMI", ""));
    CHECK(raw(read_rocm(eight)) == 64'000'000'000);
    CHECK(raw(read_rocm(link_types(4, by_island(4, "XGMI", "")))) == 46'000'000'000);
    ImportOptions mi200;
    mi200.arch = "gfx90a";
    CHECK(raw(read_rocm(eight, mi200)) == 50'000'000'000);
    CHECK(raw(read_rocm("GPU[0] : Card series: AMD Instinct MI350X\n" + eight)) == 76'800'000'000);
    // Several links of a pair, and islands of three neighbors that are not fully joined, are MI250X's.
    const Imported bonded = read_rocm(link_types(4, by_island(4, "XGMI", "")) +
                                      rocm_table("Bandwidth", 4, by_island(4, "50000-200000", "")));
    CHECK(raw(bonded) == 50'000'000'000);
    CHECK(says(bonded.assumptions, "gfx90a taken, as pairs of GPUs have several links"));
    const CellText cube = [](int i, int j) {
        const int apart = i ^ j;
        return (apart & (apart - 1)) == 0 ? "15" : "30";
    };
    CHECK(raw(read_rocm(rocm_table("Weight between two GPUs", 8, cube) + eight)) == 50'000'000'000);
    ImportOptions wrong;
    wrong.arch = "sm_90";
    CHECK_THROWS_AS(read_rocm(eight, wrong), Error);
}

TEST_CASE("rocm-smi's text is read through quoting, colours and wrapped lines") {
    const std::string plain = link_types(2, by_island(2, "XGMI", ""));
    const auto same = [&](const std::string& text) {
        CAPTURE(text);
        CHECK(read_rocm(text).topology.hash() == read_rocm(plain).topology.hash());
    };
    same("$ rocm-smi --showtopo\n" + plain);
    same(
        "> ====== Link Type between two GPUs ======\n>        GPU0   GPU1\n> GPU0   0   XGMI\n> GPU1   XGMI  "
        " 0\n");
    same(
        "\x1b[1m====== Link Type between two GPUs ======\x1b[0m\r\n GPU0 GPU1 \r\nGPU0 0 XGMI \r\nGPU1 XGMI "
        "0 \r\n");
    same("====== Link Type between two GPUs ======\n GPU0\n GPU1\nGPU0 0 XG\nMI\nGPU1\nXGMI 0\n");
    CHECK(says(read_rocm("WARNING: AMD GPU device(s) is/are in a low-power state\n" + plain).warnings,
               "1 line outside of the matrices not read (first: line 1)"));
}

TEST_CASE("what rocm-smi cannot have printed is refused with its line") {
    const std::string title = "====== Link Type between two GPUs ======\n";
    CHECK(rocm_error(title + " GPU0 GPU1\nGPU0 0 XXXX\nGPU1 XXXX 0\n")
              .find("showtopo.txt:3: unknown link type \"XXXX\" in row GPU0, column GPU1") == 0);
    CHECK(rocm_error(title + " GPU0 GPU1\nGPU0 0 XGMI\nGPU1 XGMI\n")
              .find("showtopo.txt:4: row GPU1 has 1 cells") == 0);
    CHECK(rocm_error(title + " GPU0 GPU1\nGPU0 0 XGMI\nGPU0 0 XGMI\n").find("comes twice") !=
          std::string::npos);
    CHECK(rocm_error(title + " GPU0 GPU0\nGPU0 0 XGMI\n").find("two columns") != std::string::npos);
    CHECK(rocm_error(title).find("no matrix of link types") != std::string::npos);
    CHECK(rocm_error("").find("no matrix of link types") != std::string::npos);
    CHECK(rocm_error("GPU0 GPU1\nGPU0 X PIX\nGPU1 PIX X\n").find("of nvidia-smi") != std::string::npos);
    CHECK(rocm_error(link_types(2, by_island(2, "XGMI", "")) + link_types(3, by_island(3, "XGMI", "")))
              .find("second matrix") != std::string::npos);
    CHECK(rocm_error(rocm_table("Hops between two GPUs", 3, by_island(3, "1", "")) +
                     link_types(2, by_island(2, "XGMI", "")))
              .find("other GPUs") != std::string::npos);
    CHECK(rocm_error("{\"system\": {\"(Topology) Link type between DRM devices 0 and 1\": \"XGMI\"}}")
              .find("JSON") != std::string::npos);
}

TEST_CASE("the real rocm-smi output is two islands of four") {
    const auto text = test::field_file("smi/rocm-8gpu-two-hives.txt");
    if (!text) return;
    const Imported got = read_rocm(*text);
    CHECK(got.topology.rank_count() == 8);
    for (int a = 0; a < 8; ++a) {
        for (int b = 0; b < 8; ++b)
            CHECK(xgmi_units(got.topology, a, b) == (a != b && a / 4 == b / 4 ? 1 : 0));
    }
    CHECK(cpu_above(got.topology, 3) == "cpu0");
    CHECK(cpu_above(got.topology, 4) == "cpu1");
    CHECK(says(got.found, "2 islands"));
    CHECK_FALSE(says(got.warnings, "not read"));
    CHECK(problems(got.topology).empty());
}
