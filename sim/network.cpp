#include <baton/sim/network.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/sim/alpha_beta.hpp>
#include <baton/sim/flow_model.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

namespace baton::sim {
namespace {

constexpr double kPerPicosecond = 1e-12;

// Up to the next picosecond; a value that is whole but for the last bits of the arithmetic counts as whole.
std::int64_t picoseconds_up(double picoseconds) {
    if (!(picoseconds < 9e18)) return INT64_MAX;
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(picoseconds * (1 - 4e-15))));
}

}  // namespace

std::string_view to_string(Model model) { return model == Model::flow ? "flow" : "alpha_beta"; }

Model parse_model(std::string_view name) {
    if (name == "flow") return Model::flow;
    if (name == "alpha_beta") return Model::alpha_beta;
    throw input_error(fmt::format("unknown network model '{}'", name.substr(0, 40)), {},
                      "use flow or alpha_beta");
}

int resource_count(const topologies::Topology& topology) {
    return static_cast<int>(topology.links.size() + topology.limits.size());
}

std::vector<double> capacities(const topologies::Topology& topology) {
    std::vector<double> all;
    all.reserve(at(resource_count(topology)));
    for (const topologies::Link& link : topology.links)
        all.push_back(link.capacity().value() * kPerPicosecond);
    for (const topologies::Limit& limit : topology.limits)
        all.push_back(limit.bandwidth.value() * kPerPicosecond);
    return all;
}

PathMaker::PathMaker(const topologies::Topology& topology) : topology_(topology) {
    if (topology.limits.empty()) return;
    limits_of_link_.resize(topology.links.size());
    for (std::size_t l = 0; l < topology.limits.size(); ++l) {
        for (const int link : topology.limits[l].links)
            limits_of_link_[at(link)].push_back(static_cast<int>(l));
    }
}

Path PathMaker::operator()(const std::vector<topologies::LinkShare>& links, Time latency) const {
    Path path;
    path.latency = latency;
    for (const topologies::LinkShare& part : links) {
        if (!(part.share > 0)) continue;
        path.uses.push_back({part.link, part.share});
        if (limits_of_link_.empty()) continue;
        for (const int limit : limits_of_link_[at(part.link)]) {
            path.uses.push_back({static_cast<int>(topology_.links.size()) + limit, part.share});
        }
    }
    std::stable_sort(path.uses.begin(), path.uses.end(),
                     [](const Use& a, const Use& b) { return a.resource < b.resource; });
    std::size_t kept = 0;
    for (std::size_t u = 0; u < path.uses.size(); ++u) {
        if (kept > 0 && path.uses[kept - 1].resource == path.uses[u].resource) {
            path.uses[kept - 1].weight += path.uses[u].weight;
        } else {
            path.uses[kept++] = path.uses[u];
        }
    }
    path.uses.resize(kept);
    for (const Use& use : path.uses) {
        const std::size_t resource = at(use.resource);
        const Rate capacity = resource < topology_.links.size()
                                  ? topology_.links[resource].capacity()
                                  : topology_.limits[resource - topology_.links.size()].bandwidth;
        const double rate = capacity.value() * kPerPicosecond / use.weight;
        if (path.alone == 0 || rate < path.alone) path.alone = rate;
    }
    return path;
}

Network::Network(const topologies::Topology& topology, EventQueue& queue, std::int64_t period_limit)
    : queue_(queue),
      uses_(at(resource_count(topology))),
      crossing_(uses_.size(), 0),
      busy_since_(uses_.size()),
      period_limit_(period_limit) {}

void Network::start(int slot, const Path& path, std::int64_t bytes, std::uint64_t event, Time now) {
    if (at(slot) >= messages_.size()) messages_.resize(at(slot) + 1);
    Message& started = message(slot);
    started = {&path, bytes, static_cast<double>(bytes), 0, now, Time::max(), Time::max(), event};
    for (const Use& use : path.uses) {
        uses_[at(use.resource)].bytes += use.weight * static_cast<double>(bytes);
        if (crossing_[at(use.resource)]++ == 0) busy_since_[at(use.resource)] = now;
    }
    work_ += static_cast<std::int64_t>(path.uses.size());
    enter(slot);
}

void Network::set_rate(int slot, double rate, Time now) {
    Message& changed = message(slot);
    changed.remaining -= changed.rate * static_cast<double>((now - changed.since).picoseconds);
    changed.since = now;
    changed.rate = rate;
    const std::int64_t span = changed.remaining > 0 ? picoseconds_up(changed.remaining / rate) : 1;
    changed.finish =
        span > Time::max().picoseconds - now.picoseconds ? Time::max() : Time{now.picoseconds + span};
    // A later end leaves the event in the queue as it is; when it comes, `left` puts it off.
    if (changed.finish < changed.scheduled) {
        changed.scheduled = changed.finish;
        queue_.push(changed.finish, changed.event);
    }
}

bool Network::left(int slot, Time now) {
    Message& ended = message(slot);
    if (ended.scheduled != now)
        return false;  // an earlier end was scheduled since, and has passed or will come
    if (ended.finish > now) {
        ended.scheduled = ended.finish;
        queue_.push(ended.finish, ended.event);
        return false;
    }
    for (const Use& use : ended.path->uses) {
        if (--crossing_[at(use.resource)] > 0) continue;
        ResourceUse& total = uses_[at(use.resource)];
        total.busy = total.busy + (now - busy_since_[at(use.resource)]);
        if (static_cast<std::int64_t>(periods_.size()) >= period_limit_) continue;
        periods_.push_back({use.resource, busy_since_[at(use.resource)], now});
    }
    work_ += static_cast<std::int64_t>(ended.path->uses.size());
    ended.scheduled = Time::max();
    leave(slot);
    return true;
}

std::unique_ptr<Network> make_network(Model model, const topologies::Topology& topology, EventQueue& queue,
                                      std::int64_t period_limit) {
    if (model == Model::alpha_beta) return std::make_unique<AlphaBeta>(topology, queue, period_limit);
    return std::make_unique<FlowModel>(topology, queue, period_limit);
}

}  // namespace baton::sim
