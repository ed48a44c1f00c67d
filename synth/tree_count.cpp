#include <baton/synth/tree_count.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/max_flow.hpp>

#include <algorithm>
#include <cmath>

namespace baton::synth {
namespace {

// Whether k trees per root fit into integer capacities.
class Feasibility {
public:
    Feasibility(const TreeGraph& graph, Work& work)
        : ranks_(graph.ranks),
          source_(graph.vertices),
          edges_(graph.edges),
          roots_(graph.roots),
          flow_(graph.vertices + 1),
          work_(work) {
        for (const RankEdge& edge : edges_) flow_.add(edge.from, edge.to, 0);
        for (const int root : roots_) flow_.add(source_, root, 0);
    }
    bool operator()(const std::vector<std::int64_t>& capacity, std::int64_t k) {
        for (std::size_t e = 0; e < edges_.size(); ++e) flow_.set_capacity(static_cast<int>(e), capacity[e]);
        for (std::size_t i = 0; i < roots_.size(); ++i)
            flow_.set_capacity(static_cast<int>(edges_.size() + i), k);
        const std::int64_t wanted = k * static_cast<std::int64_t>(roots_.size());
        int holder = -1;
        // The vertex that failed last is asked first.
        for (int i = 0; i < ranks_; ++i) {
            const int v = (suspect_ + i) % ranks_;
            if (roots_.size() == 1 && v == roots_.front()) continue;
            work_.spend(static_cast<std::int64_t>(edges_.size()));
            const std::int64_t reached =
                holder < 0 ? flow_.run(source_, v, wanted) : flow_.move(holder, v, wanted);
            if (reached < wanted) {
                suspect_ = v;
                inside_.resize(at(source_));
                for (int x = 0; x < source_; ++x) inside_[at(x)] = flow_.source_side(x);
                return false;
            }
            holder = v;
        }
        return true;
    }

    // After a refusal: the least U at which the set of ranks that fell short lets k trees of each of its
    // roots out. The set is kept for other k.
    double least_for_cut(std::int64_t k, double u) {
        Cut cut;
        for (const RankEdge& edge : edges_) {
            if (edge.rate > 0 && inside_[at(edge.from)] && !inside_[at(edge.to)])
                cut.rates.push_back(edge.rate);
        }
        cut.held = std::count_if(roots_.begin(), roots_.end(), [&](int root) { return inside_[at(root)]; });
        const double least = least_within(cut, k, u);
        if (cuts_.size() < kMostCuts) cuts_.push_back(std::move(cut));
        return least;
    }

    // The least U, from `u` on, that all sets which fell short so far allow; a flow for every rank is not
    // needed to see that k is no better than another.
    double least_for_cuts(std::int64_t k, double u) const {
        for (const Cut& cut : cuts_) u = least_within(cut, k, u);
        return u;
    }

private:
    struct Cut {
        std::vector<double> rates;
        std::int64_t held = 0;  // roots inside
    };
    static constexpr std::size_t kMostCuts = 256;

    static double least_within(const Cut& cut, std::int64_t k, double u) {
        if (cut.rates.empty() || cut.held == 0) return INFINITY;
        return least_scale(cut.rates, k * cut.held, u);
    }

    int ranks_, source_;
    const std::vector<RankEdge>& edges_;
    const std::vector<int>& roots_;
    std::vector<char> inside_;
    MaxFlow<std::int64_t> flow_;
    Work& work_;
    int suspect_ = 0;
    std::vector<Cut> cuts_;
};

constexpr std::int64_t kManyTrees = 64;  // above, a number is taken that is only near
constexpr double kNear = 0.004;

}  // namespace

std::int64_t whole_trees(double rate, double u) {
    return static_cast<std::int64_t>(std::floor(rate * u * (1 + 1e-9) + 1e-9));
}

double least_scale(const std::vector<double>& rates, std::int64_t wanted, double from) {
    double sum = 0;
    for (const double rate : rates) sum += rate;
    double u = std::max(from, static_cast<double>(wanted) / sum * (1 - 1e-12));
    while (true) {
        std::int64_t held = 0;
        double next = INFINITY;
        for (const double rate : rates) {
            const std::int64_t whole = whole_trees(rate, u);
            held += whole;
            next = std::min(next, static_cast<double>(whole + 1) / rate);
        }
        if (held >= wanted) return u;
        u = next;
    }
}

void Work::spend(std::int64_t amount) {
    left -= amount;
    if (left < 0)
        throw input_error("packing trees takes more than its work limit on this topology", {},
                          "choose another algorithm");
}

std::vector<std::int64_t> tree_capacities(const std::vector<RankEdge>& edges, double u) {
    std::vector<std::int64_t> capacity;
    for (const RankEdge& edge : edges) capacity.push_back(whole_trees(edge.rate, u));
    return capacity;
}

TreeCount least_trees(const TreeGraph& graph, double optimum, const ForestOptions& options, Work& work) {
    Feasibility fits(graph, work);
    TreeCount best;
    double best_time = INFINITY;
    for (std::int64_t k = options.exact_count ? options.most_per_root : 1; k <= options.most_per_root; ++k) {
        // U in seconds. From what all cuts demand without rounding it rises to what the cuts that fall short
        // demand with it, so it ends at the least.
        const double kd = static_cast<double>(k);
        double u = fits.least_for_cuts(k, optimum * kd * (1 - 4e-6));
        while (u < best_time * kd && !fits(tree_capacities(graph.edges, u), k))
            u = std::max(fits.least_for_cut(k, u), u * (1 + 1e-12));
        if (u / kd < best_time) {
            best_time = u / kd;
            best = {k, u};
        }
        const double enough = k < kManyTrees ? options.tolerance : std::max(options.tolerance, kNear);
        if (best_time <= optimum * (1 + enough)) break;
    }
    return best;
}

}  // namespace baton::synth
