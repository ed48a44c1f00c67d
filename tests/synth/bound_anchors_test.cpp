// Published and hand-derived optima, exact.
#include <baton/base/error.hpp>
#include <baton/synth/bound.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <string>

#include "bound_check.hpp"

using namespace baton;
using ir::CollectiveKind;
using topologies::Topology;

namespace {

constexpr std::int64_t kGiga = 1'000'000'000;

ir::Collective collective(CollectiveKind kind, int ranks, int root = 0) {
    ir::Collective c;
    c.kind = kind;
    c.ranks = ranks;
    c.root = root;
    return c;
}

synth::Bound bound_of(const Topology& topology, CollectiveKind kind, int root = 0) {
    return synth::bound(topology, collective(kind, topology.rank_count(), root));
}

// Seconds per 10^9 bytes of a unit, exact.
Rational per_gigabyte(const synth::Bound& bound) {
    return bound.bandwidth.seconds_per_byte * Rational(kGiga);
}

Rational all_gather(const std::string& spec) {
    const synth::Bound bound = bound_of(topologies::load(spec), CollectiveKind::all_gather);
    CHECK(bound.bandwidth.best_cut);
    return per_gigabyte(bound);
}

Rational all_reduce(const Topology& topology) {
    return per_gigabyte(bound_of(topology, CollectiveKind::all_reduce));
}

// The links that touch one node, at a fraction of their rate.
Topology slowed(Topology topology, const std::string& node, std::int64_t divisor) {
    const int slow = topology.node_index(node);
    for (topologies::Link& link : topology.links) {
        if (link.from == slow || link.to == slow) link.goodput.bytes_per_second /= divisor;
    }
    topology.finish();
    return topology;
}

}  // namespace

TEST_CASE("all-gather optima of the literature are met exactly") {
    CHECK(all_gather("paper/dgx1-25") == Rational(7, 150));
    CHECK(all_gather("torus:4x4") == Rational(3, 40));
    CHECK(all_gather("torus:3x3x3") == Rational(13, 150));
    CHECK(all_gather("mesh:4x4") == Rational(3, 20));
    CHECK(all_gather("paper/a100-oddeven:hosts=1") == Rational(7, 300));
    CHECK(all_gather("paper/a100-oddeven:hosts=2") == Rational(3, 65));
    CHECK(all_gather("paper/a100-oddeven:hosts=4") == Rational(3, 25));
    CHECK(all_gather("paper/h100-rail:hosts=2") == Rational(3, 100));
    CHECK(all_gather("paper/mi250") == Rational(7, 150));
}

TEST_CASE("reduce-scatter is all-gather turned round") {
    for (const char* spec :
         {"paper/dgx1-25", "torus:4x4", "mesh:4x4", "paper/a100-oddeven:hosts=4", "dgx1_v100"}) {
        CAPTURE(spec);
        const Topology topology = topologies::load(spec);
        CHECK(per_gigabyte(bound_of(topology, CollectiveKind::reduce_scatter)) ==
              per_gigabyte(bound_of(topology, CollectiveKind::all_gather)));
    }
}

// The optimum over all tree schedules, from a linear program: 85.7, 106.7, 171.4, 173.3, 75, 80 GB/s and so
// on.
TEST_CASE("the all-reduce bound equals the optimum over tree schedules where that is known") {
    CHECK(all_reduce(topologies::load("paper/dgx1-25")) == Rational(14, 1200));
    CHECK(all_reduce(topologies::load("torus:4x4")) == Rational(30, 3200));
    CHECK(all_reduce(topologies::load("paper/mi250")) == Rational(14, 2400));
    CHECK(all_reduce(topologies::load("paper/a100-oddeven:hosts=2")) == Rational(3, 520));
    CHECK(all_reduce(topologies::load("mesh:3x3")) == Rational(1, 75));
    CHECK(all_reduce(topologies::load("mesh:4x4")) == Rational(1, 80));
    CHECK(all_reduce(slowed(topologies::load("paper/dgx1-25"), "gpu0", 2)) == Rational(1, 75));
    CHECK(all_reduce(slowed(topologies::load("torus:4x4"), "gpu0", 4)) == Rational(1, 50));
    CHECK(all_reduce(slowed(topologies::load("paper/a100-oddeven:hosts=2"), "h0/gpu0", 2)) ==
          Rational(2, 325));
}

