#include <baton/codegen/lower.hpp>

#include <baton/base/error.hpp>
#include <baton/ir/verify.hpp>
#include <support/small_algorithms.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

using namespace baton;
using namespace baton::codegen;

namespace {

std::vector<ir::Algorithm> small_algorithms(int n) {
    std::vector<ir::Algorithm> list = {
        test::ring_all_reduce(n),     test::ring_all_gather(n),       test::ring_all_gather(n, 3),
        test::one_shot_all_reduce(n), test::reduce_to_root(n, n / 2), test::chain_broadcast(n, n - 1, 5),
        test::direct_all_to_all(n),   test::direct_all_to_all(n, 2),  test::scratch_reduce_scatter(n),
    };
    if ((n & (n - 1)) == 0) {
        list.push_back(test::recursive_doubling(n));
        list.push_back(test::recursive_doubling(n, 3));
    }
    return list;
}

}  // namespace

TEST_CASE("every pass leaves a program that verifies, in every mode") {
    for (const int n : {1, 2, 3, 4, 5, 8}) {
        for (const ir::Algorithm& algorithm : small_algorithms(n)) {
            for (const ModePreference mode :
                 {ModePreference::staged, ModePreference::put, ModePreference::get}) {
                for (const PassInfo& pass : lowering_passes()) {
                    for (const bool wide : {false, true}) {
                        LowerOptions options;
                        options.mode = mode;
                        options.stop_after = pass.name;
                        options.wide = wide;
                        options.verify = false;
                        CAPTURE(algorithm.name);
                        CAPTURE(n);
                        CAPTURE(to_string(mode));
                        CAPTURE(pass.name);
                        CAPTURE(wide);
                        const ir::Program program = lower(algorithm, options);
                        try {
                            CHECK(ir::verify(program).assurance == ir::Assurance::proved);
                        } catch (const Error& error) {
                            FAIL(error.what(), "\n", ir::dump(program));
                        }
                    }
                }
            }
        }
    }
}
