// Text of `rocm-smi --showtopo`: matrices of weight, hops and link type, and NUMA nodes.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/import/gpu_models.hpp>
#include <baton/topologies/import/smi_matrix.hpp>
#include <baton/topologies/import/text_lines.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <optional>
#include <set>

namespace baton::topologies {
namespace {

constexpr std::size_t kMostRocmGpus = 512;
constexpr std::size_t kMostRocmBytes = 16 * 1024 * 1024;
constexpr int kAcrossSockets = 3;  // hops of a PCIe path
// Weight of PCIe paths within a socket: two segments of 20.
constexpr std::int64_t kSocketWeight = 40;
// Neighbors of a GPU on machines of MI300X, where all eight are joined.
constexpr int kNeighborsOfMi300 = 7;

enum class RocmSection : std::uint8_t { none, weight, hops, type, access, bandwidth, numa };

RocmSection section_of(const WordLine& line) {
    std::string text;
    for (const std::string& word : line.words) text += word + " ";
    const auto has = [&](std::string_view mark) { return text.find(mark) != std::string::npos; };
    if (!has("==")) return RocmSection::none;
    if (has("Weight between")) return RocmSection::weight;
    if (has("Hops between")) return RocmSection::hops;
    if (has("Link Type between")) return RocmSection::type;
    if (has("accessibility between")) return RocmSection::access;
    if (has("Bandwidth")) return RocmSection::bandwidth;
    if (has("Numa Nodes")) return RocmSection::numa;
    return RocmSection::none;
}

bool is_title(const WordLine& line) {
    return std::any_of(line.words.begin(), line.words.end(), [](const std::string& word) {
        return word.size() >= 4 && word.find_first_not_of('=') == std::string::npos;
    });
}

std::optional<int> rocm_gpu_number(std::string_view word) {
    for (const std::string_view prefix : {"GPU", "card"}) {
        if (word.rfind(prefix, 0) != 0) continue;
        const auto number = integer_in(word.substr(prefix.size()));
        if (number && *number >= 0 && *number < 1'000'000) return static_cast<int>(*number);
    }
    return std::nullopt;
}

// A table of one section: cells as they stand, with the lines of their rows.
struct RocmTable {
    int line = 0;
    std::vector<int> gpus;
    std::vector<std::vector<std::string>> cells;
    std::vector<int> lines;
};

class RocmSmi {
public:
    RocmSmi(const ImportSource& source, const ImportOptions& options)
        : source_(source), options_(options), lines_(word_lines(source.text.substr(0, kMostRocmBytes))) {}

    Imported read() {
        if (source_.text.size() > kMostRocmBytes)
            throw input_error("longer than any such output", source_.name);
        if (!options_.arch.empty() && options_.arch.rfind("gfx", 0) != 0)
            throw input_error(fmt::format("'{}' is no architecture of GPUs of AMD", options_.arch), "--arch",
                              "write gfx942, for example");
        read_sections();
        const auto type = tables_.find(RocmSection::type);
        if (type == tables_.end()) refuse();
        gpus_ = type->second.gpus;
        check_tables();
        read_types(type->second);
        find_rocm_arch();
        DeviceCloseness known = closeness();
        const std::vector<int> parts = add_closeness_tree(known, slot(), tree_, result_);
        tree_.host_names = {"h0"};
        add_xgmi(parts);
        build_machine(tree_, source_, options_, result_);
        report();
        return std::move(result_);
    }

private:
    std::size_t size() const { return gpus_.size(); }

    [[noreturn]] void refuse() const {
        if (!recognizes_rocm_smi(source_.text)) {
            if (has_smi_matrix(source_.text))
                throw input_error("this is of nvidia-smi: baton import nvidia-smi FILE reads it",
                                  source_.name);
            if (const std::string foreign = foreign_smi_output(source_.text); !foreign.empty())
                throw input_error(foreign, source_.name);
        }
        throw input_error("there is no matrix of link types in it", source_.name,
                          "give the text of `rocm-smi --showtopo`: 'Link Type between two GPUs', and a "
                          "row for each GPU");
    }

