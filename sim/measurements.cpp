#include <baton/sim/measurements.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

namespace baton::sim {
namespace {

constexpr std::string_view kTypes[] = {
    "int8",     "uint8", "char",    "int32",  "int",     "uint32",   "int64",    "uint64", "half",  "float16",
    "bfloat16", "float", "float32", "double", "float64", "fp8_e4m3", "fp8_e5m2", "f8e4m3", "f8e5m2"};

template <typename Number>
std::optional<Number> whole_number(std::string_view word) {
    Number value{};
    const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (status != std::errc() || end != word.data() + word.size()) return std::nullopt;
    return value;
}

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    for (std::size_t begin = 0; begin < line.size();) {
        begin = line.find_first_not_of(" \t\r", begin);
        if (begin == std::string_view::npos) break;
        const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
        words.push_back(line.substr(begin, end - begin));
        begin = end;
    }
    return words;
}

// Escape sequences of terminals.
std::string without_colors(std::string_view line) {
    std::string plain;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] != '\x1b') {
            plain += line[i];
            continue;
        }
        while (i < line.size() && !((line[i] >= 'A' && line[i] <= 'Z') || (line[i] >= 'a' && line[i] <= 'z')))
            ++i;
    }
    return plain;
}

// What launchers and quoting put in front: "[1,0]<stdout>:", "0: ", "> ".
std::string_view without_tag(std::string_view line) {
    const auto skip = [&](std::string_view blanks) {
        while (!line.empty() && blanks.find(line.front()) != std::string_view::npos) line.remove_prefix(1);
    };
    skip("> \t");
    if (line.rfind('[', 0) == 0) {
        const std::size_t end = line.find(">:");
        if (end != std::string_view::npos && end < 32) line.remove_prefix(end + 2);
    }
    std::size_t digits = 0;
    while (digits < line.size() && line[digits] >= '0' && line[digits] <= '9') ++digits;
    if (digits > 0 && digits < 6 && line.substr(digits, 1) == ":") line.remove_prefix(digits + 1);
    skip(" \t");
    return line;
}

// Cells of a row behind size, count and type, in the order of the table's head.
struct TableHead {
    bool op = false, root = false;
    int calls = 2;
};

bool is_head(const std::vector<std::string_view>& words) {
    const auto has = [&](std::string_view word) {
        return std::find(words.begin(), words.end(), word) != words.end();
    };
    return has("size") && has("count") && has("type") && has("time") && has("algbw") && has("busbw");
}

class LogReader {
public:
    LogReader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

    Measurements read() {
        for (std::size_t begin = 0; begin < text_.size();) {
            const std::size_t end = std::min(text_.find('\n', begin), text_.size());
            ++line_;
            const std::string plain = without_colors(text_.substr(begin, end - begin));
            read_line(without_tag(plain));
            begin = end + 1;
        }
        if (tables_ == 0) throw input_error("there is no table of nccl-tests in it", name_);
        if (out_.rows.empty()) throw input_error("the table has no whole row", name_);
        finish();
        return std::move(out_);
    }

private:
    void read_line(std::string_view line) {
        const std::vector<std::string_view> words = words_of(line);
        if (words.empty()) return;
        note_test_name(line);
        if (line.rfind('#', 0) == 0 || is_head(words)) {
            comment(line, words);
            return;
        }
        if (tables_ > 0) row(words);
    }

    void comment(std::string_view line, const std::vector<std::string_view>& words) {
        if (is_head(words)) {
            head_ = {};
            head_.op = std::find(words.begin(), words.end(), "redop") != words.end();
            head_.root = std::find(words.begin(), words.end(), "root") != words.end();
            head_.calls = static_cast<int>(std::count(words.begin(), words.end(), "busbw"));
            ++tables_;
            return;
        }
        const auto behind = [&](std::string_view mark) -> std::string_view {
            const std::size_t place = line.find(mark);
            return place == std::string_view::npos ? std::string_view() : line.substr(place + mark.size());
        };
        if (const auto rest = words_of(behind("nRanks")); !rest.empty()) {
            std::size_t at = rest[0] == ":" ? 1 : 0;
            if (at < rest.size())
                if (const auto ranks = whole_number<int>(rest[at])) stated_ranks_ = *ranks;
        }
        if (words.size() > 3 && words[1] == "Rank") device(line, words);
        if (const auto rest = behind("Avg bus bandwidth"); !rest.empty()) {
            const auto average = words_of(rest);
            if (!average.empty()) out_.average_busbw = whole_number<double>(average.back());
        }
        if (const auto rest = behind("Out of bounds values"); rest.find("FAILED") != std::string_view::npos)
            out_.warnings.push_back(
                fmt::format("line {}: the test itself failed (values out of bounds)", line_));
    }

