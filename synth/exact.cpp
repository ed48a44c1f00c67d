#include <baton/synth/exact.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/ir/transform.hpp>
#include <baton/synth/by_group.hpp>
#include <baton/synth/exact_search.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

namespace baton::synth {
namespace {

using Kind = ir::CollectiveKind;

// The kind that is searched; its reverse is the one asked for where `turned`.
struct ExactCase {
    Kind kind = Kind::all_gather;
    bool turned = false;
};

ExactCase exact_case(Kind kind) {
    switch (kind) {
        case Kind::reduce: return {Kind::broadcast, true};
        case Kind::reduce_scatter: return {Kind::all_gather, true};
        case Kind::all_reduce: return {Kind::all_gather, false};
        case Kind::all_gather:
        case Kind::broadcast:
        case Kind::scatter:
        case Kind::gather:
        case Kind::all_to_all: return {kind, false};
        default: throw input_error(fmt::format("exact search is not made for {}", ir::to_string(kind)));
    }
}

ExactDemand exact_demand(Kind kind, int ranks, int root) {
    ExactDemand demand;
    const auto one = [&](int source, int destination) {
        ExactAddress address{source, std::vector<char>(at(ranks), 0)};
        if (destination < 0) {
            address.needed.assign(at(ranks), 1);
            address.needed[at(source)] = 0;
        } else {
            address.needed[at(destination)] = 1;
        }
        demand.addresses.push_back(std::move(address));
    };
    for (int a = 0; a < ranks; ++a) {
        if (kind == Kind::all_gather) one(a, -1);
        if (kind == Kind::scatter && a != root) one(root, a);
        if (kind == Kind::gather && a != root) one(a, root);
        for (int b = 0; kind == Kind::all_to_all && b < ranks; ++b) {
            if (a != b) one(a, b);
        }
    }
    if (kind == Kind::broadcast) one(root, -1);
    return demand;
}

// The schedule of a searched kind.
ir::Algorithm synchronous_algorithm(const ir::Collective& collective, const SynchronousMachine& machine,
                                    const ExactDemand& demand, const SearchResult& found) {
    using ir::Buffer;
    using ir::Place;
    const Kind kind = collective.kind;
    const std::int64_t chunks = collective.chunks;
    ir::AlgorithmBuilder builder("", collective);
    for (int rank = 0; rank < collective.ranks; ++rank) {
        const std::int64_t own = rank * chunks;
        if (kind == Kind::all_gather)
            builder.copy({rank, Buffer::input, 0}, {rank, Buffer::output, own}, chunks);
        else if (kind == Kind::all_to_all)
            builder.copy({rank, Buffer::input, own}, {rank, Buffer::output, own}, chunks);
        else if (rank == collective.root)
            builder.copy({rank, Buffer::input, kind == Kind::scatter ? own : 0},
                         {rank, Buffer::output, kind == Kind::gather ? own : 0}, chunks);
    }
    std::vector<std::int64_t> scratch(at(collective.ranks), 0);
    std::map<std::pair<std::int64_t, int>, Place> places;  // of chunk at rank
    const auto input_place = [&](std::int64_t chunk) {
        const ExactAddress& address = demand.addresses[at(chunk / chunks)];
        std::int64_t index = chunk % chunks;
        if (kind == Kind::scatter || kind == Kind::all_to_all)
            index += chunks *
                     (std::find(address.needed.begin(), address.needed.end(), 1) - address.needed.begin());
        return Place{address.source, Buffer::input, index};
    };
    const auto arrival = [&](std::int64_t chunk, int rank) {
        const ExactAddress& address = demand.addresses[at(chunk / chunks)];
        if (address.needed[at(rank)] == 0) return Place{rank, Buffer::scratch, scratch[at(rank)]++};
        const bool by_source = kind == Kind::all_gather || kind == Kind::gather || kind == Kind::all_to_all;
        return Place{rank, Buffer::output, (by_source ? address.source * chunks : 0) + chunk % chunks};
    };
    // In place, results of all_to_all overwrite what is still to be sent: that is put aside first, together
    // with the first step.
    const bool aside = kind == Kind::all_to_all && !found.sends.empty() && found.sends.back().step > 0;
    if (kind == Kind::all_to_all && !found.sends.empty()) builder.begin_par();
    if (aside) {
        for (const TimedSend& send : found.sends) {
            const int from = machine.arcs[at(send.arc)].from;
            if (send.step == 0 || from != demand.addresses[at(send.chunk / chunks)].source ||
                places.contains({send.chunk, from}))
                continue;
            const Place place{from, Buffer::scratch, scratch[at(from)]++};
            builder.copy(input_place(send.chunk), place);
            places[{send.chunk, from}] = place;
        }
    }
    bool open = kind == Kind::all_to_all && !found.sends.empty();
    for (const TimedSend& send : found.sends) {
        if (open && send.step > 0) builder.end_par(), open = false;
        const SynchronousArc& arc = machine.arcs[at(send.arc)];
        const auto held = places.find({send.chunk, arc.from});
        const Place source = held == places.end() || send.step == 0 ? input_place(send.chunk) : held->second;
        const Place target = arrival(send.chunk, arc.to);
        builder.send(source, target);
        places[{send.chunk, arc.to}] = target;
    }
    if (open) builder.end_par();
    return builder.build();
}

class FrontierSearch {
public:
    FrontierSearch(const topologies::Topology& topology, const ir::Collective& collective,
                   const ExactOptions& options)
        : collective_(collective), options_(options) {
        what_ = exact_case(collective.kind);
        if (collective.ranks > options.most_ranks)
            throw input_error(fmt::format("exact search serves {} ranks at most", options.most_ranks));
        machine_ = synchronous_machine(topology, collective.ranks);
        if (!machine_.exact && !options.rounded)
            throw input_error("the bandwidths of the links have no small common unit");
        if (!machine_.exact)
            frontier_.notes.push_back("bandwidths were rounded down to multiples of one unit");
        if (!machine_.all_links) frontier_.notes.push_back("only links between ranks were looked at");
        if (what_.turned) machine_ = machine_.reversed();
        if (collective.kind == Kind::all_reduce) turned_ = machine_.reversed();
        demand_ = exact_demand(what_.kind, collective.ranks, collective.root);
        groups_ = free_symmetries(machine_);
        if (ir::has_root(what_.kind)) groups_ = {groups_.back()};
    }

