#include <baton/sim/whatif.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>

#include <map>
#include <utility>

namespace baton::sim {
namespace {

/// One machine of the study; keeps what is prepared, since sizes often share a schedule.
class Machine {
public:
    Machine(const topologies::Topology& topology, const SimulationOptions& options)
        : topology_(topology), options_(options) {}

    WhatIfCell run(const ChosenSchedule& schedule, Bytes size) {
        WhatIfCell cell;
        cell.schedule = schedule.name;
        const int ranks = schedule.algorithm->collective.ranks;
        if (ranks != topology_.rank_count()) {
            cell.reason = fmt::format("made for {} ranks, the machine has {}", ranks, topology_.rank_count());
            return cell;
        }
        auto& [algorithm, prepared] = prepared_[schedule.algorithm.get()];
        if (!prepared) {
            algorithm = schedule.algorithm;
            prepared =
                std::make_unique<PreparedAlgorithm>(topology_, *algorithm, options_.policy, options_.seed);
        }
        SimulationOptions options = options_;
        options.size = size;
        options.tiles = schedule.tiles;
        options.trace = false;
        const SimulationResult result = prepared->run(options);
        cell.tiles = result.tiles;
        cell.busbw = result.busbw;
        cell.model_in_words = result.model_in_words;
        if (result.outcome == Outcome::finished)
            cell.time = result.time;
        else
            cell.reason = fmt::format("{}: {}", to_string(result.outcome), result.reason);
        return cell;
    }

    const topologies::Topology& topology() const { return topology_; }

private:
    const topologies::Topology& topology_;
    const SimulationOptions& options_;
    struct Prepared {
        std::shared_ptr<const ir::Algorithm> algorithm;  // keeps its address from being used again
        std::unique_ptr<PreparedAlgorithm> prepared;
    };
    std::map<const ir::Algorithm*, Prepared> prepared_;  // never walked
};

/// Calls `make`; an error that is no fault of ours becomes a reason.
template <class Make>
std::string reason_of(const Make& make) {
    try {
        make();
        return {};
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::internal) throw;
        return error.what();
    }
}

}  // namespace

std::vector<WhatIfRow> what_if(const topologies::Topology& baseline, const std::vector<Variation>& variations,
                               const std::vector<Bytes>& sizes, const SimulationOptions& options,
                               const Synthesize& synthesize, const BoundOf& bound,
                               const std::function<void(const std::string&, double)>& progress) {
    std::vector<WhatIfRow> rows;
    const double all = static_cast<double>((variations.size() + 1) * sizes.size());
    const auto tell = [&](const std::string& name, Bytes size) {
        if (progress)
            progress(fmt::format("{}, {}", name, to_string(size)), static_cast<double>(rows.size()) / all);
    };
    std::vector<ChosenSchedule> kept;
    Machine base(baseline, options);
    for (const Bytes size : sizes) {
        tell("baseline", size);
        WhatIfRow row;
        row.variation = "baseline";
        row.size = size;
        kept.push_back(synthesize(baseline, size));
        row.kept = row.anew = base.run(kept.back(), size);
        kept.back().tiles = row.kept.tiles;
        if (bound) reason_of([&] { row.bound = bound(baseline, size); });
        rows.push_back(std::move(row));
    }
    for (const Variation& variation : variations) {
        std::optional<Machine> machine;
        if (variation.topology) machine.emplace(*variation.topology, options);
        for (std::size_t s = 0; s < sizes.size(); ++s) {
            tell(variation.name, sizes[s]);
            WhatIfRow row;
            row.variation = variation.name;
            row.size = sizes[s];
            if (!machine) {
                row.kept.reason = row.anew.reason = variation.refusal;
            } else {
                const std::string kept_fails = reason_of([&] { row.kept = machine->run(kept[s], sizes[s]); });
                if (!kept_fails.empty()) row.kept.reason = kept_fails;
                const std::string anew_fails = reason_of(
                    [&] { row.anew = machine->run(synthesize(*variation.topology, sizes[s]), sizes[s]); });
                if (!anew_fails.empty()) row.anew.reason = anew_fails;
                if (bound) reason_of([&] { row.bound = bound(*variation.topology, sizes[s]); });
            }
            rows.push_back(std::move(row));
        }
    }
    return rows;
}

}  // namespace baton::sim
