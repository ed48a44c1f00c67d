#include <baton/synth/exact_search.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>

#include <fmt/format.h>

#include <z3++.h>
#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace baton::synth {
namespace {

// Addresses, arcs and pairs of them up to the symmetry.
class Orbits {
public:
    Orbits(const SynchronousMachine& machine, const ExactDemand& demand,
           const std::vector<RankPermutation>& symmetry)
        : arcs_(machine.arcs.size()) {
        std::map<std::pair<int, int>, int> arc_of;
        for (std::size_t e = 0; e < arcs_; ++e)
            arc_of[{machine.arcs[e].from, machine.arcs[e].to}] = static_cast<int>(e);
        std::map<std::pair<int, std::vector<char>>, int> address_of;
        for (std::size_t a = 0; a < demand.addresses.size(); ++a)
            address_of[{demand.addresses[a].source, demand.addresses[a].needed}] = static_cast<int>(a);
        const std::size_t addresses = demand.addresses.size();
        pair_.resize(addresses * arcs_);
        for (std::size_t i = 0; i < pair_.size(); ++i) pair_[i] = static_cast<int>(i);
        address_first_.assign(addresses, 1);
        arc_first_.assign(arcs_, 1);
        for (const RankPermutation& g : symmetry) {
            std::vector<int> arc_image, address_image;
            for (const SynchronousArc& arc : machine.arcs) {
                const auto found = arc_of.find({g[at(arc.from)], g[at(arc.to)]});
                if (found == arc_of.end()) throw internal_error("a symmetry does not keep the machine");
                arc_image.push_back(found->second);
            }
            for (const ExactAddress& address : demand.addresses) {
                std::vector<char> needed(address.needed.size(), 0);
                for (std::size_t v = 0; v < needed.size(); ++v) needed[at(g[v])] = address.needed[v];
                const auto found = address_of.find({g[at(address.source)], needed});
                if (found == address_of.end()) throw internal_error("a symmetry does not keep the demand");
                address_image.push_back(found->second);
            }
            for (std::size_t a = 0; a < addresses; ++a) {
                if (at(address_image[a]) < a) address_first_[a] = 0;
                for (std::size_t e = 0; e < arcs_; ++e) {
                    const std::size_t image = at(address_image[a]) * arcs_ + at(arc_image[e]);
                    pair_[a * arcs_ + e] = std::min(pair_[a * arcs_ + e], static_cast<int>(image));
                }
            }
            for (std::size_t e = 0; e < arcs_; ++e) {
                if (at(arc_image[e]) < e) arc_first_[e] = 0;
            }
        }
    }
    /// The same number for all images of an address and an arc.
    int pair(std::size_t address, std::size_t arc) const { return pair_[address * arcs_ + arc]; }
    /// True for one address (arc) of each orbit.
    bool first_address(std::size_t address) const { return address_first_[address] != 0; }
    bool first_arc(std::size_t arc) const { return arc_first_[arc] != 0; }

private:
    std::size_t arcs_;
    std::vector<int> pair_;
    std::vector<char> address_first_, arc_first_;
};

// Steps in which a chunk can cross an arc: it cannot have come sooner, and must still be of use.
class Windows {
public:
    Windows(const SynchronousMachine& machine, const ExactDemand& demand, int steps)
        : machine_(machine), demand_(demand), distance_(machine.distances()), steps_(steps) {
        for (const ExactAddress& address : demand.addresses) {
            std::vector<int> onward(at(machine.ranks), INT32_MAX / 2);
            for (int v = 0; v < machine.ranks; ++v) {
                for (int d = 0; d < machine.ranks; ++d) {
                    if (address.needed[at(d)] != 0 && distance_[at(v)][at(d)] >= 0)
                        onward[at(v)] = std::min(onward[at(v)], distance_[at(v)][at(d)]);
                }
            }
            onward_.push_back(std::move(onward));
        }
    }
    bool open(std::size_t address, std::size_t arc, int step) const {
        const SynchronousArc& a = machine_.arcs[arc];
        const int source = demand_.addresses[address].source;
        return a.to != source && distance_[at(source)][at(a.from)] <= step &&
               step + 1 + onward_[address][at(a.to)] <= steps_;
    }
    /// True when every needer is near enough.
    bool possible() const {
        for (const ExactAddress& address : demand_.addresses) {
            for (int d = 0; d < machine_.ranks; ++d) {
                if (address.needed[at(d)] != 0 && distance_[at(address.source)][at(d)] > steps_) return false;
            }
        }
        return true;
    }

private:
    const SynchronousMachine& machine_;
    const ExactDemand& demand_;
    std::vector<std::vector<int>> distance_, onward_;
    int steps_;
};

template <class Target>
void limit_effort(z3::context& context, Target& target, const ExactBudget& budget) {
    z3::params params(context);
    params.set("rlimit", static_cast<unsigned>(std::clamp<std::int64_t>(budget.effort, 1, UINT32_MAX)));
    target.set(params);
}

// Asks, and lets the stop token of the thread end it.
template <class Target>
z3::check_result ask_solver(z3::context& context, Target& target, const ExactBudget& budget) {
    stop_point();
    const StopToken token = current_stop();
    z3::check_result answer;
    {
        const StopWatch watch(token, [&context] { context.interrupt(); });
        answer = target.check();
    }
    stop_point();
    if (budget.spent == nullptr) return answer;
    const z3::stats counts = target.statistics();
    for (unsigned i = 0; i < counts.size(); ++i) {
        if (counts.key(i) == "rlimit count")
            *budget.spent += counts.is_uint(i) ? std::int64_t{counts.uint_value(i)}
                                               : static_cast<std::int64_t>(counts.double_value(i));
    }
    return answer;
}

class ScheduleQuestion {
public:
    ScheduleQuestion(const SynchronousMachine& machine, const ExactDemand& demand, int steps,
                     std::int64_t rounds, const std::vector<RankPermutation>& symmetry,
                     const ExactBudget& budget)
        : machine_(machine),
          demand_(demand),
          orbits_(machine, demand, symmetry),
          windows_(machine, demand, steps),
          steps_(steps),
          spare_(rounds - steps),
          budget_(budget),
          solver_(context_, "QF_FD") {}

