#include <baton/synth/symmetric_forest.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/max_flow.hpp>
#include <baton/synth/rank_shifts.hpp>
#include <baton/synth/tree_schedules.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <string>

namespace baton::synth {
namespace {

using topologies::Route;
using topologies::Routes;
using topologies::Topology;

// Shifts that hold one capacity together; rows nest or are apart.
struct Row {
    std::vector<int> shifts;  // indices into SymmetricPacking::shifts_, ascending
    double capacity = 0;      // bytes per second per use
    int parent = -1;          // the row around it
};

// Shifts within a host, and to other hosts one each, all nearest ones, or all.
enum class ShiftsChosen { thin, nearest, all };

class SymmetricPacking {
public:
    SymmetricPacking(const Topology& topology, const Routes& routes, int ranks, bool turned, int most_depth)
        : topology_(topology),
          routes_(routes),
          ranks_(ranks),
          turned_(turned),
          most_depth_(most_depth),
          hosts_(topology.rank_hosts()) {}

    // Whether the machine can be read so; `detours`: with other ways than the default routes within hosts.
    bool read(const std::vector<int>& radix, ShiftsChosen which, bool detours) {
        group_ = Shifts(radix);
        choose_shifts(which);
        plain_ = shifts_.size();
        if (detours && !add_detours()) return false;
        if (shifts_.empty() || !load() || !nest()) return false;
        list_tails();
        return set_levels();
    }
    // Levels as far as hops: a new attempt starts from these.
    void reset_levels() { level_ = hops_; }

    // One root's trees for k per root at `seconds` times k per byte; false when they do not fit.
    bool fit(std::int64_t k, double seconds) {
        if (work_ <= 0 || !enough(k, seconds)) return false;
        const int hops = *std::max_element(hops_.begin(), hops_.end()), raises = 2 * hops + 2;
        if (too_deep(hops)) return false;
        reset_levels();
        for (int attempt = 0; attempt < raises; ++attempt) {
            const int before = served_;
            if (flow(k, seconds)) return !too_deep(*std::max_element(level_.begin(), level_.end()));
            if (attempt > 1 && served_ <= before) return false;
        }
        return false;
    }
    Forest forest(std::int64_t k) const;
    /// Numbers the ways that the trees take besides default routes.
    void take_numbers(WayNumbers* numbers) { numbers_ = numbers; }
    // Edges of all trees of the last fit, at most.
    std::int64_t edges() const;

private:
    const Route& route(int x, int y) const { return turned_ ? routes_.between(y, x) : routes_.between(x, y); }
    bool too_deep(int depth) const { return most_depth_ > 0 && depth > most_depth_; }
    int tail_of(int y, std::size_t s) const { return tail_[at(y) * shifts_.size() + s]; }
    // The route that a shift takes from x.
    const Route& route_of(int x, std::size_t s) const {
        return s < plain_ ? route(x, group_.add(x, shifts_[s])) : detour(x, group_.add(x, shifts_[s]))->route;
    }
    struct Detour {
        std::string path;  // as `via` of a step says
        Route route;
    };
    const Detour* detour(int x, int y) const;
    std::optional<Detour> find_detour(int sender, int receiver) const;
    bool add_detours();
    void choose_shifts(ShiftsChosen which);
    bool load();
    bool nest();
    void list_tails();
    bool set_levels();
    bool enough(std::int64_t k, double seconds) const;
    std::int64_t trees_over(const Row& row, std::int64_t k, double seconds) const;
    bool flow(std::int64_t k, double seconds);

