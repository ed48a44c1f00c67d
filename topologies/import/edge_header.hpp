// First rows of tables of links, which name their columns. Internal to the layer.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::topologies {

/// Cells of a row with commas between them, without quotes and the blanks around them.
std::vector<std::string> csv_cells(std::string_view line);

/// A column's name in small letters, and the unit behind it in brackets.
struct CsvColumn {
    std::string name, unit;
};
CsvColumn csv_column(const std::string& cell);

bool is_one_of(const std::string& name, std::initializer_list<std::string_view> names);

/// The columns of a table of links, by the names in its first row.
struct EdgeHeader {
    std::optional<std::size_t> from, to, latency, rate, chunks;
    double latency_unit = 1e-9, rate_unit = 1e9;
    std::vector<std::string> others;
    bool latency_unit_given = false, rate_unit_given = false;

    bool whole() const { return from && to && latency && rate; }
};

/// The columns that the cells name. A unit that is not known has the factor 0.
EdgeHeader edge_header(const std::vector<std::string>& cells);

}  // namespace baton::topologies