    SearchResult run() {
        SearchResult result;
        if (spare_ < 0 || !windows_.possible()) {
            result.answer = ExactAnswer::impossible;
            return result;
        }
        z3::params params(context_);
        params.set("random_seed", 0U);
        params.set("threads", 1U);
        params.set("max_memory",
                   static_cast<unsigned>(std::clamp<std::int64_t>(budget_.megabytes, 16, 1 << 20)));
        solver_.set(params);
        limit_effort(context_, solver_, budget_);
        length_of_steps();
        arrivals();
        capacities();
        order_copies();
        const z3::check_result answer = ask_solver(context_, solver_, budget_);
        if (answer == z3::unsat) result.answer = ExactAnswer::impossible;
        if (answer == z3::sat) {
            result.answer = ExactAnswer::found;
            read(result);
        }
        return result;
    }

private:
    using Key = std::tuple<int, std::int64_t, int>;  // orbit of address and arc, copy, step

    z3::expr crosses(std::size_t address, std::int64_t copy, std::size_t arc, int step) {
        const Key key{orbits_.pair(address, arc), copy, step};
        auto found = crossing_.find(key);
        if (found == crossing_.end()) {
            const std::string name = fmt::format("x{}.{}.{}", std::get<0>(key), copy, step);
            found = crossing_.emplace(key, context_.bool_const(name.c_str())).first;
        }
        return found->second;
    }

    // longer_[s][i]: step s has more than i + 1 rounds. All spare rounds are spent: more never hurt.
    void length_of_steps() {
        z3::expr_vector all(context_);
        for (int s = 0; s < steps_; ++s) {
            longer_.emplace_back();
            for (std::int64_t i = 0; i < spare_; ++i) {
                longer_.back().push_back(context_.bool_const(fmt::format("r{}.{}", s, i).c_str()));
                all.push_back(longer_.back().back());
                if (i > 0) solver_.add(z3::implies(longer_.back()[at(i)], longer_.back()[at(i) - 1]));
            }
        }
        if (!all.empty()) {
            const std::vector<int> ones(all.size(), 1);
            solver_.add(z3::pbeq(all, ones.data(), static_cast<int>(spare_)));
        }
    }