    // "#  Rank  3 Group 0 Pid 100 on host0 device 3 [0x5d] NVIDIA H200"
    void device(std::string_view line, const std::vector<std::string_view>& words) {
        std::string_view number = words[2];
        if (!number.empty() && number.back() == ':') number.remove_suffix(1);
        const auto rank = whole_number<int>(number);
        if (!rank || *rank < 0 || *rank >= 1 << 20) return;
        listed_ranks_ = std::max(listed_ranks_, *rank + 1);
        const auto add = [](std::vector<std::string>& names, std::string name) {
            if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end() &&
                names.size() < 4096)
                names.push_back(std::move(name));
        };
        for (std::size_t i = 3; i + 1 < words.size(); ++i)
            if (words[i] == "on") add(out_.hosts, std::string(words[i + 1]));
        if (const std::size_t close = line.find(']'); close != std::string_view::npos) {
            std::string_view model = line.substr(close + 1);
            model.remove_prefix(std::min(model.find_first_not_of(' '), model.size()));
            while (!model.empty() && (model.back() == ' ' || model.back() == '\r')) model.remove_suffix(1);
            add(out_.gpus, std::string(model.substr(0, 60)));
        }
    }

    // "all_reduce_perf" in a command line or in "# Collective test starting: all_reduce_perf".
    void note_test_name(std::string_view line) {
        constexpr std::pair<std::string_view, ir::CollectiveKind> kTests[] = {
            {"all_reduce_perf", ir::CollectiveKind::all_reduce},
            {"all_gather_perf", ir::CollectiveKind::all_gather},
            {"reduce_scatter_perf", ir::CollectiveKind::reduce_scatter},
            {"alltoall_perf", ir::CollectiveKind::all_to_all},
            {"broadcast_perf", ir::CollectiveKind::broadcast},
            {"reduce_perf", ir::CollectiveKind::reduce},
            {"gather_perf", ir::CollectiveKind::gather},
            {"scatter_perf", ir::CollectiveKind::scatter},
            {"sendrecv_perf", ir::CollectiveKind::send_recv}};
        for (const auto& [test, kind] : kTests) {
            const std::size_t place = line.find(test);
            if (place == std::string_view::npos || (place > 0 && line[place - 1] == '_')) continue;
            // "all_reduce_perf" has "reduce_perf" in it; the longer names come first.
            if (!out_.kind) out_.kind = kind, out_.why_kind = std::string(test);
            return;
        }
    }

    void row(const std::vector<std::string_view>& words) {
        const auto size = whole_number<std::int64_t>(words[0]);
        const auto count = words.size() > 1 ? whole_number<std::int64_t>(words[1]) : std::nullopt;
        const bool typed =
            words.size() > 2 && std::find(std::begin(kTypes), std::end(kTypes), words[2]) != std::end(kTypes);
        if (!size || !count || !typed || *size < 0 || *count < 0)
            return;  // what a broken row left, or other output
        out_.without_size += *size == 0;
        MeasuredRow row;
        row.line = line_;
        row.size = *size;
        row.count = *count;
        row.type = words[2];
        if (!read_cells(words, row)) {
            out_.broken.push_back(line_);
            return;
        }
        out_.rows.push_back(std::move(row));
    }

    bool read_cells(const std::vector<std::string_view>& words, MeasuredRow& row) const {
        std::size_t next = 3;
        const auto left = [&] { return next < words.size(); };
        if (head_.op) {
            if (!left()) return false;
            row.op = words[next++];
        }
        if (head_.root) {
            const auto root = left() ? whole_number<int>(words[next++]) : std::nullopt;
            if (!root) return false;
            row.root = *root;
        }
        for (int c = 0; c < head_.calls; ++c) {
            double figures[3] = {};
            for (double& figure : figures) {
                const auto number = left() ? whole_number<double>(words[next]) : std::nullopt;
                if (!number || *number < 0)
                    return c == 1 && left() && words[next] == "N/A";  // no call in place
                figure = *number;
                ++next;
            }
            MeasuredCall call{figures[0], figures[1], figures[2], std::nullopt};
            if (!left()) return false;
            if (words[next] != "N/A") {
                // Old tests print the largest error here, as 0e+00.
                const auto wrong = whole_number<double>(words[next]);
                if (!wrong || *wrong < 0) return false;
                if (*wrong == std::floor(*wrong) && *wrong < 9e15)
                    call.wrong = static_cast<std::int64_t>(*wrong);
            }
            ++next;
            (c == 0 ? row.out_of_place : row.in_place) = call;
        }
        return next == words.size();
    }

    void finish() {
        // Older tests state the ranks of the first process only.
        out_.ranks = std::max(stated_ranks_, listed_ranks_);
        if (out_.ranks == 0) out_.warnings.push_back("the log does not say how many ranks took part");
        if (listed_ranks_ > 0 && stated_ranks_ > listed_ranks_)
            out_.warnings.push_back(
                fmt::format("the log states {} ranks and lists {}", stated_ranks_, listed_ranks_));
        const auto first = std::find_if(out_.rows.begin(), out_.rows.end(), [&](const MeasuredRow& row) {
            return row.op != out_.rows.front().op || row.root != out_.rows.front().root ||
                   row.type != out_.rows.front().type;
        });
        if (first != out_.rows.end())
            throw input_error("the rows are of several tests (type, operator or root change)",
                              fmt::format("{}:{}", name_, first->line), "give each test a file of its own");
        if (!out_.kind) deduce_kind();
        std::int64_t wrong = 0;
        for (const MeasuredRow& row : out_.rows)
            for (const auto* call : {&row.out_of_place, &row.in_place})
                if (*call) wrong += (*call)->wrong.value_or(0) > 0;
        if (wrong > 0) out_.warnings.push_back(fmt::format("{} results were wrong (column #wrong)", wrong));
    }

    // From the operator, the root and busbw/algbw, which is a fraction of its own for most kinds.
    void deduce_kind() {
        const MeasuredRow* widest = nullptr;
        for (const MeasuredRow& row : out_.rows)
            if (row.out_of_place && (!widest || row.out_of_place->algbw > widest->out_of_place->algbw))
                widest = &row;
        if (!widest || widest->out_of_place->algbw < 1 || out_.ranks < 2 || !head_.op) return;
        const double n = out_.ranks, ratio = widest->out_of_place->busbw / widest->out_of_place->algbw;
        const auto near = [&](double value) { return std::abs(ratio - value) < 0.01; };
        const bool reduces = widest->op != "none", rooted = widest->root >= 0;
        const bool looks_in_place = widest->in_place && widest->in_place->wrong;
        const std::string shares = fmt::format("{}/{}", out_.ranks - 1, out_.ranks);
        const auto set = [&](ir::CollectiveKind kind, const std::string& of) {
            out_.kind = kind;
            out_.why_kind =
                fmt::format("operator {}{}, busbw/algbw {}", widest->op, rooted ? ", a root" : "", of);
        };
        if (reduces && !rooted && near(2 * (n - 1) / n))
            set(ir::CollectiveKind::all_reduce, fmt::format("2 * {}", shares));
        else if (reduces && !rooted && near((n - 1) / n))
            set(ir::CollectiveKind::reduce_scatter, shares);
        else if (reduces && rooted && near(1))
            set(ir::CollectiveKind::reduce, "1");
        else if (!reduces && !rooted && near((n - 1) / n)) {
            set(looks_in_place ? ir::CollectiveKind::all_gather : ir::CollectiveKind::all_to_all, shares);
            out_.why_kind +=
                looks_in_place ? ", and results in place are checked" : ", and nothing is checked in place";
        } else if (!reduces && rooted && near(1))
            set(ir::CollectiveKind::broadcast, "1");
    }

    std::string_view text_;
    const std::string& name_;
    Measurements out_;
    TableHead head_;
    int line_ = 0, tables_ = 0, stated_ranks_ = 0, listed_ranks_ = 0;
};

}  // namespace

