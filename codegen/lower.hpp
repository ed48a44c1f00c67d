// Lowering: from an Algorithm (what moves where) to a Program (which threadblock does what, in which order).
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/ir/program.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace baton::codegen {

/// Which transfer mode lowering prefers. A message for which the preferred mode is impossible stays staged:
/// put cannot serve a receive that reduces, nor a par block that reads what the put would overwrite; get
/// cannot serve a source that its own par block overwrites. `automatic` is staged, which needs no registered
/// buffers.
enum class ModePreference : std::uint8_t { automatic, staged, put, get };
std::string_view to_string(ModePreference mode);
/// Throws an input error that lists the names.
ModePreference parse_mode_preference(std::string_view name, const std::string& where = {});

/// Depth of staged FIFOs when the caller does not say.
inline constexpr int kDefaultSlots = 4;
/// Most instructions that flat lowering writes.
inline constexpr std::int64_t kMaxInstructions = 10'000'000;
/// Most sources, and most destinations, that one instruction gets from fusion.
inline constexpr int kMaxSources = 32, kMaxDestinations = 16;

struct LowerOptions {
    ModePreference mode = ModePreference::automatic;
    int slots =
        0;  ///< depth of staged FIFOs (1..1024), 0 = kDefaultSlots; raised where a par block needs more
    int threadblocks = 32;  ///< most threadblocks per rank (the SM budget), at least 1
    int channels = 1;  ///< steps without a channel hint are spread over this many lanes, by destination place
    bool wide = false;       ///< f16, bf16 and f8 travel and accumulate as f32 until finalized
    std::string stop_after;  ///< name of the pass after which to stop; "" = run all
    /// Most instructions; more is refused with an input error.
    std::int64_t instruction_limit = kMaxInstructions;
    /// Proves the result (ir::verify) and, for collectives that leave one value on several ranks, gives up
    /// k-way reductions when they would make replicas differ in rounding.
    bool verify = true;
};

/// A lowering pass as help texts and documentation list it.
struct PassInfo {
    std::string name, summary;
};
/// The passes in the order they run.
const std::vector<PassInfo>& lowering_passes();

/// Lowers. Steps keep their meaning: the order among accesses to one place (with input and output aliased as
/// in-place calls do) is the program order of the steps. No deadlock by construction: all instructions of all
/// ranks have one total order in which every wait points backwards, each threadblock runs its share in that
/// order, and slot counts cover what that order keeps in flight. Throws an input error when options are out
/// of range, when a step is one that flat lowering cannot express (switch steps), or above the instruction
/// limit; a check error when the algorithm is wrong (verification names the place).
ir::Program lower(const ir::Algorithm& algorithm, const LowerOptions& options = {});

}  // namespace baton::codegen
