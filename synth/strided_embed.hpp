// Runs one algorithm inside another where a chunk of the inner one is a whole region of the outer one: runs
// of places at equal distances. Work follows steps and runs, never single chunks.
#pragma once

#include <baton/ir/algorithm.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace baton::synth {

/// `count` runs of `length` places each, the first at `index`, their beginnings `stride` apart. Stands for
/// `chunks` consecutive chunks of the embedded algorithm, in any order of places that is the same at both
/// ends of a step.
struct Region {
    ir::Buffer buffer = ir::Buffer::output;
    std::int64_t index = 0, length = 1;
    std::int64_t count = 1, stride = 0;
    std::int64_t chunks = 1;
    std::int64_t places() const { return length * count; }
};

/// Where up to `chunks` chunks from place (buffer, index) on at a rank of the embedded algorithm stand; gives
/// the region of the first 1 to `chunks` of them. Regions of one chunk have the same number of places
/// everywhere, 0 allowed. Asked for input and output only.
using RegionMap = std::function<Region(int rank, ir::Buffer buffer, std::int64_t index, std::int64_t chunks)>;

/// Appends the steps of `part`, its rank i being rank `ranks[i]`. Scratch of `part` stands from place
/// `scratch` on. Copies of a place to itself and what other ranks send to rank `skip_to` of `part` (which
/// holds it already) are left out; with `silent`, what that rank sends to others, too. Pinned routes are
/// dropped: they name nodes of another machine. Returns the end of the scratch in use. REQUIRES: no switch
/// steps.
std::int64_t embed_regions(const ir::Algorithm& part, const std::vector<int>& ranks, const RegionMap& map,
                           std::int64_t scratch, std::vector<ir::Step>& steps, int skip_to = -1,
                           bool silent = false);

/// Appends one step from a region of one rank to a region of another (or the same), torn into as many steps
/// as the runs ask for. `kind` gives the operation, channel and par block.
void append_regions(const ir::Step& kind, int source, const Region& from, int destination, const Region& to,
                    std::vector<ir::Step>& steps);

}  // namespace baton::synth
