// Plain edge lists: one link a line. "FROM TO [RATE [LATENCY]]" between blanks or commas, or a table whose
// first row names its columns; lines that start with '#' or '%' are comments. Nodes are ranks; names that
// start with "switch" or "sw" are switches.
#include <baton/base/error.hpp>
#include <baton/topologies/import/edge_header.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/import/machine_tree.hpp>
#include <baton/topologies/import/network_report.hpp>
#include <baton/topologies/import/pci_slots.hpp>
#include <baton/topologies/import/text_lines.hpp>
#include <baton/topologies/import/written_units.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

namespace baton::topologies {
namespace {

std::string_view without_comment(std::string_view line) {
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos || line[first] == '#' || line[first] == '%') return {};
    return line;
}

std::vector<std::string> edge_words(std::string_view line) {
    std::string spaced(line);
    std::replace(spaced.begin(), spaced.end(), ',', ' ');
    std::replace(spaced.begin(), spaced.end(), ';', ' ');
    const TextLine split{0, spaced, nullptr};
    std::vector<std::string> words;
    for (const std::string_view word : split.words()) words.emplace_back(word);
    return words;
}

// Cells of a table, which may be empty and hold blanks where commas are between them.
std::vector<std::string> table_cells(std::string_view line) {
    std::string commas(line);
    std::replace(commas.begin(), commas.end(), ';', ',');
    return commas.find(',') == std::string::npos ? edge_words(line) : csv_cells(commas);
}

// The columns when the line is the first row of a table.
std::optional<EdgeHeader> table_header(std::string_view line) {
    EdgeHeader header = edge_header(table_cells(line));
    if (!header.from || !header.to) return std::nullopt;
    return header;
}

class EdgeList {
public:
    explicit EdgeList(const ImportSource& source) : source_(source) {}

    Imported read() {
        for (const TextLine& line : text_lines(source_)) {
            if (without_comment(line.text).empty()) continue;
            if (lines_ == 0 && !header_ && (header_ = table_header(line.text))) {
                check_units(line);
                continue;
            }
            add(line, header_ ? of_table(line) : of_words(line));
        }
        if (lines_ == 0)
            throw input_error("there is no edge in it", source_.name, "write FROM TO [RATE [LATENCY]]");
        result_.topology.name = source_.name;
        result_.topology.finish(source_.name);
        report();
        return std::move(result_);
    }

private:
    struct Edge {
        std::string from, to, rate, latency;
    };

    void check_units(const TextLine& line) const {
        if (header_->latency_unit == 0 || header_->rate_unit == 0)
            throw line.error("the unit of latency or bandwidth is not known", "as (ns) and (GB/s)");
    }

    static Edge of_words(const TextLine& line) {
        std::vector<std::string> words = edge_words(line.text);
        if (words.size() < 2 || words.size() > 4)
            throw line.error(fmt::format("{} words where an edge has two to four", words.size()),
                             "write FROM TO [RATE [LATENCY]]");
        words.resize(4);
        return {words[0], words[1], words[2], words[3]};
    }

    Edge of_table(const TextLine& line) const {
        const std::vector<std::string> cells = table_cells(line.text);
        const auto cell = [&](const std::optional<std::size_t>& column) {
            return column && *column < cells.size() ? cells[*column] : std::string();
        };
        Edge edge{cell(header_->from), cell(header_->to), cell(header_->rate), cell(header_->latency)};
        if (edge.from.empty() || edge.to.empty()) throw line.error("an end of the edge is not there");
        return edge;
    }

