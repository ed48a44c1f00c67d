#include <baton/codegen/passes/transfer.hpp>

namespace baton::codegen {

void BlockAccesses::add(const Move& move) {
    const auto each = [&](const Run& run, int reads, int writes) {
        for (const Run& part : aliases_->memory(run)) {
            auto& map =
                maps_[static_cast<std::size_t>(part.rank) * 3 + static_cast<std::size_t>(part.buffer)];
            map.visit(part.index, part.index + part.chunks, [&](auto, auto, Count& count) {
                count.reads += reads;
                count.writes += writes;
            });
        }
    };
    each(move.source, 1, 0);
    each(move.destination, 0, 1);
}

namespace {

bool overlap(const std::vector<Run>& a, const std::vector<Run>& b) {
    for (const Run& x : a) {
        for (const Run& y : b) {
            if (x.rank == y.rank && x.buffer == y.buffer && x.index < y.index + y.chunks &&
                y.index < x.index + x.chunks)
                return true;
        }
    }
    return false;
}

}  // namespace

bool BlockAccesses::destination_is_read(const Move& move) const {
    const std::vector<Run> runs = aliases_->memory(move.destination);
    // A move that reads what it writes itself (a place onto itself) counts once for itself.
    const int own = overlap(runs, aliases_->memory(move.source)) ? 1 : 0;
    bool found = false;
    for (const Run& run : runs) {
        const auto& map =
            maps_[static_cast<std::size_t>(run.rank) * 3 + static_cast<std::size_t>(run.buffer)];
        map.look(run.index, run.index + run.chunks,
                 [&](auto, auto, const Count& count) { found = found || count.reads > own; });
    }
    return found;
}

bool BlockAccesses::source_is_written(const Move& move) const {
    const std::vector<Run> runs = aliases_->memory(move.source);
    const int own = overlap(runs, aliases_->memory(move.destination)) ? 1 : 0;
    bool found = false;
    for (const Run& run : runs) {
        const auto& map =
            maps_[static_cast<std::size_t>(run.rank) * 3 + static_cast<std::size_t>(run.buffer)];
        map.look(run.index, run.index + run.chunks,
                 [&](auto, auto, const Count& count) { found = found || count.writes > own; });
    }
    return found;
}

ir::Mode choose_mode(ModePreference preference, const Move& move, const BlockAccesses* block) {
    if (preference == ModePreference::put && !move.reducing && !(block && block->destination_is_read(move))) {
        return ir::Mode::put;
    }
    if (preference == ModePreference::get && !(block && block->source_is_written(move))) return ir::Mode::get;
    return ir::Mode::staged;
}

}  // namespace baton::codegen
