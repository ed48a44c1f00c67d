// Documents that ask for more than any machine has: refused at once, in words, before memory is taken.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

using namespace baton;
using namespace baton::topologies;

namespace {

// The message. That it comes at once and without much memory shows in the time and the limits of the test
// run.
std::string refused(const std::function<void()>& load) {
    std::string message = "accepted";
    try {
        load();
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        message = error.what();
    }
    return message;
}

std::string document(const std::string& text) {
    return refused([&] { parse_topology(R"({"baton": "topology/1", )" + text + "}", "t.json"); });
}

bool holds(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// A folder that goes away at the end.
class Folder {
public:
    Folder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "baton-test-XXXXXX").string();
        REQUIRE(mkdtemp(pattern.data()) != nullptr);
        path = pattern;
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string path;
};

}  // namespace

TEST_CASE("generators refuse counts that no machine has") {
    for (const char* spec :
         {"torus:100000x100000", "torus:1048577", "ring:99999999999999",
          "mesh:2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2", "hypercube:40", "fully_connected:1000000", "fat_tree:256",
          "fat_tree:ranks=1000000,leaf_ports=1,spines=1000000", "rail_optimized:1000000,gpus=1000000",
          "rail_optimized:1000,gpus=1000,rails=1000,hosts_per_leaf=1,spines=1000",
          "dragonfly:1000000,routers=1000000", "dragonfly:1000,routers=1000,terminals=1,global=1000000",
          "dragonfly:2,global=100000000", "dgx_h100:hosts=1000000", "dgx_h100:hosts=99999999999999999999",
          "paper/torus-50:1000000x1000000", "gb200_nvl72:hosts=100000"}) {
        CAPTURE(spec);
        CHECK(refused([&] { load(spec); }) != "accepted");
    }
    CHECK(holds(refused([] { load("torus:100000x100000"); }), "more than 1048576 nodes"));
    CHECK(holds(refused([] { load("fully_connected:1000000"); }), "at most 4194304 directed links"));
    CHECK(holds(refused([] { load("fat_tree:ranks=4,leaf_ports=2,spines=1,count=1048576,bandwidth=1B/s"); }),
                "too many"));
}

TEST_CASE("documents refuse counts that no machine has") {
    CHECK(
        holds(document(R"("hosts": [{"use": "preset:dgx_h100", "repeat": 1e9}])"), "t.json#/hosts/0/repeat"));
    CHECK(holds(document(R"("hosts": [{"use": "preset:dgx_h100", "repeat": 1000000000}])"), "out of range"));
    CHECK(holds(document(R"("hosts": [{"use": "preset:dgx_h100", "repeat": 1000000}])"),
                "at most 1048576 nodes"));
    CHECK(holds(document(R"("nodes": [{"id": "gpu{0..99999999999}", "type": "gpu"}])"), "not a range"));
    CHECK(holds(
        document(R"("nodes": [{"id": "gpu{0..99}", "type": "gpu"}, {"id": "x{0..1048575}", "type": "gpu"}])"),
        "nodes"));
    CHECK(holds(
        document(R"("nodes": [{"id": "a{0..9999}", "type": "gpu"}, {"id": "b{0..9999}", "type": "switch"}],
                            "links": [{"from": "a*", "to": "b*", "bandwidth": "1GB/s"}])"),
        "this makes 200000000 links"));
    std::string stars;
    for (int i = 0; i < 5000; ++i) stars += R"("*",)";
    CHECK(holds(document(R"("nodes": [{"id": "a{0..9999}", "type": "gpu"}], "links": [{"from": [)" + stars +
                         R"("*"], "to": "a0", "bandwidth": "1GB/s"}])"),
                "more than 1048576 nodes"));
}

