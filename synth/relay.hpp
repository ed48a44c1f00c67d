// Store and forward: makes any algorithm run on machines where not every two ranks have a route, for example
// tori of GPUs, which do not forward.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/topologies/routes.hpp>

namespace baton::synth {

/// The algorithm with every step between ranks that no route joins replaced by a chain of sends along a way
/// of least latency through other ranks of the communicator (of these the fewest hops), each of which keeps
/// the message in scratch places of its own. Steps with a `via` are kept. Inside a par block the first send
/// of the chain stands in the block and the others follow it, so that it still reads before anything is
/// written. Returns the algorithm unchanged (its loops too) when every step has a route, else explicit steps.
/// Throws an input error that names two ranks when even relays do not join them, above `step_limit` steps,
/// and for switch steps, which are never relayed, when one must be.
ir::Algorithm with_relays(const ir::Algorithm& algorithm, const topologies::Routes& routes,
                          std::int64_t step_limit = 50'000'000);

}  // namespace baton::synth
