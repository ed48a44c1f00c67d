// Imported machines go straight through synth, sim and run.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

#include "support/field.hpp"
#include "support/shell.hpp"

using namespace baton;

namespace {

// Two pairs of GPUs, each joined by XGMI, on one PCIe switch each.
std::string two_islands() {
    std::string text =
        "<system version=\"2\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\" modelid=\"1\">\n";
    for (int island = 0; island < 2; ++island) {
        const std::string bus = "0000:" + std::to_string(island + 1);
        text +=
            "<pci busid=\"" + bus + "0:00.0\" class=\"0x060400\" link_speed=\"16 GT/s\" link_width=\"16\">\n";
        for (int gpu = 1; gpu <= 2; ++gpu) {
            text += "<pci busid=\"" + bus + std::to_string(gpu) +
                    ":00.0\" class=\"0x038000\" link_speed=\"16 GT/s\" "
                    "link_width=\"16\"><gpu dev=\"" +
                    std::to_string(2 * island + gpu - 1) + "\" gcn=\"908\" rank=\"" +
                    std::to_string(2 * island + gpu - 1) + "\"><xgmi target=\"" + bus +
                    std::to_string(3 - gpu) + ":00.0\" count=\"1\" tclass=\"0x038000\"/></gpu></pci>\n";
        }
        text += "</pci>\n";
    }
    return text + "</cpu></system>\n";
}

// Imports, synthesizes, simulates and runs; every command must end well, and the result be right.
void through_all(const std::string& folder, const std::string& file, const std::string& collective) {
    CAPTURE(file);
    CAPTURE(collective);
    const auto ends_well = [&](const std::string& line) {
        const test::ShellResult got = test::shell("baton " + line, folder);
        INFO(line, "\n", got.output);
        CHECK(got.code == 0);
        return got.output;
    };
    ends_well("import '" + file + "' -o machine.json");
    ends_well("synth machine.json --collective " + collective + " --size 64KiB -o schedule.json");
    ends_well("sim machine.json --schedule schedule.json --sizes 64KiB");
    const std::string run = ends_well("run schedule.json --size 64KiB --backend interpreter");
    CHECK(run.find(" right ") != std::string::npos);
}

}  // namespace

TEST_CASE("islands of XGMI that PCIe joins go through synth, sim and run") {
    const test::WorkFolder folder;
    std::ofstream(folder.path() + "/islands.xml") << two_islands();
    const test::ShellResult got = test::shell("baton import islands.xml --json", folder.path());
    REQUIRE(got.code == 0);
    const nlohmann::json report = nlohmann::json::parse(got.output);
    CHECK(report.at("files")[0].at("format") == "nccl-xml");
    CHECK(report.at("files")[0].at("recognized") == true);
    CHECK(report.at("ranks") == 4);
    CHECK(report.at("problems").empty());
    for (const char* collective : {"all_reduce", "all_to_all", "broadcast --root 3"})
        through_all(folder.path(), "islands.xml", collective);
}

TEST_CASE("matrices of nvidia-smi and rocm-smi go through synth, sim and run") {
    const test::WorkFolder folder;
    std::ofstream(folder.path() + "/topo.txt")
        << "$ nvidia-smi topo -m\n\tGPU0\tGPU1\tGPU2\tNIC0\nGPU0\t X \tNV4\tSYS\tPIX\n"
           "GPU1\tNV4\t X \tSYS\tPHB\nGPU2\tSYS\tSYS\t X \tSYS\nNIC0\tPIX\tPHB\tSYS\t X \n";
    std::ofstream(folder.path() + "/showtopo.txt")
        << "===== Link Type between two GPUs =====\n GPU0 GPU1 GPU2\nGPU0 0 XGMI PCIE\n"
           "GPU1 XGMI 0 PCIE\nGPU2 PCIE PCIE 0\n";
    for (const char* file : {"topo.txt", "showtopo.txt"}) {
        through_all(folder.path(), file, "all_reduce");
        through_all(folder.path(), file, "all_to_all");
    }
}

