// Topology CSV of TACOS and of the synthesizers that follow it: the number of NPUs, a header, and one
// directed link a row. TACOS's results begin with the same links and are read as far as these go.
#include <baton/base/index.hpp>
#include <baton/topologies/import/edge_header.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/import/machine_tree.hpp>
#include <baton/topologies/import/network_report.hpp>
#include <baton/topologies/import/pci_slots.hpp>
#include <baton/topologies/import/text_lines.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>

namespace baton::topologies {
namespace {

struct TacosFile {
    EdgeHeader header;
    std::optional<std::int64_t> npus, links;
    std::vector<TextLine> rows;
    std::vector<std::string> facts;  // lines before the header that say nothing about links
};

// What stands before the header: the number of NPUs alone, or "NPUs Count,16" and the like.
void read_tacos_start(const TextLine& line, const std::vector<std::string>& cells, TacosFile& file) {
    const auto count = [&](const std::string& cell) {
        const auto number = integer_in(cell);
        if (!number || *number < 1) throw line.error(fmt::format("'{}' is no count", shown(cell)));
        return *number;
    };
    const std::string name = csv_column(cells[0]).name;
    if (cells.size() == 1 && !file.npus) {
        file.npus = count(cells[0]);
        check_size(static_cast<double>(*file.npus), 0, line.where());
    } else if (cells.size() == 2 && name == "npuscount") {
        file.npus = count(cells[1]);
        check_size(static_cast<double>(*file.npus), 0, line.where());
    } else if (cells.size() == 2 && name == "linkscount") {
        file.links = count(cells[1]);
    } else if (is_one_of(name, {"chunkscount", "chunksize", "collectivetime", "synthesistime"})) {
        file.facts.push_back(fmt::format("{} (line {})", shown(cells[0]), line.number));
    } else {
        throw line.error(
            fmt::format("'{}' where the header Src,Dest,Latency (ns),Bandwidth (GB/s) was "
                        "expected",
                        shown(line.text)));
    }
}

TacosFile read_tacos_lines(const ImportSource& source) {
    TacosFile file;
    bool started = false;
    for (const TextLine& line : text_lines(source)) {
        const std::vector<std::string> cells = csv_cells(line.text);
        if (cells.empty() || cells[0].rfind('#', 0) == 0) continue;
        if (started) {
            file.rows.push_back(line);
            continue;
        }
        file.header = edge_header(cells);
        if (!file.header.from && !file.header.to) {
            read_tacos_start(line, cells, file);
            continue;
        }
        if (!file.header.whole())
            throw line.error("the header does not name source, destination, latency and bandwidth",
                             "write Src,Dest,Latency (ns),Bandwidth (GB/s)");
        if (file.header.latency_unit == 0 || file.header.rate_unit == 0)
            throw line.error("the unit of latency or bandwidth is not known", "as (ns) and (GB/s)");
        started = true;
    }
    if (!started)
        throw input_error("there is no header", source.name, "write Src,Dest,Latency (ns),Bandwidth (GB/s)");
    if (file.rows.empty()) throw input_error("there is no link in it", source.name);
    return file;
}

struct TacosLink {
    std::int64_t from = 0, to = 0;
    Link link;
};

TacosLink tacos_link(const TextLine& line, const EdgeHeader& header) {
    const std::vector<std::string> cells = csv_cells(line.text);
    const auto cell = [&](std::size_t column) -> const std::string& {
        if (column >= cells.size())
            throw line.error(fmt::format("{} where the header has more", counted(cells.size(), "value")));
        return cells[column];
    };
    const auto npu = [&](std::size_t column) {
        const auto number = integer_in(cell(column));
        if (!number || *number < 0 || *number >= kMaxNodes)
            throw line.error(fmt::format("'{}' is no number of an NPU", shown(cell(column))));
        return *number;
    };
    TacosLink result{npu(*header.from), npu(*header.to), {}};
    if (result.from == result.to) throw line.error(fmt::format("NPU {} is linked to itself", result.from));
    const auto rate_number = number_in(cell(*header.rate)), latency_number = number_in(cell(*header.latency));
    const auto rate = rate_number ? rate_of(*rate_number * header.rate_unit) : std::nullopt;
    if (!rate) throw line.error(fmt::format("'{}' is no bandwidth", shown(cell(*header.rate))));
    const auto latency = latency_number ? latency_of(*latency_number * header.latency_unit) : std::nullopt;
    if (!latency) throw line.error(fmt::format("'{}' is no latency", shown(cell(*header.latency))));
    result.link.bandwidth = *rate;
    result.link.latency = *latency;
    if (!header.chunks && cells.size() > 4 + header.others.size())
        throw line.error(fmt::format("{} where the header has {}", counted(cells.size(), "value"),
                                     4 + header.others.size()));
    return result;
}

void report_tacos(const TacosFile& file, Imported& result) {
    if (!file.npus)
        result.assumptions.push_back(
            "the number of NPUs is not in the file: the largest number of a link + 1");
    if (!file.header.latency_unit_given) result.assumptions.push_back("the latency has no unit: ns");
    if (!file.header.rate_unit_given) result.assumptions.push_back("the bandwidth has no unit: GB/s");
    if (file.header.rate_unit == 1e9)
        result.assumptions.push_back(
            "GB/s are 1e9 bytes per second, as the header says; TACOS itself reckons with 2^30, 7 % more");
    if (file.header.chunks)
        result.warnings.push_back(
            "this is a result of TACOS: its links are read, its schedule (Chunks) is left out");
    warn_left_out(file.facts, "lines about the collective", result);
    warn_left_out(file.header.others, "columns without a counterpart", result);
}

}  // namespace

bool recognizes_tacos_csv(std::string_view text) {
    const std::string name;
    int lines = 0;
    std::optional<EdgeHeader> header;
    for (const TextLine& line : text_lines({text.substr(0, 4096), name})) {
        const std::vector<std::string> cells = csv_cells(line.text);
        if (cells.empty()) continue;
        // NPUs are numbered; a table of named nodes is an edge list.
        if (header) return *header->from < cells.size() && integer_in(cells[*header->from]).has_value();
        if (++lines > 8) return false;
        if (cells.size() >= 4 && edge_header(cells).whole()) header = edge_header(cells);
    }
    return header.has_value();
}

Imported read_tacos_csv(const ImportSource& source, const ImportOptions& /*options*/) {
    const TacosFile file = read_tacos_lines(source);
    check_size(0, static_cast<double>(file.rows.size()), source.name);
    std::vector<TacosLink> links;
    std::map<std::pair<std::int64_t, std::int64_t>, int> lines;
    std::int64_t npus = file.npus.value_or(0);
    for (const TextLine& row : file.rows) {
        links.push_back(tacos_link(row, file.header));
        const TacosLink& link = links.back();
        const std::int64_t last = std::max(link.from, link.to);
        if (file.npus && last >= npus)
            throw row.error(fmt::format("NPU {} is not among the {} of the file", last, npus));
        if (!file.npus) npus = std::max(npus, last + 1);
        const auto [first, is_new] = lines.try_emplace({link.from, link.to}, row.number);
        if (!is_new)
            throw row.error(fmt::format("the link from {} to {} is in line {} already", link.from, link.to,
                                        first->second));
    }
    if (file.links && *file.links != static_cast<std::int64_t>(links.size()))
        throw input_error(fmt::format("{} links where the file says {}", links.size(), *file.links),
                          source.name);
    Imported result;
    for (std::int64_t npu = 0; npu < npus; ++npu) {
        Node node;
        node.id = fmt::format("npu{}", npu);
        result.topology.add_node(std::move(node));
    }
    for (TacosLink& link : links) {
        link.link.from = static_cast<int>(link.from);
        link.link.to = static_cast<int>(link.to);
        result.topology.add_link(std::move(link.link), true);
    }
    finish_network(source, result);
    report_tacos(file, result);
    return result;
}

}  // namespace baton::topologies
