// Verification: proofs that a schedule gives the right result, and that its Program has no race and no
// deadlock.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/ir/program.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::ir {

/// How sure a result is. proved: every value was followed exactly. hashed: counts and 128-bit hash sums of
/// contributions agree. sampled: part of the columns was followed. not_proven: too large to check.
enum class Assurance : std::uint8_t { proved, hashed, sampled, not_proven };
std::string_view to_string(Assurance assurance);

/// What is guaranteed about the order of a reduction, from weakest to strongest. any: order may differ from
/// run to run (in-network). fixed: same from run to run. replicas_equal: all ranks hold the same bits.
/// rank_order: the left fold over ranks 0..N-1.
enum class Order : std::uint8_t { any, fixed, replicas_equal, rank_order };
std::string_view to_string(Order order);

struct VerifyOptions {
    std::int64_t memory_budget = std::int64_t{2}
                                 << 30;  ///< bytes for exact contribution lists before hashing
    int slots = 0;  ///< check deadlock at this slot count for staged connections; 0 = each connection's own
    std::int64_t instruction_limit = 10'000'000;  ///< Programs above are `not_proven`
    std::int64_t step_limit = 1'000'000'000;      ///< Algorithms above are `not_proven`
};

/// Result of checking an Algorithm.
struct AlgorithmReport {
    Assurance assurance = Assurance::proved;
    std::int64_t steps = 0;
    std::vector<std::string> warnings;  ///< scratch written and never read, ...
};

/// Checks by abstract execution, aliased (in place) and unaliased, that every output place ends with exactly
/// its contributions. Throws a check error that names the step (its position and words) and the fault:
/// reading nothing, reducing a contribution twice, writing input, class mismatch, place out of range, two
/// plain writes in one par block, or at the end which rank, output place and contribution is missing or too
/// many.
AlgorithmReport verify(const Algorithm& algorithm, const VerifyOptions& options = {});

/// Result of checking a Program.
struct ProgramReport {
    Assurance assurance = Assurance::proved;
    Order order = Order::fixed;
    int smallest_slots = 0;  ///< smallest uniform slot count that cannot deadlock; 0 = no staged connection
    std::vector<int> smallest_per_connection;  ///< each with the others as declared; 0 for put and get
    std::vector<std::string> warnings;
};

/// Checks result, matching of sends and receives, deadlock at the configured slot counts, and that every two
/// conflicting accesses, remote ones included, are ordered by happens-before. Throws a check error that names
/// both instructions (rank, threadblock, instruction, origin step).
ProgramReport verify(const Program& program, const VerifyOptions& options = {});

}  // namespace baton::ir