    void arrivals() {
        const std::vector<std::vector<int>> in = machine_.in();
        for (std::size_t a = 0; a < demand_.addresses.size(); ++a) {
            if (!orbits_.first_address(a)) continue;
            stop_point();
            for (std::int64_t c = 0; c < demand_.chunks; ++c) {
                for (int v = 0; v < machine_.ranks; ++v) {
                    if (v != demand_.addresses[a].source) arrive(a, c, v, in);
                }
            }
        }
    }

    void arrive(std::size_t a, std::int64_t c, int v, const std::vector<std::vector<int>>& in) {
        z3::expr_vector ways(context_);
        for (const int e : in[at(v)]) {
            for (int s = 0; s < steps_; ++s) {
                if (!windows_.open(a, at(e), s)) continue;
                ways.push_back(crosses(a, c, at(e), s));
                const int u = machine_.arcs[at(e)].from;
                if (u == demand_.addresses[a].source) continue;
                z3::expr_vector before(context_);
                before.push_back(!ways.back());
                for (const int into : in[at(u)]) {
                    for (int earlier = 0; earlier < s; ++earlier) {
                        if (windows_.open(a, at(into), earlier))
                            before.push_back(crosses(a, c, at(into), earlier));
                    }
                }
                solver_.add(z3::mk_or(before));
            }
        }
        if (demand_.addresses[a].needed[at(v)] != 0)
            solver_.add(ways.empty() ? context_.bool_val(false) : z3::mk_or(ways));
        if (ways.size() > 1) solver_.add(z3::atmost(ways, 1));
    }

    void capacities() {
        for (std::size_t e = 0; e < machine_.arcs.size(); ++e) {
            if (orbits_.first_arc(e)) capacity({static_cast<int>(e)}, machine_.arcs[e].chunks);
        }
        for (const SynchronousLimit& limit : machine_.limits) capacity(limit.arcs, limit.chunks);
    }

    // Chunks over the arcs in a step <= chunks per round * rounds.
    void capacity(const std::vector<int>& arcs, std::int64_t chunks) {
        for (int s = 0; s < steps_; ++s) {
            z3::expr_vector terms(context_);
            std::vector<int> factors;
            for (const int e : arcs) {
                for (std::size_t a = 0; a < demand_.addresses.size(); ++a) {
                    for (std::int64_t c = 0; c < demand_.chunks; ++c) {
                        if (windows_.open(a, at(e), s)) terms.push_back(crosses(a, c, at(e), s));
                    }
                }
            }
            factors.assign(terms.size(), 1);
            if (static_cast<std::int64_t>(terms.size()) <= chunks) continue;
            for (const z3::expr& longer : longer_[at(s)]) {
                terms.push_back(!longer);
                factors.push_back(static_cast<int>(chunks));
            }
            solver_.add(z3::pble(terms, factors.data(), static_cast<int>(chunks * (1 + spare_))));
        }
    }

    // Copies of an address are alike: what they do at their source descends in lexicographic order.
    void order_copies() {
        const std::vector<std::vector<int>> out = machine_.out();
        for (std::size_t a = 0; a < demand_.addresses.size(); ++a) {
            if (!orbits_.first_address(a)) continue;
            stop_point();
            for (std::int64_t c = 0; c + 1 < demand_.chunks; ++c) {
                std::optional<z3::expr> equal_so_far;
                int place = 0;
                for (int s = 0; s < steps_; ++s) {
                    for (const int e : out[at(demand_.addresses[a].source)]) {
                        if (!windows_.open(a, at(e), s)) continue;
                        const z3::expr first = crosses(a, c, at(e), s), second = crosses(a, c + 1, at(e), s);
                        const z3::expr descends = first || !second;
                        solver_.add(equal_so_far ? !*equal_so_far || descends : descends);
                        const z3::expr next =
                            context_.bool_const(fmt::format("l{}.{}.{}", a, c, place++).c_str());
                        const z3::expr equal = first == second;
                        solver_.add(equal_so_far ? !*equal_so_far || !equal || next : !equal || next);
                        equal_so_far = next;
                    }
                }
            }
        }
    }

