// The tables of what synthesis reaches: rows as text, read back and summed up.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::bench {

/// One machine, collective and size; figures as they are printed.
struct QualityRow {
    std::string machine, collective;
    std::string size;      ///< empty: nothing was made for the collective, `schedule` says why
    std::string schedule;  ///< label of the winner
    std::string tiles, time, bound;
    std::optional<double> gap;  ///< above the bound, relative: 0.01 is 1%
    std::string depth;
    std::string cpu;  ///< seconds for all sizes of the collective, on its first row; "cut at ..." where ended
};

/// Rows of several machines as a Markdown document, by machine in the order in which they came.
class QualityTable {
public:
    QualityTable() = default;
    /// Reads back what `text` has printed; what precedes the first table is kept as it is. Lines that are no
    /// rows are passed over.
    explicit QualityTable(std::string_view document);

    void add(const QualityRow& row) { rows_.push_back(row); }
    bool has(std::string_view machine, std::string_view collective) const;
    const std::vector<QualityRow>& rows() const { return rows_; }

    /// One machine's rows with a heading.
    std::string machine_text(std::string_view machine) const;
    /// Everything: what preceded the first table, and one table per machine.
    std::string text() const;
    /// Machines by collectives: gap at the largest size, and the family that won there.
    std::string matrix() const;
    /// Per collective: how many machines, how many within 1% and 5% of the bound at the largest size, the
    /// worst.
    std::string summary() const;
    /// What was ended by a limit, or not run: one line each.
    std::string cut() const;

private:
    std::vector<std::string> machines() const;
    /// The row of the largest size, which is the last one; null when there is none.
    const QualityRow* largest(std::string_view machine, std::string_view collective) const;

    std::string preamble_;
    std::vector<QualityRow> rows_;
};

/// "0.04%", "12.3%", "150%".
std::string percent(double gap);

}  // namespace baton::bench
