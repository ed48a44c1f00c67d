// Topologies by formula. Direct networks (ring to fully_connected) link ranks to each other; fabrics
// (fat_tree, rail_optimized, dragonfly) link ports by switches, for the ports of composed hosts or for ranks
// of their own.
#include <baton/topologies/fabrics.hpp>
#include <baton/topologies/read.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <charconv>

namespace baton::topologies {
namespace {

struct Generator {
    const char* name;
    void (*make)(const JsonReader&, Topology&);
};

Link direct_defaults() {
    Link link;
    link.bandwidth = {50'000'000'000};
    link.latency = {500'000};
    link.kind = LinkKind::custom;
    link.provenance = {"default of the generator", true};
    return link;
}

void only_direct_keys(const JsonReader& entry, std::string_view size_key) {
    only_link_keys(entry, {"baton", "name", "preset", "description", "host", "generate", "links", "limits",
                           "machine", "overrides", "oneway", "forward", size_key});
}

// Makes n rank nodes "0", "1", ... A forwarding rank (a chip with a router) is a switch that carries a rank.
void add_ranks(const JsonReader& entry, std::int64_t n, Topology& topology) {
    const auto forward = entry.find("forward");
    const bool forwards = forward && forward->boolean();
    const auto host = entry.find("host");
    for (std::int64_t i = 0; i < n; ++i) {
        Node node;
        node.id = fmt::format("{}{}", forwards ? "chip" : "gpu", i);
        node.type = forwards ? NodeType::switch_node : NodeType::gpu;
        node.rank = static_cast<int>(i);
        if (host) node.host = host->string();
        topology.nodes.push_back(std::move(node));
    }
}

void add_direct_link(Link link, std::int64_t a, std::int64_t b, bool oneway, Topology& topology) {
    link.from = static_cast<int>(a);
    link.to = static_cast<int>(b);
    topology.add_link(std::move(link), oneway);
}

bool read_oneway(const JsonReader& entry) { return entry.find("oneway") && entry.at("oneway").boolean(); }

void make_ring(const JsonReader& entry, Topology& topology) {
    only_direct_keys(entry, "n");
    const std::int64_t n = entry.at("n").integer(1, kMaxNodes);
    const Link link = read_link_properties(entry, direct_defaults());
    const bool oneway = read_oneway(entry);
    require_room(entry, topology, n, 2 * n);
    add_ranks(entry, n, topology);
    // Two ranks have one cable, not two; with one-way links both directions are needed all the same.
    const std::int64_t links = n == 1 ? 0 : n == 2 && !oneway ? 1 : n;
    for (std::int64_t i = 0; i < links; ++i) add_direct_link(link, i, (i + 1) % n, oneway, topology);
}

std::vector<std::int64_t> read_shape(const JsonReader& entry) {
    const JsonReader value = entry.at("shape");
    std::vector<std::int64_t> shape;
    if (value.is_array()) {
        for (const JsonReader& element : value.elements()) shape.push_back(element.integer(1, kMaxNodes));
    } else if (value.is_integer()) {
        shape.push_back(value.integer(1, kMaxNodes));
    } else {
        const std::string text = value.string();
        for (std::size_t begin = 0; begin <= text.size();) {
            const std::size_t end = std::min(text.find('x', begin), text.size());
            std::int64_t side = 0;
            const auto [stop, status] = std::from_chars(text.data() + begin, text.data() + end, side);
            if (status != std::errc() || stop != text.data() + end || side < 1 || side > kMaxNodes) {
                throw value.error(fmt::format("'{}' is not a shape", text.substr(0, 40)),
                                  "write for example 4x4 or [4, 4, 4]");
            }
            shape.push_back(side);
            begin = end + 1;
        }
    }
    if (shape.empty() || shape.size() > 16) throw value.error("a shape has 1 to 16 dimensions");
    std::int64_t n = 1;
    for (const std::int64_t side : shape) {
        n *= side;
        if (n > kMaxNodes) throw value.error(fmt::format("this shape has more than {} nodes", kMaxNodes));
    }
    return shape;
}

// The last dimension runs fastest: rank = (x0 * s1 + x1) * s2 + x2.
void make_grid(const JsonReader& entry, bool wrap, Topology& topology) {
    only_direct_keys(entry, "shape");
    const std::vector<std::int64_t> shape = read_shape(entry);
    const Link link = read_link_properties(entry, direct_defaults());
    const bool oneway = read_oneway(entry);
    if (oneway && !wrap) throw entry.at("oneway").error("a one-way mesh is not connected", "use a torus");
    std::int64_t n = 1;
    for (const std::int64_t side : shape) n *= side;
    require_room(entry, topology, n, 2 * n * static_cast<std::int64_t>(shape.size()));
    add_ranks(entry, n, topology);
    std::int64_t stride = n;
    for (const std::int64_t side : shape) {
        stride /= side;
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t x = i / stride % side;
            if (x + 1 < side)
                add_direct_link(link, i, i + stride, oneway, topology);
            else if (wrap && (side > 2 || (side == 2 && oneway)))
                add_direct_link(link, i, i - x * stride, oneway, topology);
        }
    }
}

void make_mesh(const JsonReader& entry, Topology& topology) { make_grid(entry, false, topology); }
void make_torus(const JsonReader& entry, Topology& topology) { make_grid(entry, true, topology); }

void make_hypercube(const JsonReader& entry, Topology& topology) {
    only_direct_keys(entry, "dimensions");
    const std::int64_t d = entry.at("dimensions").integer(0, 20);
    const Link link = read_link_properties(entry, direct_defaults());
    if (read_oneway(entry)) throw entry.at("oneway").error("a one-way hypercube is not connected");
    const std::int64_t n = std::int64_t{1} << d;
    require_room(entry, topology, n, n * d);
    add_ranks(entry, n, topology);
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t bit = 0; bit < d; ++bit) {
            if ((i >> bit & 1) == 0) add_direct_link(link, i, i | std::int64_t{1} << bit, false, topology);
        }
    }
}

void make_fully_connected(const JsonReader& entry, Topology& topology) {
    only_direct_keys(entry, "n");
    const std::int64_t n = entry.at("n").integer(1, kMaxNodes);
    const Link link = read_link_properties(entry, direct_defaults());
    if (read_oneway(entry)) throw entry.at("oneway").error("a fully connected network has links both ways");
    require_room(entry, topology, n, n * (n - 1));
    add_ranks(entry, n, topology);
    for (std::int64_t a = 0; a < n; ++a) {
        for (std::int64_t b = a + 1; b < n; ++b) add_direct_link(link, a, b, false, topology);
    }
}

constexpr Generator kGenerators[] = {
    {"ring", make_ring},
    {"mesh", make_mesh},
    {"torus", make_torus},
    {"hypercube", make_hypercube},
    {"fully_connected", make_fully_connected},
    {"fat_tree", make_fat_tree_of_ranks},
    {"rail_optimized", make_rail_optimized_of_ranks},
    {"dragonfly", make_dragonfly_of_ranks},
};

}  // namespace

std::vector<std::string> generator_names() {
    std::vector<std::string> names;
    for (const Generator& generator : kGenerators) names.push_back(generator.name);
    return names;
}

void generate(const JsonReader& entry, Topology& topology) {
    const std::string name = entry.at("generate").string();
    for (const Generator& generator : kGenerators) {
        if (generator.name == name) return generator.make(entry, topology);
    }
    throw entry.at("generate")
        .error(
            fmt::format("unknown generator '{}'{}", name.substr(0, 40), near_names(name, generator_names())));
}

}  // namespace baton::topologies
