#include <baton/base/error.hpp>
#include <baton/cli/schedule_choice.hpp>
#include <baton/synth/synthesize.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cstdlib>

namespace baton::cli {

ScheduleChoice choose_schedules(const topologies::Topology& topology, const ir::Collective& collective,
                                const std::string& algorithm, const std::vector<Bytes>& sizes,
                                const sim::SimulationOptions& options,
                                const std::function<void(const std::string&, double)>& progress) {
    synth::SynthesisOptions wanted;
    wanted.algorithm = algorithm;
    wanted.sizes = sizes;
    std::sort(wanted.sizes.begin(), wanted.sizes.end());
    wanted.sizes.erase(std::unique(wanted.sizes.begin(), wanted.sizes.end()), wanted.sizes.end());
    wanted.tiles = options.tiles;
    wanted.policy = options.policy;
    wanted.seed = options.seed;
    wanted.progress = progress;
    const synth::Synthesis found = synth::synthesize(topology, collective, wanted);
    if (found.choices.empty())
        throw input_error("no time was left to choose a schedule", {}, "use --algorithm NAME");
    ScheduleChoice choice;
    choice.warnings = found.warnings;
    for (const Bytes size : sizes) {
        const auto distance = [&](const synth::Choice& c) { return std::llabs(c.size.count - size.count); };
        const auto nearest =
            std::min_element(found.choices.begin(), found.choices.end(),
                             [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
        const synth::Candidate& candidate =
            found.candidates[static_cast<std::size_t>(nearest->best().candidate)];
        const bool same = nearest->size == size;
        choice.schedules.push_back(
            {candidate.label(), candidate.algorithm, same ? nearest->best().tiles : options.tiles});
        if (!same)
            choice.warnings.push_back(
                fmt::format("no time was left to choose for {}: the schedule for {} is used", to_string(size),
                            to_string(nearest->size)));
    }
    return choice;
}

}  // namespace baton::cli
