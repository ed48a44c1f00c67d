// The best ring of few ranks. A hop by itself is no slower than among the others, so that dynamic programming
// over subsets (Held and Karp 1962) bounds rate and latency; where its ring does as well with all hops at
// once, it is the best. Else branch and bound follows the loads, with the dynamic program as its bound on the
// rest.
#include <baton/base/stop.hpp>
#include <baton/synth/ring_network.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace baton::synth {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 4;
constexpr std::int64_t kNodeBudget = 250'000;

class ExactSearch {
public:
    explicit ExactSearch(const RingNetwork& network)
        : network_(network),
          n_(network.size()),
          others_(n_ - 1),
          hops_(static_cast<std::size_t>(n_) * static_cast<std::size_t>(n_)) {
        for (int a = 0; a < n_; ++a)
            for (int b = 0; b < n_; ++b)
                if (a != b) hop(a, b) = network.hop(a, b);
    }

    std::vector<int> run(double slack, Quality& quality) {
        std::vector<double> rates;
        for (const Hop& each : hops_)
            if (each.rate > 0) rates.push_back(each.rate);
        std::sort(rates.begin(), rates.end());
        rates.erase(
            std::unique(rates.begin(), rates.end(), [](double a, double b) { return at_least(a, b); }),
            rates.end());
        if (rates.empty() || !feasible(rates.front())) return {};
        std::size_t low = 0, high = rates.size();  // the largest feasible rate is in [low, high)
        while (high - low > 1) {
            const std::size_t middle = (low + high) / 2;
            (feasible(rates[middle]) ? low : high) = middle;
        }
        complete(rates[low] * (1 - slack));
        best_ = tour();
        quality_ = network_.measure(best_);
        if (!at_least(quality_.rate, rates[low] * (1 - slack))) {
            branch(0);
            if (slack > 0) branch(quality_.rate * (1 - slack));
        }
        quality = quality_;
        return best_;
    }

private:
    Hop& hop(int a, int b) { return hops_[static_cast<std::size_t>(a * n_ + b)]; }
    const Hop& hop(int a, int b) const { return hops_[static_cast<std::size_t>(a * n_ + b)]; }
    bool open(int a, int b, double rate) const {
        return hop(a, b).rate > 0 && at_least(hop(a, b).rate, rate);
    }

    /// Whether a ring of hops of this rate each by itself exists: per set of others, where a path from 0 can
    /// end.
    bool feasible(double rate) const {
        std::vector<std::uint32_t> into(static_cast<std::size_t>(n_)), ends(std::size_t{1} << others_);
        for (int b = 0; b < n_; ++b)
            for (int a = 1; a < n_; ++a)
                if (a != b && open(a, b, rate)) into[static_cast<std::size_t>(b)] |= 1U << (a - 1);
        for (std::uint32_t set = 1; set < ends.size(); ++set)
            for (int b = 1; b < n_; ++b) {
                const std::uint32_t bit = 1U << (b - 1);
                if (!(set & bit)) continue;
                const bool reached = set == bit ? open(0, b, rate)
                                                : (ends[set & ~bit] & into[static_cast<std::size_t>(b)]) != 0;
                if (reached) ends[set] |= bit;
            }
        return (ends.back() & into[0]) != 0;
    }

    /// rest_[set][b]: least latency from b through all of `set` and on to 0, by hops of `rate`. b = 0 stands
    /// for the start.
    void complete(double rate) {
        threshold_ = rate;
        const std::size_t sets = std::size_t{1} << others_;
        rest_.assign(sets * static_cast<std::size_t>(n_), kNever);
        for (int b = 1; b < n_; ++b)
            if (open(b, 0, rate)) rest(0, b) = hop(b, 0).latency;
        for (std::uint32_t set = 1; set < sets; ++set)
            for (int a = 0; a < n_; ++a) {
                if (a > 0 && (set >> (a - 1) & 1U)) continue;
                auto& least = rest(set, a);
                for (int b = 1; b < n_; ++b) {
                    const std::uint32_t bit = 1U << (b - 1);
                    if (!(set & bit) || !open(a, b, rate)) continue;
                    least = std::min(least, hop(a, b).latency + rest(set & ~bit, b));
                }
            }
    }
    std::int64_t& rest(std::uint32_t set, int b) {
        return rest_[static_cast<std::size_t>(set) * static_cast<std::size_t>(n_) +
                     static_cast<std::size_t>(b)];
    }

