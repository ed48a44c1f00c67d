#include <baton/synth/fixed_patterns.hpp>

#include <baton/base/error.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/verify.hpp>
#include <support/full.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

using namespace baton;
using namespace baton::synth;
using Kind = ir::CollectiveKind;

namespace {

PatternOptions options_for(Kind kind, int ranks, int root = 0) {
    PatternOptions options;
    options.collective.kind = kind;
    options.collective.ranks = ranks;
    options.collective.root = root;
    return options;
}

std::vector<int> roots(Kind kind, int ranks) {
    std::vector<int> list(static_cast<std::size_t>(ir::has_root(kind) ? ranks : 1));
    std::iota(list.begin(), list.end(), 0);
    return list;
}

void check_proved(const ir::Algorithm& algorithm) {
    try {
        const auto report = ir::verify(algorithm);
        CHECK(report.assurance == ir::Assurance::proved);
        CHECK_MESSAGE(report.warnings.empty(), report.warnings.front());
    } catch (const Error& error) {
        FAIL_CHECK(std::string(error.what()));
    }
}

void check_lowers(const ir::Algorithm& algorithm) {
    try {
        const auto report = ir::verify(codegen::lower(algorithm));
        CHECK(report.assurance == ir::Assurance::proved);
        if (algorithm.collective.kind == Kind::all_reduce) CHECK(report.order >= ir::Order::replicas_equal);
    } catch (const Error& error) {
        FAIL_CHECK(std::string(error.what()));
    }
}

}  // namespace

TEST_CASE("every pattern is proved for every kind that it serves, any number of ranks and every root") {
    for (const PatternInfo& pattern : fixed_patterns()) {
        for (const Kind kind : ir::standard_kinds()) {
            if (!serves(pattern.name, options_for(kind, 2))) continue;
            for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 12, 16, 17}) {
                for (const int root : roots(kind, ranks)) {
                    CAPTURE(pattern.name);
                    CAPTURE(to_string(kind));
                    CAPTURE(ranks);
                    CAPTURE(root);
                    check_proved(fixed_pattern(pattern.name, options_for(kind, ranks, root)));
                }
            }
        }
    }
}

TEST_CASE(
    "hierarchical is proved for hosts in any arrangement, every root and all flat patterns inside and "
    "between") {
    std::mt19937 random(7);
    struct Flat {
        const char *inside, *between;
    };
    for (const auto& [hosts, locals] : {std::pair{2, 2}, {2, 3}, {3, 2}, {4, 2}, {3, 4}, {2, 8}}) {
        const int ranks = hosts * locals;
        for (const Kind kind : ir::standard_kinds()) {
            for (const int root : roots(kind, ranks)) {
                for (const auto& [inside, between] : {Flat{"", ""},
                                                      {"ring", "recursive_doubling"},
                                                      {"bruck", "bruck"},
                                                      {"binomial", "direct"},
                                                      {"recursive_halving", "all_pairs"}}) {
                    auto options = options_for(kind, ranks, root);
                    if (!serves("hierarchical", kind)) continue;
                    options.inside = inside;
                    options.between = between;
                    for (int r = 0; r < ranks; ++r)
                        options.hosts.push_back(root % 3 == 0 ? r / locals : r % hosts);
                    if (root % 3 == 2) std::shuffle(options.hosts.begin(), options.hosts.end(), random);
                    CAPTURE(to_string(kind));
                    CAPTURE(hosts);
                    CAPTURE(locals);
                    CAPTURE(root);
                    CAPTURE(inside);
                    CAPTURE(between);
                    const auto algorithm = fixed_pattern("hierarchical", options);
                    check_proved(algorithm);
                    if (ranks <= 8 && root < 3) check_lowers(algorithm);
                }
            }
        }
    }
}

TEST_CASE("every kind is served at every number of ranks") {
    for (const Kind kind : ir::standard_kinds()) {
        for (int ranks = 1; ranks <= 33; ++ranks) {
            const auto options = options_for(kind, ranks);
            const auto& all = fixed_patterns();
            CHECK(std::any_of(all.begin(), all.end(),
                              [&](const PatternInfo& pattern) { return serves(pattern.name, options); }));
        }
    }
}