    const Topology& topology_;
    const Routes& routes_;
    int ranks_;
    bool turned_;
    int most_depth_;
    std::vector<int> hosts_;
    Shifts group_{{1}};
    std::vector<int> shifts_;  // along default routes, then along detours
    std::size_t plain_ = 0;    // number of the former
    mutable std::map<std::pair<int, int>, std::optional<Detour>> detours_;  // by sender and receiver
    WayNumbers* numbers_ = nullptr;
    std::vector<Row> rows_;
    std::vector<int> row_of_;        // innermost row per shift
    std::vector<int> tail_;          // [rank][shift]: where the shift comes from that ends at the rank
    std::vector<int> hops_, level_;  // per rank
    std::vector<std::vector<std::int64_t>>
        used_;                   // [rank][class]: trees whose edge into the rank is of a class
    std::vector<int> class_of_;  // per shift
    int served_ = 0;
    std::int64_t work_ = 100'000'000;  // ranks times shifts, over all flows
};

void SymmetricPacking::choose_shifts(ShiftsChosen which) {
    using Reach = std::pair<std::int64_t, int>;
    std::map<int, Reach> least;
    std::map<int, int> first;
    const auto length = [&](int g) {
        const Route& way = route(0, g);
        return Reach{way.latency.picoseconds, way.hops};
    };
    for (int g = 1; g < ranks_; ++g) {
        if (hosts_[at(g)] == hosts_[0] || !route(0, g).reachable) continue;
        const auto [place, fresh] = least.emplace(hosts_[at(g)], length(g));
        if (!fresh) place->second = std::min(place->second, length(g));
    }
    shifts_.clear();
    for (int g = 1; g < ranks_; ++g) {
        if (!route(0, g).reachable) continue;
        if (hosts_[at(g)] != hosts_[0] && which != ShiftsChosen::all) {
            if (length(g) != least[hosts_[at(g)]]) continue;
            if (which == ShiftsChosen::thin && !first.emplace(hosts_[at(g)], g).second) continue;
        }
        shifts_.push_back(g);
    }
}

// The shortest way over nodes of the host that shares no link with the default route.
std::optional<SymmetricPacking::Detour> SymmetricPacking::find_detour(int sender, int receiver) const {
    constexpr int kMostHops = 6;
    const Route& usual = routes_.between(sender, receiver);
    const auto taken = [&](int link) {
        return std::any_of(usual.links.begin(), usual.links.end(),
                           [&](const topologies::LinkShare& use) { return use.link == link; });
    };
    const int start = topology_.rank_nodes[at(sender)], end = topology_.rank_nodes[at(receiver)];
    const std::string& host = topology_.nodes[at(start)].host;
    std::map<int, std::pair<int, int>> came = {{start, {-1, 0}}};  // node -> node before, hops
    std::vector<int> queue = {start};
    for (std::size_t q = 0; q < queue.size() && !came.contains(end); ++q) {
        const int here = queue[q], hops = came[here].second;
        if (hops == kMostHops) break;
        for (const int link : topology_.out_links[at(here)]) {
            const int next = topology_.links[at(link)].to;
            const topologies::Node& node = topology_.nodes[at(next)];
            if (came.contains(next) || taken(link)) continue;
            if (next != end && (node.type == topologies::NodeType::gpu || node.host != host)) continue;
            came[next] = {here, hops + 1};
            queue.push_back(next);
        }
    }
    if (!came.contains(end)) return std::nullopt;
    Detour made;
    for (int node = end; node != start; node = came[node].first)
        made.path = topology_.nodes[at(node)].id + (made.path.empty() ? "" : "/" + made.path);
    try {
        made.route = routes_.via(sender, receiver, made.path);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) throw;
        return std::nullopt;  // a node on the way does not forward so
    }
    return made;
}

const SymmetricPacking::Detour* SymmetricPacking::detour(int x, int y) const {
    const std::pair<int, int> pair = turned_ ? std::pair(y, x) : std::pair(x, y);
    const auto [place, fresh] = detours_.emplace(pair, std::nullopt);
    if (fresh) place->second = find_detour(pair.first, pair.second);
    return place->second ? &*place->second : nullptr;
}

// False where no shift has a way of its own from every rank.
bool SymmetricPacking::add_detours() {
    for (std::size_t s = 0; s < plain_; ++s) {
        const int g = shifts_[s];
        bool all = true;
        for (int x = 0; x < ranks_ && all; ++x) {
            const int y = group_.add(x, g);
            all = hosts_[at(x)] == hosts_[at(y)] && detour(x, y) != nullptr;
        }
        if (all) shifts_.push_back(g);
    }
    return shifts_.size() > plain_;
}

// What each shift puts on each link and limit, summed over all ranks; equal resources become one row.
bool SymmetricPacking::load() {
    const std::vector<std::vector<int>> limits_of = limits_of_links(topology_);
    const std::size_t links = topology_.links.size();
    std::vector<std::vector<std::pair<int, double>>> loads(links + topology_.limits.size());
    std::vector<double> sum(loads.size(), 0);
    for (std::size_t s = 0; s < shifts_.size(); ++s) {
        const Route& first = route_of(0, s);
        std::vector<int> touched;
        const auto put = [&](int resource, double share) {
            if (sum[at(resource)] == 0) touched.push_back(resource);
            sum[at(resource)] += share;
        };
        for (int x = 0; x < ranks_; ++x) {
            const Route& way = route_of(x, s);
            if (s < plain_ && (!way.reachable || way.hops != first.hops || way.latency != first.latency))
                return false;
            for (const topologies::LinkShare& use : way.links) {
                put(use.link, use.share);
                for (const int limit : limits_of[at(use.link)]) put(limit, use.share);
            }
        }
        for (const int resource : touched) {
            loads[at(resource)].push_back({static_cast<int>(s), sum[at(resource)]});
            sum[at(resource)] = 0;
        }
    }
    std::map<std::vector<int>, double> rows;  // shifts -> least capacity per use
    for (std::size_t r = 0; r < loads.size(); ++r) {
        if (loads[r].empty()) continue;
        std::vector<int> key;
        double most = 0;
        for (const auto& [s, amount] : loads[r]) {
            key.push_back(s);
            most = std::max(most, amount);
        }
        // Shifts that weigh less than others on a link are counted as if they weighed as much: never too
        // little.
        const double capacity = (r < links ? topology_.links[r].capacity().value()
                                           : topology_.limits[r - links].bandwidth.value()) /
                                most;
        const auto [place, fresh] = rows.emplace(std::move(key), capacity);
        if (!fresh) place->second = std::min(place->second, capacity);
    }
    rows_.clear();
    for (auto& [key, capacity] : rows) rows_.push_back({key, capacity, -1});
    return rows_.size() <= 4096;
}

bool SymmetricPacking::nest() {
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const Row& a, const Row& b) { return a.shifts.size() < b.shifts.size(); });
    row_of_.assign(shifts_.size(), -1);
    std::vector<int> outermost(shifts_.size(), -1);
    std::vector<std::size_t> covered;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        std::map<int, std::size_t> inner;
        for (const int s : rows_[r].shifts) {
            if (outermost[at(s)] >= 0) ++inner[outermost[at(s)]];
        }
        for (const auto& [row, count] : inner) {
            if (rows_[at(row)].shifts.size() != count) return false;
            rows_[at(row)].parent = static_cast<int>(r);
        }
        for (const int s : rows_[r].shifts) {
            if (row_of_[at(s)] < 0) row_of_[at(s)] = static_cast<int>(r);
            outermost[at(s)] = static_cast<int>(r);
        }
    }
    return true;
}

