#include <baton/synth/flow_descent.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/even_flow.hpp>

#include <algorithm>

namespace baton::synth {
namespace {

constexpr int kPowers[] = {8, 16, 32, 64, 128};
constexpr double kCloseEnough = 1e-3;
constexpr std::size_t kMostUnits = std::size_t{16} << 20;

class Descent {
public:
    Descent(const FlowNetwork& network, bool keep_units, ConcurrentFlow& flow)
        : network_(network), keep_units_(keep_units), flow_(flow) {
        for (const FlowResource& resource : network.resources)
            seconds_.push_back(1 / static_cast<double>(resource.capacity));
    }

    void run(std::int64_t rounds) {
        // From what is known, or from fewest hops weighed by scarcity.
        std::vector<double> lengths = flow_.lengths.empty() ? seconds_ : flow_.lengths;
        Mixture mix = even(lengths);
        for (std::int64_t round = 1; round < rounds; ++round) {
            const std::size_t stage = at(round) * std::size(kPowers) / at(rounds);
            const int power = kPowers[stage];
            const double most = time_of(mix.load);
            if (most <= flow_.bound * (1 + kCloseEnough)) break;
            for (std::size_t r = 0; r < lengths.size(); ++r)
                lengths[r] = whole_power(mix.load[r] * seconds_[r] / most, power - 1) * seconds_[r];
            blend(mix, even(lengths), power);
        }
        const double time = time_of(mix.load);
        if (flow_.seconds_per_byte > 0 && flow_.seconds_per_byte <= time) return;
        flow_.seconds_per_byte = time;
        flow_.units = std::move(mix.units);
    }

private:
    struct Mixture {
        std::vector<double> load;                // per resource
        std::vector<std::vector<double>> units;  // per demand and arc, when kept
    };

    // The even flow under lengths, whose bound counts at once.
    Mixture even(const std::vector<double>& lengths) {
        const std::vector<std::int64_t> of_arc = whole_lengths(network_, lengths);
        const EvenFlow flow(network_, of_arc);
        Mixture made;
        std::vector<double> sum(network_.arcs.size(), 0);
        for (const FlowDemand& demand : network_.demands) {
            if (!keep_units_) {
                flow.add(demand, 1, sum);
                continue;
            }
            std::vector<double>& units = made.units.emplace_back(network_.arcs.size(), 0);
            flow.add(demand, 1, units);
            for (std::size_t a = 0; a < sum.size(); ++a) sum[a] += units[a];
        }
        made.load.assign(network_.resources.size(), 0);
        network_.add_load(sum, made.load);
        double need = 0, offer = 0;
        for (std::size_t r = 0; r < lengths.size(); ++r) {
            need += made.load[r] * lengths[r];
            offer += lengths[r] / seconds_[r];
        }
        if (need > flow_.bound * offer) {
            flow_.bound = need / offer;
            flow_.lengths = lengths;
        }
        return made;
    }

    double time_of(const std::vector<double>& load) const {
        double time = 0;
        for (std::size_t r = 0; r < load.size(); ++r) time = std::max(time, load[r] * seconds_[r]);
        return time;
    }

    // Moves towards the other mixture as far as the sum of powers falls.
    void blend(Mixture& mix, const Mixture& other, int power) const {
        const double scale = 1 / time_of(mix.load);
        const auto sum_at = [&](double share) {
            double sum = 0;
            for (std::size_t r = 0; r < mix.load.size(); ++r)
                sum += whole_power(((1 - share) * mix.load[r] + share * other.load[r]) * seconds_[r] * scale,
                                   power);
            return sum;
        };
        double low = 0, high = 1;
        for (int i = 0; i < 40; ++i) {
            const double a = low + (high - low) / 3, b = high - (high - low) / 3;
            (sum_at(a) < sum_at(b) ? high : low) = sum_at(a) < sum_at(b) ? b : a;
        }
        const double share = (low + high) / 2;
        const auto towards = [&](std::vector<double>& ours, const std::vector<double>& theirs) {
            for (std::size_t i = 0; i < ours.size(); ++i) ours[i] = (1 - share) * ours[i] + share * theirs[i];
        };
        towards(mix.load, other.load);
        for (std::size_t d = 0; d < mix.units.size(); ++d) towards(mix.units[d], other.units[d]);
    }

    const FlowNetwork& network_;
    bool keep_units_;
    ConcurrentFlow& flow_;
    std::vector<double> seconds_;  // per resource: for one byte
};

}  // namespace

void descend(const FlowNetwork& network, const FlowLimits& limits, ConcurrentFlow& flow) {
    if (network.demands.empty() || network.arcs.empty()) return;
    const std::size_t size = network.demands.size() * (network.arcs.size() + at(network.vertices));
    const std::int64_t rounds =
        std::min<std::int64_t>(300, limits.most_descent / static_cast<std::int64_t>(size));
    if (rounds < 2) return;
    const bool keep = limits.keep_units && network.demands.size() * network.arcs.size() <= kMostUnits;
    Descent(network, keep, flow).run(rounds);
    flow.optimal = flow.seconds_per_byte <= flow.bound * (1 + kFlowsAgree);
}

}  // namespace baton::synth