TEST_CASE("patterns lower to programs that are proved, and all-reduce leaves the same bits everywhere") {
    for (const PatternInfo& pattern : fixed_patterns()) {
        for (const Kind kind : ir::standard_kinds()) {
            if (!serves(pattern.name, options_for(kind, 2))) continue;
            for (const int ranks : {1, 2, 3, 5, 8, 12}) {
                for (const int root : {0, ranks - 1}) {
                    if (root != 0 && !ir::has_root(kind)) continue;
                    CAPTURE(pattern.name);
                    CAPTURE(to_string(kind));
                    CAPTURE(ranks);
                    CAPTURE(root);
                    check_lowers(fixed_pattern(pattern.name, options_for(kind, ranks, root)));
                }
            }
        }
    }
}

TEST_CASE("patterns run on several groups at once, of equal and of different sizes, with idle ranks") {
    const std::vector<std::vector<std::vector<int>>> layouts = {
        {{0, 1, 2}, {5, 4, 3}}, {{6, 1, 3, 2}, {0, 5}}, {{1, 0, 2, 3, 4}, {6, 7, 8}, {9}}, {{2, 3}}};
    for (const auto& groups : layouts) {
        for (const PatternInfo& pattern : fixed_patterns()) {
            for (const Kind kind : ir::standard_kinds()) {
                for (const bool reversed : {false, true}) {
                    auto options = options_for(kind, 11, 0);
                    options.collective.groups = groups;
                    if (reversed)
                        for (int r = 10; r >= 0; --r) options.rank_order.push_back(r);
                    if (!serves(pattern.name, options)) continue;
                    CAPTURE(pattern.name);
                    CAPTURE(to_string(kind));
                    CAPTURE(groups);
                    CAPTURE(reversed);
                    const auto algorithm = fixed_pattern(pattern.name, options);
                    check_proved(algorithm);
                    if (!reversed) check_lowers(algorithm);
                }
            }
        }
    }
}

TEST_CASE("a rank order moves the neighbors and nothing else") {
    std::mt19937 random(11);
    for (const PatternInfo& pattern : fixed_patterns()) {
        for (const Kind kind : ir::standard_kinds()) {
            for (const int ranks : {1, 2, 5, 6, 8}) {
                for (const int root : roots(kind, ranks)) {
                    auto options = options_for(kind, ranks, root);
                    options.rank_order.resize(static_cast<std::size_t>(ranks));
                    std::iota(options.rank_order.begin(), options.rank_order.end(), 0);
                    std::shuffle(options.rank_order.begin(), options.rank_order.end(), random);
                    if (!serves(pattern.name, options)) continue;
                    CAPTURE(pattern.name);
                    CAPTURE(to_string(kind));
                    CAPTURE(options.rank_order);
                    CAPTURE(root);
                    const auto algorithm = fixed_pattern(pattern.name, options);
                    check_proved(algorithm);
                    if (pattern.name != "ring") continue;
                    for (const ir::Step& step : ir::expand(algorithm)) {
                        if (!step.crosses()) continue;
                        const auto place = [&](int rank) {
                            const auto& order = options.rank_order;
                            return static_cast<int>(std::find(order.begin(), order.end(), rank) -
                                                    order.begin());
                        };
                        const int hop = (place(step.dst_rank) - place(step.src_rank) + ranks) % ranks;
                        CHECK((hop == 1 || hop == ranks - 1));
                    }
                }
            }
        }
    }
}

TEST_CASE("send_recv reaches any peer, also itself") {
    for (const int ranks : {1, 2, 5}) {
        for (int root = 0; root < ranks; ++root) {
            for (int peer = -1; peer < ranks; ++peer) {
                auto options = options_for(Kind::send_recv, ranks, root);
                options.collective.peer = peer;
                CAPTURE(ranks);
                CAPTURE(root);
                CAPTURE(peer);
                check_proved(fixed_pattern("direct", options));
            }
        }
    }
}

