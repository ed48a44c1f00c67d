// Rings over hosts: every host is walked as a whole, from an entry to an exit. Paths inside (exact for few
// ranks, else a ring cut open) and hops between hosts are chosen together: at the largest rate that each hop
// has by itself, the least latency.
#include <baton/base/stop.hpp>
#include <baton/synth/ring_network.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>

namespace baton::synth {
namespace {

constexpr std::int64_t kUnreached = std::numeric_limits<std::int64_t>::max() / 4;
constexpr int kMostOnHost = 64;
constexpr int kMostExactOnHost = 9;

/// Hops among the ranks of a host: [from * size + to].
struct Inside {
    int size = 0;
    std::vector<Hop> hops;
    const Hop& hop(int a, int b) const { return hops[static_cast<std::size_t>(a * size + b)]; }
    bool open(int a, int b, double rate) const {
        return a != b && hop(a, b).rate > 0 && at_least(hop(a, b).rate, rate);
    }
};

/// Paths through all ranks of a host for every entry and exit.
struct Paths {
    std::vector<std::int64_t> latency;    // [entry * size + exit]
    std::vector<std::vector<int>> order;  // the same
};

/// Held-Karp from every entry.
Paths exact_paths(const Inside& host, double rate) {
    const int n = host.size;
    Paths paths;
    paths.latency.assign(static_cast<std::size_t>(n * n), kUnreached);
    paths.order.resize(static_cast<std::size_t>(n * n));
    const std::size_t sets = std::size_t{1} << n;
    const auto at = [n](std::size_t set, int b) {
        return set * static_cast<std::size_t>(n) + static_cast<std::size_t>(b);
    };
    for (int entry = 0; entry < n; ++entry) {
        stop_point();
        std::vector<std::int64_t> least(sets * static_cast<std::size_t>(n), kUnreached);
        std::vector<std::int8_t> before(sets * static_cast<std::size_t>(n), -1);
        least[at(std::size_t{1} << entry, entry)] = 0;
        for (std::size_t set = 1; set < sets; ++set)
            for (int a = 0; a < n; ++a) {
                const auto here = least[at(set, a)];
                if (here >= kUnreached) continue;
                for (int b = 0; b < n; ++b) {
                    const std::size_t bit = std::size_t{1} << b;
                    if ((set & bit) || !host.open(a, b, rate)) continue;
                    auto& there = least[at(set | bit, b)];
                    if (here + host.hop(a, b).latency >= there) continue;
                    there = here + host.hop(a, b).latency;
                    before[at(set | bit, b)] = static_cast<std::int8_t>(a);
                }
            }
        for (int exit = 0; exit < n; ++exit) {
            const auto slot = static_cast<std::size_t>(entry * n + exit);
            paths.latency[slot] = least[at(sets - 1, exit)];
            if (paths.latency[slot] >= kUnreached) continue;
            std::size_t set = sets - 1;
            for (int b = exit; b >= 0;) {
                paths.order[slot].push_back(b);
                const int a = before[at(set, b)];
                set &= ~(std::size_t{1} << b);
                b = a;
            }
            std::reverse(paths.order[slot].begin(), paths.order[slot].end());
        }
    }
    return paths;
}

/// Paths that a ring gives when it is cut anywhere. `ring` in ranks of the host, both directions.
Paths cut_paths(const Inside& host, std::vector<int> ring, double rate) {
    const int n = host.size;
    Paths paths;
    paths.latency.assign(static_cast<std::size_t>(n * n), kUnreached);
    paths.order.resize(static_cast<std::size_t>(n * n));
    for (int direction = 0; direction < 2; ++direction, std::reverse(ring.begin(), ring.end()))
        for (int cut = 0; cut < n; ++cut) {
            std::rotate(ring.begin(), ring.begin() + 1, ring.end());
            std::int64_t latency = 0;
            for (int i = 0; i + 1 < n && latency < kUnreached; ++i) {
                const int a = ring[static_cast<std::size_t>(i)], b = ring[static_cast<std::size_t>(i + 1)];
                latency = host.open(a, b, rate) ? latency + host.hop(a, b).latency : kUnreached;
            }
            const auto slot = static_cast<std::size_t>(ring.front() * n + ring.back());
            if (latency >= paths.latency[slot]) continue;
            paths.latency[slot] = latency;
            paths.order[slot] = ring;
        }
    return paths;
}

class HostSearch {
public:
    HostSearch(const RingNetwork& network, std::vector<std::vector<int>> hosts)
        : network_(network), hosts_(std::move(hosts)) {
        for (const auto& host : hosts_) {
            Inside inside;
            inside.size = static_cast<int>(host.size());
            inside.hops.resize(host.size() * host.size());
            for (std::size_t a = 0; a < host.size(); ++a)
                for (std::size_t b = 0; b < host.size(); ++b)
                    if (a != b) inside.hops[a * host.size() + b] = network.hop(host[a], host[b]);
            inside_.push_back(std::move(inside));
        }
        for (std::size_t h = 0; h < hosts_.size(); ++h) {
            const auto &here = hosts_[h], &next = hosts_[(h + 1) % hosts_.size()];
            between_.emplace_back();
            for (const int a : here)
                for (const int b : next) between_.back().push_back(network.hop(a, b));
        }
    }

