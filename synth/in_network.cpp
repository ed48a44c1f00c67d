#include <baton/synth/in_network.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

namespace baton::synth {
namespace {

// The ranks under common switches, in order.
std::vector<std::vector<int>> switch_domains(const topologies::Topology& topology, int ranks,
                                             const topologies::Routes& routes) {
    const auto capable = [&](int node) {
        return topology.nodes[at(node)].multicast && topology.nodes[at(node)].reduce;
    };
    const auto joined = [&](int a, int b) {
        for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
            const topologies::Route& route = routes.between(from, to);
            double through = 0;
            for (const topologies::LinkShare& use : route.links) {
                if (capable(topology.links[at(use.link)].to)) through += use.share;
            }
            if (!route.reachable || through < 1 - 1e-9) return false;
        }
        return true;
    };
    std::vector<std::vector<int>> domains;
    for (int rank = 0; rank < ranks; ++rank) {
        const auto home = std::find_if(domains.begin(), domains.end(), [&](const std::vector<int>& domain) {
            return std::all_of(domain.begin(), domain.end(),
                               [&](int member) { return joined(member, rank); });
        });
        if (home == domains.end())
            domains.push_back({rank});
        else
            home->push_back(rank);
    }
    return domains;
}

class InNetworkSteps {
public:
    InNetworkSteps(const ir::Collective& collective, const std::vector<std::vector<int>>& domains)
        : domains_(domains), count_(static_cast<int>(domains.size())) {
        algorithm_.collective = collective;
        algorithm_.collective.weights.clear();
        algorithm_.collective.chunks = static_cast<std::int64_t>(domains[0].size()) * count_;
        algorithm_.name = "in-network all_reduce";
        algorithm_.over_positions = false;
        algorithm_.switch_groups = domains;
    }

    ir::Algorithm make() {
        const int places = static_cast<int>(domains_[0].size());
        for (int d = 0; d < count_; ++d) {
            for (int p = 0; p < places; ++p) {
                ir::Step step = whole(ir::StepOp::switch_reduce, d, p, 0);
                step.src_buffer = ir::Buffer::input;
                step.chunks = count_;
                steps_.push_back(step);
            }
        }
        // A ring per rail: part s of a place is complete at domain s, then goes round. What arrives is sent
        // on.
        for (int round = 0; round + 1 < count_; ++round)
            exchange(ir::StepOp::send_reduce, places, [&](int d) { return d - round - 1; });
        cast(places, [&](int d) { return d; });
        for (int round = 0; round + 1 < count_; ++round) {
            exchange(ir::StepOp::send, places, [&](int d) { return d - round; });
            cast(places, [&](int d) { return d - round - 1; });
        }
        algorithm_.body = {
            {ir::ExplicitSteps{std::make_shared<const std::vector<ir::Step>>(std::move(steps_))}, 0}};
        return std::move(algorithm_);
    }

private:
    // A switch step of one domain for part s of place p.
    ir::Step whole(ir::StepOp op, int d, int p, int s) const {
        ir::Step step;
        step.op = op;
        step.src_rank = domains_[at(d)][at(p)];
        step.dst_rank = d;
        step.src_buffer = step.dst_buffer = ir::Buffer::output;
        step.src_index = step.dst_index = p * count_ + s;
        return step;
    }
    int part(int s) const { return ((s % count_) + count_) % count_; }

    template <class Part>
    void exchange(ir::StepOp op, int places, const Part& of) {
        for (int d = 0; d < count_; ++d) {
            for (int p = 0; p < places; ++p) {
                ir::Step step;
                step.op = op;
                step.src_rank = domains_[at(d)][at(p)];
                step.dst_rank = domains_[at((d + 1) % count_)][at(p)];
                step.src_buffer = step.dst_buffer = ir::Buffer::output;
                step.src_index = step.dst_index = p * count_ + part(of(d));
                steps_.push_back(step);
            }
        }
    }
    template <class Part>
    void cast(int places, const Part& of) {
        for (int d = 0; d < count_; ++d) {
            for (int p = 0; p < places; ++p)
                steps_.push_back(whole(ir::StepOp::multicast, d, p, part(of(d))));
        }
    }

    const std::vector<std::vector<int>>& domains_;
    int count_;
    ir::Algorithm algorithm_;
    std::vector<ir::Step> steps_;
};

}  // namespace

InNetworkAlgorithm in_network(const topologies::Topology& topology, const ir::Collective& collective,
                              topologies::RoutePolicy policy, std::uint64_t seed) {
    if (collective.kind != ir::CollectiveKind::all_reduce)
        throw input_error(
            fmt::format("in_network is made for all_reduce, not for {}", ir::to_string(collective.kind)));
    if (!collective.groups.empty()) throw input_error("in_network serves one group of all ranks only");
    if (std::none_of(topology.nodes.begin(), topology.nodes.end(),
                     [](const topologies::Node& node) { return node.multicast && node.reduce; }))
        throw input_error("no switch of this topology reduces and multicasts");
    const topologies::Routes routes(topology, policy, seed);
    const std::vector<std::vector<int>> domains = switch_domains(topology, collective.ranks, routes);
    for (const std::vector<int>& domain : domains) {
        if (domain.size() != domains[0].size() || domain.size() < 2)
            throw input_error(
                "the switches that reduce and multicast do not join the ranks in sets of equal size");
    }
    InNetworkAlgorithm made;
    made.domains = static_cast<int>(domains.size());
    made.per_domain = static_cast<int>(domains[0].size());
    made.algorithm = InNetworkSteps(collective, domains).make();
    return made;
}

}  // namespace baton::synth