    void read_sections() {
        RocmSection section = RocmSection::none;
        for (std::size_t k = 0; k < lines_.size(); ++k) {
            const WordLine& line = lines_[k];
            if (line.words.empty()) continue;
            if (is_title(line)) {
                section = section_of(line);
                continue;
            }
            if (section == RocmSection::numa && read_numa(line)) continue;
            const bool table = section != RocmSection::none && section != RocmSection::numa;
            if (table && !header_gpus(line).empty()) {
                k = read_table(section, k);
                continue;
            }
            unread_.push_back(k);
        }
    }

    // "GPU[3] : (Topology) Numa Node: 1"
    bool read_numa(const WordLine& line) {
        std::string text;
        for (const std::string& word : line.words) text += word + " ";
        const std::size_t open = text.find("GPU["), close = text.find(']', open);
        if (open == std::string::npos || close == std::string::npos) return false;
        const auto gpu = integer_in(std::string_view(text).substr(open + 4, close - open - 4));
        if (!gpu || *gpu < 0 || *gpu >= 1'000'000) return false;
        if (text.find("Numa Node:") == std::string::npos)
            return text.find("Numa Affinity:") != std::string::npos;
        const auto node = integer_in(line.words.back());
        if (node && *node >= 0) numa_[static_cast<int>(*gpu)] = std::to_string(*node);
        return true;
    }

    // Numbers of the columns when the line is a header; a prompt or quoting may stand in front.
    static std::vector<int> header_gpus(const WordLine& line) {
        std::vector<int> gpus;
        for (const std::string& word : line.words) {
            const auto number = rocm_gpu_number(word);
            if (number)
                gpus.push_back(*number);
            else if (!gpus.empty())
                return {};
        }
        return gpus;
    }

    // Reads from the header at line `k`; returns the last line of the table.
    std::size_t read_table(RocmSection section, std::size_t k) {
        RocmTable table;
        table.line = lines_[k].number;
        table.gpus = header_gpus(lines_[k]);
        std::size_t j = k + 1;
        // A header that a terminal broke goes on until the first row.
        for (; j < lines_.size() && !header_gpus(lines_[j]).empty(); ++j) {
            if (lines_[j].words.size() == 1 && rocm_gpu_number(lines_[j].words[0]) == table.gpus.front())
                break;
            for (const int gpu : header_gpus(lines_[j])) table.gpus.push_back(gpu);
            if (table.gpus.size() > kMostRocmGpus) break;
        }
        if (table.gpus.size() > kMostRocmGpus)
            throw source_.error(table.line, fmt::format("more than {} GPUs", kMostRocmGpus));
        const std::set<int> distinct(table.gpus.begin(), table.gpus.end());
        if (distinct.size() != table.gpus.size()) throw source_.error(table.line, "a GPU has two columns");
        table.cells.resize(table.gpus.size());
        table.lines.resize(table.gpus.size(), 0);
        int last = -1;
        for (; j < lines_.size() && !is_title(lines_[j]); ++j) {
            if (lines_[j].words.empty()) continue;
            if (!read_row(lines_[j], table, last)) break;
        }
        for (std::size_t i = 0; i < table.gpus.size(); ++i) {
            if (table.cells[i].size() != table.gpus.size())
                throw source_.error(table.lines[i] > 0 ? table.lines[i] : table.line,
                                    fmt::format("row GPU{} has {} cells, the header has {} columns",
                                                table.gpus[i], table.cells[i].size(), table.gpus.size()));
        }
        keep(section, std::move(table));
        return j - 1;
    }

