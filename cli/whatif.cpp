// baton whatif: the same collective on variations of a machine.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/base/progress.hpp>
#include <baton/cli/collective_options.hpp>
#include <baton/cli/command.hpp>
#include <baton/cli/machine_options.hpp>
#include <baton/cli/options.hpp>
#include <baton/cli/schedule_choice.hpp>
#include <baton/ir/schedule.hpp>
#include <baton/ir/verify.hpp>
#include <baton/sim/whatif.hpp>
#include <baton/synth/bound.hpp>
#include <baton/topologies/load.hpp>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace baton::cli {
namespace {

using Json = nlohmann::ordered_json;

/// The parts of a text between separators, without empty ones.
std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::string part;
    for (const char c : text + separator) {
        if (c != separator) {
            part += c;
            continue;
        }
        if (!part.empty()) parts.push_back(part);
        part.clear();
    }
    return parts;
}

/// "dgx_h100:hosts=2,fabric=x" with one parameter set, put at the end when it is not there.
std::string with_parameter(const std::string& spec, const std::string& key, const std::string& value) {
    const std::size_t colon = spec.find(':');
    std::string made = spec.substr(0, colon) + ":";
    bool found = false, first = true;
    if (colon != std::string::npos) {
        for (const std::string& part : split(spec.substr(colon + 1), ',')) {
            const bool same = part.substr(0, part.find('=')) == key && part.find('=') != std::string::npos;
            made += (first ? "" : ",") + (same ? key + "=" + value : part);
            found = found || same;
            first = false;
        }
    }
    if (!found) made += (first ? "" : ",") + key + "=" + value;
    return made;
}

class WhatIfCommand final : public Command {
public:
    std::string name() const override { return "whatif"; }
    std::string summary() const override {
        return "compares a machine with variations: failed links, slow links, other parameters";
    }
    std::vector<std::string> examples() const override {
        return {"baton whatif dgx1_v100 --sizes 1MiB,1GiB --fail 'gpu0<>gpu4' --degrade 'gpu0>gpu4=0.5'",
                "baton whatif dgx_h100:hosts=1 --collective all_gather --sizes 1GiB --set hosts=2,4"};
    }
    void declare(CLI::App& app) override {
        app.add_option("TOPO", topology_name_, "a topology file, a preset or a generator (baton topo list)")
            ->required();
        collective_.sizes = "1MiB,64MiB,1GiB";
        collective_.declare(app);
        app.add_option("--fail", fail_,
                       "a variation without these links or nodes (ids or globs, a<>b for both "
                       "directions, ID*2 for two units; A,B for several at once); may be repeated")
            ->allow_extra_args(false);
        app.add_option("--degrade", degrade_,
                       "LINK=FACTOR: a variation with the goodput of these links scaled; may be repeated")
            ->allow_extra_args(false);
        app.add_option("--set", set_,
                       "KEY=A,B,...: a variation for each value of a parameter of TOPO; may be repeated")
            ->allow_extra_args(false);
        app.add_option("--schedule", schedule_,
                       "the schedule to keep (default: the one made for the baseline)");
        app.add_option("--algorithm", algorithm_, "a synthesizer, or auto: the fastest per size and machine")
            ->capture_default_str();
        app.add_option("--model", model_, "flow: links are shared fairly; alpha_beta: no contention")
            ->capture_default_str();
        app.add_option("--policy", policy_, "routing: spread, static or ecmp:SEED")->capture_default_str();
    }
    int run() override;

private:
    std::vector<sim::Variation> variations(const topologies::Topology& baseline) const;
    void study(const topologies::Topology& baseline, const std::vector<sim::Variation>& variations);
    void print(const topologies::Topology& baseline) const;
    void print_json(const topologies::Topology& baseline) const;
    std::string next() const;

    std::string topology_name_, schedule_, algorithm_ = "auto", model_ = "flow", policy_ = "spread";
    std::vector<std::string> fail_, degrade_, set_;
    CollectiveOptions collective_;
    std::vector<sim::WhatIfRow> rows_;
    std::vector<std::string> warnings_;
    std::string model_in_words_;
};

template <class Change>
sim::Variation vary(const std::string& name, const topologies::Topology& baseline, const Change& change) {
    sim::Variation variation;
    variation.name = name;
    variation.topology = baseline;
    change(*variation.topology);
    return variation;
}

