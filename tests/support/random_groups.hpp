// Random groups of ranks for property tests.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "support/random_topology.hpp"

namespace baton::test {

/// One to three disjoint groups of random members in random order, now and then with ranks outside them.
inline std::vector<std::vector<int>> random_groups(detail::Dice& dice, int ranks) {
    std::vector<int> order(static_cast<std::size_t>(ranks));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[static_cast<std::size_t>(dice.between(0, static_cast<int>(i) - 1))]);
    std::vector<std::vector<int>> groups;
    for (int begin = 0; begin < ranks && groups.size() < 3;) {
        const int size = std::min(ranks - begin, dice.between(1, ranks));
        groups.emplace_back(order.begin() + begin, order.begin() + begin + size);
        begin += size + dice.between(0, 1);
    }
    return groups;
}

}  // namespace baton::test
