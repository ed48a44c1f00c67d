// Concurrent flows of machines that look alike from many places. Internal to the layer.
#pragma once

#include <baton/synth/multicommodity.hpp>

namespace baton::synth {

/// Classes of resources that color refinement cannot tell apart: for each resource its class, numbered from
/// 0.
std::vector<int> resource_classes(const FlowNetwork& network);

/// The best flow among mixtures of even flows (each: over all shortest paths under lengths that are equal
/// within a class, divided at each vertex in proportion to capacity), and the best such lengths. Empty when
/// there are more classes than `limits` allows or nothing is to be moved. See `concurrent_flow`.
ConcurrentFlow symmetric_flow(const FlowNetwork& network, const FlowLimits& limits);

}  // namespace baton::synth
