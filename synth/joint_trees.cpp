#include <baton/synth/joint_trees.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/linear_program.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace baton::synth {
namespace {

constexpr std::int64_t kMostProgramWork = 250'000'000;  // of all solves, some seconds

constexpr double kProfit = 1e-7;  // that makes a tree worth a column

struct Stretch {
    double factor, expected;  // expected: share of the rate that is reached at run time
};
constexpr Stretch kStretches[] = {{1, 1}, {1.1, 0.99}, {1.25, 0.98}, {1.5, 0.95}, {2, 0.92}, {1e6, 0.85}};

// The cheapest tree of bounded depth that is easily found.
class TreeSearch {
public:
    // `turned`: trees towards the root.
    TreeSearch(int ranks, const std::vector<TreeEdge>& edges, bool turned)
        : ranks_(ranks), ways_(at(ranks)), into_(at(ranks)) {
        for (std::size_t e = 0; e < edges.size(); ++e) {
            const int from = turned ? edges[e].to : edges[e].from, to = turned ? edges[e].from : edges[e].to;
            ways_[at(from)].push_back({to, static_cast<int>(e)});
            into_[at(to)].push_back({from, static_cast<int>(e)});
        }
    }

    /// Hops to the farthest rank, ranks when one is out of reach.
    int eccentricity(int root) const {
        const std::vector<int> level = levels(root);
        return *std::max_element(level.begin(), level.end());
    }

    /// False when the depth does not suffice. Prices per edge, not negative.
    bool find(int root, int most_depth, const std::vector<double>& prices) {
        most_depth_ = most_depth;
        prices_ = &prices;
        root_ = root;
        const bool greedy = grow();
        if (greedy) improve();
        const double first = greedy ? cost() : INFINITY;
        std::vector<int> parent = parent_, from = from_;
        if (by_levels()) {
            improve();
            if (cost() < first) return true;
        }
        if (!greedy) return false;
        parent_ = std::move(parent);
        from_ = std::move(from);
        settle();
        return true;
    }

    double cost() const {
        double sum = 0;
        for (int v = 0; v < ranks_; ++v) sum += v == root_ ? 0 : (*prices_)[at(parent_[at(v)])];
        return sum;
    }
    int depth() const { return *std::max_element(depth_.begin(), depth_.end()); }
    /// Edges by depth.
    std::vector<int> tree() const {
        std::vector<int> list;
        for (const int v : order_) {
            if (v != root_) list.push_back(parent_[at(v)]);
        }
        return list;
    }
    std::int64_t work = 0;

private:
    struct Way {
        int end, edge;
    };

    std::vector<int> levels(int root) const {
        std::vector<int> level(at(ranks_), ranks_);
        level[at(root)] = 0;
        std::vector<int> queue = {root};
        for (std::size_t i = 0; i < queue.size(); ++i) {
            for (const Way& way : ways_[at(queue[i])]) {
                if (level[at(way.end)] < ranks_) continue;
                level[at(way.end)] = level[at(queue[i])] + 1;
                queue.push_back(way.end);
            }
        }
        return level;
    }

    // The cheapest edge out of what is there, again and again. The rest must stay within the depth: where it
    // does not, there is no tree.
    bool grow() {
        parent_.assign(at(ranks_), -1);
        depth_.assign(at(ranks_), -1);
        from_.assign(at(ranks_), -1);
        std::vector<double> key(at(ranks_), INFINITY);
        std::vector<int> best(at(ranks_), -1), tail(at(ranks_), -1);
        depth_[at(root_)] = 0;
        const auto open = [&](int v) {
            if (depth_[at(v)] >= most_depth_) return;
            for (const Way& way : ways_[at(v)]) {
                ++work;
                if (depth_[at(way.end)] >= 0) continue;
                const double price = (*prices_)[at(way.edge)];
                if (price < key[at(way.end)] || (price == key[at(way.end)] && tail[at(way.end)] >= 0 &&
                                                 depth_[at(v)] < depth_[at(tail[at(way.end)])])) {
                    key[at(way.end)] = price;
                    best[at(way.end)] = way.edge;
                    tail[at(way.end)] = v;
                }
            }
        };
        open(root_);
        for (int count = 1; count < ranks_; ++count) {
            int next = -1;
            for (int v = 0; v < ranks_; ++v) {
                if (depth_[at(v)] >= 0 || tail[at(v)] < 0) continue;
                if (next < 0 || key[at(v)] < key[at(next)] ||
                    (key[at(v)] == key[at(next)] && depth_[at(tail[at(v)])] < depth_[at(tail[at(next)])]))
                    next = v;
            }
            if (next < 0) return false;
            parent_[at(next)] = best[at(next)];
            from_[at(next)] = tail[at(next)];
            depth_[at(next)] = depth_[at(tail[at(next)])] + 1;
            open(next);
        }
        settle();
        return true;
    }