TEST_CASE("what is not served is refused in words") {
    const auto why = [](const std::string& name, const PatternOptions& options) {
        std::string words;
        CHECK_FALSE(serves(name, options, &words));
        CHECK_THROWS_AS(fixed_pattern(name, options), Error);
        return words;
    };
    CHECK(why("bruck", options_for(Kind::broadcast, 4)) ==
          "bruck is not made for broadcast; it serves all_gather, reduce_scatter, all_reduce, all_to_all");
    CHECK(why("ring", options_for(Kind::broadcast, 4, 4)) ==
          "root 4 is not a position of a group of 4 ranks");
    auto options = options_for(Kind::all_reduce, 4);
    CHECK(why("hierarchical", options) == "hierarchical needs the host of each rank");
    options.hosts = {0, 0, 0};
    CHECK(why("hierarchical", options) == "hierarchical got the hosts of 3 ranks; there are 4");
    options.hosts = {0, 0, 0, 0};
    CHECK(why("hierarchical", options) == "hierarchical needs two hosts or more; all ranks are on one");
    options.hosts = {0, 1, 1, 1};
    CHECK(why("hierarchical", options) ==
          "hierarchical needs as many ranks on every host; one has 1, another 3");
    options.hosts = {0, 1, 2, 3};
    CHECK(why("hierarchical", options) ==
          "hierarchical needs two ranks or more on a host; every rank is on a host of its own");
    options.rank_order = {0, 1, 2};
    CHECK(why("ring", options) == "the rank order does not name rank 3");
    options.rank_order = {0, 1, 2, 2};
    CHECK(why("ring", options) == "the rank order names rank 2 twice");
    options.rank_order = {0, 1, 2, 4};
    CHECK(why("ring", options) == "the rank order names rank 4, but there are 4 ranks");
    CHECK_THROWS_AS(fixed_pattern("rings", options), Error);
}

TEST_CASE("looped patterns stay small and survive JSON") {
    for (const PatternInfo& pattern : fixed_patterns()) {
        for (const Kind kind : ir::standard_kinds()) {
            if (!serves(pattern.name, options_for(kind, 1024))) continue;
            CAPTURE(pattern.name);
            CAPTURE(to_string(kind));
            const std::string text = ir::to_json(fixed_pattern(pattern.name, options_for(kind, 1024)));
            CHECK(text.size() < 6000);
            ir::LoadOptions load;
            load.ranks = 6;
            load.root = ir::has_root(kind) ? 4 : 0;
            check_proved(ir::parse_algorithm(text, pattern.name, load));
        }
    }
}

TEST_CASE("several rings carry their shares side by side") {
    std::mt19937 random(5);
    for (const Kind kind : ir::standard_kinds()) {
        if (!serves("multi_ring", kind)) continue;
        for (const int ranks : {1, 2, 3, 6, 8}) {
            for (const int root : roots(kind, ranks)) {
                for (const bool equal : {true, false}) {
                    auto options = options_for(kind, ranks, root);
                    for (int i = 0; i < 3; ++i) {
                        std::vector<int> order(static_cast<std::size_t>(ranks));
                        std::iota(order.begin(), order.end(), 0);
                        std::shuffle(order.begin(), order.end(), random);
                        options.rings.push_back({order, equal ? 1 : 1 + i});
                    }
                    CAPTURE(to_string(kind));
                    CAPTURE(ranks);
                    CAPTURE(root);
                    const auto algorithm = fixed_pattern("multi_ring", options);
                    check_proved(algorithm);
                    if (root == 0) check_lowers(algorithm);
                    CHECK(algorithm.collective.weights.empty() == equal);
                }
            }
        }
    }
    auto options = options_for(Kind::all_reduce, 6);
    options.collective.groups = {{0, 2}, {1, 5, 3}};
    options.rings = {{{0, 1, 2, 3, 4, 5}, 2}, {{5, 4, 3, 2, 1, 0}, 1}};
    check_proved(fixed_pattern("multi_ring", options));
    std::string why;
    options.rings[1].weight = 0;
    CHECK_FALSE(serves("multi_ring", options, &why));
    CHECK(why == "weights of rings are 1 to 1048576; got 0");
    options.rings = {{{0, 1, 2}, 1}};
    CHECK_FALSE(serves("multi_ring", options, &why));
    CHECK(why == "the rank order does not name rank 5");
}