    std::vector<int> tour() {
        std::vector<int> order{0};
        std::uint32_t set = static_cast<std::uint32_t>((std::size_t{1} << others_) - 1);
        while (set) {
            const int a = order.back();
            for (int b = 1; b < n_; ++b) {
                const std::uint32_t bit = 1U << (b - 1);
                if (!(set & bit) || !open(a, b, threshold_) ||
                    hop(a, b).latency + rest(set & ~bit, b) != rest(set, a))
                    continue;
                order.push_back(b);
                set &= ~bit;
                break;
            }
        }
        return order;
    }

    /// Looks for better rings than the one known; with a `floor`, for less latency at this rate or more.
    void branch(double floor) {
        floor_ = floor;
        complete(floor > 0 ? floor : quality_.rate);
        load_.assign(static_cast<std::size_t>(network_.resources()), 0);
        path_ = {0};
        nodes_ = 0;
        extend(static_cast<std::uint32_t>((std::size_t{1} << others_) - 1),
               std::numeric_limits<double>::max(), 0);
    }

    bool improves(const Quality& found) const {
        if (floor_ <= 0) return found.better_than(quality_);
        if (!at_least(found.rate, floor_)) return false;
        return found.latency < quality_.latency ||
               (found.latency == quality_.latency && !at_least(quality_.rate, found.rate));
    }

    /// The rate of the ring so far once hop a -> b runs too; `undo` gets the loads before.
    double add(int a, int b, double rate, std::vector<std::pair<int, double>>& undo) {
        for (const auto& [resource, share] : network_.shares(a, b)) {
            auto& load = load_[static_cast<std::size_t>(resource)];
            undo.emplace_back(resource, load);
            load += share;
            if (load > 0) rate = std::min(rate, network_.left(resource) / load);
        }
        return rate;
    }
    void restore(const std::vector<std::pair<int, double>>& undo) {
        for (auto it = undo.rbegin(); it != undo.rend(); ++it)
            load_[static_cast<std::size_t>(it->first)] = it->second;
    }

    void extend(std::uint32_t set, double rate, std::int64_t latency) {
        if (++nodes_ > kNodeBudget) return;
        if (nodes_ % 256 == 0) stop_point();
        const int a = path_.back();
        for (int b = set ? 1 : 0; b < (set ? n_ : 1); ++b) {
            const std::uint32_t bit = b ? 1U << (b - 1) : 0;
            if (b && !(set & bit)) continue;
            if (a == b || !open(a, b, floor_ > 0 ? floor_ : quality_.rate)) continue;
            const std::int64_t through = latency + hop(a, b).latency;
            const std::int64_t least = b ? rest(set & ~bit, b) : 0;
            if (least >= kNever) continue;
            std::vector<std::pair<int, double>> undo;
            const Quality reachable{add(a, b, rate, undo), through + least};  // no ring from here is better
            if (improves(reachable)) {
                if (b) {
                    path_.push_back(b);
                    extend(set & ~bit, reachable.rate, through);
                    path_.pop_back();
                } else {
                    best_ = path_;
                    quality_ = reachable;
                }
            }
            restore(undo);
        }
    }

    const RingNetwork& network_;
    int n_, others_;
    std::vector<Hop> hops_;  // [from * n + to]
    double threshold_ = 0, floor_ = 0;
    std::vector<std::int64_t> rest_;
    std::vector<int> best_, path_;
    Quality quality_;
    std::vector<double> load_;
    std::int64_t nodes_ = 0;
};

}  // namespace

std::vector<int> exact_ring(const RingNetwork& network, double slack, Quality& quality) {
    if (network.size() == 1) return {0};
    return ExactSearch(network).run(slack, quality);
}

}  // namespace baton::synth
