// What each place of an algorithm holds while its steps are walked in program order, and where it really
// lies.
#pragma once

#include <baton/codegen/passes/graph.hpp>

#include <cstdint>
#include <vector>

namespace baton::codegen {

/// The value of a place. Most lie where the algorithm says; partial sums of a wide program lie in a scratch
/// mirror, and a scratch place that is used for a second class of chunks moves to a place of its own.
struct Value {
    std::int32_t contributions = 0;  ///< how many input values it combines
    ir::Buffer buffer = ir::Buffer::output;
    std::int64_t shift = 0;       ///< real index - index in the algorithm
    std::int32_t copied_by = -1;  ///< node that copied it from input; -1 = no plain copy of input
    std::int64_t copy_shift = 0;  ///< index of that input place - index in the algorithm
    bool same_home(const Value& other) const { return buffer == other.buffer && shift == other.shift; }
};

/// First real index of the three kinds of added scratch places (before they are packed).
inline constexpr std::int64_t kMirrorPlaces = std::int64_t{1} << 29;
inline constexpr std::int64_t kTemporaryPlaces = std::int64_t{3} << 28;

/// A step or a part of it, over one run whose places all lie alike.
struct Move {
    ir::Step step;
    std::int64_t position = 0;  ///< of the step in the algorithm
    Run source, destination;    ///< as the algorithm names them
    bool reducing = false, crosses = false;
};

class Values {
public:
    Values(const ir::Algorithm& algorithm, bool wide);

    /// Cuts a step into moves over runs that lie alike, before and after.
    std::vector<Move> cut(const ir::Step& step, std::int64_t position) const;
    /// Where a run of alike places lies. With `hazards`, reads through opening copies where no write came
    /// between.
    Run place(const Run& run, const Hazards* hazards) const;
    /// Contributions of the source (of its first place; all are alike).
    std::int32_t contributions(const Run& run) const;

    struct Update {
        Run before, after;      ///< where the destination lies before (reductions) and after
        bool finalize = false;  ///< the update completes a value
    };
    /// Applies a move to the state. `source` is where the source lies, `contributions` what the source held,
    /// `node` the number of the node that will do it.
    Update update(const Move& move, const Run& source, std::int32_t contributions, std::int32_t node);
    /// Fresh scratch places for what lies at `source`.
    Run temporary(const Run& source);

    /// [rank]: class + 1 of each real scratch place.
    const std::vector<IntervalMap<std::int64_t>>& scratch_classes() const { return scratch_classes_; }

private:
    std::int64_t full(int rank, ir::Buffer buffer, std::int64_t index) const;
    std::int64_t class_at(const Run& place, std::int64_t offset) const;
    /// Real scratch places for a run of a scratch buffer that will hold the classes of `like`.
    std::int64_t scratch_shift(const Run& destination, const Run& like) const;
    void set_classes(const Run& places, const Run& like);
    IntervalMap<Value>& map(int rank, ir::Buffer buffer) {
        return maps_[static_cast<std::size_t>(rank) * 3 + static_cast<std::size_t>(buffer)];
    }
    const IntervalMap<Value>& map(int rank, ir::Buffer buffer) const {
        return maps_[static_cast<std::size_t>(rank) * 3 + static_cast<std::size_t>(buffer)];
    }

    const ir::Collective* collective_;
    bool wide_;
    std::int64_t custom_full_ =
        0;  // contributions that complete a value of a custom collective; 0 = depends on the place
    std::vector<int> group_sizes_;  // [rank]
    std::vector<std::int64_t> scratch_places_, next_temporary_;
    std::vector<IntervalMap<Value>> maps_;
    std::vector<IntervalMap<std::int64_t>> scratch_classes_;
};

}  // namespace baton::codegen
