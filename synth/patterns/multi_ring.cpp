// Several rings at once, each with its share of the data and a channel of its own.
#include <baton/synth/patterns/family.hpp>

#include <baton/base/error.hpp>
#include <baton/synth/embed.hpp>

#include <fmt/format.h>
#include <algorithm>

namespace baton::synth::patterns {
namespace {

std::string refuse(const PatternOptions& options) {
    if (options.rings.empty()) return "multi_ring needs the orders of its rings";
    if (options.rings.size() > 1024)
        return fmt::format("multi_ring takes 1024 rings at most; got {}", options.rings.size());
    for (const WeightedRing& ring : options.rings) {
        if (ring.weight < 1 || ring.weight > 1 << 20)
            return fmt::format("weights of rings are 1 to {}; got {}", 1 << 20, ring.weight);
        if (ring.order.empty()) return "multi_ring needs the order of every ring";
    }
    return {};
}

ir::Algorithm make(const PatternOptions& options) {
    ir::Collective whole = options.collective;
    const auto lanes = static_cast<std::int64_t>(options.rings.size());
    const std::int64_t each = common_chunks("ring", whole);
    whole.chunks = each * lanes;
    const bool equal = std::all_of(options.rings.begin(), options.rings.end(), [&](const WeightedRing& ring) {
        return ring.weight == options.rings[0].weight;
    });
    if (!equal)
        for (const WeightedRing& ring : options.rings)
            whole.weights.insert(whole.weights.end(), static_cast<std::size_t>(each), ring.weight);
    std::vector<ir::Step> steps;
    for (int g = 0; g < whole.group_count(); ++g) {
        Lane lane;
        lane.count = lanes;
        for (const WeightedRing& ring : options.rings) {
            lane.channel = static_cast<int>(lane.index);
            lane.scratch =
                append_ordered("ring", whole, g, positions_in_order(whole, g, ring.order), lane, steps);
            ++lane.index;
        }
    }
    return explicit_algorithm(fmt::format("multi_ring {}", to_string(whole.kind)), whole, std::move(steps));
}

}  // namespace

Family multi_ring() {
    Family family;
    family.info = {"multi_ring", "several rings at once, each with its share of the data"};
    for (const Entry& entry : ring().entries) family.entries.push_back({entry.kind, entry.blocks});
    family.make = make;
    family.refuse = refuse;
    return family;
}

}  // namespace baton::synth::patterns