    bool read_row(const WordLine& line, RocmTable& table, int& last) const {
        std::optional<std::size_t> named;
        for (std::size_t q = 0; q < line.words.size() && !named; ++q) {
            const auto number = rocm_gpu_number(line.words[q]);
            const auto place =
                number ? std::find(table.gpus.begin(), table.gpus.end(), *number) : table.gpus.end();
            if (place == table.gpus.end()) continue;
            last = static_cast<int>(place - table.gpus.begin());
            if (table.lines[at(last)] != 0)
                throw source_.error(line.number, fmt::format("row GPU{} comes twice", *number));
            table.lines[at(last)] = line.number;
            named = q;
        }
        if (last < 0) return false;
        // Without a name it is what a terminal broke off the row before, or the end of the table.
        std::vector<std::string>& row = table.cells[at(last)];
        std::size_t first = named ? *named + 1 : 0;
        if (!named && !row.empty() &&
            (row.back() + line.words[0] == "XGMI" || row.back() + line.words[0] == "PCIE"))
            row.back() += line.words[first++];
        else if (!named && row.size() >= table.gpus.size())
            return false;
        for (; first < line.words.size(); ++first) row.push_back(line.words[first]);
        return true;
    }

    void keep(RocmSection section, RocmTable table) {
        const auto [place, is_new] = tables_.try_emplace(section, table);
        if (is_new) return;
        if (place->second.gpus != table.gpus || place->second.cells != table.cells)
            throw source_.error(table.line,
                                fmt::format("a second matrix of this kind, which differs from that at "
                                            "line {}",
                                            place->second.line),
                                "give each host a file of its own, and --fabric");
        ++repeated_;
    }

    void check_tables() const {
        for (const auto& [section, table] : tables_) {
            if (table.gpus != gpus_)
                throw source_.error(table.line, "this matrix has other GPUs than that of link types");
        }
    }

    void read_types(const RocmTable& table) {
        xgmi_.assign(size(), std::vector<char>(size(), 0));
        for (std::size_t i = 0; i < size(); ++i) {
            for (std::size_t j = 0; j < size(); ++j) {
                const std::string& word = table.cells[i][j];
                if (i == j) continue;
                if (word != "XGMI" && word != "PCIE")
                    throw source_.error(table.lines[i],
                                        fmt::format("unknown link type \"{}\" in row GPU{}, column GPU{}",
                                                    word.substr(0, 40), gpus_[i], gpus_[j]),
                                        "link types are XGMI and PCIE");
                xgmi_[i][j] = word == "XGMI";
            }
        }
        settle_types();
    }

    void settle_types() {
        std::int64_t least = -1;
        for (std::size_t i = 0; i < size(); ++i) {
            for (std::size_t j = 0; j < size(); ++j) {
                if (i != j && xgmi_[i][j] != xgmi_[j][i]) {
                    xgmi_[i][j] = xgmi_[j][i] = 0;
                    ++asymmetric_;
                }
                if (const auto weight = number(RocmSection::weight, i, j); weight && xgmi_[i][j])
                    least = least < 0 ? *weight : std::min(least, *weight);
            }
        }
        units_.assign(size(), std::vector<int>(size(), 0));
        for (std::size_t i = 0; i < size(); ++i)
            for (std::size_t j = 0; j < size(); ++j) units_[i][j] = units(i, j, least);
        for (std::size_t i = 0; i < size(); ++i) {
            for (std::size_t j = i + 1; j < size(); ++j) {
                asymmetric_ += units_[i][j] != units_[j][i];
                units_[i][j] = units_[j][i] = std::min(units_[i][j], units_[j][i]);
                indirect_ += xgmi_[i][j] && units_[i][j] == 0;
            }
        }
    }

    std::optional<std::int64_t> number(RocmSection section, std::size_t i, std::size_t j) const {
        const auto table = tables_.find(section);
        return table == tables_.end() ? std::nullopt : integer_in(table->second.cells[i][j]);
    }

