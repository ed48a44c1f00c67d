// A call with known inputs: buffers in or out of place, the expected result, and the comparison.
#pragma once

#include <baton/runtime/backend.hpp>
#include <baton/runtime/buffers.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace baton::runtime {

struct TrialOptions {
    bool in_place = false;  ///< ranks that have both buffers share them as the kind defines it
    std::uint64_t seed = 1;
    int shift = 0;  ///< elements by which buffers begin behind a multiple of 64 bytes
    Backend* backend =
        nullptr;  ///< allocates the buffers where host memory does not serve; null: host memory
};

/// Buffers of all ranks, filled with values for which every order of reduction gives the same bits
/// (`fill_exact`; copying kinds: random bits), each followed by guard bytes.
class Trial {
public:
    /// Throws an input error when the kind has no in-place form, or the buffers are larger than the machine's
    /// memory.
    Trial(const ir::Collective& collective, const CallArguments& arguments, const TrialOptions& options = {});
    ~Trial();
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;

    const CallArguments& arguments() const { return arguments_; }
    std::span<const RankBuffers> buffers() const { return buffers_; }
    /// Puts inputs back and overwrites everything else; for one rank, from its own thread, or for all.
    void reset(int rank);
    void reset();
    /// Nothing when every output is right bit by bit, inputs are intact (out of place) and nothing was
    /// written beside the buffers; else what is wrong, in words.
    std::optional<std::string> wrong();

private:
    struct Rank {
        std::int64_t input_bytes = 0, output_bytes = 0;
        std::int64_t input_at = -1, output_at = -1, bytes = 0;  // in the rank's block; -1: no buffer
        bool shared = false;
        std::vector<unsigned char> input, expected;
        std::vector<unsigned char> host;  // the block, or a copy of it
        unsigned char* base = nullptr;    // where ranks see the block
        void* allocation = nullptr;       // of the backend
    };
    void lay_out(const ir::Collective& collective, int rank);
    void check_memory() const;
    std::optional<std::string> wrong_at(int rank);

    CallArguments arguments_;
    TrialOptions options_;
    std::vector<Rank> ranks_;
    std::vector<RankBuffers> buffers_;
};

}  // namespace baton::runtime
