#include <baton/synth/even_flow.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/flow_lengths.hpp>

#include <algorithm>
#include <cmath>

namespace baton::synth {

std::vector<std::int64_t> whole_lengths(const FlowNetwork& network, const std::vector<double>& of_resource) {
    const double longest = *std::max_element(of_resource.begin(), of_resource.end());
    std::vector<std::int64_t> whole;
    for (const double length : of_resource) whole.push_back(std::llround(length / longest * 1e9) * 1024);
    std::vector<std::int64_t> of_arc = arc_lengths(network, whole);
    for (std::int64_t& length : of_arc) ++length;
    return of_arc;
}

void EvenFlow::add(const FlowDemand& demand, double weight, std::vector<double>& units) const {
    std::vector<int> order;
    const std::vector<std::int64_t> distance = distances_from(network_, lengths_, demand.source, &order);
    std::vector<double> amount(at(network_.vertices), 0);
    for (const int sink : demand.sinks) amount[at(sink)] += weight;
    for (std::size_t i = order.size(); i-- > 1;) {
        const int v = order[i];
        if (amount[at(v)] <= 0) continue;
        double total = 0;
        const auto tight = [&](int a) {
            const std::int64_t from = distance[at(network_.arcs[at(a)].from)];
            return from != kOutOfReach && from + lengths_[at(a)] == distance[at(v)];
        };
        for (const int a : network_.in[at(v)]) total += tight(a) ? capacity(a) : 0;
        for (const int a : network_.in[at(v)]) {
            if (!tight(a)) continue;
            const double share = amount[at(v)] * capacity(a) / total;
            units[at(a)] += share;
            amount[at(network_.arcs[at(a)].from)] += share;
        }
    }
}

double EvenFlow::capacity(int arc) const {
    return static_cast<double>(network_.resources[at(network_.arcs[at(arc)].resources[0])].capacity);
}

}  // namespace baton::synth
