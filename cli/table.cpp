#include <baton/cli/command.hpp>

#include <algorithm>
#include <cctype>

namespace baton::cli {
namespace {

bool numeric(const std::string& cell) {
    return !cell.empty() &&
           (std::isdigit(static_cast<unsigned char>(cell[0])) || cell[0] == '-' || cell[0] == '+');
}

}  // namespace

Table::Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }

void Table::row(std::vector<std::string> cells) {
    cells.resize(rows_.front().size());
    rows_.push_back(std::move(cells));
}

std::string Table::text() const {
    const std::size_t columns = rows_.front().size();
    std::vector<std::size_t> width(columns, 0);
    std::vector<bool> right(columns, rows_.size() > 1);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        for (std::size_t c = 0; c < columns; ++c) {
            width[c] = std::max(width[c], rows_[r][c].size());
            if (r > 0 && !rows_[r][c].empty() && !numeric(rows_[r][c])) right[c] = false;
        }
    }
    std::string out;
    for (const auto& row : rows_) {
        std::string line;
        for (std::size_t c = 0; c < columns; ++c) {
            const std::string pad(width[c] - row[c].size(), ' ');
            if (c > 0) line += "  ";
            line += right[c] ? pad + row[c] : row[c] + pad;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + "\n";
    }
    return out;
}

std::string paragraph(const std::string& label, const std::string& text) {
    constexpr std::size_t kColumns = 100;
    std::string out, line = label;
    std::size_t begin = 0;
    while (begin < text.size()) {
        std::size_t end = text.find(' ', begin);
        if (end == std::string::npos) end = text.size();
        const std::string word = text.substr(begin, end - begin);
        if (line.size() > label.size() && line.size() + 1 + word.size() > kColumns) {
            out += line + "\n";
            line = std::string(label.size(), ' ');
        }
        if (line.size() > label.size()) line += ' ';
        line += word;
        begin = end + 1;
    }
    return out + line + "\n";
}

}  // namespace baton::cli