bool recognizes_measurements(std::string_view text) {
    const std::size_t busbw = text.find("busbw");
    if (busbw == std::string_view::npos) return false;
    const std::size_t begin = text.rfind('\n', busbw), end = std::min(text.find('\n', busbw), text.size());
    const std::size_t from = begin == std::string_view::npos ? 0 : begin + 1;
    return is_head(words_of(text.substr(from, end - from)));
}

Measurements read_measurements(std::string_view text, const std::string& name) {
    return LogReader(text, name).read();
}

std::string measurements_csv(const Measurements& measurements) {
    std::string csv =
        "size,count,type,op,root,out_of_place_us,out_of_place_algbw,out_of_place_busbw,out_of_place_wrong,"
        "in_place_us,in_place_algbw,in_place_busbw,in_place_wrong\n";
    for (const MeasuredRow& row : measurements.rows) {
        csv += fmt::format("{},{},{},{},{}", row.size, row.count, row.type, row.op, row.root);
        for (const auto* call : {&row.out_of_place, &row.in_place}) {
            if (*call)
                csv += fmt::format(",{},{},{},{}", (*call)->microseconds, (*call)->algbw, (*call)->busbw,
                                   (*call)->wrong ? std::to_string(*(*call)->wrong) : "");
            else
                csv += ",,,,";
        }
        csv += "\n";
    }
    return csv;
}

}  // namespace baton::sim
