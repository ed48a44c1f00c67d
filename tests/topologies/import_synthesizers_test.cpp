// Topologies of other synthesizers: TACOS's CSV and TE-CCL's inputs.
#include <baton/base/error.hpp>
#include <baton/topologies/import/importer.hpp>

#include "../support/imported.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace baton::topologies;
using baton::test::link_between;
using baton::test::says;

namespace {

Imported read_as(const std::string& format, const std::string& text) {
    const ImportSource source{text, "in"};
    CHECK(std::string(recognize(source).name) == format);
    return importer(format).read(source, {});
}

std::string refusal_of(const std::string& format, const std::string& text) {
    try {
        importer(format).read({text, "in"}, {});
    } catch (const baton::Error& error) {
        CHECK(error.kind() == baton::ErrorKind::input);
        return error.what();
    }
    return "it was read";
}

std::string teccl(const std::string& parameters) {
    return "{\"TopologyParams\": {" + parameters +
           "},\n \"GurobiParams\": {\"time_limit\": 2}, \"InstanceParams\": {\"collective\": 1}}";
}

constexpr const char* kCsvHead = "Src,Dest,Latency (ns),Bandwidth (GB/s)\n";

}  // namespace

TEST_CASE("tacos-csv: rows are one-way links with the units of the header") {
    const Imported got =
        read_as("tacos-csv", std::string("3\n") + kCsvHead + "0,1,500,50\r\n1,2,500.5,25\n2,0,0,12.5\n");
    CHECK(got.topology.rank_count() == 3);
    REQUIRE(got.topology.links.size() == 3);
    CHECK(link_between(got.topology, "npu0", "npu1").latency.picoseconds == 500'000);
    CHECK(link_between(got.topology, "npu1", "npu2").bandwidth.bytes_per_second == 25'000'000'000);
    CHECK(link_between(got.topology, "npu1", "npu2").latency.picoseconds == 500'500);
    CHECK(says(got.assumptions, "1e9 bytes per second"));
    CHECK(got.warnings.empty());
    // Columns go by their names; binary units and microseconds are what they say.
    const Imported other =
        read_as("tacos-csv", "\"Source\",\"Target\",\"Bandwidth (GiB/s)\",\"Latency (us)\"\n0,1,1,2\n");
    CHECK(other.topology.links[0].bandwidth.bytes_per_second == 1'073'741'824);
    CHECK(other.topology.links[0].latency.picoseconds == 2'000'000);
    CHECK(says(other.assumptions, "the largest number of a link"));
}

TEST_CASE("tacos-csv: of a result of TACOS the links are read and the schedule is named") {
    const Imported got = read_as(
        "tacos-csv",
        "NPUs Count,2\nLinks Count,2\nChunks Count,2\nChunk Size,1048576,B\n"
        "SrcID,DestID,Latency (ns),Bandwidth (GB/s),Chunks\n0,1,500,50,0:0:20\n1,0,500,50,1:0:20,0:20:40\n");
    CHECK(got.topology.links.size() == 2);
    CHECK(says(got.warnings, "its schedule (Chunks) is left out"));
    CHECK(says(got.warnings, "Chunks Count (line 3)"));
}

TEST_CASE("tacos-csv: what cannot be read is named by its line") {
    const std::string head = std::string("3\n") + kCsvHead;
    CHECK(refusal_of("tacos-csv", head + "0,3,500,50\n") == "in:3: NPU 3 is not among the 3 of the file");
    CHECK(refusal_of("tacos-csv", head + "0,0,500,50\n") == "in:3: NPU 0 is linked to itself");
    CHECK(refusal_of("tacos-csv", head + "0,1,500,50\n0,1,500,50\n") ==
          "in:4: the link from 0 to 1 is in line 3 already");
    CHECK(refusal_of("tacos-csv", head + "0,1,500\n") == "in:3: 3 values where the header has more");
    CHECK(refusal_of("tacos-csv", head + "0,1,500,50,7\n") == "in:3: 5 values where the header has 4");
    CHECK(refusal_of("tacos-csv", head + "0,1,-1,50\n") == "in:3: '-1' is no latency");
    CHECK(refusal_of("tacos-csv", head + "0,1,1,0\n") == "in:3: '0' is no bandwidth");
    CHECK(refusal_of("tacos-csv", head) == "in: there is no link in it");
    CHECK(refusal_of("tacos-csv", "0,1,500,50\n").find("where the header") != std::string::npos);
    CHECK(refusal_of("tacos-csv", "Src,Dest,Latency (parsec),Bandwidth (GB/s)\n0,1,1,1\n").find("unit") !=
          std::string::npos);
    CHECK(refusal_of("tacos-csv", std::string("9999999999\n") + kCsvHead + "0,1,1,1\n").find("at most") !=
          std::string::npos);
    CHECK(refusal_of("tacos-csv", std::string("Links Count,2\n") + kCsvHead + "0,1,1,1\n") ==
          "in: 1 links where the file says 2");
}

TEST_CASE("te-ccl: the five machines with their own rates") {
    const Imported dgx1 =
        read_as("te-ccl", teccl("\"name\": \"DGX1\", \"chassis\": 1, \"chunk_size\": 0.001, "
                                "\"alpha\": [7e-7, 0]"));
    CHECK(dgx1.topology.rank_count() == 8);
    CHECK(dgx1.topology.links.size() == 32);
    CHECK(link_between(dgx1.topology, "chassis0/gpu0", "chassis0/gpu4").count == 2);
    CHECK(link_between(dgx1.topology, "chassis0/gpu0", "chassis0/gpu3").latency.picoseconds == 700'000);
    CHECK(says(dgx1.warnings, "TopologyParams.chunk_size"));
    // Only Mesh has a side; files of other machines may state any.
    CHECK(read_as("te-ccl", teccl("\"name\": \"DGX1\", \"side_length\": 0")).topology.rank_count() == 8);

    const Imported dgx2 = read_as("te-ccl", teccl("\"name\": \"DGX2\", \"chassis\": 2"));
    CHECK(dgx2.topology.rank_count() == 32);
    CHECK(dgx2.topology.links.size() == 2 * 32 + 16);
    CHECK(link_between(dgx2.topology, "chassis1/gpu15", "chassis0/gpu14").bandwidth.bytes_per_second ==
          12'500'000'000);
    CHECK(dgx2.topology.link_index("chassis0/gpu14>chassis1/gpu15") < 0);

    const Imported ndv2 = read_as("te-ccl", teccl("\"name\": \"NDv2\", \"chassis\": 4"));
    CHECK(ndv2.topology.rank_count() == 32);
    CHECK(link_between(ndv2.topology, "switch", "chassis3/gpu1").latency.picoseconds == 1'300'000);
    CHECK(ndv2.topology.link_index("chassis3/gpu1>switch") < 0);
    const Imported pair = read_as("te-ccl", teccl("\"name\": \"NDv2\", \"chassis\": 2"));
    CHECK(link_between(pair.topology, "chassis0/gpu0", "chassis1/gpu1").count == 1);
    CHECK(says(pair.warnings, "for a switch"));

    const Imported amd = read_as("te-ccl", teccl("\"name\": \"AMD\", \"chassis\": 2, \"alpha\": [0, 1e-6]"));
    CHECK(amd.topology.rank_count() == 32);
    CHECK(link_between(amd.topology, "chassis1/gpu15", "chassis1/switch7").bandwidth.bytes_per_second ==
          25'000'000'000);
    CHECK(link_between(amd.topology, "chassis1/switch7", "switch").latency.picoseconds == 1'000'000);

    const Imported mesh = read_as("te-ccl", teccl("\"name\": \"Mesh\", \"side_length\": 3"));
    CHECK(mesh.topology.rank_count() == 9);
    CHECK(mesh.topology.links.size() == 2 * (8 + 6));
    CHECK(says(mesh.warnings, "the end of each row"));
    CHECK(says(mesh.assumptions, "TE-CCL takes 0"));
}

TEST_CASE("te-ccl: what has no reading is named") {
    CHECK(
        refusal_of("te-ccl", teccl("\"name\": \"Torus\"")) ==
        "in#/TopologyParams/name: 'Torus' is none of TE-CCL's machines; DGX1, DGX2, NDv2, AMD and Mesh are");
    CHECK(refusal_of("te-ccl", teccl("\"name\": \"DGX1\", \"alpha\": [0]")).find("two are needed") !=
          std::string::npos);
    CHECK(refusal_of("te-ccl", teccl("\"name\": \"NDv2\", \"chassis\": 0"))
              .find("in#/TopologyParams/chassis") == 0);
    CHECK(refusal_of("te-ccl", teccl("\"name\": \"Mesh\", \"side_length\": 1024, \"alpha\": [0,0]"))
              .find("at most") != std::string::npos);
}

TEST_CASE("files that stand beside the topologies of synthesizers are named") {
    const auto refused = [](const std::string& text) {
        try {
            recognize({text, "in"});
        } catch (const baton::Error& error) {
            return std::string(error.what());
        }
        return std::string("recognized");
    };
    CHECK(refused("{\"nnodes\": 2, \"intranode_sketch\": {\"strategy\": \"switch\"}}")
              .find("sketch of TACCL") != std::string::npos);
    CHECK(refused("{\"1-Epoch_Duration\": 1e-9, \"3-Epochs_Required\": 4}")
              .find("schedule that TE-CCL wrote") != std::string::npos);
    CHECK(refused("{\"baton\": \"program/1\", \"name\": \"x\"}").find("schedule of Baton already") !=
          std::string::npos);
    CHECK(refused("# edges\n0 1 {'bandwidth': 100}\n").find("of NetworkX") != std::string::npos);
    CHECK(refused("0 1 {}\n").find("of NetworkX") != std::string::npos);
    CHECK(refused("graph g {\n a -- b;\n}\n").find("Graphviz") != std::string::npos);
    CHECK(refused("SW 1 1 0x0002c9 4x HDR - CA 10 1 0x0002c8 ( 'leaf' - 'n1 mlx5_0' )\n")
              .find("ibnetdiscover -p") != std::string::npos);
    CHECK(refused(
              "CA: n1 mlx5_0:\n 0x0002c9 10 1[ ] ==( 4X 53.125 Gbps Active/ LinkUp)==> 1 1[ ] \"leaf\" ( )\n")
              .find("iblinkinfo") != std::string::npos);
}