// What names a link that is not there or a factor that is none is an error of usage; a machine that cannot be
// made with another parameter is a row.
std::vector<sim::Variation> WhatIfCommand::variations(const topologies::Topology& baseline) const {
    std::vector<sim::Variation> all;
    for (const std::string& ids : fail_) {
        all.push_back(vary("fail " + ids, baseline, [&](topologies::Topology& topology) {
            for (const std::string& id : split(ids, ',')) topologies::fail(topology, id);
        }));
    }
    for (const std::string& text : degrade_) {
        const auto [ids, factor] = parse_degrade(text);
        all.push_back(vary("degrade " + text, baseline, [&](topologies::Topology& topology) {
            for (const std::string& id : split(ids, ',')) topologies::degrade(topology, id, factor);
        }));
    }
    for (const std::string& text : set_) {
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
            throw input_error(fmt::format("'{}' is not KEY=VALUE,...", text), "--set",
                              "for example hosts=1,2,4");
        for (const std::string& value : split(text.substr(equals + 1), ',')) {
            sim::Variation variation;
            variation.name = text.substr(0, equals + 1) + value;
            try {
                variation.topology =
                    topologies::load(with_parameter(topology_name_, text.substr(0, equals), value));
            } catch (const Error& error) {
                if (error.kind() != ErrorKind::input) throw;
                variation.refusal = error.what();
            }
            all.push_back(std::move(variation));
        }
    }
    return all;
}

void WhatIfCommand::study(const topologies::Topology& baseline,
                          const std::vector<sim::Variation>& variations) {
    sim::SimulationOptions options;
    options.model = sim::parse_model(model_);
    const topologies::NamedPolicy policy = topologies::parse_policy(policy_);
    options.policy = policy.policy;
    options.seed = policy.seed;

    std::shared_ptr<const ir::Algorithm> given;
    if (!schedule_.empty()) {
        ir::Schedule schedule = ir::load_schedule(schedule_);
        auto* algorithm = std::get_if<ir::Algorithm>(&schedule);
        if (!algorithm)
            throw input_error("a Program cannot be simulated", schedule_,
                              "give the algorithm that it was lowered from");
        collective_.check_agrees(algorithm->collective, schedule_);
        ir::verify(*algorithm);
        given = std::make_shared<const ir::Algorithm>(std::move(*algorithm));
        if (given->collective.ranks != baseline.rank_count())
            throw input_error(fmt::format("the schedule is for {} ranks, the topology has {}",
                                          given->collective.ranks, baseline.rank_count()),
                              schedule_);
    }
    const std::vector<Bytes> sizes = collective_.size_list();
    Progress progress("whatif");
    const auto tell = [&](const std::string& stage, double fraction) { progress.update(stage, fraction); };
    const auto collective = [&](const topologies::Topology& topology) {
        ir::Collective made = given ? given->collective : collective_.collective(topology.rank_count());
        if (made.ranks == topology.rank_count()) return made;
        if (!made.groups.empty() || made.kind == ir::CollectiveKind::custom)
            throw input_error(fmt::format("a collective of {} ranks, the machine has {}", made.ranks,
                                          topology.rank_count()));
        made.ranks = topology.rank_count();
        made.chunks = 1;
        made.weights.clear();
        made.check();
        return made;
    };
    // Of each machine, for all sizes at once; the machines stay where they are. Refusals are kept too.
    struct Made {
        ScheduleChoice choice;
        std::optional<synth::Bound> bound;
        std::optional<Error> refusal;
    };
    std::map<const topologies::Topology*, Made> made;
    const auto make = [&](const topologies::Topology& topology) -> const Made& {
        const auto [place, fresh] = made.try_emplace(&topology);
        Made& one = place->second;
        if (!fresh) return one;
        try {
            if (given && &topology == &baseline)
                one.choice.schedules.assign(sizes.size(), {given->name, given, 0});
            else
                one.choice =
                    choose_schedules(topology, collective(topology), algorithm_, sizes, options, tell);
            for (const std::string& warning : one.choice.warnings) {
                if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end())
                    warnings_.push_back(warning);
            }
        } catch (const Error& error) {
            if (error.kind() == ErrorKind::internal) throw;
            one.refusal = error;
        }
        const ir::Collective wanted = collective(topology);
        if (wanted.kind != ir::CollectiveKind::custom &&
            (!one.refusal || one.refusal->kind() != ErrorKind::input))
            one.bound = synth::bound(topology, wanted);
        return one;
    };
    const auto synthesize = [&](const topologies::Topology& topology, Bytes size) {
        const Made& one = make(topology);
        if (one.refusal) throw *one.refusal;
        const auto s = static_cast<std::size_t>(std::find(sizes.begin(), sizes.end(), size) - sizes.begin());
        return one.choice.schedules[s];
    };
    const auto bound = [&](const topologies::Topology& topology, Bytes size) {
        const Made& one = make(topology);
        if (!one.bound) throw input_error("no bound");
        return one.bound->at(size);
    };
    rows_ = sim::what_if(baseline, variations, sizes, options, synthesize, bound, tell);
    for (const sim::WhatIfRow& row : rows_) {
        if (model_in_words_.empty()) model_in_words_ = row.kept.model_in_words;
    }
}

