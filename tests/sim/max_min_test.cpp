// Max-min fairness against its definition, on random networks that change.
#include <baton/sim/max_min.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "support/full.hpp"

using namespace baton::sim;

namespace {

using Flows = std::map<int, std::vector<Use>>;

/// Progressive filling as it is defined: all flows rise together, and stop where a resource is full.
std::map<int, double> fill_slowly(const std::vector<double>& capacities, const Flows& flows) {
    std::map<int, double> rates;
    while (rates.size() < flows.size()) {
        double level = 1e300;
        std::vector<double> levels(capacities.size(), 1e300);
        for (std::size_t r = 0; r < capacities.size(); ++r) {
            double residual = capacities[r], weight = 0;
            for (const auto& [flow, uses] : flows) {
                for (const Use& use : uses) {
                    if (use.resource != static_cast<int>(r)) continue;
                    if (rates.count(flow))
                        residual -= use.weight * rates[flow];
                    else
                        weight += use.weight;
                }
            }
            if (weight > 0) levels[r] = residual / weight;
            level = std::min(level, levels[r]);
        }
        std::vector<int> stopped;
        for (const auto& [flow, uses] : flows) {
            if (rates.count(flow)) continue;
            for (const Use& use : uses) {
                if (levels[static_cast<std::size_t>(use.resource)] <= level * (1 + 1e-12)) {
                    stopped.push_back(flow);
                    break;
                }
            }
        }
        for (const int flow : stopped) rates[flow] = level;
    }
    return rates;
}

/// The definition: nothing above capacity, and every flow has a full resource on which no flow is faster.
void check_fair(const std::vector<double>& capacities, const Flows& flows, const MaxMin& sharing) {
    std::vector<double> load(capacities.size(), 0), fastest(capacities.size(), 0);
    for (const auto& [flow, uses] : flows) {
        for (const Use& use : uses) {
            load[static_cast<std::size_t>(use.resource)] += use.weight * sharing.rate(flow);
            double& most = fastest[static_cast<std::size_t>(use.resource)];
            most = std::max(most, sharing.rate(flow));
        }
    }
    for (std::size_t r = 0; r < capacities.size(); ++r) CHECK(load[r] <= capacities[r] * (1 + 1e-9));
    for (const auto& [flow, uses] : flows) {
        const bool held =
            std::any_of(uses.begin(), uses.end(), [&, rate = sharing.rate(flow)](const Use& use) {
                const auto r = static_cast<std::size_t>(use.resource);
                return load[r] >= capacities[r] * (1 - 1e-9) && rate >= fastest[r] * (1 - 1e-9);
            });
        CHECK_MESSAGE(held, "flow ", flow, " could be faster");
    }
}

}  // namespace

TEST_CASE("rates on random networks are max-min fair while flows come and go") {
    const int seeds = baton::test::full() ? 2000 : 150;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 dice(static_cast<std::uint64_t>(seed));
        const auto between = [&](int low, int high) {
            return low + static_cast<int>(dice() % static_cast<std::uint64_t>(high - low + 1));
        };
        const int resources = between(1, 14);
        std::vector<double> capacities;
        for (int r = 0; r < resources; ++r)
            capacities.push_back(between(0, 2) ? between(1, 5) : 0.1 * between(1, 90));
        MaxMin sharing(capacities);
        Flows flows;
        for (int change = 0; change < 40; ++change) {
            for (int n = between(1, 4); n > 0; --n) {
                const int flow = between(0, 30);
                if (const auto known = flows.find(flow); known != flows.end()) {
                    sharing.remove(flow);
                    flows.erase(known);
                    continue;
                }
                std::vector<Use> uses;
                for (int r = 0; r < resources; ++r) {
                    if (between(0, 3) == 0) uses.push_back({r, between(0, 1) ? 1.0 : 1.0 / between(2, 9)});
                }
                if (uses.empty()) uses.push_back({between(0, resources - 1), 1});
                sharing.add(flow, flows.emplace(flow, std::move(uses)).first->second);
            }
            sharing.solve();
            check_fair(capacities, flows, sharing);
            for (const auto& [flow, rate] : fill_slowly(capacities, flows))
                CHECK(sharing.rate(flow) == doctest::Approx(rate).epsilon(1e-9));
        }
    }
}

TEST_CASE("only the flows that a change reaches are recomputed") {
    MaxMin sharing({10, 10, 10});
    const std::vector<Use> first{{0, 1}}, second{{1, 1}}, both{{0, 1}, {1, 1}}, third{{2, 1}};
    sharing.add(0, first);
    sharing.add(1, second);
    sharing.add(3, third);
    CHECK(sharing.solve() == std::vector<int>{0, 1, 3});
    sharing.add(2, both);
    std::vector<int> changed = sharing.solve();
    std::sort(changed.begin(), changed.end());
    CHECK(changed == std::vector<int>{0, 1, 2});
    CHECK(sharing.rate(0) == 5);
    CHECK(sharing.rate(3) == 10);
    const std::int64_t before = sharing.work();
    sharing.remove(3);
    CHECK(sharing.solve().empty());
    CHECK(sharing.work() - before == 1);
}

TEST_CASE("a flow spread over two links takes its share of each") {
    MaxMin sharing({10, 30});
    const std::vector<Use> spread{{0, 0.25}, {1, 0.75}}, alone{{0, 1}};
    sharing.add(0, spread);
    sharing.solve();
    CHECK(sharing.rate(0) == doctest::Approx(40));
    sharing.add(1, alone);  // on link 0 both rise to x with 0.25 x + x = 10
    sharing.solve();
    CHECK(sharing.rate(0) == doctest::Approx(8));
    CHECK(sharing.rate(1) == doctest::Approx(8));
}