TEST_CASE("a graph file of NCCL is refused for what it is") {
    const test::WorkFolder folder;
    std::ofstream(folder.path() + "/graph.xml") << "<graphs version=\"1\"></graphs>";
    for (const char* format : {"", "nccl-xml "}) {
        const test::ShellResult got =
            test::shell(std::string("baton import ") + format + "graph.xml", folder.path());
        CHECK(got.code == 2);
        CHECK(got.output.find("graph file of NCCL") != std::string::npos);
    }
}

TEST_CASE("machines of the field go through synth, sim and run") {
    if (!test::field_present()) return;
    const test::WorkFolder folder;
    for (const char* file :
         {"nccl-topo/amd-vega20-two-hives.xml", "nccl-topo/azure-ndv4-pci-only.xml",
          "nccl-topo/gb10-spark-minimal.xml", "smi/single-gpu.txt", "smi/pcie-6gpu-4plus2.txt",
          "smi/a100-pcie-nvlink-pairs.txt", "smi/rocm-8gpu-two-hives.txt"})
        through_all(folder.path(), std::filesystem::absolute(test::field_folder()).string() + "/" + file,
                    "all_reduce");
}

TEST_CASE("a log of nccl-tests is read, and its times stand beside the model's") {
    const test::WorkFolder folder;
    std::ofstream(folder.path() + "/log.txt")
        << "#  Rank  0 Pid 7 on node0 device  0 [0x1b] Some GPU\n#  Rank  1 Pid 7 on node0 device  1 [0x3d] "
           "Some GPU\n"
           "#       size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
           "1048576 262144 float sum -1 100.0 10.49 10.49 0 50.0 20.97 20.97 0\n"
           "2097152 524288 float sum -1node0:7:8 [0] NCCL INFO a line\n";
    const test::ShellResult got = test::shell("baton import log.txt -o log.csv", folder.path());
    INFO(got.output);
    CHECK(got.code == 0);
    CHECK(got.output.find("all_reduce of 2 ranks on 1 host (Some GPU)") != std::string::npos);
    CHECK(got.output.find("1 row that other output broke: left out (first: line 5)") != std::string::npos);
    CHECK(read_file(folder.path() + "/log.csv").find("1048576,262144,float,sum,-1,100,") !=
          std::string::npos);
    const test::ShellResult model = test::shell("baton sim ring:2 --measured log.txt --json", folder.path());
    INFO(model.output);
    REQUIRE(model.code == 0);
    const nlohmann::json sizes = nlohmann::json::parse(model.output).at("sizes");
    REQUIRE(sizes.size() == 1);
    CHECK(sizes[0].at("size") == 1048576);
    CHECK(sizes[0].at("measured_picoseconds") == 50'000'000);
    CHECK(test::shell("baton sim ring:3 --measured log.txt", folder.path()).code == 2);
    CHECK(test::shell("baton sim ring:2 --collective broadcast --measured log.txt", folder.path()).code == 2);
    CHECK(test::shell("baton import nvidia-smi log.txt", folder.path())
              .output.find("baton import nccl-tests FILE") != std::string::npos);
}

TEST_CASE("a file of another kind than the format that was named is told, and a format that there is not") {
    const test::WorkFolder folder;
    std::ofstream(folder.path() + "/islands.xml") << two_islands();
    std::ofstream(folder.path() + "/algo.xml") << "<algo name=\"a\" nchannels=\"1\"></algo>\n";
    std::ofstream(folder.path() + "/topo.txt") << "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n";
    const auto refused = [&](const std::string& words) {
        const test::ShellResult got = test::shell("baton import " + words, folder.path());
        CHECK(got.code == 2);
        return got.output;
    };
    CHECK(refused("msccl-xml islands.xml").find("it looks like a file of nccl-xml") != std::string::npos);
    CHECK(refused("graphml algo.xml").find("it looks like a file of msccl-xml") != std::string::npos);
    CHECK(refused("nccl-tests topo.txt").find("it looks like a file of nvidia-smi") != std::string::npos);
    CHECK(refused("nccl_xml islands.xml").find("there is no format 'nccl_xml'") != std::string::npos);
}
