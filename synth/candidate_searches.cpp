#include <baton/synth/candidate_maker.hpp>

#include <baton/synth/compose.hpp>
#include <baton/synth/exact.hpp>
#include <baton/synth/greedy.hpp>
#include <baton/synth/mcf.hpp>
#include <baton/synth/relay.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace baton::synth {
namespace {

constexpr std::int64_t kManyChunks = 64 << 10;  // greedy: sizes below are not cut

}  // namespace

void CandidateMaker::flows() {
    FlowOptions search;
    search.policy = options_.policy;
    search.seed = options_.seed;
    search.progress = tell_;
    search.take = [&](FlowAlgorithm&& made) {
        std::string variant =
            fmt::format("{} a shard, {}", counted(made.chunks, "chunk"), counted(made.hops, "hop"));
        if (made.loss >= 5e-5) variant += fmt::format(", {:.2f}% off its flow", 100 * made.loss);
        add("mcf", variant, std::move(made.algorithm));
    };
    mcf(topology_, collective_, search);
}

// All points of the frontier; among others only where that takes about a second.
void CandidateMaker::exact_points() {
    ExactOptions search;
    if (among_others()) {
        search.most_ranks = 8;
        search.rounded = false;
        search.effort = 2'000'000;
        search.most_chunks = 2;
        search.more_steps = 0;
    }
    ExactFrontier frontier = exact_frontier(topology_, collective_, search);
    // What was ruled out, and what was not decided.
    for (const std::string& note : frontier.notes) {
        if (!among_others()) list_.refusals.push_back({"exact", note});
    }
    for (ExactPoint& point : frontier.points) {
        add("exact",
            fmt::format("{}, {}, {} rounds{}", counted(point.chunks, "chunk"), counted(point.steps, "step"),
                        point.rounds, point.optimal ? ", optimal" : ""),
            std::move(point.algorithm));
    }
}

void CandidateMaker::compositions() {
    ComposeOptions compose_options;
    compose_options.step_limit = options_.step_limit;
    compose_options.take = [&](Composition&& made) {
        add("compose", made.words, with_relays(made.algorithm, routes_, options_.step_limit));
    };
    compose(topology_, collective_, compose_options);
}

// For the smallest, the middle and the largest size. Among others only where that takes about a second,
// and for the largest of several sizes not at all: trees and flows are at the bound there.
void CandidateMaker::greedy_matching() {
    GreedyOptions search;
    search.seed = options_.greedy_seed;
    search.policy = options_.policy;
    search.policy_seed = options_.seed;
    search.step_limit = options_.step_limit;
    std::vector<Bytes> sizes = {options_.sizes.front(), options_.sizes[options_.sizes.size() / 2],
                                options_.sizes.back()};
    if (among_others()) {
        search.step_limit = std::min<std::int64_t>(search.step_limit, 100'000);
        search.work = 250'000;
        search.wanted_steps = 10'000;
        if (options_.sizes.size() > 2) sizes.pop_back();
    }
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (const Bytes size : sizes) {
        search.size = size;
        search.tiles = 1;
        search.most_chunks = size.count < kManyChunks ? 1 : 32;
        greedy_plan(search, "");
        if (size.count < kManyChunks * 16) continue;
        // In tiles: chosen by load; and planned as if all were short, which keeps ways short too.
        search.tiles = 64;
        greedy_plan(search, " in tiles");
        search.size = {kManyChunks / 4};
        search.most_chunks = 1;
        search.tiles = 1 << 20;
        greedy_plan(search, " by load");
    }
}

void CandidateMaker::greedy_plan(const GreedyOptions& search, const char* how) {
    GreedyAlgorithm made = greedy(topology_, collective_, search);
    add("greedy", fmt::format("{}, for {}{}", counted(made.chunks, "chunk"), to_string(search.size), how),
        std::move(made.algorithm));
}

}  // namespace baton::synth
