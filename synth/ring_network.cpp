#include <baton/synth/ring_network.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <numeric>

namespace baton::synth {
namespace {

std::vector<int> checked_ranks(const topologies::Topology& topology, std::vector<int> ranks) {
    const int count = topology.rank_count();
    if (ranks.empty()) {
        ranks.resize(static_cast<std::size_t>(count));
        std::iota(ranks.begin(), ranks.end(), 0);
    }
    if (ranks.empty()) throw input_error("the topology has no ranks for a ring", topology.name);
    std::vector<bool> seen(static_cast<std::size_t>(count));
    for (const int rank : ranks) {
        if (rank < 0 || rank >= count)
            throw input_error(fmt::format("rank {} of a ring, but there are {} ranks", rank, count),
                              topology.name);
        if (seen[static_cast<std::size_t>(rank)])
            throw input_error(fmt::format("rank {} is twice in a ring", rank), topology.name);
        seen[static_cast<std::size_t>(rank)] = true;
    }
    return ranks;
}

}  // namespace

bool Quality::better_than(const Quality& other) const {
    if (!at_least(other.rate, rate)) return true;
    return at_least(rate, other.rate) && rate > 0 && latency < other.latency;
}

RingNetwork::RingNetwork(const topologies::Topology& topology, const RingOptions& options)
    : topology_(&topology),
      routes_(topology, options.policy),
      ranks_(checked_ranks(topology, options.ranks)),
      limits_of_link_(topology.limits.empty() ? 0 : topology.links.size()) {
    for (const auto& link : topology.links)
        left_.push_back(static_cast<double>(link.capacity().bytes_per_second));
    for (const auto& limit : topology.limits) {
        for (const int link : limit.links)
            limits_of_link_[static_cast<std::size_t>(link)].push_back(static_cast<int>(left_.size()));
        left_.push_back(static_cast<double>(limit.bandwidth.bytes_per_second));
    }
    load_.resize(left_.size());
}

const std::vector<std::pair<int, double>>& RingNetwork::shares(int from, int to) const {
    shares_.clear();
    const auto& route = routes_.between(rank(from), rank(to));
    for (const auto& part : route.links) {
        shares_.emplace_back(part.link, part.share);
        if (limits_of_link_.empty()) continue;
        for (const int limit : limits_of_link_[static_cast<std::size_t>(part.link)]) {
            const auto found = std::find_if(shares_.begin(), shares_.end(),
                                            [&](const auto& known) { return known.first == limit; });
            if (found == shares_.end())
                shares_.emplace_back(limit, part.share);
            else
                found->second += part.share;
        }
    }
    return shares_;
}

Hop RingNetwork::hop(int from, int to) const {
    const auto& route = routes_.between(rank(from), rank(to));
    if (!route.reachable) return {};
    double rate = std::numeric_limits<double>::max();
    for (const auto& [resource, share] : shares(from, to))
        if (share > 0) rate = std::min(rate, left(resource) / share);
    return {rate, route.latency.picoseconds};
}

Quality RingNetwork::measure(const std::vector<int>& order) const {
    Quality quality;
    if (order.size() < 2) return quality;
    std::vector<int> touched;
    bool reachable = true;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const int from = order[i], to = order[(i + 1) % order.size()];
        const auto& route = routes_.between(rank(from), rank(to));
        reachable = reachable && route.reachable;
        quality.latency += route.latency.picoseconds;
        for (const auto& [resource, share] : shares(from, to)) {
            auto& load = load_[static_cast<std::size_t>(resource)];
            if (load == 0) touched.push_back(resource);
            load += share;
        }
    }
    quality.rate = reachable ? std::numeric_limits<double>::max() : 0;
    for (const int resource : touched) {
        auto& load = load_[static_cast<std::size_t>(resource)];
        if (load > 0) quality.rate = std::min(quality.rate, left(resource) / load);
        load = 0;
    }
    return quality;
}

void RingNetwork::take(const std::vector<int>& order, double rate) {
    for (std::size_t i = 0; order.size() > 1 && i < order.size(); ++i)
        for (const auto& [resource, share] : shares(order[i], order[(i + 1) % order.size()]))
            left_[static_cast<std::size_t>(resource)] -= share * rate;
    const auto capacity = [&](std::size_t i) {
        const std::size_t links = topology_->links.size();
        return static_cast<double>(i < links ? topology_->links[i].capacity().bytes_per_second
                                             : topology_->limits[i - links].bandwidth.bytes_per_second);
    };
    for (std::size_t i = 0; i < left_.size(); ++i)  // what rounding leaves is nothing
        if (left_[i] < capacity(i) * 1e-9) left_[i] = 0;
}

}  // namespace baton::synth