    // Every rank below the cheapest rank of the level before.
    bool by_levels() {
        const std::vector<int> level = levels(root_);
        parent_.assign(at(ranks_), -1);
        from_.assign(at(ranks_), -1);
        for (int v = 0; v < ranks_; ++v) {
            if (level[at(v)] > most_depth_) return false;
            if (v == root_) continue;
            for (const Way& way : into_[at(v)]) {
                ++work;
                if (level[at(way.end)] != level[at(v)] - 1) continue;
                if (parent_[at(v)] < 0 || (*prices_)[at(way.edge)] < (*prices_)[at(parent_[at(v)])]) {
                    parent_[at(v)] = way.edge;
                    from_[at(v)] = way.end;
                }
            }
        }
        settle();
        return true;
    }

    // Ranks move below cheaper ones for as long as that is possible.
    void improve() {
        constexpr int kPasses = 12;
        for (int pass = 0; pass < kPasses; ++pass) {
            bool moved = false;
            for (int v = 0; v < ranks_; ++v) {
                if (v == root_) continue;
                int best = -1, below = -1;
                double price = (*prices_)[at(parent_[at(v)])];
                for (const Way& way : into_[at(v)]) {
                    ++work;
                    const double other = (*prices_)[at(way.edge)];
                    const bool same = other == price && best < 0 && depth_[at(way.end)] + 1 < depth_[at(v)];
                    if ((other >= price && !same) || depth_[at(way.end)] + 1 + height_[at(v)] > most_depth_ ||
                        under(way.end, v))
                        continue;
                    best = way.edge, below = way.end, price = other;
                }
                if (best < 0) continue;
                parent_[at(v)] = best;
                from_[at(v)] = below;
                settle();
                moved = true;
            }
            if (!moved) return;
        }
    }
    // Whether v is u or above it.
    bool under(int u, int v) const {
        while (u >= 0 && u != v) u = from_[at(u)];
        return u == v;
    }
    // Depths, heights and the order by depth.
    void settle() {
        std::vector<int> first(at(ranks_), -1), next(at(ranks_), -1);
        for (int v = ranks_ - 1; v >= 0; --v) {
            if (v == root_) continue;
            next[at(v)] = first[at(from_[at(v)])];
            first[at(from_[at(v)])] = v;
        }
        order_ = {root_};
        depth_.assign(at(ranks_), 0);
        height_.assign(at(ranks_), 0);
        for (std::size_t i = 0; i < order_.size(); ++i) {
            for (int v = first[at(order_[i])]; v >= 0; v = next[at(v)]) {
                depth_[at(v)] = depth_[at(order_[i])] + 1;
                order_.push_back(v);
            }
        }
        for (std::size_t i = order_.size(); i-- > 1;) {
            int& height = height_[at(from_[at(order_[i])])];
            height = std::max(height, height_[at(order_[i])] + 1);
        }
        work += ranks_;
    }