void SymmetricPacking::list_tails() {
    tail_.clear();
    tail_.reserve(at(ranks_) * shifts_.size());
    std::vector<int> inverse;
    for (const int g : shifts_) inverse.push_back(group_.inverse(g));
    for (int y = 0; y < ranks_; ++y) {
        for (const int g : inverse) tail_.push_back(group_.add(y, g));
    }
}

// Whole trees that a row carries.
std::int64_t SymmetricPacking::trees_over(const Row& row, std::int64_t k, double seconds) const {
    const double most = std::floor(row.capacity * seconds * static_cast<double>(k) * (1 + 1e-9));
    return static_cast<std::int64_t>(std::min(most, 4e18 / ranks_));
}

// Whether all rows together carry one root's trees, wherever they go.
bool SymmetricPacking::enough(std::int64_t k, double seconds) const {
    constexpr std::int64_t kAny = INT64_MAX / 4;
    std::vector<std::int64_t> inside(rows_.size(), 0);  // what shifts and rows inside can bring
    for (const int row : row_of_) inside[at(row)] = kAny;
    std::int64_t all = 0;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        const std::int64_t most = std::min(inside[r], trees_over(rows_[r], k, seconds));
        std::int64_t& up = rows_[r].parent < 0 ? all : inside[at(rows_[r].parent)];
        up = std::min(kAny, up + most);
    }
    return all >= k * (ranks_ - 1);
}

bool SymmetricPacking::set_levels() {
    hops_.assign(at(ranks_), -1);
    hops_[0] = 0;
    std::vector<int> queue = {0};
    for (std::size_t i = 0; i < queue.size(); ++i) {
        for (const int g : shifts_) {
            const int y = group_.add(queue[i], g);
            if (hops_[at(y)] >= 0) continue;
            hops_[at(y)] = hops_[at(queue[i])] + 1;
            queue.push_back(y);
        }
    }
    return queue.size() == at(ranks_);
}