    void read(SearchResult& result) {
        const z3::model model = solver_.get_model();
        const auto holds = [&](const z3::expr& literal) { return model.eval(literal, true).is_true(); };
        for (int s = 0; s < steps_; ++s) {
            std::int64_t rounds = 1;
            for (const z3::expr& longer : longer_[at(s)]) rounds += holds(longer) ? 1 : 0;
            result.rounds.push_back(rounds);
        }
        // Backwards: what leads to no rank that needs it is left out.
        std::set<std::pair<std::int64_t, int>> used;  // chunk, rank
        for (int s = steps_ - 1; s >= 0; --s) {
            std::vector<TimedSend> of_step;
            for (std::size_t a = 0; a < demand_.addresses.size(); ++a) {
                for (std::int64_t c = 0; c < demand_.chunks; ++c) {
                    const std::int64_t chunk = static_cast<std::int64_t>(a) * demand_.chunks + c;
                    for (std::size_t e = 0; e < machine_.arcs.size(); ++e) {
                        const SynchronousArc& arc = machine_.arcs[e];
                        if (!windows_.open(a, e, s) || !holds(crosses(a, c, e, s))) continue;
                        if (demand_.addresses[a].needed[at(arc.to)] == 0 && !used.contains({chunk, arc.to}))
                            continue;
                        of_step.push_back({s, chunk, static_cast<int>(e)});
                    }
                }
            }
            for (const TimedSend& send : of_step) used.insert({send.chunk, machine_.arcs[at(send.arc)].from});
            result.sends.insert(result.sends.begin(), of_step.begin(), of_step.end());
        }
    }

    const SynchronousMachine& machine_;
    const ExactDemand& demand_;
    Orbits orbits_;
    Windows windows_;
    int steps_;
    std::int64_t spare_;
    const ExactBudget& budget_;
    z3::context context_;
    z3::solver solver_;
    std::map<Key, z3::expr> crossing_;
    std::vector<std::vector<z3::expr>> longer_;
};

// Shares of an address per arc and step, in [0, 1]; what crosses an arc up to a step was there before it.
class Relaxation {
public:
    Relaxation(const SynchronousMachine& machine, const ExactDemand& demand, int steps,
               const std::vector<RankPermutation>& symmetry, const ExactBudget& budget)
        : machine_(machine),
          demand_(demand),
          orbits_(machine, demand, symmetry),
          windows_(machine, demand, steps),
          steps_(steps),
          budget_(budget),
          optimizer_(context_) {}

    std::optional<Rational> run() {
        if (!windows_.possible()) return std::nullopt;
        z3::expr total = context_.real_val(0);
        for (int s = 0; s < steps_; ++s) {
            rounds_.push_back(context_.real_const(fmt::format("r{}", s).c_str()));
            optimizer_.add(rounds_.back() >= 0);
            total = total + rounds_.back();
        }
        shares();
        capacities();
        limit_effort(context_, optimizer_, budget_);
        const z3::optimize::handle least = optimizer_.minimize(total);
        if (ask_solver(context_, optimizer_, budget_) != z3::sat) return std::nullopt;
        const z3::expr value = optimizer_.lower(least);
        std::int64_t numerator = 0, denominator = 1;
        if (!value.is_numeral() || !value.numerator().is_numeral_i64(numerator) ||
            !value.denominator().is_numeral_i64(denominator))
            return std::nullopt;
        return Rational(numerator, denominator);
    }

private:
    z3::expr share(std::size_t address, std::size_t arc, int step) {
        const std::pair key{orbits_.pair(address, arc), step};
        auto found = shares_.find(key);
        if (found == shares_.end()) {
            const std::string name = fmt::format("y{}.{}", key.first, step);
            found = shares_.emplace(key, context_.real_const(name.c_str())).first;
            optimizer_.add(found->second >= 0);
        }
        return found->second;
    }

