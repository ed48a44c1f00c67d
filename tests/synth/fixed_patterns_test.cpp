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

}  // namespace

TEST_CASE("every pattern is proved for every kind that it serves, any number of ranks and every root") {
    for (const PatternInfo& pattern : fixed_patterns()) {
        for (const Kind kind : ir::standard_kinds()) {
            if (!serves(pattern.name, kind)) continue;
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
            if (!serves(pattern.name, kind)) continue;
            for (const int ranks : {1, 2, 3, 5, 8, 12}) {
                for (const int root : {0, ranks - 1}) {
                    if (root != 0 && !ir::has_root(kind)) continue;
                    CAPTURE(pattern.name);
                    CAPTURE(to_string(kind));
                    CAPTURE(ranks);
                    CAPTURE(root);
                    try {
                        const auto program =
                            codegen::lower(fixed_pattern(pattern.name, options_for(kind, ranks, root)));
                        const auto report = ir::verify(program);
                        CHECK(report.assurance == ir::Assurance::proved);
                        if (kind == Kind::all_reduce) CHECK(report.order >= ir::Order::replicas_equal);
                    } catch (const Error& error) {
                        FAIL_CHECK(std::string(error.what()));
                    }
                }
            }
        }
    }
}