    int ranks_, root_ = 0, most_depth_ = 0;
    const std::vector<double>* prices_ = nullptr;
    std::vector<std::vector<Way>> ways_, into_;
    std::vector<int> parent_, from_, depth_, height_, order_;  // parent_: edge, from_: rank
};

// The linear program over the trees found so far.
class TreeProgram {
public:
    TreeProgram(int ranks, const std::vector<TreeEdge>& edges, const std::vector<double>& capacity,
                const JointTreeOptions& options)
        : ranks_(ranks),
          edges_(edges),
          capacity_(capacity),
          options_(options),
          lp_(true),
          row_(capacity.size(), -1),
          search_{TreeSearch(ranks, edges, true), TreeSearch(ranks, edges, false)} {
        for (const double c : capacity) scale_ = std::max(scale_, c);
        goal_ = options.target / scale_;
        for (const TreeEdge& edge : edges) {
            for (const topologies::LinkShare& use : edge.uses) {
                int& row = row_[at(use.link)];
                if (row < 0)
                    row = lp_.add_row(-LinearProgram::kInfinity, capacity[at(use.link)] / scale_, {});
            }
        }
        for (int v = 0; v < ranks; ++v) root_row_.push_back(lp_.add_row(0, 0, {}));
        roots_ = options.roots;
        for (int v = 0; v < ranks && options.roots.empty(); ++v) roots_.push_back(v);
    }

    JointTrees run() {
        int shallowest = ranks_;
        for (const int v : roots_)
            shallowest =
                std::min(shallowest, std::max(search_[0].eccentricity(v), search_[1].eccentricity(v)));
        if (shallowest >= ranks_) return {};
        struct Reached {
            Stretch stretch;
            int depth;
            double rate;
        };
        std::vector<Reached> reached;
        double before = 0, best = 0;  // rate under the shares before; the best to be expected
        for (const Stretch& shares : kStretches) {
            const double target = options_.target / scale_;
            if (target > 0 && best >= target * shares.expected) break;
            goal_ = target;
            stretch(shares.factor);
            std::vector<double> rates;
            for (int depth = shallowest;; depth = std::min(deepest(), depth + std::max(1, depth / 4))) {
                limit(depth);
                converge(depth);
                reached.push_back({shares, depth, rate_});
                rates.push_back(rate_);
                best = std::max(best, rate_ * shares.expected);
                // Deeper trees twice without gain: there is nothing more to be had.
                const bool idle = rates.size() > 2 && rate_ < rates[rates.size() - 3] * (1 + kWorthDepth);
                if (enough() || idle || depth >= deepest() || work() > options_.work) break;
            }
            if (options_.first_share < 0 || (enough() && goal_ >= target) || work() > options_.work ||
                rate_ < before * (1 + options_.tolerance))
                break;
            before = rate_;
        }
        if (best <= 0) return {};
        for (const Reached& point : reached) {
            if (point.rate * point.stretch.expected < best * (1 - options_.tolerance)) continue;
            stretch(point.stretch.factor);
            JointTrees trees = result(point.depth);
            trees.stretch = point.stretch.factor;
            return trees;
        }
        return {};
    }

private:
    static constexpr double kWorthDepth = 0.004;
    struct Column {
        bool out;
        WeightedTree tree;
        int variable;
    };

    int deepest() const { return options_.most_depth > 0 ? options_.most_depth : ranks_ - 1; }
    // Lets every edge have so many times its even share.
    void stretch(double factor) {
        if (options_.first_share < 0) return;
        for (std::size_t r = at(options_.first_share); r < capacity_.size(); ++r) {
            if (row_[r] >= 0)
                lp_.set_row_bounds(row_[r], -LinearProgram::kInfinity, capacity_[r] * factor / scale_);
        }
        stretch_ = factor;
    }
    // Shuts deeper trees out.
    void limit(int depth) {
        for (const Column& column : columns_)
            lp_.set_bounds(column.variable, 0, column.tree.depth > depth ? 0 : LinearProgram::kInfinity);
    }
    double room(std::size_t resource) const {
        const bool share = options_.first_share >= 0 && resource >= at(options_.first_share);
        return capacity_[resource] * (share ? stretch_ : 1) / scale_;
    }

    std::int64_t work() const { return search_[0].work + search_[1].work; }
    bool enough() const { return goal_ > 0 && rate_ >= goal_ * (1 - options_.tolerance); }

