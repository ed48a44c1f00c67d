#include <baton/synth/flow_symmetry.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/color_refinement.hpp>
#include <baton/synth/even_flow.hpp>
#include <baton/synth/flow_lengths.hpp>
#include <baton/synth/linear_program.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace baton::synth {
namespace {

constexpr std::int64_t kMostSearch = 12'000;  // classes times rounds
constexpr int kCoarseClasses = 64;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
    a = (a ^ (b + 0x9e3779b97f4a7c15ULL)) * 0xbf58476d1ce4e5b9ULL;
    a = (a ^ (a >> 27)) * 0x94d049bb133111ebULL;
    return a ^ (a >> 31);
}

// How every arc looks from the sources, summed over all of them: hops from the source, then a few rounds of
// refinement. Tells apart what neighbors alone do not, such as the directions of a torus of unequal sides.
std::vector<std::uint64_t> views_of_arcs(const FlowNetwork& network, const std::vector<int>& vertex_color,
                                         const std::vector<int>& arc_color) {
    constexpr int kRounds = 3;
    const std::vector<std::int64_t> ones(network.arcs.size(), 1);
    std::vector<std::uint64_t> view(network.arcs.size(), 0), color(at(network.vertices)), next;
    for (const FlowDemand& demand : network.demands) {
        const std::vector<std::int64_t> hops = distances_from(network, ones, demand.source);
        for (std::size_t v = 0; v < color.size(); ++v)
            color[v] = mixed(static_cast<std::uint64_t>(hops[v]), at(vertex_color[v]));
        for (const int sink : demand.sinks) color[at(sink)] = mixed(color[at(sink)], 1);
        for (int round = 0; round < kRounds; ++round) {
            next = color;
            for (std::size_t a = 0; a < network.arcs.size(); ++a) {
                const std::size_t from = at(network.arcs[a].from), to = at(network.arcs[a].to);
                next[to] += mixed(color[from], at(2 * arc_color[a]));
                next[from] += mixed(color[to], at(2 * arc_color[a] + 1));
            }
            for (std::size_t v = 0; v < color.size(); ++v) color[v] = mixed(next[v], 2);
        }
        for (std::size_t a = 0; a < network.arcs.size(); ++a)
            view[a] += mixed(mixed(color[at(network.arcs[a].from)], 3), color[at(network.arcs[a].to)]);
    }
    return view;
}

// Vertices by what they send and receive, resources by what they carry.
ColoredNetwork colored(const FlowNetwork& network) {
    ColoredNetwork colors;
    for (const FlowArc& arc : network.arcs) colors.arcs.push_back({arc.from, arc.to, arc.resources});
    std::vector<std::pair<int, int>> role(at(network.vertices), {0, 0});
    for (const FlowDemand& demand : network.demands) {
        role[at(demand.source)].first = static_cast<int>(demand.sinks.size());
        for (const int sink : demand.sinks) ++role[at(sink)].second;
    }
    std::vector<std::pair<bool, std::int64_t>> kind;
    for (const FlowResource& resource : network.resources)
        kind.push_back({resource.limit >= 0, resource.capacity});
    int count = 0;
    colors.vertex_color = numbers_of(role, count);
    colors.resource_color = numbers_of(kind, count);
    return colors;
}

// Splits classes by how the sources see their arcs; to be refined again.
void look_from_sources(const FlowNetwork& network, ColorRefinement& refinement) {
    const std::vector<std::uint64_t> view =
        views_of_arcs(network, refinement.vertices(), refinement.arc_resources());
    std::vector<std::uint64_t> seen(network.resources.size(), 0);
    for (std::size_t a = 0; a < view.size(); ++a) {
        for (const int r : network.arcs[a].resources) seen[at(r)] += mixed(view[a], 4);
    }
    refinement.split_resources(seen);
}

class SymmetricSearch {
public:
    SymmetricSearch(const FlowNetwork& network, std::vector<int> classes, int count)
        : network_(network), class_(std::move(classes)), capacity_(at(count), 0), program_(false) {
        for (std::size_t r = 0; r < class_.size(); ++r)
            capacity_[at(class_[r])] += static_cast<double>(network.resources[r].capacity);
        for (const double capacity : capacity_) unit_ = std::max(unit_, capacity);
    }

    ConcurrentFlow run(std::int64_t rounds) {
        // Start with fewest hops, weighed by scarcity.
        std::vector<double> lengths;
        for (const double capacity : capacity_) lengths.push_back(unit_ / capacity);
        ConcurrentFlow flow;
        std::vector<double> mix;
        for (std::int64_t round = 0; round < rounds; ++round) {
            const double bound = price(lengths);
            if (bound > flow.bound) {
                flow.bound = bound;
                flow.lengths = of_resources(lengths);
            }
            const LinearSolution solution = solve_mixture();
            if (solution.status != LinearSolution::Status::optimal) break;
            mix.assign(solution.values.begin(), solution.values.end());
            const double reached = solution.values[0] / unit_;
            if (reached <= flow.bound * (1 + 1e-10)) break;
            for (std::size_t c = 0; c < lengths.size(); ++c)
                lengths[c] = std::max(0.0, -solution.duals[at(capacity_row_) + c]);
        }
        mix_ = std::move(mix);
        flow.seconds_per_byte = time_of_mixture();
        flow.optimal = flow.seconds_per_byte <= flow.bound * (1 + kFlowsAgree);
        return flow;
    }