    std::vector<int> run(double slack) {
        std::vector<double> rates;
        for (const auto& inside : inside_)
            for (const Hop& hop : inside.hops) rates.push_back(hop.rate);
        for (const auto& between : between_)
            for (const Hop& hop : between) rates.push_back(hop.rate);
        std::sort(rates.begin(), rates.end());
        rates.erase(
            std::unique(rates.begin(), rates.end(), [](double a, double b) { return at_least(a, b); }),
            rates.end());
        if (!rates.empty() && rates.front() == 0) rates.erase(rates.begin());
        std::size_t low = 0;  // all rates below are feasible
        for (std::size_t high = rates.size(); low < high;) {
            const std::size_t middle = (low + high) / 2;
            if (walk(rates[middle]).empty())
                high = middle;
            else
                low = middle + 1;
        }
        return low == 0 ? std::vector<int>{} : walk(rates[low - 1] * (1 - slack));
    }

private:
    const Paths& paths(std::size_t h, double rate) {
        std::vector<double> key{rate};
        for (const Hop& hop : inside_[h].hops) {
            key.push_back(hop.rate);
            key.push_back(static_cast<double>(hop.latency));
        }
        const auto found = known_.find(key);
        if (found != known_.end()) return found->second;
        return known_.emplace(std::move(key), make_paths(inside_[h], rate)).first->second;
    }

    static Paths make_paths(const Inside& host, double rate) {
        if (host.size <= kMostExactOnHost) return exact_paths(host, rate);
        // The nearest next one, from every rank in turn, until all are met.
        Paths best;
        for (int start = 0; start < host.size; ++start) {
            std::vector<int> ring{start};
            std::vector<bool> met(static_cast<std::size_t>(host.size));
            met[static_cast<std::size_t>(start)] = true;
            while (static_cast<int>(ring.size()) < host.size) {
                int next = -1;
                for (int i = 1; i < host.size; ++i) {
                    const int b = (ring.back() + i) % host.size;
                    if (met[static_cast<std::size_t>(b)] || !host.open(ring.back(), b, rate)) continue;
                    if (next < 0 || host.hop(ring.back(), b).latency < host.hop(ring.back(), next).latency)
                        next = b;
                }
                if (next < 0) break;
                met[static_cast<std::size_t>(next)] = true;
                ring.push_back(next);
            }
            if (static_cast<int>(ring.size()) == host.size) return cut_paths(host, ring, rate);
            best = {};
        }
        best.latency.assign(static_cast<std::size_t>(host.size * host.size), kUnreached);
        best.order.resize(best.latency.size());
        return best;
    }