bool SymmetricPacking::flow(std::int64_t k, double seconds) {
    work_ -= static_cast<std::int64_t>(shifts_.size()) * ranks_;
    const int source = 0, rows = ranks_, sink = ranks_ + static_cast<int>(rows_.size());
    MaxFlow<std::int64_t> flow(sink + 1);
    const std::int64_t all = k * (ranks_ - 1);
    for (int y = 1; y < ranks_; ++y) flow.add(source, y, k);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        flow.add(rows + static_cast<int>(r), rows_[r].parent < 0 ? sink : rows + rows_[r].parent,
                 trees_over(rows_[r], k, seconds));
    }
    struct Choice {
        int rank, row, arc;
    };
    std::vector<Choice> choices;
    std::vector<int> seen(rows_.size(), 0);
    for (int y = 1; y < ranks_; ++y) {
        for (std::size_t s = 0; s < shifts_.size(); ++s) {
            const int x = tail_of(y, s);
            if (level_[at(x)] >= level_[at(y)] || seen[at(row_of_[s])] == y) continue;
            seen[at(row_of_[s])] = y;
            choices.push_back({y, row_of_[s], flow.add(y, rows + row_of_[s], k)});
        }
    }
    const bool whole = flow.run(source, sink, all) == all;
    used_.assign(at(ranks_), std::vector<std::int64_t>(rows_.size(), 0));
    std::vector<std::int64_t> got(at(ranks_), 0);
    for (const Choice& choice : choices) {
        const std::int64_t amount = flow.flow_on(choice.arc);
        used_[at(choice.rank)][at(choice.row)] = amount;
        got[at(choice.rank)] += amount;
    }
    served_ = 0;
    std::vector<char> stays(at(ranks_), 0);
    const std::vector<int> before = level_;
    for (int y = 1; y < ranks_; ++y) {
        if (got[at(y)] == k) {
            ++served_;
            continue;
        }
        if (stays[at(y)]) continue;
        // Of two that have detours to each other one stays, so that it can pass on to the other.
        ++level_[at(y)];
        for (std::size_t s = plain_; s < shifts_.size(); ++s) {
            const int x = tail_of(y, s);
            if (before[at(x)] == before[at(y)] && level_[at(x)] == before[at(x)]) stays[at(x)] = 1;
        }
    }
    return whole;
}

std::int64_t SymmetricPacking::edges() const {
    std::set<std::int64_t> ends;
    for (const auto& of_rank : used_) {
        std::int64_t end = 0;
        for (const std::int64_t amount : of_rank) {
            if (amount > 0) ends.insert(end += amount);
        }
    }
    return static_cast<std::int64_t>(ends.size()) * ranks_ * (ranks_ - 1);
}

Forest SymmetricPacking::forest(std::int64_t k) const {
    struct Part {
        std::int64_t end;
        int parent;
        bool detour;
    };
    std::vector<std::vector<Part>> parts(at(ranks_));
    std::vector<std::int64_t> uses(shifts_.size(), 0);
    std::set<std::int64_t> boundaries = {0, k};
    std::vector<int> order;
    for (int y = 1; y < ranks_; ++y) order.push_back(y);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return level_[at(a)] < level_[at(b)]; });
    for (const int y : order) {
        std::int64_t end = 0;
        for (std::size_t r = 0; r < rows_.size(); ++r) {
            const std::int64_t amount = used_[at(y)][r];
            if (amount == 0) continue;
            // Of the shifts that count alike: the tail nearest to the root, then the shift used least.
            int best = -1, tail = -1;
            for (const int s : rows_[r].shifts) {
                const int x = tail_of(y, at(s));
                if (row_of_[at(s)] != static_cast<int>(r) || level_[at(x)] >= level_[at(y)]) continue;
                if (best < 0 ||
                    std::pair(level_[at(x)], uses[at(s)]) < std::pair(level_[at(tail)], uses[at(best)]))
                    best = s, tail = x;
            }
            uses[at(best)] += amount;
            parts[at(y)].push_back({end += amount, tail, at(best) >= plain_});
            boundaries.insert(end);
        }
    }
    Forest forest;
    forest.per_root = k;
    std::vector<PackedTree> trees;
    std::int64_t begin = 0;
    for (const std::int64_t end : boundaries) {
        if (end == 0) continue;
        PackedTree tree{0, end - begin, {}};
        for (const int y : order) {
            const auto part = std::find_if(parts[at(y)].begin(), parts[at(y)].end(),
                                           [&](const Part& p) { return p.end >= end; });
            tree.edges.push_back({part->parent, y});
            if (shifts_.size() > plain_) tree.ways.push_back(part->detour ? 0 : -1);
        }
        // Neighboring shares with the same tree are one.
        if (!trees.empty() && trees.back().edges == tree.edges && trees.back().ways == tree.ways)
            trees.back().multiplicity += tree.multiplicity;
        else
            trees.push_back(std::move(tree));
        begin = end;
    }
    for (int root = 0; root < ranks_; ++root) {
        for (const PackedTree& tree : trees) {
            PackedTree shifted{root, tree.multiplicity, {}, tree.ways};
            shifted.edges.reserve(tree.edges.size());
            for (const auto& [x, y] : tree.edges)
                shifted.edges.push_back({group_.add(x, root), group_.add(y, root)});
            for (std::size_t e = 0; e < shifted.ways.size(); ++e) {
                if (shifted.ways[e] < 0) continue;
                auto [sender, receiver] = shifted.edges[e];
                const std::string& path = detour(sender, receiver)->path;
                if (turned_) std::swap(sender, receiver);
                shifted.ways[e] = numbers_->number(sender, receiver, path);
            }
            forest.trees.push_back(std::move(shifted));
        }
    }
    // The busiest row says how long it really takes.
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        std::int64_t total = 0;
        for (std::size_t inner = 0; inner <= r; ++inner) {
            int up = static_cast<int>(inner);
            while (up >= 0 && up != static_cast<int>(r)) up = rows_[at(up)].parent;
            if (up < 0) continue;
            for (const auto& of_rank : used_) total += of_rank.empty() ? 0 : of_rank[inner];
        }
        forest.seconds_per_byte = std::max(
            forest.seconds_per_byte, static_cast<double>(total) / rows_[r].capacity / static_cast<double>(k));
    }
    return forest;
}

