// What the greedy search has to deliver: chunks, where each begins, and the ranks that must get it.
#pragma once

#include <baton/base/index.hpp>
#include <baton/ir/collective.hpp>
#include <baton/synth/greedy_network.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// Rows of bits, all of one length.
class BitRows {
public:
    BitRows() = default;
    BitRows(std::int64_t rows, std::int64_t bits) : words_((bits + 63) / 64), bits_(at(rows * words_), 0) {}
    bool empty() const { return bits_.empty(); }
    std::int64_t words() const { return words_; }
    std::uint64_t* row(std::int64_t r) { return bits_.data() + r * words_; }
    const std::uint64_t* row(std::int64_t r) const { return bits_.data() + r * words_; }
    bool test(std::int64_t r, std::int64_t bit) const { return (row(r)[bit >> 6] >> (bit & 63)) & 1; }
    void set(std::int64_t r, std::int64_t bit) { row(r)[bit >> 6] |= std::uint64_t{1} << (bit & 63); }
    void clear(std::int64_t r, std::int64_t bit) { row(r)[bit >> 6] &= ~(std::uint64_t{1} << (bit & 63)); }
    /// Bytes of memory.
    std::size_t bytes() const { return bits_.size() * sizeof(std::uint64_t); }

private:
    std::int64_t words_ = 0;
    std::vector<std::uint64_t> bits_;
};

/// Chunks to deliver. Every rank that gets a chunk can be reached from its source over ranks that get it too.
struct GreedyDemand {
    std::vector<std::int32_t> source;  ///< [chunk]: the rank that has it at the start
    BitRows lack;                      ///< [rank][chunk]: ranks that must get it, relays included
    std::int64_t deliveries = 0;       ///< bits of `lack`
    std::vector<std::int32_t> first;   ///< [group]: its first chunk
    std::vector<std::uint32_t> hops;   ///< [chunk] with one destination each: of its way; else empty
    /// [pair][chunk]: which pairs it may take, for chunks with one destination each; empty = all pairs.
    BitRows ways;
    std::int64_t chunks() const { return static_cast<std::int64_t>(source.size()); }
};

/// How long a way takes where others were chosen before: all waits on it added up (few detours, right for
/// even loads), or the longest in full and an eighth of the others (detours around busy links).
enum class WaitRule : std::uint8_t { all, longest };

/// What `collective` (broadcast, all_gather, scatter, gather, all_to_all or send_recv) asks for. Chunks are
/// numbered group by group; within a group by (source position, destination position, class) as far as the
/// kind has them: all_gather s*C+k, broadcast and send_recv k, scatter d*C+k, gather s*C+k, all_to_all
/// (s*N+d)*C+k. Chunks that stay where they are have a number and nothing to deliver.
///
/// Where not every rank gets a chunk, the ways from its source are chosen here: of least time for messages of
/// `bytes`, among equal ones those whose busiest resource is least loaded so far; ranks on them become
/// relays. Throws an input error above `most_bits` bits, and for a rank out of reach.
GreedyDemand greedy_demand(const GreedyNetwork& network, const ir::Collective& collective, Bytes bytes,
                           WaitRule rule = WaitRule::all, std::int64_t most_bits = std::int64_t{1} << 33);

}  // namespace baton::synth
