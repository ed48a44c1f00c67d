#include <baton/synth/unlike_ranks.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <fmt/format.h>
#include <string>

using namespace baton;

namespace {

// Leaves below one spine; every leaf has one rank more than the one before it, or all have as many.
topologies::Topology leaves(int count, bool growing) {
    std::string nodes = R"({"id": "spine", "type": "switch"})", links;
    int rank = 0;
    for (int leaf = 0; leaf < count; ++leaf) {
        nodes += fmt::format(R"(, {{"id": "leaf{}", "type": "switch"}})", leaf);
        links +=
            fmt::format(R"({}{{"from": "leaf{}", "to": "spine", "bandwidth": "100GB/s", "latency": "1us"}})",
                        leaf > 0 ? ", " : "", leaf);
        for (int i = 0; i < (growing ? leaf + 1 : count / 2); ++i, ++rank) {
            nodes += fmt::format(R"(, {{"id": "g{}", "type": "gpu"}})", rank);
            links +=
                fmt::format(R"(, {{"from": "g{}", "to": "leaf{}", "bandwidth": "50GB/s", "latency": "1us"}})",
                            rank, leaf);
        }
    }
    return topologies::parse_topology(
        fmt::format(R"({{"baton": "topology/1", "name": "leaves", "nodes": [{}], "links": [{}]}})", nodes,
                    links),
        "leaves");
}

}  // namespace

TEST_CASE("pairs of ranks that switches join are counted without routes") {
    CHECK(synth::neighboring_pairs(leaves(4, true)) == 10 * 9);
    CHECK(synth::neighboring_pairs(topologies::load("torus:4x4")) == 16 * 4);
}

TEST_CASE("machines of hundreds of ranks are too much for every pair only where few ranks are alike") {
    CHECK_FALSE(synth::too_many_unlike_ranks(leaves(8, true)));    // 36 ranks
    CHECK_FALSE(synth::too_many_unlike_ranks(leaves(32, false)));  // 512 ranks, all alike
    // 528 ranks, those of a leaf alike: 32 classes of 32 sizes.
    CHECK(synth::too_many_unlike_ranks(leaves(32, true)));
    CHECK_FALSE(synth::too_many_unlike_ranks(topologies::load("dgx_h100:hosts=64")));
    // A mesh of 1024 ranks has few neighbors for each.
    CHECK_FALSE(synth::too_many_unlike_ranks(topologies::load("mesh:32x32")));
}
