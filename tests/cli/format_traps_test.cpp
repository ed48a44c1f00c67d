// Faults that tools of this kind had with inputs and formats, as a user meets them on the command line.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

#include "support/shell.hpp"

using namespace baton;

namespace {

constexpr const char* kRing = "examples/algorithms/ring_all_reduce.json";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void write(const test::WorkFolder& folder, const std::string& name, const std::string& text) {
    std::ofstream(folder.path() + "/" + name) << text;
}

nlohmann::json report(const test::WorkFolder& folder, const std::string& line) {
    const test::ShellResult got = test::shell("baton " + line + " --json", folder.path());
    INFO(line, "\n", got.output);
    REQUIRE(got.code == 0);
    return nlohmann::json::parse(got.output);
}

}  // namespace

TEST_CASE("trap: a schedule for more ranks than the machine has is refused with both numbers") {
    const test::WorkFolder folder;
    const test::ShellResult got = test::shell(
        std::string("baton sim torus:2x2 --schedule ") + kRing + " --ranks 8 --sizes 1MiB", folder.path());
    CHECK(got.code == 2);
    CHECK(has(got.output, "for 8 ranks"));
    CHECK(has(got.output, "has 4"));
}

TEST_CASE("trap: a schedule for a part of the machine is simulated with a warning that names the rest") {
    const test::WorkFolder folder;
    const std::string line =
        std::string("sim fully_connected:8 --schedule ") + kRing + " --sizes 1MiB --ranks ";
    const nlohmann::json part = report(folder, line + "4");
    CHECK(part.at("ranks") == 4);
    REQUIRE(part.at("warnings").size() == 1);
    CHECK(part.at("warnings")[0] ==
          "the schedule is for 4 ranks, the topology has 8: ranks 4 to 7 take no part");
    // What is printed as the next command is about the same schedule.
    CHECK(has(part.at("next").get<std::string>(), "--ranks 4"));
    CHECK(report(folder, line + "8").at("warnings").empty());
}

TEST_CASE("trap: parallel switches of unequal rates all carry traffic, and switches are no ranks") {
    const test::WorkFolder folder;
    // 4 GPUs and 3 NVSwitches: 100, 50 and 100 GB/s of every GPU.
    std::string text = "7 4 3 0 12 H100\n4 5 6\n";
    for (int gpu = 0; gpu < 4; ++gpu)
        for (int s = 0; s < 3; ++s)
            text += std::to_string(gpu) + " " + std::to_string(4 + s) + (s == 1 ? " 400Gbps" : " 800Gbps") +
                    " 0.000025ms 0\n";
    write(folder, "switches.txt", text);
    CHECK(report(folder, "import switches.txt -o machine.json").at("ranks") == 4);
    const nlohmann::json all = report(folder, "sim machine.json --sizes 256MiB");
    CHECK(all.at("ranks") == 4);
    const double busbw = all.at("sizes")[0].at("busbw");
    CHECK(busbw > 0.95 * 250e9);
    CHECK(busbw <= 250e9);
}

TEST_CASE("trap: a cube mesh without any switch is imported and simulated") {
    const test::WorkFolder folder;
    write(folder, "mesh.txt",
          "8 0 12\n\n0 1 200Gbps 0.005ms 0\n2 3 200Gbps 0.005ms 0\n4 5 200Gbps 0.005ms 0\n6 7 200Gbps "
          "0.005ms 0\n"
          "0 2 400Gbps 0.005ms 0\n1 3 400Gbps 0.005ms 0\n4 6 400Gbps 0.005ms 0\n5 7 400Gbps 0.005ms 0\n"
          "0 4 400Gbps 0.005ms 0\n1 5 400Gbps 0.005ms 0\n2 6 400Gbps 0.005ms 0\n3 7 400Gbps 0.005ms 0\n");
    CHECK(report(folder, "import ns3 mesh.txt -o machine.json").at("ranks") == 8);
    const nlohmann::json all = report(folder, "sim machine.json --sizes 1MiB");
    CHECK(all.at("sizes")[0].at("outcome") == "finished");
}

TEST_CASE("trap: what virtual machines hide is visible in the summary of the topology") {
    const test::WorkFolder folder;
    write(
        folder, "vm.xml",
        "<system version=\"1\"><cpu numaid=\"-1\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
        "modelid=\"143\"><pci busid=\"0000:8d:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
        "link_width=\"16\"><gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\"><nvlink target=\"fffffff:ff:ff.0\" "
        "count=\"18\" tclass=\"0x068000\"/></gpu></pci><pci busid=\"0000:8e:00.0\" class=\"0x030200\" "
        "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"1\" sm=\"90\" rank=\"1\" "
        "gdr=\"1\"><nvlink "
        "target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/></gpu></pci></cpu></system>\n");
    const nlohmann::json found = report(folder, "import vm.xml -o machine.json");
    CHECK(has(found.dump(), "hidden"));
    CHECK(has(found.dump(), "the NUMA node of 2 GPUs is not known"));
    const test::ShellResult shown = test::shell("baton topo show machine.json", folder.path());
    CHECK(shown.code == 0);
    // Both GPUs hang on the switch that nobody sees, and the slow slot is named.
    CHECK(has(shown.output, "18 nvlink, 1 pcie"));
    CHECK(has(shown.output, "31.51GB/s of PCIe is below the 63GB/s"));
}

TEST_CASE("trap: every standard collective that is synthesized can be exported") {
    const test::WorkFolder folder;
    for (const char* kind : {"broadcast", "scatter", "gather", "all_gather", "reduce", "reduce_scatter",
                             "all_reduce", "all_to_all"}) {
        CAPTURE(kind);
        const std::string synth =
            std::string("baton synth ring:4 --collective ") + kind + " --size 64KiB -o schedule.json && ";
        const test::ShellResult got = test::shell(
            synth + "baton export msccl-xml schedule.json -o schedule.xml && baton import schedule.xml",
            folder.path());
        INFO(got.output);
        CHECK(got.code == 0);
        CHECK(has(got.output, kind));
    }
}

TEST_CASE("trap: a matrix of one host becomes several hosts on a fabric") {
    const test::WorkFolder folder;
    write(folder, "topo.txt", "    GPU0 GPU1 NIC0\nGPU0 X NV4 PIX\nGPU1 NV4 X PIX\nNIC0 PIX PIX X\n");
    const nlohmann::json four = report(folder, "import topo.txt --hosts 4 --fabric ndr-rail -o machine.json");
    CHECK(four.at("ranks") == 8);
    CHECK(report(folder, "sim machine.json --sizes 1MiB").at("sizes")[0].at("outcome") == "finished");
}
