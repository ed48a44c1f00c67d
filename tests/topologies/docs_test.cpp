// The documents in docs/topology.md read, and are what the page says they are.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/topologies/inspect.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace baton;

namespace {

std::string page() { return read_file(BATON_SOURCE_DIR "/docs/topology.md"); }

std::vector<std::string> documents() {
    const std::string text = page(), opening = "```json\n";
    std::vector<std::string> all;
    for (auto begin = text.find(opening); begin != std::string::npos; begin = text.find(opening, begin)) {
        begin += opening.size();
        all.push_back(text.substr(begin, text.find("```", begin) - begin));
    }
    return all;
}

topologies::Topology named(const std::string& name) {
    for (const std::string& document : documents()) {
        if (document.find("\"name\": \"" + name + "\"") == std::string::npos) continue;
        return topologies::parse_topology(document, "docs/topology.md");
    }
    throw input_error("no such document: " + name, "docs/topology.md");
}

}  // namespace

TEST_CASE("every document in docs/topology.md reads, connects its ranks and writes back equal") {
    const std::vector<std::string> all = documents();
    CHECK(all.size() >= 7);
    for (const std::string& document : all) {
        CAPTURE(document);
        const auto topology = topologies::parse_topology(document, "docs/topology.md");
        CHECK(topologies::problems(topology).empty());
        CHECK(topology.hash() == topologies::parse_topology(topologies::to_json(topology)).hash());
    }
}

TEST_CASE("what docs/topology.md says of its examples holds") {
    const auto hosts = named("hosts of two kinds");
    CHECK(hosts.rank_count() == 24);
    CHECK(hosts.node_index("h1/gpu7") >= 0);
    CHECK(hosts.node_index("small2/nic0") >= 0);
    CHECK(hosts.node_index("small3/gpu3") >= 0);
    const auto bad = named("a bad day");
    CHECK(bad.node_index("h1/nic2") < 0);
    CHECK(bad.links[static_cast<std::size_t>(bad.link_index("h0/gpu0>h0/gpu3"))].count == 1);
    CHECK(bad.links[static_cast<std::size_t>(bad.link_index("h1/gpu0>h1/pcie0"))].goodput ==
          Rate{6'000'000'000});
    const auto torus = named("4 x 4 with a slow cable");
    CHECK(torus.links[static_cast<std::size_t>(torus.link_index("gpu1>gpu0"))].goodput ==
          Rate{25'000'000'000});
    Rate of_infiniband{};
    for (const auto& link : topologies::load("dgx_h100:hosts=2").links)
        if (link.kind == topologies::LinkKind::infiniband) of_infiniband = link.goodput;
    CHECK(to_string(of_infiniband) == "49.68GB/s");
}

TEST_CASE("docs/topology.md lists every preset and generator") {
    const std::string text = page();
    for (const auto& nameable : topologies::nameables()) {
        CAPTURE(nameable.name);
        CHECK(text.find("`" + nameable.name + "`") != std::string::npos);
    }
}