    // Adds trees until the target is reached (true) or under this depth nothing more is to be had.
    bool converge(int depth) {
        double blend = options_.prices.empty() ? 0 : 0.7;
        constexpr int kPatience = 12;
        double before = rate_;
        for (int round = 1; work() <= options_.work; ++round) {
            solve();
            if (enough()) return true;
            if (round % kPatience == 0) {
                if (rate_ < before * (1 + options_.tolerance / 2)) return false;
                before = rate_;
            }
            bool promising = true;
            while (!generate(depth, blend, promising)) {
                if (blend < 0.05 || !promising) return false;
                blend = blend > 0.2 ? blend / 2 : 0;
            }
            if (!promising && round > 3) return false;
        }
        return false;
    }

    void solve() {
        const LinearSolution solution = lp_.solve(std::max<std::int64_t>(1, kMostProgramWork - lp_.work()));
        if (solution.status == LinearSolution::Status::stopped)
            throw input_error(
                fmt::format("the linear program over trees takes more work than its limit of {} "
                            "(pivots times rows and columns); see forest and compose",
                            kMostProgramWork));
        if (solution.status != LinearSolution::Status::optimal) return;
        values_ = solution.values;
        duals_ = solution.duals;
        rate_ = solution.objective;
        ++rounds_;
    }

    // Prices of resources: of the program, blended with those of the optimum.
    std::vector<double> prices(double blend) const {
        std::vector<double> list(capacity_.size(), 0);
        double sum = 0;
        for (std::size_t r = 0; r < list.size(); ++r) {
            if (row_[r] < 0) continue;
            list[r] = duals_.empty() ? 0 : std::max(0.0, duals_[at(row_[r])]);
            sum += list[r];
        }
        if (sum <= 0) {
            for (std::size_t r = 0; r < list.size(); ++r)
                list[r] = capacity_[r] > 0 ? scale_ / capacity_[r] : 0;
            if (options_.prices.empty()) return list;
            blend = 0.999;
        }
        for (std::size_t r = 0; r < list.size() && blend > 0; ++r)
            list[r] = list[r] * (1 - blend) + (r < options_.prices.size() ? options_.prices[r] * blend : 0);
        return list;
    }

    // Adds the cheapest trees at these prices that the program wants. False when there is none. `promising`:
    // the target is within reach as far as these trees tell.
    bool generate(int depth, double blend, bool& promising) {
        const std::vector<double> resource = prices(blend);
        double worth = 0, largest = 0;
        for (std::size_t r = 0; r < resource.size(); ++r) {
            if (row_[r] >= 0) worth += resource[r] * room(r);
        }
        std::vector<double> price(edges_.size(), 0);
        for (std::size_t e = 0; e < edges_.size(); ++e) {
            for (const topologies::LinkShare& use : edges_[e].uses)
                price[e] += resource[at(use.link)] * use.share;
            largest = std::max(largest, price[e]);
        }
        // Among equals the less used: prices of nothing would make trees pile up on some links. A prime above
        // the usual numbers of peers, so that every rank prefers others.
        for (std::size_t e = 0; e < edges_.size(); ++e)
            price[e] += 1e-9 * largest * static_cast<double>(e % 11);
        std::vector<Column> found;
        double cheapest = INFINITY;
        for (const int v : roots_) {
            double both = 0;
            for (const bool out : {false, true}) {
                TreeSearch& search = search_[out ? 1 : 0];
                if (!search.find(v, depth, price)) {
                    both = INFINITY;
                    break;
                }
                both += search.cost();
                found.push_back({out, {v, search.tree(), 0, search.depth()}, -1});
            }
            cheapest = std::min(cheapest, both);
        }
        promising = goal_ <= 0 || worth >= goal_ * (1 - options_.tolerance) * cheapest;
        if (!promising) {
            // Is it the depth, or do these ways not reach the goal at all?
            double least = INFINITY;
            for (const int v : roots_) {
                if (!search_[0].find(v, ranks_ - 1, price)) continue;
                const double in = search_[0].cost();
                if (search_[1].find(v, ranks_ - 1, price)) least = std::min(least, in + search_[1].cost());
            }
            const double reachable = std::max(rate_, worth / least);
            if (reachable < goal_) goal_ = reachable;
            promising = worth >= goal_ * (1 - options_.tolerance) * cheapest;
        }
        bool added = false;
        for (Column& column : found) added |= add(std::move(column));
        return added;
    }

