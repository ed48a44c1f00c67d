#include <baton/topologies/import/edge_header.hpp>

#include <baton/topologies/import/pci_slots.hpp>
#include <baton/topologies/import/written_units.hpp>

#include <algorithm>

namespace baton::topologies {

std::vector<std::string> csv_cells(std::string_view line) {
    std::vector<std::string> cells;
    for (std::size_t begin = 0; begin <= line.size();) {
        const std::size_t end = std::min(line.find(',', begin), line.size());
        std::string cell(line.substr(begin, end - begin));
        // Spreadsheets quote cells; there is no comma inside any cell of this format.
        std::erase_if(cell, [](char c) { return c == '"' || c == '\r'; });
        const std::size_t first = cell.find_first_not_of(" \t"), last = cell.find_last_not_of(" \t");
        cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
        begin = end + 1;
    }
    while (!cells.empty() && cells.back().empty()) cells.pop_back();
    return cells;
}

CsvColumn csv_column(const std::string& cell) {
    CsvColumn column;
    const std::size_t open = cell.find('(');
    for (const char c : std::string_view(cell).substr(0, open)) {
        if (c >= 'A' && c <= 'Z')
            column.name += static_cast<char>(c - 'A' + 'a');
        else if (c != ' ' && c != '_')
            column.name += c;
    }
    if (open != std::string::npos)
        column.unit = cell.substr(open + 1, std::min(cell.find(')', open), cell.size()) - open - 1);
    return column;
}

bool is_one_of(const std::string& name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

EdgeHeader edge_header(const std::vector<std::string>& cells) {
    EdgeHeader header;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const auto [name, unit] = csv_column(cells[i]);
        if (is_one_of(name, {"src", "source", "from", "srcid", "sourceid"}))
            header.from = i;
        else if (is_one_of(name, {"dest", "dst", "destination", "target", "to", "destid", "dstid"}))
            header.to = i;
        else if (is_one_of(name, {"latency", "delay", "alpha"})) {
            header.latency = i;
            header.latency_unit_given = !unit.empty();
            header.latency_unit = unit.empty() ? 1e-9 : time_unit(unit).value_or(0);
        } else if (is_one_of(name, {"bandwidth", "bw", "rate", "capacity"})) {
            header.rate = i;
            header.rate_unit_given = !unit.empty();
            header.rate_unit = unit.empty() ? 1e9 : rate_unit(unit).value_or(0);
        } else if (name == "chunks") {
            header.chunks = i;
        } else {
            header.others.push_back(shown(cells[i]));
        }
    }
    return header;
}

}  // namespace baton::topologies