// Numbers of trees that are tried where no optimum tells which.
constexpr std::int64_t kSomeCounts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

// The least number of trees that is near the optimum (or the number asked for), at its least time.
std::optional<Forest> least_time(SymmetricPacking& packing, double optimum, const SymmetryOptions& options) {
    const bool any = options.exact_count || options.tolerance >= 1;
    for (std::int64_t k = options.exact_count ? options.most_per_root : 1; k <= options.most_per_root; ++k) {
        double high = optimum * (1 + (any ? 0.25 : options.tolerance));
        while (any && high < optimum * 1e3 && !packing.fit(k, high)) high *= 1.25;
        if (!packing.fit(k, high)) continue;
        double low = optimum * (1 - 1e-9);
        if (packing.fit(k, optimum)) {
            high = optimum;
        } else {
            while (high / low > 1 + 1e-7) {
                const double middle = std::sqrt(high * low);
                (packing.fit(k, middle) ? high : low) = middle;
            }
        }
        packing.fit(k, high);
        if (packing.edges() > options.most_edges) continue;
        Forest forest = packing.forest(k);
        forest.optimum = optimum;
        return forest;
    }
    return std::nullopt;
}

constexpr double kAlike = 1.001;
constexpr double kWorthTrees = 1.002;  // more trees are more messages

std::optional<Forest> best_of_some(SymmetricPacking& packing, double optimum, SymmetryOptions options) {
    std::optional<Forest> best;
    options.exact_count = true;
    const std::int64_t most = options.most_per_root;
    for (const std::int64_t k : kSomeCounts) {
        if (k > most) break;
        options.most_per_root = k;
        std::optional<Forest> forest = least_time(packing, optimum, options);
        if (forest && (!best || forest->seconds_per_byte * kWorthTrees < best->seconds_per_byte))
            best = std::move(forest);
    }
    return best;
}

}  // namespace

std::optional<Forest> symmetric_forest(const Topology& topology, const Routes& routes, int ranks,
                                       double optimum, const SymmetryOptions& options) {
    if (ranks < 2 || optimum <= 0) return std::nullopt;
    SymmetricPacking packing(topology, routes, ranks, options.turned, options.most_depth);
    packing.take_numbers(options.ways);
    const bool any_time = options.any_time || options.exact_count || options.tolerance >= 1;
    // One shift per other host, or all: the faster forest; of two that are about as fast the shallower.
    std::optional<Forest> best;
    for (const bool detours : {false, true}) {
        if (detours && (any_time || options.ways == nullptr)) break;
        for (const std::vector<int>& radix : shift_readings(ranks, topology.rank_hosts())) {
            for (const ShiftsChosen which : {ShiftsChosen::thin, ShiftsChosen::nearest, ShiftsChosen::all}) {
                // Ways to all ranks of other hosts only where the depth asks for them.
                if (which == ShiftsChosen::all && (options.most_depth == 0 || best)) continue;
                if (!packing.read(radix, which, detours)) continue;
                std::optional<Forest> forest = options.any_time ? best_of_some(packing, optimum, options)
                                                                : least_time(packing, optimum, options);
                if (!forest) continue;
                const bool alike = best && forest->seconds_per_byte < best->seconds_per_byte * kAlike &&
                                   best->seconds_per_byte < forest->seconds_per_byte * kAlike;
                if (!best || (alike ? depth_of(*forest) < depth_of(*best)
                                    : forest->seconds_per_byte < best->seconds_per_byte))
                    best = std::move(forest);
            }
            if (best) return best;
        }
    }
    return std::nullopt;
}

}  // namespace baton::synth
