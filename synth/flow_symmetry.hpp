// Concurrent flows of machines that look alike from many places. Internal to the layer.
#pragma once

#include <baton/synth/multicommodity.hpp>

namespace baton::synth {

/// Classes: resources that color refinement cannot tell apart, neither by their neighbors nor by how the
/// sources see them. The best flow among mixtures of even flows (each: over all shortest paths under lengths
/// that are equal within a class, divided at each vertex in proportion to capacity), and the best such
/// lengths. Empty when there are more classes than `limits` allows or nothing is to be moved. See
/// `concurrent_flow`.
ConcurrentFlow symmetric_flow(const FlowNetwork& network, const FlowLimits& limits);

}  // namespace baton::synth
