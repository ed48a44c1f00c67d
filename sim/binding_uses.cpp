#include <baton/sim/binding_uses.hpp>

#include <baton/base/index.hpp>

#include <algorithm>

namespace baton::sim {
namespace {

// Shares of planes differ in their last bits.
constexpr double kSameShare = 1 + 1e-12;

class Comparison {
public:
    Comparison(const std::vector<Path>& paths, const std::vector<double>& capacities, std::int64_t work)
        : paths_(paths), capacities_(capacities), users_(capacities.size()), work_(work) {
        for (std::size_t p = 0; p < paths.size(); ++p) {
            for (const Use& use : paths[p].uses) users_[at(use.resource)].push_back(static_cast<int>(p));
        }
    }

    // Per resource whether it stays. Compared are only those that still stay, so that one of several alike
    // does.
    std::vector<char> binding() {
        std::vector<char> stays(users_.size(), 1);
        for (std::size_t a = 0; a < users_.size() && work_ > 0; ++a) {
            if (users_[a].empty()) continue;
            // Whatever is used by all of these paths is used by the one with the fewest uses.
            const int shortest = *std::min_element(users_[a].begin(), users_[a].end(), [&](int x, int y) {
                return paths_[at(x)].uses.size() < paths_[at(y)].uses.size();
            });
            work_ -= static_cast<std::int64_t>(users_[a].size());
            for (const Use& other : paths_[at(shortest)].uses) {
                const std::size_t b = at(other.resource);
                if (b == a || !stays[b] || users_[b].size() < users_[a].size() || !covered(a, b)) continue;
                stays[a] = 0;
                break;
            }
        }
        return stays;
    }

private:
    double part(const Path& path, std::size_t resource) const {
        const auto use = std::lower_bound(path.uses.begin(), path.uses.end(), static_cast<int>(resource),
                                          [](const Use& u, int r) { return u.resource < r; });
        const bool found = use != path.uses.end() && at(use->resource) == resource;
        return found ? use->weight / capacities_[resource] : 0;
    }
    bool covered(std::size_t a, std::size_t b) {
        for (const int p : users_[a]) {
            --work_;
            if (part(paths_[at(p)], a) > part(paths_[at(p)], b) * kSameShare) return false;
        }
        return true;
    }

    const std::vector<Path>& paths_;
    const std::vector<double>& capacities_;
    std::vector<std::vector<int>> users_;
    std::int64_t work_;
};

}  // namespace

void find_binding_uses(std::vector<Path>& paths, const std::vector<double>& capacities,
                       std::int64_t most_work) {
    const std::vector<char> stays = Comparison(paths, capacities, most_work).binding();
    for (Path& path : paths) {
        path.binding.clear();
        std::copy_if(path.uses.begin(), path.uses.end(), std::back_inserter(path.binding),
                     [&](const Use& use) { return stays[at(use.resource)] != 0; });
    }
}

}  // namespace baton::sim
