#include <baton/ir/verify/program_races.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>
#include <algorithm>

namespace baton::ir::checks {

RaceCheck::RaceCheck(const ProgramGraph& graph, const MemoryMap& memory)
    : graph_(graph), memory_(memory), clocks_(graph, {}) {
    for ([[maybe_unused]] const Placement placement : kPlacements) {
        for (const auto& places : graph.places) {
            for (const std::int64_t n : places) states_.emplace_back(n, State{});
        }
    }
}

bool RaceCheck::visit(Site site, std::int64_t memory_budget) {
    accesses_.clear();
    const auto k_of = [&](int connection, bool send) {
        return send ? clocks_.sent(connection) : clocks_.received(connection);
    };
    visit_accesses(graph_, site, k_of, [&](const Access& access) { accesses_.push_back(access); });
    if (!clocks_.advance(site, memory_budget)) return false;
    check_own(site, accesses_);
    for (const Access& access : accesses_) {
        record(site, access, Placement::out_of_place);
        if (memory_.shares(access.rank)) record(site, access, Placement::in_place);
    }
    return true;
}

// Within one instruction: elements are processed at once, so a destination may equal a source and must not be
// shifted against it, nor meet another destination.
void RaceCheck::check_own(Site site, const std::vector<Access>& accesses) const {
    for (std::size_t w = 0; w < accesses.size(); ++w) {
        if (!accesses[w].write) continue;
        for (std::size_t other = 0; other < w; ++other) {
            if (accesses[other].rank != accesses[w].rank) continue;
            for (const Placement placement : kPlacements) {
                const auto run = [&](const Access& a) {
                    return memory_.at(a.rank, a.buffer, a.index, a.chunks, placement);
                };
                const Memory a = run(accesses[other]), b = run(accesses[w]);
                if (a.buffer != b.buffer || a.end <= b.begin || b.end <= a.begin) continue;
                if (a.begin == b.begin && !accesses[other].write) continue;
                throw check_error(
                    fmt::format(
                        "{} {} while it writes {} of rank {} ({})",
                        accesses[other].write ? "writes" : "reads",
                        place_name(accesses[other].buffer, accesses[other].index, accesses[other].chunks),
                        place_name(accesses[w].buffer, accesses[w].index, accesses[w].chunks),
                        accesses[w].rank, memory_.words(placement)),
                    graph_.name(site), "operands of one instruction may be equal, not partly overlap");
            }
        }
    }
}

void RaceCheck::record(Site site, const Access& access, Placement placement) {
    // A rank that shares no memory behaves alike in both placements and is followed once.
    const Memory run = memory_.at(access.rank, access.buffer, access.index, access.chunks, placement);
    const std::size_t number =
        (static_cast<std::size_t>(placement) * graph_.places.size() + static_cast<std::size_t>(run.rank)) *
            3 +
        static_cast<std::size_t>(run.buffer);
    RunMap<State>& states = states_[number];
    const auto check = [&](const State& state) {
        if (state.write.block >= 0 && !clocks_.ordered(state.write, site.block))
            fail(state.write, true, site, access, placement);
        if (!access.write) return;
        for (const Site& read : state.reads) {
            if (!clocks_.ordered(read, site.block)) fail(read, false, site, access, placement);
        }
    };
    if (access.write) {
        states.visit(run.begin, run.end,
                     [&](std::int64_t, std::int64_t, const State& state) { check(state); });
        states.assign(run.begin, run.end, State{site, {}});
        return;
    }
    states.update(run.begin, run.end, [&](State& state) {
        check(state);
        // Reads that happen before this one need no place of their own: what comes after this comes after
        // them.
        std::erase_if(state.reads, [&](const Site& read) { return clocks_.ordered(read, site.block); });
        state.reads.push_back(site);
    });
}

void RaceCheck::fail(Site earlier, bool earlier_writes, Site site, const Access& access,
                     Placement placement) const {
    throw check_error(
        fmt::format("race: {} {} of rank {} and nothing orders it against the {} by {} ({})",
                    access.write ? "writes" : "reads", place_name(access.buffer, access.index, access.chunks),
                    access.rank, earlier_writes ? "write" : "read", graph_.name(earlier),
                    memory_.words(placement)),
        graph_.name(site), "add a token between them");
}

}  // namespace baton::ir::checks
