#include <baton/codegen/interchange/equal_chunks.hpp>

#include <baton/base/index.hpp>
#include <baton/ir/refine.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace baton::codegen {
namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& weights) {
    return std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
}

// Weights whose sum is about kMostEqualChunks, each at least 1.
std::vector<std::int64_t> rounded(const std::vector<std::int64_t>& weights) {
    const double whole = static_cast<double>(sum_of(weights));
    std::vector<std::int64_t> out;
    for (const std::int64_t weight : weights) {
        const double share = static_cast<double>(weight) / whole * static_cast<double>(kMostEqualChunks);
        out.push_back(std::max<std::int64_t>(1, std::llround(share)));
    }
    return out;
}

// The part of the whole that lies elsewhere by the second weights.
double moved_part(const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after) {
    const double whole = static_cast<double>(sum_of(before)), other = static_cast<double>(sum_of(after));
    double moved = 0;
    for (std::size_t i = 0; i < before.size(); ++i)
        moved += std::abs(static_cast<double>(before[i]) / whole - static_cast<double>(after[i]) / other);
    return moved / 2;
}

}  // namespace

EqualChunks equal_chunks(ir::Algorithm algorithm) {
    std::vector<std::int64_t> weights = algorithm.collective.weights;
    if (std::adjacent_find(weights.begin(), weights.end(), std::not_equal_to<>()) == weights.end())
        return {std::move(algorithm), {}};
    std::int64_t factor = 0;
    for (const std::int64_t weight : weights) factor = std::gcd(factor, weight);
    for (std::int64_t& weight : weights) weight /= factor;
    EqualChunks out;
    const std::vector<std::int64_t> exact = weights;
    if (sum_of(weights) > kMostEqualChunks) weights = rounded(weights);
    out.note =
        fmt::format("{} chunks of unequal weights became {} of one size", weights.size(), sum_of(weights));
    if (weights != exact)
        out.note += fmt::format(
            "; {} would be exact, so weights were rounded: {:.2g}% of the data lie in other chunks",
            sum_of(exact), 100 * moved_part(exact, weights));
    std::vector<std::vector<std::int64_t>> pieces;
    for (const std::int64_t weight : weights) pieces.emplace_back(at(weight), 1);
    out.algorithm = ir::refine(algorithm, pieces);
    out.algorithm.collective.weights.clear();
    return out;
}

}  // namespace baton::codegen
