#include "quality_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace baton::bench {
namespace {

constexpr std::string_view kHeading =
    "| machine | collective | size | schedule | tiles | time | bound | gap | depth | CPU s |\n";
constexpr std::string_view kRule = "|---|---|---|---|---|---|---|---|---|---|\n";
constexpr std::size_t kColumns = 10;
constexpr std::string_view kNotRun = "not run", kCut = "cut at";

std::string trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return std::string(text);
}

// "| a | b |" in its cells; nothing for other lines.
std::vector<std::string> cells_of(std::string_view line) {
    std::vector<std::string> cells;
    if (line.empty() || line.front() != '|') return cells;
    line.remove_prefix(1);
    for (std::size_t end = line.find('|'); end != std::string_view::npos; end = line.find('|')) {
        cells.push_back(trimmed(line.substr(0, end)));
        line.remove_prefix(end + 1);
    }
    return cells;
}

std::string printed(const QualityRow& row) {
    return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", row.machine, row.collective,
                       row.size, row.schedule, row.tiles, row.time, row.bound,
                       row.gap ? percent(*row.gap) : "", row.depth, row.cpu);
}

// In the order of their first row.
std::vector<std::string> distinct(const std::vector<QualityRow>& rows, std::string QualityRow::*column) {
    std::vector<std::string> found;
    for (const QualityRow& row : rows) {
        if (std::find(found.begin(), found.end(), row.*column) == found.end()) found.push_back(row.*column);
    }
    return found;
}

// "forest" of "forest (3 trees per root, depth 2)".
std::string family(const std::string& schedule) { return schedule.substr(0, schedule.find(' ')); }

}  // namespace

std::string percent(double gap) {
    const double value = 100 * gap;
    if (value < 9.995) return fmt::format("{:.2f}%", value);
    return value < 99.95 ? fmt::format("{:.1f}%", value) : fmt::format("{:.0f}%", value);
}

QualityTable::QualityTable(std::string_view document) {
    bool before = true;
    while (!document.empty()) {
        const std::size_t end = std::min(document.find('\n'), document.size() - 1) + 1;
        const std::string_view line = document.substr(0, end);
        document.remove_prefix(end);
        if (line.substr(0, 4) == "### " || line == kHeading) before = false;
        if (before) {
            preamble_ += line;
            continue;
        }
        const std::vector<std::string> cells = cells_of(line);
        if (cells.size() != kColumns || line == kHeading || line == kRule) continue;
        QualityRow row{cells[0], cells[1], cells[2], cells[3], cells[4],
                       cells[5], cells[6], {},       cells[8], cells[9]};
        if (!cells[7].empty()) row.gap = std::strtod(cells[7].c_str(), nullptr) / 100;
        rows_.push_back(std::move(row));
    }
}

bool QualityTable::has(std::string_view machine, std::string_view collective) const {
    return std::any_of(rows_.begin(), rows_.end(), [&](const QualityRow& row) {
        return row.machine == machine && row.collective == collective;
    });
}

std::vector<std::string> QualityTable::machines() const { return distinct(rows_, &QualityRow::machine); }

const QualityRow* QualityTable::largest(std::string_view machine, std::string_view collective) const {
    const QualityRow* found = nullptr;
    for (const QualityRow& row : rows_) {
        if (row.machine == machine && row.collective == collective && row.gap) found = &row;
    }
    return found;
}

std::string QualityTable::machine_text(std::string_view machine) const {
    std::string all = fmt::format("### {}\n\n{}{}", machine, kHeading, kRule);
    for (const QualityRow& row : rows_) {
        if (row.machine == machine) all += printed(row);
    }
    return all + "\n";
}

std::string QualityTable::text() const {
    std::string all = preamble_;
    for (const std::string& machine : machines()) all += machine_text(machine);
    while (all.size() > 1 && all.substr(all.size() - 2) == "\n\n") all.pop_back();
    return all;
}

std::string QualityTable::matrix() const {
    const std::vector<std::string> collectives = distinct(rows_, &QualityRow::collective);
    std::string head = "| machine |", rule = "|---|", body;
    for (const std::string& collective : collectives) {
        head += " " + collective + " |";
        rule += "---|";
    }
    for (const std::string& machine : machines()) {
        body += "| " + machine + " |";
        for (const std::string& collective : collectives) {
            const QualityRow* row = largest(machine, collective);
            body += row ? fmt::format(" {} {} |", percent(*row->gap), family(row->schedule)) : " |";
        }
        body += "\n";
    }
    return head + "\n" + rule + "\n" + body;
}

std::string QualityTable::summary() const {
    std::string all =
        "| collective | machines | within 1% | within 5% | worst | on |\n|---|---|---|---|---|---|\n";
    for (const std::string& collective : distinct(rows_, &QualityRow::collective)) {
        int count = 0, within_1 = 0, within_5 = 0;
        const QualityRow* worst = nullptr;
        for (const std::string& machine : machines()) {
            const QualityRow* row = largest(machine, collective);
            if (!row) continue;
            ++count;
            within_1 += *row->gap <= 0.01;
            within_5 += *row->gap <= 0.05;
            if (!worst || *row->gap > *worst->gap) worst = row;
        }
        if (worst)
            all += fmt::format("| {} | {} | {} | {} | {} | {} |\n", collective, count, within_1, within_5,
                               percent(*worst->gap), worst->machine);
    }
    return all;
}

std::string QualityTable::cut() const {
    std::string all;
    for (const QualityRow& row : rows_) {
        if (row.cpu.substr(0, kCut.size()) == kCut || row.schedule.substr(0, kNotRun.size()) == kNotRun)
            all += fmt::format("{} {}: {}\n", row.machine, row.collective,
                               row.gap ? row.cpu : row.schedule + (row.cpu.empty() ? "" : ", " + row.cpu));
    }
    return all;
}

}  // namespace baton::bench