TEST_CASE("text that would be copied a million times is refused") {
    const std::string large(100000, 'x');
    CHECK(holds(document(R"("nodes": [{"id": "a{0..99999}", "type": "gpu", "attributes": {"model": ")" +
                         large + R"("}}])"),
                "256 MiB"));
    CHECK(holds(document(R"("generate": "ring", "n": 1000000, "bandwidth": {"value": "1GB/s", "source": ")" +
                         large + R"("})"),
                "a source is longer"));
    CHECK(holds(document(R"("nodes": [{"id": "gpu0", "type": "gpu", "host": ")" + large + R"("}])"),
                "a host name is longer"));
    CHECK(
        holds(document(R"("nodes": [{"id": ")" + large + R"(", "type": "gpu"}])"), "longer than 256 bytes"));
    CHECK(holds(
        document(
            R"("hosts": [{"use": {"baton": "topology/1", "nodes": [{"id": "gpu0", "type": "gpu", "attributes": {"model": ")" +
            large + R"("}}]}, "repeat": 100000}])"),
        "256 MiB"));
}

TEST_CASE("patterns and overrides that would run for hours are refused") {
    std::string limits, fails;
    for (int i = 0; i < 20000; ++i) {
        limits += std::string(i ? "," : "") + R"({"links": "*x", "bandwidth": "1GB/s"})";
        fails += std::string(i ? "," : "") + R"("gpu1>gpu0")";
    }
    CHECK(holds(
        document(R"("generate": "ring", "n": 200000, "limits": [{"links": "*", "bandwidth": "1GB/s"},)" +
                 limits + "]"),
        "t.json#/limits/1/links"));
    CHECK(holds(document(R"("generate": "ring", "n": 1000, "overrides": {"fail": [)" + fails + "]}"),
                "t.json#/overrides/fail/1"));
}

TEST_CASE("deep nesting and files that use each other in a circle are refused") {
    CHECK(holds(refused([] { parse_topology(std::string(100000, '['), "t.json"); }),
                "nested deeper than 128 levels"));
    std::string uses = R"({"baton": "topology/1", "nodes": []})";
    for (int i = 0; i < 20; ++i) uses = R"({"baton": "topology/1", "hosts": [{"use": )" + uses + "}]}";
    CHECK(holds(refused([&] { parse_topology(uses, "t.json"); }), "more than 8 deep"));

    const Folder folder;
    write_file(folder.path + "/a.json",
               R"({"baton": "topology/1", "hosts": [{"use": "b.json", "repeat": 2}, {"use": "b.json"}]})");
    write_file(folder.path + "/b.json",
               R"({"baton": "topology/1", "hosts": [{"use": "a.json", "repeat": 2}, {"use": "a.json"}]})");
    CHECK(
        holds(refused([&] { load(folder.path + "/a.json"); }), "more than 8 deep; does a file use itself?"));
}

TEST_CASE("a chain of files that use the next one a thousand times each is read once per file") {
    const Folder folder;
    std::string many;
    for (int i = 0; i < 1000; ++i) many += std::string(i ? "," : "") + R"({"use": "NEXT"})";
    for (int i = 0; i < 7; ++i) {
        std::string text = R"({"baton": "topology/1", "hosts": [)" + many + "]}";
        for (std::size_t at = 0; (at = text.find("NEXT", at)) != std::string::npos;)
            text.replace(at, 4, std::to_string(i + 1) + ".json");
        write_file(folder.path + "/" + std::to_string(i) + ".json", text);
    }
    write_file(folder.path + "/7.json", R"({"baton": "topology/1", "nodes": []})");
    CHECK(refused([&] { CHECK(load(folder.path + "/0.json").rank_count() == 0); }) == "accepted");
    // With GPUs the same chain would make 10^24 of them.
    write_file(folder.path + "/7.json",
               R"({"baton": "topology/1", "nodes": [{"id": "gpu{0..1999}", "type": "gpu"}]})");
    CHECK(holds(refused([&] { load(folder.path + "/0.json"); }), "at most 1048576 nodes"));
}
