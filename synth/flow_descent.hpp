// Concurrent flows of large machines without symmetry. Internal to the layer.
#pragma once

#include <baton/synth/multicommodity.hpp>

namespace baton::synth {

/// Improves the lengths of `flow`: mixes even flows so that the sum over resources of utilization^p falls, p
/// from 8 to 128 (the method of Frank and Wolfe); the slopes of that sum are lengths, and the best bound that
/// they prove stands. Whole rounds as `limits.most_descent` allows. Flow and lengths that come out are each
/// at least as good as before; units only with `limits.keep_units` and where they take at most 128 MiB.
void descend(const FlowNetwork& network, const FlowLimits& limits, ConcurrentFlow& flow);

}  // namespace baton::synth
