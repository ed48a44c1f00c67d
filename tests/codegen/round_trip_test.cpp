// Export then import gives back an equal program, over all synthesizers and machines. What an executor cannot
// take is refused with the limit that stands in the way.
#include "support/full.hpp"
#include "support/random_topology.hpp"
#include "support/round_trips.hpp"

#include <baton/codegen/interchange/equal_chunks.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/collective.hpp>
#include <baton/synth/candidates.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace baton;

namespace {

struct Tally {
    std::map<std::string, int> xml, plans;  ///< exported, by synthesizer
    std::map<std::string, int> refused;     ///< by the words of the refusal without numbers and names
    int programs = 0;
};

/// A refusal without what differs from schedule to schedule.
std::string kind_of(const std::string& refusal) {
    for (const char* const words :
         {"takes 216 at most", "takes 255 at most", "takes 32 at most", "has no counterpart of send_recv",
          "has no tokens between ranks", "takes 16 at most", "swaps the two offsets of a get",
          "messages under way on a connection: deadlock"})
        if (refusal.find(words) != std::string::npos) return words;
    return "other: " + refusal;
}

void round_trips(const topologies::Topology& topology, ir::CollectiveKind kind, int root,
                 codegen::ModePreference mode, Tally& tally) {
    ir::Collective c;
    c.kind = kind;
    c.ranks = topology.rank_count();
    c.root = ir::has_root(kind) ? root : 0;
    synth::SynthesisOptions options;
    options.sizes = {Bytes{1 << 20}};
    for (const synth::Candidate& candidate : synth::make_candidates(topology, c, options).candidates) {
        CAPTURE(candidate.label());
        ir::Program program, in_two_slots;
        try {
            const ir::Algorithm algorithm = codegen::equal_chunks(*candidate.algorithm).algorithm;
            codegen::LowerOptions lowering;
            lowering.mode = mode;
            program = codegen::lower(algorithm, lowering);
            lowering.mode = codegen::ModePreference::staged;
            lowering.slots = codegen::msccl_slots({});
            in_two_slots = codegen::lower(algorithm, lowering);
        } catch (const Error& error) {
            CHECK_MESSAGE(error.kind() == ErrorKind::input, error.what());  // steps in switches
            continue;
        }
        if (program.instruction_count() > (test::full() ? 200'000 : 4'000)) continue;
        ++tally.programs;
        const std::string xml = test::msccl_round_trip(in_two_slots);
        const std::string plan = test::mscclpp_round_trip(program);
        // In other modes, and with more slots, what is refused depends on the program.
        const std::string other = test::msccl_round_trip(program);
        if (!other.empty()) ++tally.refused[kind_of(other)];
        ++(xml.empty() ? tally.xml[candidate.name] : tally.refused[kind_of(xml)]);
        ++(plan.empty() ? tally.plans[candidate.name] : tally.refused[kind_of(plan)]);
    }
}

void report(const Tally& tally) {
    int xml = 0, plans = 0;
    for (const auto& [name, count] : tally.xml) xml += count;
    for (const auto& [name, count] : tally.plans) plans += count;
    std::string words;
    for (const auto& [why, count] : tally.refused) {
        words += "\n  " + std::to_string(count) + " refused: " + why;
        CHECK_MESSAGE(!why.starts_with("other"), why);
    }
    MESSAGE(tally.programs, " programs of ", tally.plans.size(), " synthesizers; ", xml, " to MSCCL, ", plans,
            " to MSCCL++", words);
    CHECK(xml * 10 > tally.programs * 8);
    CHECK(plans * 10 > tally.programs * 9);
}

}  // namespace

TEST_CASE("export then import gives an equal program for everything synthesized on random machines") {
    Tally tally;
    const std::uint64_t seeds = test::full() ? 300 : 5;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        CAPTURE(seed);
        const auto topology = test::random_topology(seed, {2, 8, true});
        for (const auto kind : ir::standard_kinds()) {
            if (!test::full() && static_cast<int>(kind) % 3 != static_cast<int>(seed % 3)) continue;
            CAPTURE(to_string(kind));
            round_trips(topology, kind, static_cast<int>(seed) % topology.rank_count(),
                        static_cast<codegen::ModePreference>(seed % 4), tally);
        }
    }
    report(tally);
    CHECK(tally.xml.size() >= 8);
    CHECK(tally.plans.size() >= 8);
}

TEST_CASE("export then import gives an equal program for everything synthesized on presets") {
    Tally tally;
    std::set<std::string> presets;
    for (const topologies::Nameable& each : topologies::nameables())
        if (!each.generator) presets.insert(each.name);
    CHECK(presets.size() >= 8);
    if (!test::full()) presets = {"dgx1_v100"};
    for (const std::string& preset : presets) {
        CAPTURE(preset);
        const topologies::Topology topology = topologies::load(preset);
        for (const auto kind : ir::standard_kinds()) {
            if (!test::full() && kind != ir::CollectiveKind::all_reduce &&
                kind != ir::CollectiveKind::all_gather)
                continue;
            CAPTURE(to_string(kind));
            round_trips(topology, kind, 0, codegen::ModePreference::automatic, tally);
        }
    }
    report(tally);
}