    // What of an address came over arcs before a step.
    z3::expr before(std::size_t address, const std::vector<int>& arcs, int step) {
        z3::expr_vector terms(context_);
        for (const int e : arcs) {
            for (int s = 0; s < step; ++s) {
                if (windows_.open(address, at(e), s)) terms.push_back(share(address, at(e), s));
            }
        }
        return terms.empty() ? context_.real_val(0) : z3::sum(terms);
    }

    void shares() {
        const std::vector<std::vector<int>> in = machine_.in();
        for (std::size_t a = 0; a < demand_.addresses.size(); ++a) {
            if (!orbits_.first_address(a)) continue;
            stop_point();
            const ExactAddress& address = demand_.addresses[a];
            for (int v = 0; v < machine_.ranks; ++v) {
                if (v == address.source) continue;
                const z3::expr all = before(a, in[at(v)], steps_);
                optimizer_.add(address.needed[at(v)] != 0 ? all == 1 : all <= 1);
                for (const int e : in[at(v)]) {
                    const int u = machine_.arcs[at(e)].from;
                    for (int s = 0; s < steps_; ++s) {
                        if (u != address.source && windows_.open(a, at(e), s))
                            optimizer_.add(before(a, {e}, s + 1) <= before(a, in[at(u)], s));
                    }
                }
            }
        }
    }

    void capacities() {
        const auto hold = [&](const std::vector<int>& arcs, std::int64_t chunks) {
            for (int s = 0; s < steps_; ++s) {
                z3::expr_vector terms(context_);
                for (const int e : arcs) {
                    for (std::size_t a = 0; a < demand_.addresses.size(); ++a) {
                        if (windows_.open(a, at(e), s)) terms.push_back(share(a, at(e), s));
                    }
                }
                if (!terms.empty())
                    optimizer_.add(z3::sum(terms) <= context_.real_val(chunks) * rounds_[at(s)]);
            }
        };
        for (std::size_t e = 0; e < machine_.arcs.size(); ++e) {
            if (orbits_.first_arc(e)) hold({static_cast<int>(e)}, machine_.arcs[e].chunks);
        }
        for (const SynchronousLimit& limit : machine_.limits) hold(limit.arcs, limit.chunks);
    }

    const SynchronousMachine& machine_;
    const ExactDemand& demand_;
    Orbits orbits_;
    Windows windows_;
    int steps_;
    const ExactBudget& budget_;
    z3::context context_;
    z3::optimize optimizer_;
    std::map<std::pair<int, int>, z3::expr> shares_;
    std::vector<z3::expr> rounds_;
};

}  // namespace

SearchResult search_schedule(const SynchronousMachine& machine, const ExactDemand& demand, int steps,
                             std::int64_t rounds, const std::vector<RankPermutation>& symmetry,
                             const ExactBudget& budget) {
    if (budget.effort <= 0) return {};
    try {
        return ScheduleQuestion(machine, demand, steps, rounds, symmetry, budget).run();
    } catch (const z3::exception& error) {
        stop_point();
        if (std::string(error.msg()).find("memory") != std::string::npos) return {};
        throw internal_error(fmt::format("the solver failed: {}", error.msg()));
    }
}

std::optional<Rational> fewest_rounds_per_chunk(const SynchronousMachine& machine, const ExactDemand& demand,
                                                int steps, const std::vector<RankPermutation>& symmetry,
                                                const ExactBudget& budget) {
    if (budget.effort <= 0) return std::nullopt;
    try {
        return Relaxation(machine, demand, steps, symmetry, budget).run();
    } catch (const z3::exception& error) {
        stop_point();
        if (std::string(error.msg()).find("memory") != std::string::npos) return std::nullopt;
        throw internal_error(fmt::format("the solver failed: {}", error.msg()));
    }
}

}  // namespace baton::synth
