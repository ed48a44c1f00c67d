#include <baton/synth/switch_removal.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/max_flow.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace baton::synth {
namespace {

struct PathPart {
    std::int64_t amount = 0;
    std::vector<int> path;  // arcs of the graph
};

class SwitchRemoval {
public:
    SwitchRemoval(const ForwardGraph& graph, const std::vector<std::int64_t>& capacity,
                  const std::vector<RootDemand>& demands, std::int64_t& work)
        : graph_(graph),
          bundles_(at(graph.vertices())),
          in_(at(graph.vertices())),
          flow_(graph.vertices() + 1),
          work_(work) {
        source_ = graph.vertices();
        for (const RootDemand& demand : demands) {
            flow_.add(source_, demand.root, demand.trees);
            wanted_ += demand.trees;
            ++roots_;
            only_root_ = demand.root;
        }
        for (std::size_t a = 0; a < graph.arcs().size(); ++a) {
            if (capacity[a] == 0) continue;
            const ForwardArc& arc = graph.arcs()[a];
            change(arc.from, arc.to, capacity[a]);
            bundles_[at(arc.from)][arc.to].parts.push_back({capacity[a], {static_cast<int>(a)}});
        }
    }

    bool run() {
        trim();
        if (lacking() > 0) return false;
        for (const int w : order()) {
            if (!remove(w)) return false;
        }
        return true;
    }

    std::vector<DirectLink> links() const {
        std::vector<DirectLink> made;
        for (int u = 0; u < graph_.ranks(); ++u) {
            for (const auto& [t, bundle] : bundles_[at(u)]) {
                for (const PathPart& part : bundle.parts) {
                    if (const auto way = graph_.way(part.path)) made.push_back({u, t, part.amount, *way});
                }
            }
        }
        return made;
    }

private:
    struct Bundle {
        int arc = -1;
        std::int64_t total = 0;
        std::vector<PathPart> parts;
    };

    // Vertices nearest to the ranks first, in whichever direction, so that fabrics see ranks (or what stands
    // for them).
    std::vector<int> order() const {
        std::vector<int> distance(at(graph_.vertices()), -1), queue;
        for (int r = 0; r < graph_.ranks(); ++r) distance[at(r)] = 0, queue.push_back(r);
        for (std::size_t q = 0; q < queue.size(); ++q) {
            const auto reach = [&](int t) {
                if (distance[at(t)] < 0) distance[at(t)] = distance[at(queue[q])] + 1, queue.push_back(t);
            };
            for (const auto& [t, bundle] : bundles_[at(queue[q])]) reach(t);
            for (const int u : in_[at(queue[q])]) reach(u);
        }
        std::vector<int> list;
        for (int w = graph_.ranks(); w < graph_.vertices(); ++w) list.push_back(w);
        std::stable_sort(list.begin(), list.end(),
                         [&](int a, int b) { return distance[at(a)] < distance[at(b)]; });
        return list;
    }

    void change(int from, int to, std::int64_t by) {
        Bundle& bundle = bundles_[at(from)][to];
        if (bundle.arc < 0) {
            bundle.arc = flow_.add(from, to, 0);
            in_[at(to)].push_back(from);
            ++arcs_;
        }
        bundle.total += by;
        flow_.set_capacity(bundle.arc, bundle.total);
    }

    // Takes away what no flow can use: more into a forwarding vertex than leaves it to others, and the other
    // way round. Splitting would take it for room.
    void trim() {
        for (bool again = true; again;) {
            again = false;
            for (int w = graph_.ranks(); w < graph_.vertices(); ++w) {
                std::int64_t in = 0, out = 0;
                for (const int u : in_[at(w)]) in += into(u, w);
                for (const auto& [t, bundle] : bundles_[at(w)]) out += bundle.total;
                std::vector<std::tuple<int, int, std::int64_t>> usable;
                for (const int u : in_[at(w)]) usable.push_back({u, w, out - into(w, u)});
                for (const auto& [t, bundle] : bundles_[at(w)]) usable.push_back({w, t, in - into(t, w)});
                for (const auto& [from, to, most] : usable) again |= lower(from, to, most);
            }
        }
    }
    // Whether the arc had more.
    bool lower(int from, int to, std::int64_t most) {
        std::int64_t excess = into(from, to) - most;
        if (excess <= 0) return false;
        change(from, to, -excess);
        for (PathPart& part : bundles_[at(from)].at(to).parts) {
            const std::int64_t less = std::min(part.amount, excess);
            part.amount -= less;
            excess -= less;
        }
        std::erase_if(bundles_[at(from)].at(to).parts, [](const PathPart& part) { return part.amount == 0; });
        return true;
    }