TEST_CASE("switches that reduce and multicast lift the all-reduce bound to the cut") {
    const auto in_network = [](const std::string& spec) {
        Topology topology = topologies::load(spec);
        for (topologies::Node& node : topology.nodes) {
            if (node.type == topologies::NodeType::switch_node) node.multicast = node.reduce = true;
        }
        topology.finish();
        return all_reduce(topology);
    };
    CHECK(in_network("paper/a100-oddeven:hosts=1") == Rational(1, 300));
    CHECK(in_network("paper/h100-rail:hosts=1") == Rational(1, 450));
    CHECK(in_network("paper/h100-rail:hosts=2") == Rational(1, 400));
}

TEST_CASE("all-to-all on tori meets the sum of distances") {
    // 4x4: 16 ranks, distances sum to 32 per rank, 64 links of 50 GB/s.
    CHECK(per_gigabyte(bound_of(topologies::load("torus:4x4"), CollectiveKind::all_to_all)) ==
          Rational(16 * 32, 64 * 50));
    // 3x3x3: distances sum to 54 per rank, 162 links.
    CHECK(per_gigabyte(bound_of(topologies::load("torus:3x3x3"), CollectiveKind::all_to_all)) ==
          Rational(27 * 54, 162 * 50));
    // Two boxes: what leaves one, 64 shards over eight rails.
    CHECK(per_gigabyte(bound_of(topologies::load("paper/h100-rail:hosts=2"), CollectiveKind::all_to_all)) ==
          Rational(64, 400));
}

// The optimum of the concurrent multicommodity flow, as 10^9 bytes per second of every pair.
TEST_CASE("all-to-all optima of the literature are met exactly, each with a flow that reaches them") {
    const auto rate = [](const Topology& topology) {
        const synth::Bound bound = bound_of(topology, CollectiveKind::all_to_all);
        CHECK(bound.bandwidth.best_cut);
        CHECK(test::check_bandwidth(topology, bound) == "");
        const Rational time = per_gigabyte(bound);
        return Rational(time.den(), time.num());
    };
    CHECK(rate(topologies::load("paper/dgx1-25")) == Rational(75, 8));
    CHECK(rate(topologies::load("torus:4x4")) == Rational(25, 4));
    CHECK(rate(topologies::load("torus:5x5")) == Rational(10, 3));
    CHECK(rate(topologies::load("torus:3x3x3")) == Rational(50, 9));
    CHECK(rate(topologies::load("mesh:4x4")) == Rational(25, 8));
    // 16, 32 and 64 GPUs: 50, 33.3 and 28.6 GB/s of the algorithm.
    CHECK(rate(topologies::load("paper/a100-oddeven:hosts=2")) == Rational(50, 16));
    CHECK(rate(topologies::load("paper/a100-oddeven:hosts=4")) == Rational(25, 24));
    CHECK(rate(topologies::load("paper/a100-oddeven:hosts=8")) == Rational(25, 56));
}

TEST_CASE("all-to-all lengths are told from false ones, and unequal sides of a torus from each other") {
    // The cut across the longer side: 64 ranks each, 16 links each way.
    const Topology torus = topologies::load("torus:8x16");
    CHECK(per_gigabyte(bound_of(torus, CollectiveKind::all_to_all)) == Rational(64 * 64, 16 * 50));
    const Topology mesh = topologies::load("mesh:8x8");
    synth::Bound bound = bound_of(mesh, CollectiveKind::all_to_all);
    REQUIRE(bound.bandwidth.witness.kind == synth::WitnessKind::lengths);
    CHECK(bound.bandwidth.best_cut);
    CHECK(test::check_bandwidth(mesh, bound) == "");
    synth::Bound wrong = bound;
    wrong.bandwidth.witness.link_lengths[0] += 1;
    CHECK(test::check_bandwidth(mesh, wrong) != "");
    wrong = bound;
    wrong.bandwidth.witness.demand += 1;
    wrong.bandwidth.seconds_per_byte =
        Rational(wrong.bandwidth.witness.demand, wrong.bandwidth.witness.capacity);
    CHECK(test::check_bandwidth(mesh, wrong) != "");
}

TEST_CASE(
    "a large machine without symmetry has lengths close to the optimum, which hold when summed up anew") {
    // 128 ranks, too many for the full linear program. Less capacity than the whole torus, so at least its
    // time.
    Topology torus = topologies::load("torus:8x16");
    for (std::size_t l = 0; l < torus.links.size(); l += 37) torus.links[l].goodput.bytes_per_second /= 2;
    torus.finish();
    const synth::Bound bound = bound_of(torus, CollectiveKind::all_to_all);
    CHECK(test::check_bandwidth(torus, bound) == "");
    CHECK(per_gigabyte(bound).value() > 0.95 * 5.12);
}

