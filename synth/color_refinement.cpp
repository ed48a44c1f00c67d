#include <baton/synth/color_refinement.hpp>

#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>

#include <algorithm>
#include <tuple>

namespace baton::synth {

ColorRefinement::ColorRefinement(ColoredNetwork network) : network_(std::move(network)) {
    vertex_ = numbers_of(network_.vertex_color, vertex_count_);
    resource_ = numbers_of(network_.resource_color, resource_count_);
}

bool ColorRefinement::refine(int most) {
    for (;;) {
        const std::vector<int> vertex = vertex_, resource = resource_;
        const int vertex_count = vertex_count_, resource_count = resource_count_;
        round();
        if (vertex_count_ + resource_count_ == vertex_count + resource_count) return resource_count_ <= most;
        if (resource_count_ <= most) continue;
        vertex_ = vertex, resource_ = resource;
        vertex_count_ = vertex_count, resource_count_ = resource_count;
        return false;
    }
}

std::vector<int> ColorRefinement::arc_resources() const {
    std::vector<std::vector<int>> colors(network_.arcs.size());
    for (std::size_t a = 0; a < colors.size(); ++a) {
        for (const int r : network_.arcs[a].resources) colors[a].push_back(resource_[at(r)]);
        std::sort(colors[a].begin(), colors[a].end());
    }
    int count = 0;
    return numbers_of(colors, count);
}

std::vector<int> ColorRefinement::arcs(int& count) const {
    const std::vector<int> resources = arc_resources();
    std::vector<std::tuple<int, int, int>> keys;
    for (std::size_t a = 0; a < resources.size(); ++a)
        keys.emplace_back(vertex_[at(network_.arcs[a].from)], vertex_[at(network_.arcs[a].to)], resources[a]);
    return numbers_of(keys, count);
}

void ColorRefinement::round() {
    stop_point();
    const std::vector<int> arc_color = arc_resources();
    using Neighbors = std::vector<std::pair<int, int>>;
    std::vector<std::tuple<int, Neighbors, Neighbors>> vertex(vertex_.size());
    std::vector<std::pair<int, std::vector<std::tuple<int, int, int>>>> resource(resource_.size());
    for (std::size_t v = 0; v < vertex.size(); ++v) std::get<0>(vertex[v]) = vertex_[v];
    for (std::size_t r = 0; r < resource.size(); ++r) resource[r].first = resource_[r];
    for (std::size_t a = 0; a < arc_color.size(); ++a) {
        const ColoredNetwork::Arc& arc = network_.arcs[a];
        const int from = vertex_[at(arc.from)], to = vertex_[at(arc.to)];
        std::get<1>(vertex[at(arc.from)]).push_back({arc_color[a], to});
        std::get<2>(vertex[at(arc.to)]).push_back({arc_color[a], from});
        for (const int r : arc.resources) resource[at(r)].second.push_back({arc_color[a], from, to});
    }
    for (auto& [color, out, in] : vertex) {
        std::sort(out.begin(), out.end());
        std::sort(in.begin(), in.end());
    }
    for (auto& [color, arcs] : resource) std::sort(arcs.begin(), arcs.end());
    vertex_ = numbers_of(vertex, vertex_count_);
    resource_ = numbers_of(resource, resource_count_);
}

}  // namespace baton::synth
