// The steps of a hierarchical composition. Internal to `compose`.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/synth/host_symmetry.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace baton::synth {

/// What is composed, and of what.
struct ComposerInput {
    const ir::Collective& collective;  ///< ranks, group and root
    /// all_reduce, all_gather, broadcast (whose reverses give the other kinds) or all_to_all.
    ir::CollectiveKind kind;
    const HostRails& rails;
    const std::vector<ir::Algorithm>& inside;  ///< an all_gather of a host's ranks per class of hosts
    std::string between;                       ///< a fixed pattern
    bool dealt;                                ///< all_gather: shards are dealt out along the rails first
    std::int64_t step_limit;
};

/// The composition; nothing above the limit of steps.
std::optional<ir::Algorithm> composed(const ComposerInput& input);

}  // namespace baton::synth
