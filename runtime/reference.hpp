// What a collective must return, computed straight from its definition; inputs to test with; and comparisons.
#pragma once

#include <baton/runtime/buffers.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace baton::runtime {

/// Writes the outputs of all ranks: every output place is the left fold of its contributions in rank order,
/// computed in the accumulator type and rounded once (`ir::reduce_buffers`); copying kinds move bits. Inputs
/// and outputs must not overlap. Throws an input error as `check_buffers` and `ir::check_valid` do.
void reference(const ir::Collective& collective, const CallArguments& arguments,
               std::span<const RankBuffers> buffers);

/// Fills `count` elements of an input with values for which every order of reducing over `ranks` ranks,
/// rounded at every step in the data type, gives the same bits: for sum and avg of floats small integers
/// whose partial sums are all exact, for prod signed powers of two with one factor 3 at most, for pairs few
/// distinct values so that ties occur, for everything else random elements. The same (seed, rank) gives the
/// same values everywhere.
void fill_exact(const CallArguments& arguments, int ranks, int rank, std::uint64_t seed, void* input,
                std::int64_t count);
/// Fills with random finite values of several magnitudes; of floats one element in 16 is NaN, an infinity, a
/// zero of either sign or a subnormal number.
void fill_random(const CallArguments& arguments, int rank, std::uint64_t seed, void* input,
                 std::int64_t count);
/// Fills with random bits: for copying collectives, which keep every bit. `bytes` of them.
void fill_bits(int rank, std::uint64_t seed, void* input, std::int64_t bytes);

/// A difference between two buffers.
struct Mismatch {
    std::int64_t element = 0;   ///< the first that differs
    std::int64_t elements = 0;  ///< how many differ
    std::string words;          ///< "element 5 of 8 is 3, expected 4; 2 elements differ"
};

/// Compares bit for bit.
std::optional<Mismatch> compare(ir::DataType type, const void* actual, const void* expected,
                                std::int64_t count);

/// How far results are from exact arithmetic.
struct ErrorReport {
    std::int64_t checked = 0;  ///< elements held against their bound
    std::int64_t unbounded =
        0;               ///< elements whose partial results may overflow or underflow: nothing was demanded
    double largest = 0;  ///< largest error as a fraction of its bound, at most 1 when all is well
    std::optional<Mismatch> mismatch;
};

/// Holds the outputs of a reducing collective on floats against exact values computed in f64 (long double for
/// f64). The bound holds for every order of the reduction that rounds to the data type after each step: with
/// u the unit roundoff and n contributions, |error| <= ((1+u)^n - 1) * sum |x| for sum and avg (Higham,
/// Accuracy and Stability of Numerical Algorithms, section 4.2, every order of summation), ((1+u)^n - 1) *
/// |product| for prod, plus n halves of the smallest subnormal; NaN must come out as NaN. Other operators and
/// types are compared bit for bit with the reference. The inputs must be intact.
ErrorReport check_error_bound(const ir::Collective& collective, const CallArguments& arguments,
                              std::span<const RankBuffers> buffers);

/// An element as text: "3", "-0", "nan", "(1.5, 7)".
std::string element_text(ir::DataType type, const void* element);

}  // namespace baton::runtime