    // How many trees do not reach some rank, or 0.
    std::int64_t lacking() {
        int holder = -1;
        for (int i = 0; i < graph_.ranks(); ++i) {
            const int v = (suspect_ + i) % graph_.ranks();
            if (roots_ == 1 && v == only_root_) continue;
            work_ -= arcs_;
            const std::int64_t reached =
                holder < 0 ? flow_.run(source_, v, wanted_) : flow_.move(holder, v, wanted_);
            if (reached < wanted_) {
                suspect_ = v;
                return wanted_ - reached;
            }
            holder = v;
        }
        return 0;
    }

    // Whether the two parts in a row are a way.
    bool joins(const PathPart& first, const PathPart& second, std::vector<int>& path) {
        path = first.path;
        path.insert(path.end(), second.path.begin(), second.path.end());
        graph_.cut_loops(path);
        if (!graph_.plausible(path)) return false;
        const int from = graph_.arcs()[at(path.front())].from, to = graph_.arcs()[at(path.back())].to;
        if (from >= graph_.ranks() || to >= graph_.ranks()) return true;
        const auto [place, fresh] = possible_.emplace(path, 0);
        if (fresh) place->second = graph_.way(path).has_value();
        return place->second != 0;
    }

    // Moves up to `most` past w; `dry`: only tells how much.
    std::int64_t join(int u, int w, int t, std::int64_t most, bool dry) {
        const auto in = bundles_[at(u)].find(w), out = bundles_[at(w)].find(t);
        if (u == t || in == bundles_[at(u)].end() || out == bundles_[at(w)].end()) return 0;
        std::vector<std::int64_t> in_rest, out_rest;
        for (const PathPart& part : in->second.parts) in_rest.push_back(part.amount);
        for (const PathPart& part : out->second.parts) out_rest.push_back(part.amount);
        std::int64_t moved = 0;
        std::vector<int> path;
        std::vector<PathPart> made;
        for (std::size_t i = 0; i < in_rest.size() && moved < most; ++i) {
            for (std::size_t o = 0; o < out_rest.size() && moved < most && in_rest[i] > 0; ++o) {
                const std::int64_t amount = std::min({in_rest[i], out_rest[o], most - moved});
                if (amount == 0 || !joins(in->second.parts[i], out->second.parts[o], path)) continue;
                in_rest[i] -= amount;
                out_rest[o] -= amount;
                moved += amount;
                if (!dry) made.push_back({amount, path});
            }
        }
        if (dry || moved == 0) return moved;
        keep(in->second.parts, in_rest);
        keep(out->second.parts, out_rest);
        change(u, w, -moved);
        change(w, t, -moved);
        change(u, t, moved);
        Bundle& direct = bundles_[at(u)][t];
        for (PathPart& part : made) direct.parts.push_back(std::move(part));
        return moved;
    }
    static void keep(std::vector<PathPart>& parts, const std::vector<std::int64_t>& rest) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (rest[i] == 0) continue;
            if (kept != i) parts[kept] = std::move(parts[i]);
            parts[kept++].amount = rest[i];
        }
        parts.resize(kept);
    }

    std::int64_t into(int u, int w) const {
        const auto found = bundles_[at(u)].find(w);
        return found == bundles_[at(u)].end() ? 0 : found->second.total;
    }

    // Pairs of neighbors in rounds, in each of which every neighbor sends to another one: first to other
    // hosts (in rounds of growing distance, begun elsewhere for each neighbor of a host), then, if asked for,
    // within hosts.
    std::vector<std::vector<std::pair<int, int>>> rounds(int w, bool within) const {
        std::map<int, std::vector<int>> by_host;
        std::vector<int> ports;
        for (const auto& [t, bundle] : bundles_[at(w)]) {
            if (bundle.total > 0) ports.push_back(t);
        }
        for (const int u : in_[at(w)]) {
            if (into(u, w) > 0) ports.push_back(u);
        }
        std::sort(ports.begin(), ports.end());
        ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
        for (const int p : ports) by_host[graph_.host(p)].push_back(p);
        std::vector<const std::vector<int>*> hosts;
        for (const auto& [host, list] : by_host) hosts.push_back(&list);
        std::vector<std::vector<std::pair<int, int>>> list;
        const auto far = static_cast<int>(hosts.size()) - 1;
        std::size_t widest = 0;
        for (const auto* host : hosts) widest = std::max(widest, host->size());
        for (std::size_t shift = 0; far > 0 && shift < widest; ++shift) {
            for (int d = 0; d < far; ++d) {
                std::vector<std::pair<int, int>> round;
                for (std::size_t h = 0; h < hosts.size(); ++h) {
                    for (std::size_t i = 0; i < hosts[h]->size(); ++i) {
                        const std::size_t step = 1 + (at(d) + i + at(w)) % at(far);
                        const std::vector<int>& other = *hosts[(h + step) % hosts.size()];
                        round.push_back({(*hosts[h])[i], other[(i + shift) % other.size()]});
                    }
                }
                list.push_back(std::move(round));
            }
        }
        for (std::size_t d = 0; (within || far == 0) && d + 1 < widest; ++d) {
            std::vector<std::pair<int, int>> round;
            for (const auto* host : hosts) {
                if (host->size() < 2) continue;
                const std::size_t step = 1 + (d + at(w)) % (host->size() - 1);
                for (std::size_t i = 0; i < host->size(); ++i)
                    round.push_back({(*host)[i], (*host)[(i + step) % host->size()]});
            }
            list.push_back(std::move(round));
        }
        return list;
    }

    // An even division over the rounds, then what is left in their order.
    void guess(int w, const std::vector<std::vector<std::pair<int, int>>>& rounds) {
        std::map<int, std::int64_t> partners;
        for (const auto& round : rounds) {
            for (const auto& [u, t] : round) partners[u] += into(w, t) > 0 ? 1 : 0;
        }
        std::map<int, std::int64_t> share;
        for (const auto& [u, count] : partners) share[u] = count > 0 ? into(u, w) / count : 0;
        for (const bool rest : {false, true}) {
            bool more = true;
            while (more) {
                more = false;
                for (const auto& round : rounds) {
                    for (const auto& [u, t] : round) {
                        const std::int64_t amount = rest ? 1 : share[u];
                        if (amount > 0 && into(u, w) > 0 && into(w, t) > 0)
                            more |= join(u, w, t, amount, false) > 0;
                    }
                }
                if (!rest) break;
            }
        }
    }

    bool remove(int w) {
        if (bundles_[at(w)].empty() || in_[at(w)].empty()) {
            drop(w);
            return lacking() == 0;
        }
        for (const bool within : {false, true}) {
            const std::vector<std::map<int, Bundle>> before = bundles_;
            guess(w, rounds(w, within));
            drop(w);
            if (lacking() == 0) return true;
            // Arcs that are new stay in the flow, without capacity.
            for (std::size_t u = 0; u < before.size(); ++u) {
                for (auto& [t, bundle] : bundles_[u]) {
                    const auto old = before[u].find(t);
                    if (old != before[u].end()) {
                        bundle.parts = old->second.parts;
                        bundle.total = old->second.total;
                    } else {
                        bundle.parts.clear();
                        bundle.total = 0;
                    }
                    flow_.set_capacity(bundle.arc, bundle.total);
                }
            }
            if (work_ < 0) return false;
        }
        return split(w);
    }

    bool split(int w) {
        // Ways that end at ranks before ways that have to go on.
        std::vector<std::pair<int, int>> pairs;
        for (const auto& round : rounds(w, true)) pairs.insert(pairs.end(), round.begin(), round.end());
        std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) {
            const auto open = [&](const std::pair<int, int>& pair) {
                return (pair.first >= graph_.ranks() ? 1 : 0) + (pair.second >= graph_.ranks() ? 1 : 0);
            };
            return open(a) < open(b);
        });
        for (const auto& [u, t] : pairs) {
            if (work_ < 0) return false;
            std::int64_t amount = std::min(into(u, w), into(w, t));
            if (amount > 0) amount = join(u, w, t, amount, true);
            while (amount > 0) {
                change(u, w, -amount);
                change(w, t, -amount);
                change(u, t, amount);
                const std::int64_t lack = lacking();
                change(u, w, amount);
                change(w, t, amount);
                change(u, t, -amount);
                if (lack == 0) break;
                amount = std::max<std::int64_t>(0, amount - lack);
            }
            if (amount > 0) join(u, w, t, amount, false);
        }
        drop(w);
        return lacking() == 0;
    }

    void drop(int w) {
        const auto clear = [&](int from, int to) {
            const auto found = bundles_[at(from)].find(to);
            if (found == bundles_[at(from)].end()) return;
            change(from, to, -found->second.total);
            found->second.parts.clear();
        };
        for (const int u : in_[at(w)]) clear(u, w);
        std::vector<int> heads;
        for (const auto& [t, bundle] : bundles_[at(w)]) heads.push_back(t);
        for (const int t : heads) clear(w, t);
    }

    const ForwardGraph& graph_;
    std::vector<std::map<int, Bundle>> bundles_;  // per tail, by head
    std::vector<std::vector<int>> in_;            // tails per head
    MaxFlow<std::int64_t> flow_;
    std::int64_t& work_;
    std::map<std::vector<int>, char> possible_;
    std::int64_t wanted_ = 0, arcs_ = 0;
    int source_ = 0, roots_ = 0, only_root_ = -1, suspect_ = 0;
};

}  // namespace

std::vector<DirectLink> remove_switches(const ForwardGraph& graph, const std::vector<std::int64_t>& capacity,
                                        const std::vector<RootDemand>& demands, std::int64_t& work) {
    SwitchRemoval removal(graph, capacity, demands, work);
    if (!removal.run()) return {};
    return removal.links();
}

}  // namespace baton::synth