    ExactFrontier run() {
        const std::vector<std::vector<int>> distance = machine_.distances();
        for (const ExactAddress& address : demand_.addresses) {
            for (int v = 0; v < machine_.ranks; ++v) {
                if (address.needed[at(v)] != 0)
                    frontier_.fewest_steps =
                        std::max(frontier_.fewest_steps, distance[at(address.source)][at(v)]);
            }
        }
        if (frontier_.fewest_steps == 0)
            throw input_error("exact search has nothing to do: no data has to move");
        for (int steps = frontier_.fewest_steps; steps <= frontier_.fewest_steps + options_.more_steps;
             ++steps)
            look_at(steps);
        return std::move(frontier_);
    }

private:
    ExactBudget left() {
        constexpr std::int64_t kMostOfOne = 2'000'000'000;
        return {std::min(options_.effort - spent_, kMostOfOne), 2048, &spent_};
    }

    void look_at(int steps) {
        const std::optional<Rational> bound =
            fewest_rounds_per_chunk(machine_, demand_, steps, groups_.front(), left());
        if (!bound) {
            frontier_.notes.push_back(fmt::format("{} steps: not decided within the budget", steps));
            return;
        }
        frontier_.notes.push_back(
            fmt::format("{} steps: no number of chunks takes less than {}/{} rounds a chunk", steps,
                        bound->num(), bound->den()));
        std::optional<Rational> best;
        if (!frontier_.points.empty())
            best = Rational(frontier_.points.back().rounds, frontier_.points.back().chunks);
        std::optional<ExactPoint> point;
        for (std::int64_t chunks = 1; chunks <= options_.most_chunks; ++chunks) {
            const Rational least = *bound * Rational(chunks);
            std::int64_t rounds =
                std::max<std::int64_t>(steps, (least.num() + least.den() - 1) / least.den());
            for (; !best || Rational(rounds, chunks) < *best; ++rounds) {
                const ExactAnswer answer = ask(chunks, steps, rounds, *bound, point);
                if (answer == ExactAnswer::found) best = Rational(rounds, chunks);
                if (answer == ExactAnswer::impossible)
                    frontier_.notes.push_back(
                        fmt::format("{} chunks, {} steps, {} rounds: impossible", chunks, steps, rounds));
                if (answer == ExactAnswer::unknown)
                    frontier_.notes.push_back(
                        fmt::format("{} chunks, {} steps, {} rounds: not decided within "
                                    "the budget",
                                    chunks, steps, rounds));
                if (answer != ExactAnswer::impossible) break;
            }
            if (best && *best <= *bound) break;
        }
        if (point) frontier_.points.push_back(std::move(*point));
    }