TEST_CASE("links that all-to-all cannot fill are told from those that bind it") {
    // Three in a line, the second link at a fifth: two pairs each way cross it.
    Topology line = slowed(topologies::load("mesh:1x3"), "gpu2", 5);
    const synth::Bound bound = bound_of(line, CollectiveKind::all_to_all);
    CHECK(test::check_bandwidth(line, bound) == "");
    CHECK(per_gigabyte(bound) == Rational(2, 10));
    // A joint limit on what leaves the middle: 2 of its own and 2 that pass.
    Topology limited = topologies::load("mesh:1x3");
    topologies::Limit limit;
    limit.id = "middle out";
    limit.links = limited.out_links[1];
    limit.bandwidth = {25 * kGiga};
    limited.limits.push_back(limit);
    limited.finish();
    const synth::Bound through = bound_of(limited, CollectiveKind::all_to_all);
    CHECK(test::check_bandwidth(limited, through) == "");
    CHECK(through.bandwidth.best_cut);
    CHECK(per_gigabyte(through) == Rational(4, 25));
}

TEST_CASE("rooted collectives are bound by the ports of the root or of the weakest rank") {
    const Topology ring = topologies::load("ring:5");  // 50 GB/s each way
    CHECK(per_gigabyte(bound_of(ring, CollectiveKind::broadcast, 2)) == Rational(1, 100));
    CHECK(per_gigabyte(bound_of(ring, CollectiveKind::reduce, 2)) == Rational(1, 100));
    CHECK(per_gigabyte(bound_of(ring, CollectiveKind::scatter, 1)) == Rational(4, 100));
    CHECK(per_gigabyte(bound_of(ring, CollectiveKind::gather, 1)) == Rational(4, 100));
    CHECK(per_gigabyte(bound_of(ring, CollectiveKind::send_recv, 4)) == Rational(1, 100));
}

TEST_CASE("the latency bound is the longest shortest way") {
    const Topology torus = topologies::load("torus:4x4");
    const Time hop = torus.links[0].latency;
    CHECK(bound_of(torus, CollectiveKind::all_reduce).latency.time == Time{4 * hop.picoseconds});
    CHECK(bound_of(torus, CollectiveKind::broadcast, 5).latency.time == Time{4 * hop.picoseconds});
    CHECK(bound_of(torus, CollectiveKind::send_recv).latency.time == hop);
    const Topology mesh = topologies::load("mesh:1x5");
    CHECK(bound_of(mesh, CollectiveKind::gather, 2).latency.time == Time{2 * hop.picoseconds});
    CHECK(bound_of(mesh, CollectiveKind::scatter, 0).latency.time == Time{4 * hop.picoseconds});
}

TEST_CASE(
    "the bound of a size is the greater part, counts shards rounded down, and is nothing for no bytes") {
    const synth::Bound bound = bound_of(topologies::load("torus:4x4"), CollectiveKind::all_gather);
    CHECK(bound.at(Bytes{16}) == bound.latency.time);
    CHECK(bound.at(Bytes{15}) == Time{});
    CHECK(bound.at(Bytes{0}) == Time{});
    // 1 GiB: shards of 64 MiB at 3/40 s per 10^9 bytes.
    CHECK(bound.at(Bytes{std::int64_t{1} << 30}) == Time{(std::int64_t{64} << 20) * 75});
    CHECK(bound.at(Bytes{INT64_MAX}) == Time::max());  // 500 days: above what a Time holds
    CHECK(bound.algbw() == doctest::Approx(16 / 3.0 * 40e9));
}

TEST_CASE("one rank alone needs no time, and ranks without a way are named") {
    CHECK(bound_of(topologies::load("ring:1"), CollectiveKind::all_reduce).at(Bytes{1 << 20}) == Time{});
    Topology parted;
    for (int i = 0; i < 3; ++i) {
        topologies::Node node;
        node.id = "g" + std::to_string(i);
        parted.add_node(std::move(node));
    }
    topologies::Link link;
    link.from = 0;
    link.to = 1;
    link.bandwidth = {kGiga};
    parted.add_link(link);
    parted.finish();
    try {
        bound_of(parted, CollectiveKind::all_gather);
        FAIL("accepted");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        CHECK(std::string(error.what()).find("rank 0 (g0) cannot reach rank 2 (g2)") != std::string::npos);
    }
    // The other way round is a way that exists: a broadcast of one rank to itself and its neighbor is not
    // asked here.
    CHECK_THROWS_AS(bound_of(parted, CollectiveKind::gather, 0), Error);
    ir::Collective pair = collective(CollectiveKind::broadcast, 3);
    pair.groups = {{0, 1}};
    CHECK(synth::bound(parted, pair).bandwidth.seconds_per_byte == Rational(1, kGiga));
}
