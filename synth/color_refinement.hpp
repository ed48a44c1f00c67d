// Which vertices, arcs and resources of a network look alike: color refinement.
#pragma once

#include <map>
#include <utility>
#include <vector>

namespace baton::synth {

/// Gives equal keys equal numbers from 0 on, in the order of the keys.
template <typename Key>
std::vector<int> numbers_of(const std::vector<Key>& keys, int& count) {
    std::map<Key, int> number;
    for (const Key& key : keys) number.emplace(key, 0);
    count = 0;
    for (auto& [key, value] : number) value = count++;
    std::vector<int> numbers;
    for (const Key& key : keys) numbers.push_back(number.at(key));
    return numbers;
}

/// A network whose arcs draw on resources, as far as refinement looks at it.
struct ColoredNetwork {
    struct Arc {
        int from = -1, to = -1;
        std::vector<int> resources;
    };
    std::vector<Arc> arcs;
    std::vector<int> vertex_color, resource_color;  ///< to begin with; numbers from 0 on
};

/// Colors of vertices and resources, refined by those of their neighbors until nothing changes. What some
/// symmetry maps to each other keeps one color; what has one color need not be symmetric.
class ColorRefinement {
public:
    explicit ColorRefinement(ColoredNetwork network);

    /// Until nothing changes, or more than `most` classes of resources would come out: then false, and the
    /// colors are the last ones within `most` (if any were).
    bool refine(int most);
    /// Splits the classes of resources by further keys, one per resource; to be refined again.
    template <typename Key>
    void split_resources(const std::vector<Key>& keys) {
        std::vector<std::pair<int, Key>> together;
        for (std::size_t r = 0; r < keys.size(); ++r) together.push_back({resource_[r], keys[r]});
        resource_ = numbers_of(together, resource_count_);
    }

    const std::vector<int>& vertices() const { return vertex_; }
    const std::vector<int>& resources() const { return resource_; }
    int vertex_count() const { return vertex_count_; }
    int resource_count() const { return resource_count_; }
    /// An arc's color: those of its resources.
    std::vector<int> arc_resources() const;
    /// Arcs by the colors of their ends and resources; `count`: how many classes.
    std::vector<int> arcs(int& count) const;

private:
    void round();

    ColoredNetwork network_;
    std::vector<int> vertex_, resource_;
    int vertex_count_ = 0, resource_count_ = 0;
};

}  // namespace baton::synth
