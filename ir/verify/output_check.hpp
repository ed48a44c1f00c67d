// The postcondition of a collective and the order of its reductions, on final values.
#pragma once

#include <baton/ir/verify/program_graph.hpp>
#include <baton/ir/verify/program_memory.hpp>
#include <baton/ir/verify/value_trees.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace baton::ir::checks {

/// What memory holds, and the instruction that wrote it.
struct Cell {
    Value value;
    Site writer;
    Cell advanced(std::int64_t by) const { return {value.advanced(by), writer}; }
};

/// A value over consecutive places. In `Pieces`, neighbors that continue each other are one piece.
struct Piece {
    std::int64_t length = 0;
    Value value;
    bool operator==(const Piece&) const = default;
};
using Pieces = std::vector<Piece>;

inline void append_piece(Pieces& pieces, std::int64_t length, Value value) {
    if (!pieces.empty() && pieces.back().value.advanced(pieces.back().length) == value) {
        pieces.back().length += length;
    } else {
        pieces.push_back({length, value});
    }
}

/// The output of a rank, in pieces, with the first writer of each.
struct OutputPieces {
    Pieces pieces;
    std::vector<Site> writers;
    void add(std::int64_t length, const Cell& cell) {
        append_piece(pieces, length, cell.value);
        if (writers.size() < pieces.size()) writers.push_back(cell.writer);
    }
};

/// Checks that every output place holds each of its contributions once, completed, in both placements
/// (`outputs[placement][rank]`), and tells the order of the reductions. Throws a check error that names rank,
/// place and contribution.
Order check_outputs(const ProgramGraph& graph, const MemoryMap& memory, ValueTrees& trees,
                    const std::array<std::vector<OutputPieces>, 2>& outputs);

}  // namespace baton::ir::checks
