// Any bytes: a topology or an input error; what loads is summarized, routed, and written out so that it loads
// back equal.
#include <baton/base/error.hpp>
#include <baton/topologies/draw.hpp>
#include <baton/topologies/inspect.hpp>
#include <baton/topologies/load.hpp>
#include <baton/topologies/routes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace baton::topologies;
    try {
        const Topology topology =
            parse_topology({reinterpret_cast<const char*>(data), size}, "fuzz", "/nonexistent");
        // Large machines are accepted, but would slow the search down.
        if (topology.nodes.size() > 2000 || topology.links.size() > 20000) return 0;
        const Topology again = parse_topology(to_json(topology), "again");
        if (again.hash() != topology.hash()) __builtin_trap();
        static_cast<void>(summarize(topology));
        static_cast<void>(problems(topology));
        static_cast<void>(to_dot(topology));
        const Routes routes(topology);
        const int ranks = std::min(topology.rank_count(), 8);
        for (int a = 0; a < ranks; ++a) {
            for (int b = 0; b < ranks; ++b) {
                double out = 0;
                const int node = topology.rank_nodes[static_cast<std::size_t>(a)];
                const Route& route = routes.between(a, b);
                for (const LinkShare& share : route.links) {
                    if (topology.links[static_cast<std::size_t>(share.link)].from == node) out += share.share;
                }
                if (route.reachable && a != b && (out < 0.999 || out > 1.001)) __builtin_trap();
            }
        }
    } catch (const baton::Error& error) {
        if (error.kind() != baton::ErrorKind::input) __builtin_trap();
    }
    return 0;
}
