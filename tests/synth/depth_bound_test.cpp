// A bound on depth holds for every family of trees, and what no trees can keep is refused with the least
// depth.
#include <baton/base/error.hpp>
#include <baton/ir/verify.hpp>
#include <baton/synth/depth_bound.hpp>
#include <baton/synth/forest.hpp>
#include <baton/synth/synthesize.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "support/full.hpp"
#include "support/random_topology.hpp"
#include "support/synthesis_checks.hpp"

using namespace baton;
using ir::CollectiveKind;
using test::collective_of;
using topologies::Topology;

namespace {

// Messages on the longest chain of values.
int longest_chain(const ir::Algorithm& algorithm) {
    std::map<std::tuple<int, int, int>, int> hops;
    int most = 0;
    for (const ir::Step& step : ir::expand(algorithm)) {
        for (int i = 0; i < step.chunks; ++i) {
            const auto place = [&](int rank, ir::Buffer buffer, int index) {
                return std::tuple(rank, static_cast<int>(buffer), index + i);
            };
            const int reached = hops[place(step.src_rank, step.src_buffer, step.src_index)] +
                                (step.src_rank != step.dst_rank ? 1 : 0);
            int& target = hops[place(step.dst_rank, step.dst_buffer, step.dst_index)];
            target = step.reducing() ? std::max(target, reached) : reached;
            most = std::max(most, target);
        }
    }
    return most;
}

// Hops between ranks over routes, by Floyd and Warshall.
std::vector<std::vector<int>> all_hops(const Topology& topology) {
    const topologies::Routes routes(topology);
    const std::size_t n = static_cast<std::size_t>(topology.rank_count());
    std::vector<std::vector<int>> hops(n, std::vector<int>(n, 1'000'000));
    for (std::size_t a = 0; a < n; ++a) {
        for (std::size_t b = 0; b < n; ++b) {
            if (a == b)
                hops[a][b] = 0;
            else if (routes.between(static_cast<int>(a), static_cast<int>(b)).reachable)
                hops[a][b] = 1;
        }
    }
    for (std::size_t m = 0; m < n; ++m) {
        for (std::size_t a = 0; a < n; ++a) {
            for (std::size_t b = 0; b < n; ++b) hops[a][b] = std::min(hops[a][b], hops[a][m] + hops[m][b]);
        }
    }
    return hops;
}

int least_depth(const Topology& topology, const ir::Collective& c) {
    const auto hops = all_hops(topology);
    int most = 0;
    for (std::size_t a = 0; a < hops.size(); ++a) {
        for (std::size_t b = 0; b < hops.size(); ++b) {
            const std::size_t root = static_cast<std::size_t>(c.root);
            if (c.kind == CollectiveKind::broadcast && a != root) continue;
            if (c.kind == CollectiveKind::reduce && b != root) continue;
            most = std::max(most, hops[a][b]);
        }
    }
    return most;
}

}  // namespace

TEST_CASE("no family of trees returns trees deeper than the bound, on random machines") {
    const std::vector<CollectiveKind> kinds = {CollectiveKind::broadcast, CollectiveKind::all_gather,
                                               CollectiveKind::reduce, CollectiveKind::reduce_scatter,
                                               CollectiveKind::all_reduce};
    const int seeds = test::full() ? 60 : 10;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions random;
        random.fewest_ranks = 2;
        random.most_ranks = 10;
        random.routed = seed % 2 == 0;
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed), random);
        const int ranks = topology.rank_count();
        const ir::Collective c =
            collective_of(kinds[static_cast<std::size_t>(seed) % kinds.size()], ranks, (seed * 7) % ranks);
        const int least = least_depth(topology, c), phases = c.kind == CollectiveKind::all_reduce ? 2 : 1;
        for (const char* family : {"forest", "rerouted", "shortest_paths", "bfb", "joint"}) {
            CAPTURE(family);
            const bool joint = std::string(family) == "joint";
            if (joint && c.kind != CollectiveKind::all_reduce) continue;
            for (int bound = std::max(1, least - 1); bound <= least + 2; ++bound) {
                CAPTURE(bound);
                synth::SynthesisOptions options;
                options.algorithm = family;
                options.sizes = {Bytes{1 << 16}};
                options.most_depth = bound;
                try {
                    const synth::Synthesis made = synth::synthesize(topology, c, options);
                    if (!joint) CHECK(bound >= least);  // joint chooses its roots
                    for (const synth::Candidate& candidate : made.candidates) {
                        CHECK(ir::verify(*candidate.algorithm).assurance == ir::Assurance::proved);
                        CHECK(longest_chain(*candidate.algorithm) <= bound * phases);
                        CHECK(longest_chain(*candidate.algorithm) ==
                              synth::message_depth(*candidate.algorithm));
                    }
                } catch (const Error& error) {
                    if (error.kind() != ErrorKind::input) throw;
                    // joint says that it cannot; the others find trees wherever there are any.
                    if (!joint) {
                        CHECK(bound < least);
                        CHECK(std::string(error.what()).find(" is " + std::to_string(least) + " hops from") !=
                              std::string::npos);
                    }
                }
            }
        }
    }
}

TEST_CASE("a bound on depth that only ways past the nearest ranks of a host keep is kept over these") {
    // On rails every message to another host goes to the same place there, so two hops; all routes allow one.
    const Topology boxes = topologies::load("dgx_h100:hosts=2,fabric=ndr-rail");
    for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
        const ir::Collective c = collective_of(kind, 16);
        if (least_depth(boxes, c) > 1) continue;
        synth::TreeLimits limits(64, false, 1);
        const synth::ForestAlgorithm made = synth::forest(boxes, c, limits);
        CHECK(made.depth == 1);
        CHECK(longest_chain(made.algorithm) == 1);
        CHECK(made.loss > 0.05);
    }
}

TEST_CASE("the least depth costs as little time as it must") {
    const struct {
        const char* spec;
        CollectiveKind kind;
        int depth;
        double loss;
    } cases[] = {{"torus:4x4", CollectiveKind::all_gather, 4, 0.001},
                 {"mesh:4x4", CollectiveKind::all_gather, 6, 0.001},
                 {"dgx1_v100", CollectiveKind::all_gather, 2, 0.7},
                 {"paper/a100-oddeven:hosts=2", CollectiveKind::reduce_scatter, 2, 0.01}};
    for (const auto& c : cases) {
        CAPTURE(c.spec);
        const Topology topology = topologies::load(c.spec);
        const synth::ForestAlgorithm made = synth::forest(
            topology, collective_of(c.kind, topology.rank_count()), synth::TreeLimits(64, false, c.depth));
        CHECK(made.depth <= c.depth);
        CHECK(made.loss <= c.loss);
    }
}
