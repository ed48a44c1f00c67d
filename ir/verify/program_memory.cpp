#include <baton/ir/verify/program_memory.hpp>

namespace baton::ir::checks {

MemoryMap::MemoryMap(const ProgramGraph& graph) : ranks_(graph.program->ranks.size()) {
    const Collective& collective = graph.program->collective;
    if (graph.program->in_place)
        only_ = *graph.program->in_place ? Placement::in_place : Placement::out_of_place;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        const int rank = static_cast<int>(r);
        if (graph.places[r][0] == 0 || graph.places[r][1] == 0) continue;
        // Sharing is one shifted run, so the first place of the smaller buffer tells all.
        const std::int64_t in_output = collective.output_alias(rank, 0);
        const std::int64_t in_input = collective.input_alias(rank, 0);
        if (in_output >= 0 && graph.places[r][0] <= graph.places[r][1]) {
            ranks_[r] = {true, Buffer::output, in_output};
        } else if (in_input >= 0) {
            ranks_[r] = {true, Buffer::input, in_input};
        }
    }
}

Memory MemoryMap::at(int rank, Buffer buffer, std::int64_t index, std::int64_t chunks,
                     Placement placement) const {
    const Sharing& sharing = ranks_[rank];
    if (only_.value_or(placement) == Placement::in_place && sharing.shares && buffer != Buffer::scratch &&
        buffer != sharing.holder) {
        index += sharing.shift;
        buffer = sharing.holder;
    }
    return {rank, buffer, index, index + chunks};
}

}  // namespace baton::ir::checks
