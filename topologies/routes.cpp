#include <baton/topologies/routes.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>
#include <baton/topologies/forwarding.hpp>
#include <baton/topologies/host_nics.hpp>
#include <baton/topologies/route_search.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

namespace baton::topologies {
namespace {

std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

std::string rank_list(const std::vector<int>& ranks) {
    std::string text;
    for (std::size_t i = 0; i < ranks.size() && i < 8; ++i)
        text += fmt::format("{}{}", i ? ", " : "", ranks[i]);
    if (ranks.size() > 8) text += fmt::format(" and {} more", ranks.size() - 8);
    return text;
}

}  // namespace

NamedPolicy parse_policy(std::string_view text) {
    if (text == "spread") return {RoutePolicy::spread, 0};
    if (text == "static") return {RoutePolicy::fixed, 0};
    if (text == "ecmp") return {RoutePolicy::ecmp, 0};
    if (text.substr(0, 5) == "ecmp:") {
        const std::string_view digits = text.substr(5);
        std::uint64_t seed = 0;
        const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
        if (status == std::errc() && end == digits.data() + digits.size()) return {RoutePolicy::ecmp, seed};
    }
    throw input_error(fmt::format("unknown routing policy '{}'", text.substr(0, 40)), {},
                      "use spread, static or ecmp:SEED");
}

struct Routes::Data {
    Data(const Topology& t, RoutePolicy p, std::uint64_t s)
        : topology(t), policy(p), seed(s), rules(t), search(t, rules) {
        nics.resize(topology.rank_nodes.size());
        nics_known.assign(static_cast<std::size_t>(rules.host_count()), false);
    }

    const std::vector<int>& nics_of(int rank) {
        const int host = rules.host(topology.rank_nodes[at(rank)]);
        if (host >= 0) learn_nics(host);
        return nics[at(rank)];
    }
    void learn_nics(int host) {
        if (nics_known[at(host)]) return;
        nics_known[at(host)] = true;
        for (auto& [rank, own] : assign_nics(topology, rules, host, warnings))
            nics[at(rank)] = std::move(own);
    }
    void check_rank(int rank) const {
        if (rank < 0 || rank >= topology.rank_count()) {
            throw input_error(fmt::format("rank {} does not exist", rank), topology.name,
                              fmt::format("the topology has {} ranks", topology.rank_count()));
        }
    }
    // The branches of least distance, with the NICs of both ends first, then with any.
    Branches branches(int source, int destination) {
        Branches found = search.between(source, destination, nics_of(source), nics_of(destination));
        if (!found.reachable()) found = search.between(source, destination, {}, {});
        return found;
    }
    bool reachable(int source, int destination) {
        return source == destination ||
               search.reachable(source, destination, nics_of(source), nics_of(destination)) ||
               search.reachable(source, destination, {}, {});
    }
    Route make(int source, int destination, int channel);
    // The branch that a policy other than `spread` takes; -1 for all.
    int choose(const Branches& found, int state, std::uint64_t flow) const;

    const Topology& topology;
    RoutePolicy policy;
    std::uint64_t seed;
    Forwarding rules;
    RouteSearch search;
    std::vector<std::vector<int>> nics;
    std::vector<bool> nics_known;
    std::vector<std::string> warnings;
    struct Question {
        std::uint64_t pair = 0;
        int channel = 0;
        bool operator==(const Question&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Question& question) const {
            return static_cast<std::size_t>(
                mix(question.pair + static_cast<std::uint64_t>(question.channel)));
        }
    };
    std::unordered_map<Question, Route, Hash> cache;
};

int Routes::Data::choose(const Branches& found, int state, std::uint64_t flow) const {
    const std::vector<Branch>& out = found.states[at(state)].out;
    const auto link = [&](const Branch& b) -> const Link& { return topology.links[at(b.link)]; };
    if (out.size() < 2 || policy == RoutePolicy::spread) return -1;
    if (std::all_of(out.begin(), out.end(), [&](const Branch& b) { return stripes(link(b).kind); }))
        return -1;
    if (policy == RoutePolicy::fixed) {
        const auto first = std::min_element(out.begin(), out.end(),
                                            [](const Branch& a, const Branch& b) { return a.link < b.link; });
        return static_cast<int>(first - out.begin());
    }
    std::uint64_t units = 0;
    for (const Branch& b : out) units += static_cast<std::uint64_t>(link(b).count);
    std::uint64_t drawn = mix(flow ^ mix(static_cast<std::uint64_t>(link(out.front()).from))) % units;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const auto count = static_cast<std::uint64_t>(link(out[i]).count);
        if (drawn < count) return static_cast<int>(i);
        drawn -= count;
    }
    return -1;
}

