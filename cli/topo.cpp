// baton topo: what machines there are, what one looks like, and whether a file describes one.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/cli/command.hpp>
#include <baton/cli/options.hpp>
#include <baton/topologies/draw.hpp>
#include <baton/topologies/inspect.hpp>
#include <baton/topologies/load.hpp>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace baton::cli {
namespace {

using Json = nlohmann::ordered_json;
using topologies::LinkGroup;
using topologies::RankSummary;
using topologies::Summary;
using topologies::Topology;

constexpr std::size_t kShownRanks = 16;

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }
void print_json(const Json& json) { print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"); }

std::string join(const std::vector<std::string>& words, const char* between) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
    return text;
}

std::string counted(int n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

std::string counts(const std::map<std::string, int>& map, const char* between) {
    std::vector<std::string> words;
    for (const auto& [name, count] : map) words.push_back(fmt::format("{} {}", count, name));
    return join(words, between);
}

Json list_json() {
    Json all = Json::array();
    for (const topologies::Nameable& named : topologies::nameables()) {
        all.push_back({{"name", named.name},
                       {"kind", named.generator ? "generator" : "preset"},
                       {"summary", named.summary},
                       {"parameters", named.parameters}});
    }
    return all;
}

void print_list() {
    for (const bool generators : {false, true}) {
        Table table({generators ? "generator" : "preset", "what it is",
                     generators ? "how it is written" : "parameters and their defaults"});
        for (const topologies::Nameable& named : topologies::nameables()) {
            if (named.generator == generators) table.row({named.name, named.summary, named.parameters});
        }
        print(table.text() + "\n");
    }
    print(
        "fabric=TECHNOLOGY-SHAPE: edr hdr ndr xdr (InfiniBand), roce_v1, roce_v2, ethernet; rail, rail_only, "
        "tree, dragonfly\n\n"
        "next: baton topo show dgx_h100:hosts=2\n");
}

Json group_json(const LinkGroup& group) {
    Json json = {{"kind", to_string(group.kind)},
                 {"from", to_string(group.from)},
                 {"to", to_string(group.to)},
                 {"links", group.links},
                 {"oneway", group.oneway},
                 {"count", group.count},
                 {"bandwidth", group.bandwidth.bytes_per_second},
                 {"goodput", group.goodput.bytes_per_second},
                 {"latency", group.latency.seconds()},
                 {"assumed", group.assumed}};
    if (!group.source.empty()) json["source"] = group.source;
    return json;
}

Json summary_json(const Summary& summary) {
    Json json = {{"name", summary.name},   {"hash", summary.hash},   {"ranks", summary.ranks},
                 {"hosts", summary.hosts}, {"nodes", summary.nodes}, {"links", summary.links}};
    json["link_groups"] = Json::array();
    for (const LinkGroup& group : summary.groups) json["link_groups"].push_back(group_json(group));
    json["by_rank"] = Json::array();
    for (const RankSummary& rank : summary.by_rank) {
        json["by_rank"].push_back({{"rank", rank.rank},
                                   {"node", rank.node},
                                   {"host", rank.host},
                                   {"units", rank.units},
                                   {"out", rank.out.bytes_per_second},
                                   {"in", rank.in.bytes_per_second},
                                   {"nics", rank.nics}});
    }
    if (summary.pairs_without_route >= 0) json["pairs_without_route"] = summary.pairs_without_route;
    json["warnings"] = summary.warnings;
    return json;
}

void print_groups(const Summary& summary) {
    Table table({"links", "between", "number", "units", "goodput of a unit", "raw", "latency", "figures"});
    for (const LinkGroup& group : summary.groups) {
        const int pairs = (group.links - group.oneway) / 2;
        const auto between = fmt::format("{} and {}", to_string(group.from), to_string(group.to));
        const std::string figures = group.source.empty() ? (group.assumed ? "assumed" : "given")
                                                         : (group.assumed ? "assumed: " : "") + group.source;
        const auto row = [&](const std::string& number) {
            table.row({std::string(to_string(group.kind)), between, number, std::to_string(group.count),
                       to_string(group.goodput), to_string(group.bandwidth), to_string(group.latency),
                       figures.size() > 60 ? figures.substr(0, 57) + "..." : figures});
        };
        if (pairs > 0) row(std::to_string(pairs));
        if (group.oneway > 0) row(fmt::format("{} one way", group.oneway));
    }
    print(table.text() + "\n");
}

void print_ranks(const Summary& summary, bool all) {
    const std::size_t shown = all ? summary.by_rank.size() : std::min(summary.by_rank.size(), kShownRanks);
    Table table({"rank", "node", "units of links", "goodput out", "in", "NIC"});
    for (std::size_t i = 0; i < shown; ++i) {
        const RankSummary& rank = summary.by_rank[i];
        table.row({std::to_string(rank.rank), rank.node, counts(rank.units, ", "), to_string(rank.out),
                   to_string(rank.in), join(rank.nics, ", ")});
    }
    print(table.text());
    if (shown < summary.by_rank.size())
        print(fmt::format("... and {} more ranks (--all shows them)\n", summary.by_rank.size() - shown));
}

void print_summary(const Summary& summary, const std::string& spec, bool all) {
    int nodes = 0;
    for (const auto& [type, count] : summary.nodes) nodes += count;
    print(fmt::format("{}\n{}{}; {} nodes: {}; {} directed links; hash {}\n\n", summary.name,
                      counted(summary.ranks, "rank"),
                      summary.hosts == 0 ? "" : " on " + counted(summary.hosts, "host"), nodes,
                      counts(summary.nodes, ", "), summary.links, summary.hash));
    print_groups(summary);
    print_ranks(summary, all);
    if (summary.pairs_without_route > 0) {
        print(fmt::format(
            "\n{} of {} pairs of ranks have no direct route (GPUs do not forward); schedules relay through "
            "other ranks\n",
            summary.pairs_without_route, static_cast<std::int64_t>(summary.ranks) * (summary.ranks - 1)));
    }
    if (!summary.warnings.empty()) print("\n");
    for (const std::string& warning : summary.warnings) print("warning: " + warning + "\n");
    print(fmt::format("\nnext: baton bound {}\n", shell_word(spec)));
}

class TopoCommand final : public Command {
public:
    std::string name() const override { return "topo"; }
    std::string summary() const override { return "lists, shows, checks, writes and draws topologies"; }
    std::vector<std::string> examples() const override {
        return {"baton topo list", "baton topo show dgx_h100:hosts=2,fabric=ndr-rail",
                "baton topo generate torus:4x4 -o torus.json", "baton topo check torus.json",
                "baton topo draw dgx1_v100 -o dgx1.dot"};
    }

    void declare(CLI::App& app) override {
        app.require_subcommand(1);
        list_ = app.add_subcommand("list", "presets and generators with their parameters");
        show_ = app.add_subcommand("show",
                                   "ranks, hosts, links by kind with goodput, the NIC of each GPU, warnings");
        check_ = app.add_subcommand("check", "reads a topology and says what is wrong with it");
        generate_ = app.add_subcommand("generate", "writes a preset or a generated topology as a document");
        draw_ = app.add_subcommand("draw", "draws a topology as DOT or SVG");
        for (CLI::App* sub : {show_, check_, generate_, draw_}) {
            sub->add_option("TOPO", spec_, "a file, a preset with parameters or a generator")->required();
        }
        show_->add_flag("--all", all_, fmt::format("every rank, not only the first {}", kShownRanks));
        generate_->add_option("-o,--output", output_, "file to write; standard output when not given");
        draw_->add_option("-o,--output", output_,
                          "file to write (.dot, .gv or .svg); DOT on standard output when not given");
        draw_->add_option("--format", format_, "dot or svg; by default from the name of the file")
            ->check(CLI::IsMember({"dot", "svg"}));
    }

    int run() override {
        if (list_->parsed()) {
            if (json)
                print_json(list_json());
            else
                print_list();
            return 0;
        }
        if (show_->parsed()) return show();
        if (check_->parsed()) return check();
        return generate_->parsed() ? generate() : draw();
    }

private:
    int show() const {
        const Summary summary = topologies::summarize(topologies::load(spec_));
        if (json)
            print_json(summary_json(summary));
        else
            print_summary(summary, spec_, all_);
        return 0;
    }

    int check() const {
        Topology topology;
        try {
            topology = topologies::load(spec_);
        } catch (const Error& error) {
            if (!json) throw;
            print_json(
                Json{{"ok", false},
                     {"problems",
                      {{{"where", error.where()}, {"what", error.message()}, {"remedy", error.remedy()}}}},
                     {"warnings", Json::array()}});
            return exit_code(error.kind());
        }
        const std::vector<std::string> problems = topologies::problems(topology),
                                       warnings = topologies::warnings(topology);
        if (json) {
            Json list = Json::array();
            for (const std::string& problem : problems)
                list.push_back({{"where", topology.name}, {"what", problem}, {"remedy", ""}});
            print_json(Json{{"ok", problems.empty()},
                            {"problems", list},
                            {"warnings", warnings},
                            {"ranks", topology.rank_count()},
                            {"hash", topology.hash()}});
            return problems.empty() ? 0 : 1;
        }
        for (const std::string& problem : problems) print("problem: " + problem + "\n");
        for (const std::string& warning : warnings) print("warning: " + warning + "\n");
        if (problems.empty())
            print(fmt::format("ok: {} ranks, {} nodes, {} directed links, hash {}\n", topology.rank_count(),
                              topology.nodes.size(), topology.links.size(), topology.hash()));
        print(fmt::format("next: baton topo {} {}\n", problems.empty() ? "show" : "draw", shell_word(spec_)));
        return problems.empty() ? 0 : 1;
    }

    int generate() const {
        const Topology topology = topologies::load(spec_);
        const std::string text = topologies::to_json(topology);
        if (output_.empty()) {
            print(text);
            return 0;
        }
        write_file(output_, text);
        if (json)
            print_json(Json{{"file", output_},
                            {"hash", topology.hash()},
                            {"ranks", topology.rank_count()},
                            {"nodes", topology.nodes.size()},
                            {"links", topology.links.size()}});
        else
            print(
                fmt::format("{}: {} ranks, {} nodes, {} directed links, hash {}\nnext: baton topo show {}\n",
                            output_, topology.rank_count(), topology.nodes.size(), topology.links.size(),
                            topology.hash(), shell_word(output_)));
        return 0;
    }

    int draw() const {
        const std::size_t dot = output_.rfind('.');
        const std::string ending = dot == std::string::npos ? "" : output_.substr(dot + 1);
        if (format_.empty() && !output_.empty() && ending != "svg" && ending != "dot" && ending != "gv") {
            throw input_error(fmt::format("'{}' does not end with .dot, .gv or .svg", output_), {},
                              "say --format dot or --format svg");
        }
        const std::string format = !format_.empty() ? format_ : ending == "svg" ? "svg" : "dot";
        const Topology topology = topologies::load(spec_);
        const std::string picture =
            format == "svg" ? topologies::to_svg(topology) : topologies::to_dot(topology);
        if (output_.empty()) {
            if (json)
                print_json(Json{{"format", format}, {"picture", picture}});
            else
                print(picture);
            return 0;
        }
        write_file(output_, picture);
        if (json)
            print_json(Json{{"file", output_},
                            {"format", format},
                            {"nodes", topology.nodes.size()},
                            {"links", topology.links.size()}});
        else
            print(fmt::format("{}: {} nodes and {} directed links\nnext: baton topo show {}\n", output_,
                              topology.nodes.size(), topology.links.size(), shell_word(spec_)));
        return 0;
    }

    std::string spec_, output_, format_;
    bool all_ = false;
    CLI::App *list_ = nullptr, *show_ = nullptr, *check_ = nullptr, *generate_ = nullptr, *draw_ = nullptr;
};

}  // namespace

std::unique_ptr<Command> topo_command() { return std::make_unique<TopoCommand>(); }

}  // namespace baton::cli
