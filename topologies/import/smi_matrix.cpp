#include <baton/topologies/import/smi_matrix.hpp>

#include <baton/base/index.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/import/text_lines.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <optional>
#include <set>

namespace baton::topologies {
namespace {

constexpr std::size_t kMostDevices = 1024;
constexpr int kMostNvlinks = 128;       // of a pair
constexpr int kBrokenHeaderLines = 12;  // that a terminal may make of one
constexpr std::size_t kMostBytes = 16 * 1024 * 1024;
constexpr std::size_t kRecognitionBytes = 256 * 1024;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Bars of tables and the blanks beyond ASCII become blanks; a byte order mark goes.
std::string with_plain_blanks(std::string_view text) {
    std::string plain;
    plain.reserve(text.size());
    const auto starts = [&](std::size_t i, std::string_view mark) {
        return text.substr(i, mark.size()) == mark;
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool three = starts(i, "\xe2\x80\x8b") || starts(i, "\xe2\x80\xaf") ||
                           starts(i, "\xe2\x94\x82") || starts(i, "\xe3\x80\x80") ||
                           starts(i, "\xef\xbb\xbf") ||
                           (starts(i, "\xe2\x80") && i + 2 < text.size() &&
                            static_cast<unsigned char>(text[i + 2]) >= 0x80 &&
                            static_cast<unsigned char>(text[i + 2]) <= 0x8a);
        if (three || starts(i, "\xc2\xa0")) {
            plain += ' ';
            i += three ? 2 : 1;
        } else {
            plain += text[i] == '|' || text[i] == '\r' || text[i] == '\0' ? ' ' : text[i];
        }
    }
    return plain;
}

std::optional<SmiCell> cell_of(std::string_view word) {
    using CellKind = SmiCell::Kind;
    struct Known {
        const char* word;
        Closeness closeness;
    };
    constexpr Known kKnown[] = {{"PSB", Closeness::one_bridge}, {"PIX", Closeness::one_bridge},
                                {"PXB", Closeness::bridges},    {"PHB", Closeness::host_bridge},
                                {"NODE", Closeness::numa_node}, {"SYS", Closeness::system},
                                {"SOC", Closeness::system}};
    if (word == "X") return SmiCell{CellKind::self, 0, Closeness::unknown};
    for (const Known& known : kKnown)
        if (word == known.word) return SmiCell{CellKind::pcie, 0, known.closeness};
    if (word.rfind("NV", 0) != 0) return std::nullopt;
    const auto count = integer_in(word.substr(2));
    if (!count || *count < 1 || *count > kMostNvlinks) return std::nullopt;
    return SmiCell{CellKind::nvlink, static_cast<int>(*count), Closeness::unknown};
}

bool is_peer_access(std::string_view word) {
    constexpr std::string_view kWords[] = {"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"};
    return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

// "GPU0", "NIC3", "mlx5_bond_0", "rdmap16s27": a letter first, a digit somewhere, and no cell.
bool is_device_name(std::string_view word) {
    if (word.empty() || word.size() > 64 || !is_letter(word.front()) || cell_of(word)) return false;
    bool digit = false;
    for (const char c : word) {
        if (!is_digit(c) && !is_letter(c) && c != '_' && c != '-') return false;
        digit = digit || is_digit(c);
    }
    return digit;
}

bool is_gpu_name(std::string_view word) {
    return word.size() > 3 && word.rfind("GPU", 0) == 0 &&
           std::all_of(word.begin() + 3, word.end(), is_digit);
}

bool is_tail_word(std::string_view word) { return word == "CPU" || word == "NUMA"; }

bool is_affinity(std::string_view word) {
    if (word == "N/A") return true;
    return !word.empty() &&
           std::all_of(word.begin(), word.end(), [](char c) { return is_digit(c) || c == ',' || c == '-'; });
}

bool is_decoration(const WordLine& line) {
    for (const std::string& word : line.words) {
        for (const char c : word)
            if (is_letter(c) || is_digit(c)) return false;
    }
    return true;
}

// The name at the end of a word, after quoting or a line number without a blank (">GPU0", "12:GPU0").
bool ends_with_name(std::string_view word, std::string_view name) {
    if (word.size() < name.size() || word.substr(word.size() - name.size()) != name) return false;
    if (word.size() == name.size()) return true;
    const char before = word[word.size() - name.size() - 1];
    return !is_letter(before) && !is_digit(before) && before != '_' && before != '-';
}

std::string stripped_gpu(const std::string& word) {
    const std::size_t start = word.rfind("GPU");
    if (start == std::string::npos || !is_gpu_name(std::string_view(word).substr(start))) return word;
    return ends_with_name(word, std::string_view(word).substr(start)) ? word.substr(start) : word;
}

struct Header {
    std::vector<std::string> names;
    std::string tail;  // "CPUAffinityNUMAAffinity", without blanks
};

// Words of a header, with those that a terminal broke joined again.
void append_header(std::vector<std::string>& words, const std::vector<std::string>& more) {
    for (std::size_t i = 0; i < more.size(); ++i) {
        const bool in_tail = std::any_of(words.begin(), words.end(), is_tail_word);
        const bool broken =
            i == 0 && !words.empty() && !in_tail &&
            ((!is_device_name(words.back())) || (!is_device_name(more[0]) && !is_tail_word(more[0])));
        if (broken)
            words.back() += more[i];
        else
            words.push_back(more[i]);
    }
}

std::optional<Header> header_of(const std::vector<std::string>& words) {
    Header header;
    std::size_t i = 0;
    while (i < words.size() && is_device_name(words[i])) header.names.push_back(words[i++]);
    if (i < words.size() && !is_tail_word(words[i]) && words[i] != "GPU") return std::nullopt;
    for (; i < words.size(); ++i) header.tail += words[i];
    if (header.names.empty()) return std::nullopt;
    const std::set<std::string> distinct(header.names.begin(), header.names.end());
    if (distinct.size() != header.names.size()) return std::nullopt;
    return header;
}

// Where a header may start in a line; nothing when it cannot.
std::optional<std::vector<std::string>> header_start(const WordLine& line) {
    for (std::size_t i = 0; i < line.words.size(); ++i) {
        const std::string name = stripped_gpu(line.words[i]);
        if (!is_gpu_name(name)) continue;
        std::vector<std::string> words(line.words.begin() + static_cast<std::ptrdiff_t>(i), line.words.end());
        words[0] = name;
        // The next word of a row is a cell.
        if (words.size() > 1 && !is_device_name(words[1]) && !is_tail_word(words[1]) && words.size() > 2)
            return std::nullopt;
        return words;
    }
    if (line.words.size() > 1 && std::all_of(line.words.begin(), line.words.end(), is_device_name))
        return line.words;
    return std::nullopt;
}

// The device whose row starts in the line, and the place of its first cell.
struct RowStart {
    std::size_t device, cells;
};

std::optional<RowStart> row_start(const WordLine& line, const std::map<std::string, std::size_t>& by_name) {
    for (std::size_t q = 0; q + 1 < line.words.size(); ++q) {
        if (cell_of(line.words[q])) return std::nullopt;
        std::string_view word = line.words[q];
        const std::size_t start =
            word.find_last_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
        const std::string_view name = start == std::string_view::npos ? word : word.substr(start + 1);
        const auto found = by_name.find(std::string(name));
        if (found == by_name.end()) continue;
        const std::string& next = line.words[q + 1];
        if (is_device_name(next) || is_tail_word(next) || next == "=") return std::nullopt;
        return RowStart{found->second, q + 1};
    }
    return std::nullopt;
}

std::map<std::string, std::size_t> index_names(const std::vector<std::string>& names) {
    std::map<std::string, std::size_t> by_name;
    for (std::size_t i = 0; i < names.size(); ++i) by_name.emplace(names[i], i);
    return by_name;
}

// A header at line `k`, with the line of its first row.
struct FoundHeader {
    Header header;
    std::size_t first_row = 0;
};

std::optional<FoundHeader> find_header(const std::vector<WordLine>& lines, std::size_t k) {
    auto words = header_start(lines[k]);
    if (!words) return std::nullopt;
    bool blank = false;
    for (std::size_t j = k + 1; j < lines.size() && j < k + at(kBrokenHeaderLines); ++j) {
        if (is_decoration(lines[j])) {
            blank = true;
            continue;
        }
        if (const auto header = header_of(*words)) {
            const auto row = row_start(lines[j], index_names(header->names));
            if (row) {
                const std::size_t self = row->cells + row->device;
                if (self < lines[j].words.size() && lines[j].words[self] == "X")
                    return FoundHeader{*header, j};
                return std::nullopt;
            }
        }
        if (blank || words->size() > kMostDevices + 16) return std::nullopt;
        append_header(*words, lines[j].words);
    }
    return std::nullopt;
}

class SmiReader {
public:
    explicit SmiReader(const ImportSource& source)
        : source_(source), lines_(word_lines(source.text.substr(0, kMostBytes))) {}

    SmiText read() {
        if (source_.text.size() > kMostBytes) throw input_error("longer than any such output", source_.name);
        for (std::size_t k = 0; k < lines_.size();) {
            if (const auto found = find_header(lines_, k)) {
                k = read_matrix(*found, k);
                continue;
            }
            read_other(lines_[k]);
            ++k;
        }
        return std::move(result_);
    }

private:
    struct Row {
        int line = 0;
        std::vector<std::string> words;
    };

    // Reads from the header at line `k`; returns the line after the matrix.
    std::size_t read_matrix(const FoundHeader& found, std::size_t k) {
        const std::vector<std::string>& names = found.header.names;
        if (names.size() > kMostDevices)
            throw source_.error(lines_[k].number,
                                fmt::format("{} columns are more than {}", names.size(), kMostDevices));
        // Tools of other vendors print the same form with devices and cells of their own.
        if (std::none_of(names.begin(), names.end(), is_gpu_name)) {
            if (const std::string foreign = foreign_smi_output(source_.text); !foreign.empty())
                throw input_error(foreign, source_.name);
        }
        const auto by_name = index_names(names);
        std::vector<Row> rows(names.size());
        Row* last = nullptr;
        std::size_t done = 0, j = found.first_row;
        for (; j < lines_.size(); ++j) {
            const WordLine& line = lines_[j];
            if (is_decoration(line)) continue;
            if (const auto start = row_start(line, by_name)) {
                last = &rows[start->device];
                if (last->line != 0)
                    throw source_.error(line.number, fmt::format("row {} comes twice (line {} has it too)",
                                                                 names[start->device], last->line));
                last->line = line.number;
                last->words.assign(line.words.begin() + static_cast<std::ptrdiff_t>(start->cells),
                                   line.words.end());
                ++done;
            } else if (!continue_row(*last, line, names.size())) {
                if (done == names.size() || ends_matrix(j)) break;
                read_other(line);
            }
        }
        add_matrix(found.header, rows, lines_[k].number);
        return j;
    }

    bool ends_matrix(std::size_t j) const {
        const std::vector<std::string>& words = lines_[j].words;
        return std::find(words.begin(), words.end(), "=") != words.end() || words[0] == "Legend:" ||
               find_header(lines_, j).has_value();
    }

    // A line that a terminal broke off the row before it.
    static bool continue_row(Row& row, const WordLine& line, std::size_t columns) {
        const auto fits = [](const std::string& word) {
            return cell_of(word).has_value() || is_affinity(word);
        };
        const std::vector<std::string>& more = line.words;
        std::size_t from = 0;
        if (row.words.size() <= columns && !row.words.empty() && !cell_of(row.words.back()).has_value() &&
            cell_of(row.words.back() + more[0]))
            from = 1;
        else if (row.words.size() <= columns && !row.words.empty() && !cell_of(more[0]) &&
                 cell_of(row.words.back() + more[0]))
            from = 1;
        if (row.words.size() > columns && (row.words.back().back() == ',' || row.words.back().back() == '-'))
            from = 1;
        const bool room = row.words.size() < columns + 3 || from == 1;
        if (!room || !std::all_of(more.begin() + static_cast<std::ptrdiff_t>(from), more.end(), fits))
            return false;
        if (from == 1) row.words.back() += more[0];
        row.words.insert(row.words.end(), more.begin() + static_cast<std::ptrdiff_t>(from), more.end());
        return true;
    }

    void add_matrix(const Header& header, const std::vector<Row>& rows, int line) {
        SmiMatrix matrix;
        matrix.line = line;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            SmiDevice device;
            device.name = header.names[i];
            device.gpu = is_gpu_name(device.name);
            device.line = rows[i].line;
            const std::size_t digits = device.name.find_last_not_of("0123456789") + 1;
            if (const auto number = integer_in(std::string_view(device.name).substr(digits));
                number && *number < 1'000'000)
                device.number = static_cast<int>(*number);
            matrix.devices.push_back(std::move(device));
        }
        matrix.cells.resize(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
            matrix.cells[i].resize(rows.size());
            if (rows[i].line == 0) continue;
            read_cells(rows[i], i, matrix);
            read_affinity(rows[i], header.tail, matrix.devices[i], rows.size());
        }
        result_.matrices.push_back(std::move(matrix));
    }

    void read_cells(const Row& row, std::size_t i, SmiMatrix& matrix) const {
        const std::size_t columns = matrix.devices.size();
        const std::string& name = matrix.devices[i].name;
        for (std::size_t j = 0; j < std::min(columns, row.words.size()); ++j) {
            const std::string& word = row.words[j];
            if (is_peer_access(word)) {
                matrix.peer_access = true;
                continue;
            }
            const auto cell = cell_of(word);
            if (!cell && word != "N/A" && is_affinity(word))
                throw source_.error(row.line, fmt::format("row {} has {} cells, the header has {} columns",
                                                          name, j, columns));
            if (!cell)
                throw source_.error(
                    row.line,
                    fmt::format("not a topology matrix: unknown cell \"{}\" in row {}, column {}",
                                word.substr(0, 40), name, matrix.devices[j].name),
                    "cells are X, NV1 and so on, PIX, PXB, PHB, NODE and SYS");
            if ((cell->kind == SmiCell::Kind::self) != (i == j))
                throw source_.error(
                    row.line, fmt::format("row {} has {} in column {}: a cell is missing or too many", name,
                                          word, matrix.devices[j].name));
            matrix.cells[i][j] = *cell;
        }
        if (row.words.size() > columns && cell_of(row.words[columns]))
            throw source_.error(
                row.line,
                fmt::format("row {} has more cells than the header has columns ({})", name, columns));
    }

    static void read_affinity(const Row& row, const std::string& tail, SmiDevice& device,
                              std::size_t columns) {
        if (row.words.size() <= columns) return;
        const std::vector<std::string> words(row.words.begin() + static_cast<std::ptrdiff_t>(columns),
                                             row.words.end());
        std::vector<std::string*> fields;
        std::string gpu_numa;
        if (tail.find("CPUAff") != std::string::npos) fields.push_back(&device.cpus);
        if (tail.find("NUMAAff") != std::string::npos) fields.push_back(&device.numa);
        if (tail.find("GPUNUMA") != std::string::npos) fields.push_back(&gpu_numa);
        // With a cell left blank, its form tells what a word is.
        const bool all = words.size() >= fields.size();
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (words[i] == "N/A" || !is_affinity(words[i])) continue;
            if (all && i < fields.size())
                *fields[i] = words[i];
            else if (words[i].find_first_of(",-") != std::string::npos)
                device.cpus = words[i];
            else if (!all && device.numa.empty() && tail.find("NUMAAff") != std::string::npos)
                device.numa = words[i];
        }
    }

