// Plain edge lists: one link a line. "FROM TO [RATE [LATENCY]]" between blanks or commas; lines that start
// with
// '#' or '%' are comments. Nodes are ranks; names that start with "switch" or "sw" are switches.
#include <baton/base/error.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/import/network_report.hpp>
#include <baton/topologies/import/text_lines.hpp>

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

// A bare number is a rate in GB/s, as lists of edges have it; else a quantity with its unit.
Rate edge_rate(const TextLine& line, const std::string& word, bool& bare) {
    if (const auto number = number_in(word)) {
        if (*number <= 0 || *number > 1e9) throw line.error(fmt::format("'{}' is no rate in GB/s", word));
        bare = true;
        return {static_cast<std::int64_t>(*number * 1e9)};
    }
    return parse_rate(word, line.where());
}

}  // namespace

bool recognizes_edge_list(std::string_view text) {
    const std::string name;
    int edges = 0;
    for (const TextLine& line : text_lines({text, name})) {
        if (without_comment(line.text).empty()) continue;
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
    Imported result;
    std::map<std::string, int> nodes;
    const auto node = [&](const std::string& name) {
        const auto [found, is_new] = nodes.try_emplace(name, static_cast<int>(result.topology.nodes.size()));
        if (is_new) {
            Node made;
            made.id = name;
            if (is_switch_name(name)) made.type = NodeType::switch_node;
            if (is_switch_name(name)) made.latency = {100'000};
            result.topology.add_node(std::move(made));
        }
        return found->second;
    };
    int links = 0, without_rate = 0, without_latency = 0;
    bool bare = false;
    for (const TextLine& line : text_lines(source)) {
        if (without_comment(line.text).empty()) continue;
        const std::vector<std::string> words = edge_words(line.text);
        if (words.size() < 2 || words.size() > 4)
            throw line.error(fmt::format("{} words where an edge has two to four", words.size()),
                             "write FROM TO [RATE [LATENCY]]");
        Link link;
        link.from = node(words[0]);
        link.to = node(words[1]);
        if (link.from == link.to) throw line.error(fmt::format("'{}' is linked to itself", words[0]));
        link.bandwidth = words.size() > 2 ? edge_rate(line, words[2], bare) : kAssumedRate;
        link.latency = words.size() > 3 ? parse_time(words[3], line.where()) : kAssumedLatency;
        link.provenance.assumed = words.size() < 3;
        without_rate += words.size() < 3;
        without_latency += words.size() < 4;
        result.topology.add_link(std::move(link));
        ++links;
    }
    if (links == 0)
        throw input_error("there is no edge in it", source.name, "write FROM TO [RATE [LATENCY]]");
    result.topology.name = source.name;
    result.topology.finish(source.name);
    result.found.push_back(
        fmt::format("{} ranks, {} switches", result.topology.rank_count(),
                    result.topology.nodes.size() - static_cast<std::size_t>(result.topology.rank_count())));
    result.found.push_back(fmt::format("{} links in both directions", links));
    if (bare) result.assumptions.push_back("rates without a unit are GB/s (1e9 bytes per second)");
    if (without_rate > 0)
        result.assumptions.push_back(
            fmt::format("{} links have no rate: {} assumed", without_rate, to_string(kAssumedRate)));
    if (without_latency > 0)
        result.assumptions.push_back(
            fmt::format("{} links have no latency: {} assumed", without_latency, to_string(kAssumedLatency)));
    return result;
}

}  // namespace baton::topologies