    /// The mixture that came out, per demand and arc.
    std::vector<std::vector<double>> units() const {
        std::vector<std::vector<double>> all;
        for (const FlowDemand& demand : network_.demands) {
            all.emplace_back(network_.arcs.size(), 0);
            add_mixture(demand, all.back());
        }
        return all;
    }

private:
    std::vector<double> of_resources(const std::vector<double>& lengths) const {
        std::vector<double> of;
        for (const int c : class_) of.push_back(lengths[at(c)]);
        return of;
    }

    void add_mixture(const FlowDemand& demand, std::vector<double>& units) const {
        for (std::size_t j = 0; j < columns_.size(); ++j) {
            const double weight = j + 1 < mix_.size() ? mix_[j + 1] : 0;
            if (weight > 1e-12) EvenFlow(network_, columns_[j]).add(demand, weight, units);
        }
    }

    // Of the busiest resource: classes may hold more than what is truly alike.
    double time_of_mixture() const {
        std::vector<double> units(network_.arcs.size(), 0), load(network_.resources.size(), 0);
        for (const FlowDemand& demand : network_.demands) add_mixture(demand, units);
        network_.add_load(units, load);
        return network_.busiest(load);
    }

    // Adds the even flow under these lengths to the mixture; returns the bound that they prove.
    double price(const std::vector<double>& lengths) {
        std::vector<std::int64_t> of_arc = whole_lengths(network_, of_resources(lengths));
        const EvenFlow even(network_, of_arc);
        std::vector<double> units(network_.arcs.size(), 0);
        for (const FlowDemand& demand : network_.demands) even.add(demand, 1, units);
        std::vector<double> load(capacity_.size(), 0);
        for (std::size_t a = 0; a < units.size(); ++a) {
            for (const int r : network_.arcs[a].resources) load[at(class_[at(r)])] += units[a];
        }
        double need = 0, offer = 0;
        for (std::size_t c = 0; c < load.size(); ++c) {
            need += load[c] * lengths[c];
            offer += capacity_[c] * lengths[c];
        }
        columns_.push_back(std::move(of_arc));
        loads_.push_back(std::move(load));
        return need / offer;
    }

    // Rows change with every column, so the little program is written anew.
    LinearSolution solve_mixture() {
        program_ = LinearProgram(false);
        program_.add_variable(1);
        std::vector<std::pair<int, double>> one;
        for (std::size_t j = 0; j < loads_.size(); ++j) one.push_back({program_.add_variable(0), 1});
        program_.add_row(1, 1, one);
        capacity_row_ = 1;
        for (std::size_t c = 0; c < capacity_.size(); ++c) {
            std::vector<std::pair<int, double>> terms = {{0, -capacity_[c] / unit_}};
            for (std::size_t j = 0; j < loads_.size(); ++j) {
                if (loads_[j][c] > 0) terms.push_back({static_cast<int>(j) + 1, loads_[j][c]});
            }
            program_.add_row(-LinearProgram::kInfinity, 0, terms);
        }
        return program_.solve();
    }

    const FlowNetwork& network_;
    std::vector<int> class_;
    std::vector<double> capacity_;  // per class
    LinearProgram program_;
    double unit_ = 1;
    int capacity_row_ = 1;
    std::vector<double> mix_;                         // per variable of the last little program
    std::vector<std::vector<std::int64_t>> columns_;  // lengths of arcs
    std::vector<std::vector<double>> loads_;          // [column][class]
};

}  // namespace

ConcurrentFlow symmetric_flow(const FlowNetwork& network, const FlowLimits& limits) {
    if (network.demands.empty() || network.arcs.empty()) return {};
    ColorRefinement refinement(colored(network));
    const auto most = static_cast<int>(limits.most_classes);
    // Where nothing looks alike, lengths for coarse classes still give a bound.
    const bool stable = refinement.refine(most);
    if (!stable) {
        refinement = ColorRefinement(colored(network));
        refinement.refine(std::min(most, kCoarseClasses));
        if (refinement.resource_count() > most) return {};
    }
    const auto size =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(network.demands.size()) *
                                      static_cast<std::int64_t>(network.arcs.size() + at(network.vertices)));
    // The little programs grow with rounds and classes.
    const auto rounds = [&](int classes) {
        return std::clamp<std::int64_t>(std::min(limits.most_work / size, kMostSearch / classes), 1, 400);
    };
    SymmetricSearch coarse(network, refinement.resources(), refinement.resource_count());
    ConcurrentFlow flow =
        coarse.run(stable ? rounds(refinement.resource_count())
                          : std::min<std::int64_t>(20, rounds(refinement.resource_count())));
    const int coarse_count = refinement.resource_count();
    if (stable && !flow.optimal && size <= limits.most_work / 10) {
        look_from_sources(network, refinement);
        if (refinement.refine(most) && refinement.resource_count() > coarse_count) {
            SymmetricSearch fine(network, refinement.resources(), refinement.resource_count());
            ConcurrentFlow better = fine.run(rounds(refinement.resource_count()));
            if (better.bound < flow.bound) {
                better.bound = flow.bound;
                better.lengths = flow.lengths;
                better.optimal = better.seconds_per_byte <= better.bound * (1 + kFlowsAgree);
            }
            flow = std::move(better);
            if (limits.keep_units) flow.units = fine.units();
            return flow;
        }
    }
    if (limits.keep_units) flow.units = coarse.units();
    return flow;
}

}  // namespace baton::synth