    // A line outside of matrices: the legends, a prompt, or something that is not for this reader.
    void read_other(const WordLine& line) {
        const std::vector<std::string>& words = line.words;
        if (is_decoration(line)) return;
        const auto equals = std::find(words.begin(), words.end(), "=");
        if (equals != words.begin() && equals != words.end()) {
            result_.legend.push_back(*(equals - 1));
            return;
        }
        for (std::size_t i = 0; i + 1 < words.size(); ++i) {
            const std::size_t start = words[i].find("NIC");
            if (start == std::string::npos || words[i].back() != ':') continue;
            const std::string nic = words[i].substr(start, words[i].size() - start - 1);
            if (!is_device_name(nic)) continue;
            result_.nic_names[nic] = words[i + 1].substr(0, 80);
            return;
        }
        for (const std::string& word : words) {
            if (word == "Legend:" || word.find("nvidia-smi") != std::string::npos) return;
        }
        result_.unread.push_back(line.number);
    }

    const ImportSource& source_;
    std::vector<WordLine> lines_;
    SmiText result_;
};

}  // namespace

std::vector<WordLine> word_lines(std::string_view text) {
    const std::string plain = with_plain_blanks(without_escapes(text));
    const std::string name;
    std::vector<WordLine> lines;
    for (const TextLine& line : text_lines({plain, name})) {
        WordLine made{line.number, {}};
        for (const std::string_view word : line.words()) made.words.emplace_back(word);
        lines.push_back(std::move(made));
    }
    return lines;
}

SmiText read_smi_text(const ImportSource& source) { return SmiReader(source).read(); }

bool has_smi_matrix(std::string_view text) {
    const std::vector<WordLine> lines = word_lines(text.substr(0, kRecognitionBytes));
    for (std::size_t k = 0; k < lines.size(); ++k)
        if (find_header(lines, k)) return true;
    return false;
}

}  // namespace baton::topologies