    std::vector<int> walk(double rate) {
        const std::size_t count = hosts_.size();
        std::vector<const Paths*> inside;
        for (std::size_t h = 0; h < count; ++h) inside.push_back(&paths(h, rate));
        std::int64_t least = kUnreached;
        std::vector<std::pair<int, int>> best;  // entry and exit of each host
        for (int first = 0; first < inside_[0].size; ++first) {
            // cost[x]: least latency up to exit x of the host at hand; choice[h][x]: (entry here, exit of the
            // host before)
            std::vector<std::vector<std::pair<int, int>>> choice(count);
            std::vector<std::int64_t> cost;
            stop_point();
            for (std::size_t h = 0; h < count; ++h) {
                const int n = inside_[h].size;
                std::vector<std::int64_t> entering(static_cast<std::size_t>(n), kUnreached),
                    leaving(static_cast<std::size_t>(n), kUnreached);
                std::vector<int> from(static_cast<std::size_t>(n), -1);
                if (h == 0)
                    entering[static_cast<std::size_t>(first)] = 0;
                else
                    enter(h - 1, n, rate, cost, entering, from);
                choice[h].resize(static_cast<std::size_t>(n));
                for (int e = 0; e < n; ++e)
                    for (int x = 0; x < n; ++x) {
                        const auto total = entering[static_cast<std::size_t>(e)] +
                                           inside[h]->latency[static_cast<std::size_t>(e * n + x)];
                        if (total >= kUnreached || total >= leaving[static_cast<std::size_t>(x)]) continue;
                        leaving[static_cast<std::size_t>(x)] = total;
                        choice[h][static_cast<std::size_t>(x)] = {e, from[static_cast<std::size_t>(e)]};
                    }
                cost = std::move(leaving);
            }
            std::vector<std::int64_t> closing(static_cast<std::size_t>(inside_[0].size), kUnreached);
            std::vector<int> from(closing.size(), -1);
            enter(count - 1, inside_[0].size, rate, cost, closing, from);
            if (closing[static_cast<std::size_t>(first)] >= least) continue;
            least = closing[static_cast<std::size_t>(first)];
            best.assign(count, {});
            int exit = from[static_cast<std::size_t>(first)];
            for (std::size_t h = count; h-- > 0;) {
                const auto [entry, before] = choice[h][static_cast<std::size_t>(exit)];
                best[h] = {entry, exit};
                exit = before;
            }
        }
        std::vector<int> order;
        if (least >= kUnreached) return order;
        for (std::size_t h = 0; h < count; ++h)
            for (const int i :
                 inside[h]->order[static_cast<std::size_t>(best[h].first * inside_[h].size + best[h].second)])
                order.push_back(hosts_[h][static_cast<std::size_t>(i)]);
        return order;
    }

    /// Least latency into each entry of the host after h, and the exit of h that gives it.
    void enter(std::size_t h, int entries, double rate, const std::vector<std::int64_t>& cost,
               std::vector<std::int64_t>& entering, std::vector<int>& from) const {
        for (std::size_t x = 0; x < cost.size(); ++x) {
            if (cost[x] >= kUnreached) continue;
            for (int e = 0; e < entries; ++e) {
                const Hop& hop =
                    between_[h][x * static_cast<std::size_t>(entries) + static_cast<std::size_t>(e)];
                const auto total = cost[x] + hop.latency;
                if (hop.rate <= 0 || !at_least(hop.rate, rate) ||
                    total >= entering[static_cast<std::size_t>(e)])
                    continue;
                entering[static_cast<std::size_t>(e)] = total;
                from[static_cast<std::size_t>(e)] = static_cast<int>(x);
            }
        }
    }

    const RingNetwork& network_;
    std::vector<std::vector<int>> hosts_;
    std::vector<Inside> inside_;
    std::vector<std::vector<Hop>> between_;  // [host][exit * entries of the next + entry]
    std::map<std::vector<double>, Paths> known_;
};

}  // namespace

std::vector<int> ring_over_hosts(const RingNetwork& network, double slack) {
    const auto host_of = network.topology().rank_hosts();
    std::vector<std::vector<int>> hosts;
    std::map<int, std::size_t> place;
    for (int i = 0; i < network.size(); ++i) {
        const auto [found, added] =
            place.emplace(host_of[static_cast<std::size_t>(network.rank(i))], hosts.size());
        if (added) hosts.emplace_back();
        hosts[found->second].push_back(i);
    }
    const bool several =
        std::any_of(hosts.begin(), hosts.end(), [](const auto& host) { return host.size() > 1; });
    const bool large =
        std::any_of(hosts.begin(), hosts.end(), [](const auto& host) { return host.size() > kMostOnHost; });
    if (hosts.size() < 2 || !several || large) return {};
    return HostSearch(network, std::move(hosts)).run(slack);
}

}  // namespace baton::synth