Route Routes::Data::make(int source, int destination, int channel) {
    stop_point();
    Route route;
    if (source == destination) {
        route.reachable = true;
        return route;
    }
    const Branches found = branches(source, destination);
    if (!found.reachable()) return route;
    route.reachable = true;
    route.latency = {found.length.picoseconds};
    route.hops = found.length.hops;
    const std::uint64_t flow =
        mix(seed ^ mix(static_cast<std::uint64_t>(source) << 32 ^ static_cast<std::uint64_t>(destination) ^
                       mix(static_cast<std::uint64_t>(channel))));
    std::vector<double> share(found.states.size(), 0);
    share[0] = 1;
    // States stand in order of distance, so one pass carries everything to the destination.
    for (std::size_t s = 0; s < found.states.size(); ++s) {
        if (share[s] <= 0) continue;
        const std::vector<Branch>& out = found.states[s].out;
        const int only = choose(found, static_cast<int>(s), flow);
        double total = 0;
        for (const Branch& branch : out) total += branch.capacity;
        for (std::size_t b = 0; b < out.size(); ++b) {
            if (only >= 0 && static_cast<int>(b) != only) continue;
            const double part = only >= 0 ? share[s] : share[s] * (out[b].capacity / total);
            share[at(out[b].to)] += part;
            route.links.push_back({out[b].link, part});
        }
    }
    // A link crossed in two phases counts once.
    std::map<int, std::size_t> first;
    std::vector<LinkShare> merged;
    for (const LinkShare& l : route.links) {
        const auto [place, fresh] = first.emplace(l.link, merged.size());
        if (fresh)
            merged.push_back(l);
        else
            merged[place->second].share += l.share;
    }
    route.links = std::move(merged);
    return route;
}

Routes::Routes(const Topology& topology, RoutePolicy policy, std::uint64_t seed)
    : data_(std::make_unique<Data>(topology, policy, seed)) {}
Routes::~Routes() = default;
Routes::Routes(Routes&&) noexcept = default;

const Topology& Routes::topology() const { return data_->topology; }

const std::vector<int>& Routes::nics(int rank) const {
    data_->check_rank(rank);
    return data_->nics_of(rank);
}

const std::vector<std::string>& Routes::warnings() const {
    for (int host = 0; host < data_->rules.host_count(); ++host) data_->learn_nics(host);
    return data_->warnings;
}

const Route& Routes::between(int source_rank, int destination_rank, int channel) const {
    data_->check_rank(source_rank);
    data_->check_rank(destination_rank);
    if (data_->policy != RoutePolicy::ecmp) channel = 0;
    const Data::Question question{
        static_cast<std::uint64_t>(source_rank) << 32 | static_cast<std::uint64_t>(destination_rank),
        channel};
    const auto found = data_->cache.find(question);
    if (found != data_->cache.end()) return found->second;
    return data_->cache.emplace(question, data_->make(source_rank, destination_rank, channel)).first->second;
}

void Routes::require_connected(const std::vector<int>& ranks) const {
    for (const int rank : ranks) data_->check_rank(rank);
    for (const int source : ranks) {
        std::vector<int> lost;
        stop_point();
        for (const int destination : ranks) {
            if (!data_->reachable(source, destination)) lost.push_back(destination);
        }
        if (lost.empty()) continue;
        const Topology& t = data_->topology;
        throw input_error(
            fmt::format("rank {} ({}) cannot reach {} {}, for example {}", source,
                        t.nodes[at(t.rank_nodes[at(source)])].id, lost.size() == 1 ? "rank" : "ranks",
                        rank_list(lost), t.nodes[at(t.rank_nodes[at(lost.front())])].id),
            t.name, "GPUs do not forward: add a link or a switch, or use an algorithm that relays");
    }
}

Route Routes::via(int source_rank, int destination_rank, const std::string& path) const {
    data_->check_rank(source_rank);
    data_->check_rank(destination_rank);
    return route_via(data_->topology, data_->rules, source_rank, destination_rank, path);
}

}  // namespace baton::topologies