    // The widest symmetry first: it makes answers fast where they exist; only the last proves that none does.
    SearchResult search(const SynchronousMachine& machine, int steps, std::int64_t rounds) {
        const bool same = machine == machine_;
        const auto groups = same || ir::has_root(what_.kind) ? groups_ : free_symmetries(machine);
        for (std::size_t g = 0; g < groups.size(); ++g) {
            ExactBudget budget = left();
            // Restricted searches may not eat up what the unrestricted one needs.
            if (g + 1 < groups.size()) budget.effort /= 4;
            SearchResult result = search_schedule(machine, demand_, steps, rounds, groups[g], budget);
            if (result.answer == ExactAnswer::found || g + 1 == groups.size()) return result;
        }
        return {};
    }

    ExactAnswer ask(std::int64_t chunks, int steps, std::int64_t rounds, const Rational& bound,
                    std::optional<ExactPoint>& point) {
        demand_.chunks = chunks;
        const SearchResult found = search(machine_, steps, rounds);
        if (found.answer != ExactAnswer::found) return found.answer;
        ir::Collective searched = collective_;
        searched.kind = what_.kind;
        searched.chunks = chunks;
        searched.weights.clear();
        ExactPoint made;
        made.chunks = chunks;
        made.steps = steps;
        made.rounds = rounds;
        made.bound = bound;
        made.optimal = Rational(rounds, chunks) == bound;
        made.algorithm = synchronous_algorithm(searched, machine_, demand_, found);
        if (what_.turned) made.algorithm = ir::reverse(made.algorithm);
        if (collective_.kind == Kind::all_reduce) {
            const SearchResult first = turned_ == machine_ ? found : search(turned_, steps, rounds);
            if (first.answer != ExactAnswer::found) return first.answer;
            made.algorithm = ir::concatenate(
                ir::reverse(synchronous_algorithm(searched, turned_, demand_, first)), made.algorithm);
        }
        made.algorithm.name = fmt::format("exact {}", ir::to_string(collective_.kind));
        point = std::move(made);
        return ExactAnswer::found;
    }

    const ir::Collective& collective_;
    const ExactOptions& options_;
    std::int64_t spent_ = 0;  // of options_.effort
    ExactCase what_;
    SynchronousMachine machine_, turned_;
    ExactDemand demand_;
    std::vector<std::vector<RankPermutation>> groups_;
    ExactFrontier frontier_;
};

// Each group has a frontier of its own; the points of equal place run side by side, the last one of a group
// beside all further ones of the others.
ExactFrontier frontier_of_groups(const topologies::Topology& topology, const ir::Collective& collective,
                                 const ExactOptions& options) {
    std::vector<ExactFrontier> found;
    ExactFrontier made;
    for (std::size_t p = 0;; ++p) {
        ExactPoint point;
        point.optimal = true;
        bool more = false;
        std::size_t g = 0;
        point.algorithm = by_group(
            topology, collective, [&](const topologies::Topology& seen, const ir::Collective& plain) {
                if (g == found.size()) found.push_back(FrontierSearch(seen, plain, options).run());
                const std::vector<ExactPoint>& points = found[g++].points;
                if (points.empty()) throw input_error("exact search found nothing within its limits");
                const ExactPoint& own = points[std::min(p, points.size() - 1)];
                more = more || p + 1 < points.size();
                point.optimal = point.optimal && own.optimal;
                // The slowest group stands for all: more steps, then more rounds per chunk.
                if (own.steps > point.steps ||
                    (own.steps == point.steps && own.rounds * point.chunks > point.rounds * own.chunks)) {
                    point.chunks = own.chunks;
                    point.steps = own.steps;
                    point.rounds = own.rounds;
                    point.bound = own.bound;
                }
                return own.algorithm;
            });
        made.points.push_back(std::move(point));
        if (!more) break;
    }
    for (std::size_t g = 0; g < found.size(); ++g) {
        made.fewest_steps = std::max(made.fewest_steps, found[g].fewest_steps);
        for (const std::string& note : found[g].notes)
            made.notes.push_back(fmt::format("group search {}: {}", g + 1, note));
    }
    return made;
}

}  // namespace

ExactFrontier exact_frontier(const topologies::Topology& topology, const ir::Collective& collective,
                             const ExactOptions& options) {
    if (!collective.groups.empty()) return frontier_of_groups(topology, collective, options);
    return FrontierSearch(topology, collective, options).run();
}

}  // namespace baton::synth