    int node(const std::string& name) {
        const auto [found, is_new] =
            nodes_.try_emplace(name, static_cast<int>(result_.topology.nodes.size()));
        if (is_new) {
            Node made;
            made.id = id_text(name);
            if (is_switch_name(name)) made.type = NodeType::switch_node;
            if (is_switch_name(name)) made.latency = {100'000};
            result_.topology.add_node(std::move(made));
        }
        return found->second;
    }

    // A number without a unit counts in the unit of the column, else in GB/s, as lists of edges have it.
    Rate rate(const TextLine& line, const std::string& word) {
        const auto number = number_in(word);
        if (number && (*number <= 0 || *number > 1e15))
            throw line.error(fmt::format("'{}' is no rate in GB/s", shown(word)));
        bare_rate_ = bare_rate_ || (number && !(header_ && header_->rate_unit_given));
        const auto written = written_rate(word, header_ ? header_->rate_unit : 1e9);
        const auto rate = written ? rate_of(*written) : std::nullopt;
        if (!rate) return parse_rate(word, line.where());
        return *rate;
    }

    Time latency(const TextLine& line, const std::string& word) const {
        const bool unit = header_ && header_->latency_unit_given;
        const auto written = written_time(word, unit ? header_->latency_unit : 0);
        const auto latency = written ? latency_of(*written) : std::nullopt;
        if (!latency) return parse_time(word, line.where());
        return *latency;
    }

    void add(const TextLine& line, const Edge& edge) {
        Link link;
        link.from = node(edge.from);
        link.to = node(edge.to);
        if (link.from == link.to) throw line.error(fmt::format("'{}' is linked to itself", edge.from));
        const auto [first, is_new] = pairs_.try_emplace(std::minmax(link.from, link.to), line.number);
        if (!is_new && repeated_++ == 0)
            example_ = fmt::format("lines {} and {} both join {} and {}", first->second, line.number,
                                   edge.from, edge.to);
        link.bandwidth = edge.rate.empty() ? kAssumedRate : rate(line, edge.rate);
        link.latency = edge.latency.empty() ? kAssumedLatency : latency(line, edge.latency);
        link.provenance.assumed = edge.rate.empty();
        without_rate_ += edge.rate.empty();
        without_latency_ += edge.latency.empty();
        result_.topology.add_link(std::move(link));
        ++lines_;
    }

    void report() {
        const Topology& topology = result_.topology;
        result_.found.push_back(
            fmt::format("{} ranks, {} switches", topology.rank_count(),
                        topology.nodes.size() - static_cast<std::size_t>(topology.rank_count())));
        result_.found.push_back(fmt::format("{} links in both directions", lines_));
        if (bare_rate_) result_.assumptions.push_back("rates without a unit are GB/s (1e9 bytes per second)");
        if (without_rate_ > 0)
            result_.assumptions.push_back(
                fmt::format("{} links have no rate: {} assumed", without_rate_, to_string(kAssumedRate)));
        if (without_latency_ > 0)
            result_.assumptions.push_back(fmt::format("{} links have no latency: {} assumed",
                                                      without_latency_, to_string(kAssumedLatency)));
        if (repeated_ > 0)
            result_.warnings.push_back(fmt::format(
                "{} joins nodes that an earlier line joins already ({}): read as parallel two-way links; if "
                "they are the two directions of one link, remove one of the lines",
                counted(static_cast<std::size_t>(repeated_), "line"), example_));
        if (header_) warn_left_out(header_->others, "columns without a counterpart", result_);
    }

    const ImportSource& source_;
    Imported result_;
    std::optional<EdgeHeader> header_;
    std::map<std::string, int> nodes_;
    std::map<std::pair<int, int>, int> pairs_;  // the line that joins them first
    std::string example_;
    int lines_ = 0, without_rate_ = 0, without_latency_ = 0, repeated_ = 0;
    bool bare_rate_ = false;
};

}  // namespace

bool recognizes_edge_list(std::string_view text) {
    const std::string name;
    int edges = 0;
    for (const TextLine& line : text_lines({text, name})) {
        if (without_comment(line.text).empty()) continue;
        if (edges == 0 && table_header(line.text)) return true;
        const std::vector<std::string> words = edge_words(line.text);
        if (words.size() < 2 || words.size() > 4) return false;
        for (std::size_t i = 0; i < words.size(); ++i) {
            const bool digit = words[i].find_first_of("0123456789") != std::string::npos;
            if (!digit) return false;
        }
        if (++edges == 20) break;
    }
    return edges > 0;
}

Imported read_edge_list(const ImportSource& source, const ImportOptions& /*options*/) {
    return EdgeList(source).read();
}

}  // namespace baton::topologies