    // Links of a pair. XGMI and one hop are also said of pairs that reach each other through a third GPU: the
    // weight, or the bandwidth ("50000-200000": of one link, of all), tells them apart.
    int units(std::size_t i, std::size_t j, std::int64_t least_weight) const {
        if (i == j || !xgmi_[i][j]) return 0;
        const auto weight = number(RocmSection::weight, i, j);
        if (weight && *weight > least_weight) return 0;
        const auto table = tables_.find(RocmSection::bandwidth);
        if (table == tables_.end()) return 1;
        const std::string& cell = table->second.cells[i][j];
        const std::size_t dash = cell.find('-');
        const auto one = integer_in(std::string_view(cell).substr(0, dash));
        const auto all =
            dash == std::string::npos ? one : integer_in(std::string_view(cell).substr(dash + 1));
        if (!one || !all || *one <= 0 || *all <= 0) return 0;
        return static_cast<int>(std::clamp<std::int64_t>(*all / *one, 1, 16));
    }

    int most_neighbors() const {
        std::ptrdiff_t most = 0;
        for (const std::vector<int>& row : units_)
            most = std::max(most, std::count_if(row.begin(), row.end(), [](int n) { return n > 0; }));
        return static_cast<int>(most);
    }

    void find_rocm_arch() {
        std::vector<std::size_t> unread;
        for (const std::size_t k : unread_) {
            std::string text;
            for (const std::string& word : lines_[k].words) text += word + " ";
            const std::string arch = arch_by_name(text);
            if (arch.rfind("gfx", 0) == 0)
                arch_ = arch;
            else if (text.find("rocm-smi") == std::string::npos && text.find("```") == std::string::npos)
                unread.push_back(k);
        }
        unread_ = unread;
        if (arch_.empty()) arch_ = options_.arch;
    }

    // The architecture whose figures are taken.
    std::string figures_of() const {
        if (!arch_.empty()) return arch_;
        if (most_neighbors() >= kNeighborsOfMi300) return "gfx942";
        return is_mesh_of_packages() ? "gfx90a" : "gfx908";
    }

    // Only MI250X has pairs with several links, or islands of GPUs with three neighbors that pass data on:
    // those of MI100 are fully joined, those of MI50 rings.
    bool is_mesh_of_packages() const {
        if (indirect_ > 0 && most_neighbors() >= 3) return true;
        for (const std::vector<int>& row : units_)
            if (std::any_of(row.begin(), row.end(), [](int n) { return n > 1; })) return true;
        return false;
    }

    std::string why_figures() const {
        if (figures_of() != "gfx90a")
            return fmt::format("as a GPU has {}", counted(at(most_neighbors()), "XGMI neighbor"));
        return indirect_ > 0 ? "as GPUs reach others through a third one only"
                             : "as pairs of GPUs have several links";
    }

    DeviceCloseness closeness() const {
        DeviceCloseness known;
        for (std::size_t i = 0; i < size(); ++i) {
            MachinePart part;
            part.type = NodeType::gpu;
            part.arch = arch_;
            part.rank = static_cast<std::int64_t>(i);
            part.device = gpus_[i];
            part.attributes["device"] = std::to_string(gpus_[i]);
            const auto numa = numa_.find(gpus_[i]);
            if (numa != numa_.end()) part.attributes["numa"] = numa->second;
            known.numa.push_back(numa == numa_.end() ? "" : numa->second);
            known.names.push_back(fmt::format("GPU{}", gpus_[i]));
            known.devices.push_back(std::move(part));
        }
        known.pairs.assign(size(), std::vector<Closeness>(size(), Closeness::unknown));
        for (std::size_t i = 0; i < size(); ++i) {
            for (std::size_t j = 0; j < size(); ++j) {
                if (i != j && !xgmi_[i][j]) known.pairs[i][j] = pcie_closeness(i, j);
            }
        }
        return known;
    }

    Closeness pcie_closeness(std::size_t i, std::size_t j) const {
        if (const auto hops = number(RocmSection::hops, i, j))
            return *hops >= kAcrossSockets ? Closeness::system : Closeness::numa_node;
        if (const auto weight = number(RocmSection::weight, i, j))
            return *weight > kSocketWeight ? Closeness::system : Closeness::numa_node;
        const auto one = numa_.find(gpus_[i]), other = numa_.find(gpus_[j]);
        const bool apart = one != numa_.end() && other != numa_.end() && one->second != other->second;
        return apart ? Closeness::system : Closeness::numa_node;
    }

