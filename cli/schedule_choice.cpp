#include <baton/cli/schedule_choice.hpp>

#include <baton/base/error.hpp>
#include <baton/synth/fixed_patterns.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace baton::cli {
namespace {

/// Larger candidates are left out of "auto" where smaller ones are there: a choice should take seconds.
constexpr std::int64_t kMostSteps = 1'000'000;

}  // namespace

struct ScheduleChoice::Candidate {
    std::string name;
    std::shared_ptr<const ir::Algorithm> algorithm;
    std::unique_ptr<sim::PreparedAlgorithm> prepared;  // made when first needed
};

ScheduleChoice::~ScheduleChoice() = default;
ScheduleChoice::ScheduleChoice(ScheduleChoice&&) noexcept = default;

ScheduleChoice::ScheduleChoice(const topologies::Topology& topology, const ir::Collective& collective,
                               const std::string& algorithm)
    : topology_(topology) {
    synth::PatternOptions options;
    options.collective = collective;
    options.hosts = topology.rank_hosts();
    const auto add = [&](const std::string& name) {
        candidates_.push_back(
            {name, std::make_shared<const ir::Algorithm>(synth::fixed_pattern(name, options)), nullptr});
    };
    if (algorithm != "auto") {
        std::string why;
        if (!synth::serves(algorithm, options, &why))
            throw input_error(
                fmt::format("{} does not serve {}: {}", algorithm, ir::describe(collective), why),
                "--algorithm", "use auto, or another pattern");
        add(algorithm);
        return;
    }
    for (const synth::PatternInfo& pattern : synth::fixed_patterns()) {
        if (synth::serves(pattern.name, options)) add(pattern.name);
    }
    const auto large = [](const Candidate& c) { return c.algorithm->step_count() > kMostSteps; };
    if (!std::all_of(candidates_.begin(), candidates_.end(), large)) {
        std::string left_out;
        for (const Candidate& c : candidates_) {
            if (large(c)) left_out += (left_out.empty() ? "" : ", ") + c.name;
        }
        std::erase_if(candidates_, large);
        if (!left_out.empty())
            warnings_.push_back(fmt::format("not tried, more than {} steps: {}", kMostSteps, left_out));
    }
    if (candidates_.empty())
        throw input_error(fmt::format("no pattern serves {}", ir::describe(collective)), "--algorithm");
}

ScheduleChoice::Chosen ScheduleChoice::best(const sim::SimulationOptions& options) {
    Chosen chosen;
    sim::SimulationOptions quiet = options;
    quiet.trace = false;
    for (Candidate& candidate : candidates_) {
        if (!candidate.prepared) {
            candidate.prepared = std::make_unique<sim::PreparedAlgorithm>(topology_, *candidate.algorithm,
                                                                          options.policy, options.seed);
            for (const std::string& warning : candidate.prepared->warnings()) {
                if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end())
                    warnings_.push_back(warning);
            }
        }
        sim::SimulationResult result = candidate.prepared->run(quiet);
        const bool ends = result.outcome == sim::Outcome::finished;
        const bool had = chosen.algorithm && chosen.result.outcome == sim::Outcome::finished;
        if (chosen.algorithm && (!ends || (had && result.time >= chosen.result.time))) continue;
        chosen = {candidate.name, candidate.algorithm, std::move(result)};
    }
    return chosen;
}

}  // namespace baton::cli