int WhatIfCommand::run() {
    const topologies::Topology baseline = topologies::load(topology_name_);
    const std::vector<sim::Variation> all = variations(baseline);
    study(baseline, all);
    json ? print_json(baseline) : print(baseline);
    return 0;
}

void WhatIfCommand::print(const topologies::Topology& baseline) const {
    std::string text = fmt::format("{} on {}\n\n", schedule_.empty() ? collective_.kind : schedule_,
                                   baseline.name.empty() ? topology_name_ : baseline.name);
    Table table(
        {"size", "variation", "kept", "x base", "anew", "x base", "schedule", "bound", "anew / bound"});
    std::vector<std::string> notes;
    const auto cell = [&](const sim::WhatIfCell& one) {
        if (one.time) return to_string(*one.time);
        for (std::size_t n = 0; n < notes.size(); ++n) {
            if (notes[n] == one.reason) return fmt::format("none [{}]", n + 1);
        }
        notes.push_back(one.reason);
        return fmt::format("none [{}]", notes.size());
    };
    const std::size_t sizes = collective_.size_list().size();
    for (std::size_t s = 0; s < sizes; ++s) {
        const std::optional<Time> base = rows_[s].anew.time;
        const auto over = [](const std::optional<Time>& time, const std::optional<Time>& of) {
            return time && of && of->picoseconds > 0 ? fmt::format("{:.2f}", time->seconds() / of->seconds())
                                                     : "";
        };
        for (std::size_t r = s; r < rows_.size(); r += sizes) {
            const sim::WhatIfRow& row = rows_[r];
            table.row({r == s ? to_string(row.size) : "", row.variation, cell(row.kept),
                       over(row.kept.time, base), cell(row.anew), over(row.anew.time, base),
                       row.anew.schedule, row.bound ? to_string(*row.bound) : "",
                       over(row.anew.time, row.bound)});
        }
    }
    text += table.text() + "\n";
    for (std::size_t n = 0; n < notes.size(); ++n) text += fmt::format("[{}] {}\n", n + 1, notes[n]);
    text +=
        "kept: the baseline's schedule and tiles, messages routed on the machine as it is; anew: made for "
        "the machine\n";
    if (!model_in_words_.empty()) text += paragraph("model: ", model_in_words_);
    for (const std::string& warning : warnings_) text += "warning: " + warning + "\n";
    text += "next: " + next() + "\n";
    std::fputs(text.c_str(), stdout);
}

void WhatIfCommand::print_json(const topologies::Topology& baseline) const {
    Json rows = Json::array();
    const auto cell = [](const sim::WhatIfCell& one) {
        Json out;
        if (one.time)
            out["picoseconds"] = one.time->picoseconds;
        else
            out["reason"] = one.reason;
        if (!one.schedule.empty()) out["schedule"] = one.schedule;
        if (one.time) out.update({{"tiles", one.tiles}, {"busbw", one.busbw.bytes_per_second}});
        return out;
    };
    for (const sim::WhatIfRow& row : rows_) {
        Json out{{"size", row.size.count},
                 {"variation", row.variation},
                 {"kept", cell(row.kept)},
                 {"anew", cell(row.anew)}};
        if (row.bound) out["bound_picoseconds"] = row.bound->picoseconds;
        rows.push_back(std::move(out));
    }
    const Json out{{"topology", {{"name", baseline.name}, {"hash", baseline.hash()}}},
                   {"collective", collective_.kind},
                   {"model", model_},
                   {"model_in_words", model_in_words_},
                   {"rows", std::move(rows)},
                   {"warnings", warnings_},
                   {"next", next()}};
    std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

std::string WhatIfCommand::next() const {
    return fmt::format("baton sim {}{} --sizes {} --csv links.csv", shell_word(topology_name_),
                       collective_.as_typed(), shell_word(collective_.sizes));
}

}  // namespace

std::unique_ptr<Command> whatif_command() { return std::make_unique<WhatIfCommand>(); }

}  // namespace baton::cli
