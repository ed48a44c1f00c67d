// What the places of one buffer of one rank hold, as intervals, or place by place where intervals do not pay.
#pragma once

#include <baton/ir/verify/contributions.hpp>

#include <cstdint>
#include <vector>

namespace baton::ir {

/// `length` places with values (base, set), (base+1, set), ...
struct Piece {
    std::int64_t length = 0;
    Value value;
    bool operator==(const Piece&) const = default;
};

/// Appends a piece, joined to the last where it continues it.
void append(std::vector<Piece>& pieces, Piece piece);

class PlaceMap {
public:
    /// Appends what stands in [begin, begin+count) to `pieces`.
    void read(std::int64_t begin, std::int64_t count, std::vector<Piece>& pieces) const;
    /// Writes from `begin` on.
    void write(std::int64_t begin, const std::vector<Piece>& pieces);
    std::int64_t bytes() const;

    template <class Visit>
    void each_set(const Visit& visit) const {
        for (const auto& segment : segments_) visit(segment.value.set);
        for (const auto& value : dense_) visit(value.set);
    }

private:
    struct Segment {
        std::int64_t begin = 0;
        Value value;
    };
    void write_segment(std::int64_t begin, Piece piece);
    void densify();
    void sparsify();

    std::vector<Segment> segments_{Segment{}};  // covers [0, infinity); empty once dense
    std::vector<Value> dense_;                  // places beyond its end are empty
    bool is_dense_ = false, may_densify_ = true;
};

}  // namespace baton::ir
