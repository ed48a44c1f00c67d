#include <baton/synth/rooted_cuts.hpp>

#include <baton/base/index.hpp>

#include <algorithm>
#include <numeric>

namespace baton::synth {

RootedCuts::RootedCuts(int vertices, const std::vector<std::pair<int, int>>& arcs, std::vector<int> roots,
                       std::vector<int> sinks)
    : vertices_(vertices),
      arcs_(arcs.size()),
      roots_(std::move(roots)),
      sinks_(std::move(sinks)),
      flow_(vertices + 1) {
    for (const auto& [from, to] : arcs) flow_.add(from, to, 0);
    for (const int root : roots_) flow_.add(vertices, root, 0);
}

std::set<std::vector<char>> RootedCuts::violated(const std::vector<std::int64_t>& rates,
                                                 const std::vector<std::int64_t>& shares) {
    for (std::size_t a = 0; a < arcs_; ++a) flow_.set_capacity(static_cast<int>(a), rates[a]);
    for (std::size_t i = 0; i < roots_.size(); ++i)
        flow_.set_capacity(static_cast<int>(arcs_ + i), shares[i]);
    const std::int64_t all = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
    std::set<std::vector<char>> found;
    if (all <= 0) return found;
    int holder = -1;
    for (const int sink : sinks_) {
        const std::int64_t reached =
            holder < 0 ? flow_.run(vertices_, sink, all) : flow_.move(holder, sink, all);
        holder = reached < all ? -1 : sink;
        if (reached == all) continue;
        std::vector<char> inside(at(vertices_));
        for (int v = 0; v < vertices_; ++v) inside[at(v)] = flow_.source_side(v);
        // A set without roots says nothing; `move` tells all but the source.
        if (std::any_of(roots_.begin(), roots_.end(), [&](int root) { return inside[at(root)] != 0; }))
            found.insert(std::move(inside));
    }
    return found;
}

}  // namespace baton::synth