    // False when the program does not want it.
    bool add(Column column) {
        std::vector<double> load(capacity_.size(), 0);
        std::vector<int> touched;
        for (const int e : column.tree.edges) {
            for (const topologies::LinkShare& use : edges_[at(e)].uses) {
                if (load[at(use.link)] == 0) touched.push_back(use.link);
                load[at(use.link)] += use.share;
            }
        }
        std::sort(touched.begin(), touched.end());
        const int root = root_row_[at(column.tree.root)];
        const double sign = column.out ? -1 : 1;
        std::vector<std::pair<int, double>> terms = {{root, sign}};
        double profit = column.out ? 0 : 1;
        if (!duals_.empty()) profit -= sign * duals_[at(root)];
        for (const int r : touched) {
            terms.push_back({row_[at(r)], load[at(r)]});
            if (!duals_.empty()) profit -= std::max(0.0, duals_[at(row_[at(r)])]) * load[at(r)];
        }
        if (!duals_.empty() && profit < kProfit) return false;
        std::vector<int> key = column.tree.edges;
        std::sort(key.begin(), key.end());
        key.push_back(column.tree.root);
        if (!known_.insert({column.out, std::move(key)}).second) return false;
        column.variable = lp_.add_column(column.out ? 0 : 1, 0, LinearProgram::kInfinity, terms);
        columns_.push_back(std::move(column));
        return true;
    }

    // The solution with trees of at most this depth, without slivers.
    JointTrees result(int depth) {
        limit(depth);
        solve();
        // Slivers cost steps and carry little: they go where the others make up for them.
        constexpr double kSliverLoss = 2e-4;
        const double whole = rate_;
        for (const double sliver : {3e-4, 1e-3, 3e-3, 1e-2}) {
            std::vector<int> closed;
            for (const Column& column : columns_) {
                const double value = values_[at(column.variable)];
                if (value > 0 && value < sliver * whole) closed.push_back(column.variable);
            }
            if (closed.empty()) continue;
            for (const int variable : closed) lp_.set_bounds(variable, 0, 0);
            solve();
            if (rate_ >= whole * (1 - kSliverLoss)) continue;
            for (const int variable : closed) lp_.set_bounds(variable, 0, LinearProgram::kInfinity);
            solve();
            break;
        }
        JointTrees trees;
        for (Column& column : columns_) {
            column.tree.rate = values_[at(column.variable)] * scale_;
            if (column.tree.rate > 1e-9 * whole * scale_)
                (column.out ? trees.out : trees.in).push_back(column.tree);
        }
        for (std::vector<WeightedTree>* list : {&trees.in, &trees.out}) {
            std::stable_sort(list->begin(), list->end(), [](const WeightedTree& a, const WeightedTree& b) {
                return std::pair(a.root, -a.rate) < std::pair(b.root, -b.rate);
            });
        }
        trees.rate = rate_ * scale_;
        trees.most_depth = depth;
        trees.rounds = rounds_;
        trees.columns = static_cast<int>(columns_.size());
        return trees;
    }

    int ranks_;
    const std::vector<TreeEdge>& edges_;
    const std::vector<double>& capacity_;
    const JointTreeOptions& options_;
    LinearProgram lp_;
    double scale_ = 0, rate_ = 0;
    double stretch_ = 1;
    double goal_ = 0;  // the target, or less where prices show that it is out of reach
    std::vector<int> row_, root_row_, roots_;
    TreeSearch search_[2];
    std::vector<Column> columns_;
    std::set<std::pair<bool, std::vector<int>>> known_;
    std::vector<double> values_, duals_;
    int rounds_ = 0;
};

}  // namespace

JointTrees joint_trees(int ranks, const std::vector<TreeEdge>& edges, const std::vector<double>& capacity,
                       const JointTreeOptions& options) {
    return TreeProgram(ranks, edges, capacity, options).run();
}

}  // namespace baton::synth
