#include <baton/synth/tree_optimum.hpp>

#include <baton/base/error.hpp>
#include <baton/synth/bandwidth_bound.hpp>
#include <baton/synth/capacity_graph.hpp>
#include <baton/synth/participants.hpp>

#include <fmt/format.h>

namespace baton::synth {

TreeOptimum tree_optimum(const topologies::Topology& topology, const ir::Collective& collective) {
    using Kind = ir::CollectiveKind;
    if (collective.kind != Kind::broadcast && collective.kind != Kind::reduce &&
        collective.kind != Kind::all_gather && collective.kind != Kind::reduce_scatter)
        throw input_error(
            fmt::format("{} has no optimum over trees of one phase", ir::to_string(collective.kind)));
    const BandwidthBound bound = bandwidth_bound(topology, collective);
    TreeOptimum optimum;
    optimum.seconds_per_byte = bound.seconds_per_byte;
    optimum.exact = bound.best_cut;
    optimum.unit = capacity_graph(topology, member_nodes(topology, collective)).scale;
    const Rational per_unit = bound.seconds_per_byte * Rational(optimum.unit);
    optimum.per_root = per_unit.den();
    optimum.per_unit = per_unit.num();
    return optimum;
}

double phase_optimum(const topologies::Topology& topology, const ir::Collective& collective, bool turned) {
    using Kind = ir::CollectiveKind;
    ir::Collective phase = collective;
    phase.kind = ir::has_root(collective.kind) ? (turned ? Kind::reduce : Kind::broadcast)
                                               : (turned ? Kind::reduce_scatter : Kind::all_gather);
    return tree_optimum(topology, phase).seconds_per_byte.value();
}

}  // namespace baton::synth
