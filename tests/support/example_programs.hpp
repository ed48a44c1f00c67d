// The algorithms of examples/, and programs that they are lowered to.
#pragma once

#include "support/full.hpp"

#include <baton/base/error.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/algorithm_json.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace baton::test {

/// An algorithm of examples/algorithms for so many ranks.
inline ir::Algorithm example_algorithm(const std::string& file, int ranks, int root = -1) {
    ir::LoadOptions options;
    options.ranks = ranks;
    if (root >= 0) options.root = root;
    return ir::load_algorithm(BATON_SOURCE_DIR "/examples/algorithms/" + file, options);
}

/// Calls `check(file, program)` for all of them: for several numbers of ranks, and for 4 ranks in all modes.
template <typename Check>
void for_each_example_program(const Check& check) {
    using codegen::ModePreference;
    const std::vector<int> counts =
        full() ? std::vector<int>{2, 3, 4, 5, 6, 7, 8, 12, 16} : std::vector<int>{3, 4, 8};
    for (const auto& entry : std::filesystem::directory_iterator(BATON_SOURCE_DIR "/examples/algorithms")) {
        const std::string file = entry.path().filename().string();
        for (const int ranks : counts) {
            CAPTURE(file);
            CAPTURE(ranks);
            std::optional<ir::Algorithm> algorithm;
            try {
                algorithm = example_algorithm(file, ranks);
            } catch (const Error&) {
                continue;  // not for this number of ranks
            }
            for (const ModePreference mode :
                 {ModePreference::staged, ModePreference::put, ModePreference::get}) {
                if (mode != ModePreference::staged && ranks != 4) continue;
                codegen::LowerOptions options;
                options.mode = mode;
                check(file, codegen::lower(*algorithm, options));
            }
        }
    }
}

}  // namespace baton::test