    UnitLink slot() const {
        const std::string figures = figures_of();
        const double known = pcie_of_arch(figures);
        UnitLink link = pcie_link(known > 0 ? known : 16, 16);
        link.provenance.source += fmt::format("; the matrices have no rates: as {} is built for{}", figures,
                                              arch_.empty() ? " (assumed)" : "");
        link.provenance.assumed = true;
        return link;
    }

    void add_xgmi(const std::vector<int>& parts) {
        UnitLink unit = xgmi_unit(figures_of());
        if (arch_.empty()) {
            unit.provenance.source = fmt::format(
                "the architecture is not known: {} taken, {} (--arch gfx90a or the like says it); {}",
                figures_of(), why_figures(), unit.provenance.source);
            unit.provenance.assumed = true;
        }
        for (std::size_t i = 0; i < size(); ++i) {
            for (std::size_t j = 0; j < size(); ++j) {
                if (units_[i][j] > 0)
                    tree_.links.push_back({parts[i], parts[j], {}, units_[i][j], LinkKind::xgmi, unit});
            }
        }
    }

    void report() {
        if (most_neighbors() > 0 && tables_.count(RocmSection::bandwidth) == 0)
            result_.assumptions.push_back(
                "how many XGMI links a pair has is not in these matrices: one (MI250X has up to four; "
                "rocm-smi --shownodesbw in the same file tells)");
        if (most_neighbors() > 0 && tables_.count(RocmSection::weight) == 0 &&
            tables_.count(RocmSection::bandwidth) == 0)
            result_.warnings.push_back(
                "without the matrix of weights every XGMI pair is taken as joined directly, also those that "
                "reach each other through a third GPU");
        const bool placed = tables_.count(RocmSection::hops) + tables_.count(RocmSection::weight) > 0 ||
                            numa_.size() >= size();
        if (!placed && size() > 1)
            result_.assumptions.push_back(
                "neither hops nor weights nor NUMA nodes tell which GPUs share a CPU: all on one");
        if (indirect_ > 0)
            result_.warnings.push_back(
                fmt::format("{} of GPUs reach each other over XGMI through a third GPU only: no link",
                            counted(at(indirect_), "pair")));
        if (asymmetric_ > 0)
            result_.warnings.push_back(fmt::format("{} differ in the two directions: the lesser is taken",
                                                   counted(at(asymmetric_), "pair")));
        if (repeated_ > 0)
            result_.warnings.push_back("matrices that come twice and agree: taken as one host");
        result_.warnings.push_back("rocm-smi --showtopo tells no network adapters");
        if (!unread_.empty())
            result_.warnings.push_back(fmt::format("{} outside of the matrices not read (first: line {})",
                                                   counted(unread_.size(), "line"),
                                                   lines_[unread_.front()].number));
    }

    const ImportSource& source_;
    const ImportOptions& options_;
    std::vector<WordLine> lines_;
    std::map<RocmSection, RocmTable> tables_;
    std::map<int, std::string> numa_;  // by GPU number
    std::vector<int> gpus_;            // numbers, by column
    std::vector<std::vector<char>> xgmi_;
    std::vector<std::vector<int>> units_;  // XGMI links of each pair
    std::vector<std::size_t> unread_;
    std::string arch_;
    MachineTree tree_;
    Imported result_;
    int asymmetric_ = 0, indirect_ = 0, repeated_ = 0;
};

}  // namespace

bool recognizes_rocm_smi(std::string_view text) {
    const auto has = [&](std::string_view mark) { return text.find(mark) != std::string_view::npos; };
    return has("Link Type between two GPUs") ||
           (has("ROCm System Management Interface") && has("between two GPUs"));
}

Imported read_rocm_smi(const ImportSource& source, const ImportOptions& options) {
    return RocmSmi(source, options).read();
}

}  // namespace baton::topologies
