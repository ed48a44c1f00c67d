#include <baton/synth/strided_embed.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/embed.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace baton::synth {
namespace {

// Places that a chunk in scratch takes, as the chunk that was written there says.
class ScratchShapes {
public:
    explicit ScratchShapes(int ranks) : sizes_(at(ranks)) {}
    void set(int rank, std::int64_t index, std::int64_t places) {
        auto& own = sizes_[at(rank)];
        if (own.size() <= at(index)) own.resize(at(index) + 1, 0);
        own[at(index)] = places;
    }
    std::int64_t get(int rank, std::int64_t index) const {
        const auto& own = sizes_[at(rank)];
        return at(index) < own.size() ? own[at(index)] : 0;
    }

private:
    std::vector<std::vector<std::int64_t>> sizes_;
};

// The largest number of places of one chunk, over all that the part touches outside of scratch.
std::int64_t widest(const ir::Algorithm& part, const RegionMap& map) {
    std::int64_t most = 1;
    const auto look = [&](int rank, ir::Buffer buffer, std::int64_t index, std::int64_t chunks) {
        if (buffer == ir::Buffer::scratch) return;
        for (std::int64_t done = 0; done < chunks;) {
            const Region region = map(rank, buffer, index + done, 1);
            most = std::max(most, region.places());
            done += region.chunks;
        }
    };
    auto cursor = part.steps();
    for (ir::Step step; cursor.next(step);) {
        look(step.src_rank, step.src_buffer, step.src_index, step.chunks);
        look(step.dst_rank, step.dst_buffer, step.dst_index, step.chunks);
    }
    return most;
}

}  // namespace

void append_regions(const ir::Step& kind, int source, const Region& from, int destination, const Region& to,
                    std::vector<ir::Step>& steps) {
    if (from.places() != to.places()) throw internal_error("regions of a step differ in size");
    if (from.places() == 0) return;
    const bool same_place = source == destination && kind.op == ir::StepOp::copy;
    std::int64_t i = 0, j = 0, in_i = 0, in_j = 0;  // runs, and places done in each
    bool first = true;
    while (i < from.count && j < to.count) {
        const std::int64_t run = std::min(from.length - in_i, to.length - in_j);
        const std::int64_t at_source = from.index + i * from.stride + in_i;
        const std::int64_t at_target = to.index + j * to.stride + in_j;
        if (!(same_place && from.buffer == to.buffer && at_source == at_target)) {
            ir::Step step = kind;
            step.src_rank = source;
            step.dst_rank = destination;
            step.src_buffer = from.buffer;
            step.dst_buffer = to.buffer;
            step.src_index = place_number(at_source, run);
            step.dst_index = place_number(at_target, run);
            step.chunks = static_cast<std::int32_t>(run);
            if (!first && step.in_par) step.par = 1;
            first = false;
            steps.push_back(step);
        }
        if ((in_i += run) == from.length) ++i, in_i = 0;
        if ((in_j += run) == to.length) ++j, in_j = 0;
    }
}

std::int64_t embed_regions(const ir::Algorithm& part, const std::vector<int>& ranks, const RegionMap& map,
                           std::int64_t scratch, std::vector<ir::Step>& steps, int skip_to, bool silent) {
    const auto places = part.scratch_places();
    const std::int64_t most = *std::max_element(places.begin(), places.end());
    const std::int64_t unit = most > 0 ? widest(part, map) : 1;
    ScratchShapes shapes(part.collective.ranks);
    bool open = false;  // a step of the current par block was kept
    auto cursor = part.steps();
    for (ir::Step step; cursor.next(step);) {
        if (!step.in_par || !step.par) open = false;
        const bool between = step.src_rank != step.dst_rank;
        if (between && (step.dst_rank == skip_to || (silent && step.src_rank == skip_to))) continue;
        const bool from_scratch = step.src_buffer == ir::Buffer::scratch;
        const bool to_scratch = step.dst_buffer == ir::Buffer::scratch;
        for (std::int64_t done = 0; done < step.chunks;) {
            const std::int64_t left = from_scratch || to_scratch ? 1 : step.chunks - done;
            const std::int64_t source = step.src_index + done, target = step.dst_index + done;
            Region from, to;
            if (!from_scratch) from = map(step.src_rank, step.src_buffer, source, left);
            if (!to_scratch) {
                to = map(step.dst_rank, step.dst_buffer, target, from_scratch ? 1 : from.chunks);
                if (!from_scratch && to.chunks < from.chunks)
                    from = map(step.src_rank, step.src_buffer, source, to.chunks);
            }
            if (from_scratch)
                from = {ir::Buffer::scratch, scratch + source * unit, shapes.get(step.src_rank, source)};
            if (to_scratch) {
                to = {ir::Buffer::scratch, scratch + target * unit, from.places()};
                shapes.set(step.dst_rank, target, from.places());
            }
            ir::Step kind = step;
            kind.par = step.in_par && open;
            kind.via = -1;
            const std::size_t before = steps.size();
            append_regions(kind, ranks[at(step.src_rank)], from, ranks[at(step.dst_rank)], to, steps);
            if (steps.size() > before) open = step.in_par != 0;
            done += std::max<std::int64_t>(1, std::min(from.chunks, to.chunks));
        }
    }
    return scratch + most * unit;
}

}  // namespace baton::synth
