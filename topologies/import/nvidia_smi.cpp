// Text of `nvidia-smi topo -m`: from its matrices to a machine.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/import/gpu_models.hpp>
#include <baton/topologies/import/nvlink_status.hpp>
#include <baton/topologies/import/smi_matrix.hpp>
#include <baton/topologies/import/text_lines.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <numeric>
#include <set>

namespace baton::topologies {
namespace {

using Kind = SmiCell::Kind;

// Most NVLinks of a GPU by compute capability; 0: of any.
int most_nvlinks(int sm) {
    if (sm == 0 || sm >= 90) return 18;
    if (sm == 80) return 12;
    return sm >= 70 && sm < 80 ? 6 : 4;
}

// More links than this between two GPUs are never wired directly.
constexpr int kMostDirectNvlinks = 12;

class NvidiaSmi {
public:
    NvidiaSmi(const ImportSource& source, const ImportOptions& options)
        : source_(source), options_(options), text_(read_smi_text(source)) {}

    Imported read() {
        take_matrix();
        fill_by_symmetry();
        find_arch();
        name_nics();
        DeviceCloseness known = closeness();
        read_nvlinks();
        const std::vector<int> parts = add_closeness_tree(known, slot(), tree_, result_);
        tree_.host_names = {"h0"};
        add_nvlinks(parts);
        apply_nvlink_status(tree_, options_, result_);
        warn_of_locality();
        build_machine(tree_, source_, options_, result_);
        report();
        return std::move(result_);
    }

private:
    std::size_t size() const { return matrix_.devices.size(); }
    bool is_gpu(std::size_t i) const { return matrix_.devices[i].gpu; }
    const std::string& name(std::size_t i) const { return matrix_.devices[i].name; }

    bool legend_has(std::string_view word) const {
        return std::find(text_.legend.begin(), text_.legend.end(), word) != text_.legend.end();
    }

    // The one matrix, of all that the text has.
    void take_matrix() {
        std::vector<SmiMatrix> all;
        int peer_access = 0;
        for (const SmiMatrix& matrix : text_.matrices) {
            const bool only_x = matrix.devices.size() == 1 && legend_has("GNS") && !legend_has("PIX");
            if (matrix.peer_access || only_x)
                peer_access = matrix.line;
            else
                all.push_back(matrix);
        }
        if (all.empty()) refuse(peer_access);
        if (peer_access > 0)
            result_.warnings.push_back(fmt::format(
                "the matrix at line {} is that of topo -p2p (peer access): left out", peer_access));
        matrix_ = all.front();
        for (std::size_t i = 1; i < all.size(); ++i) merge(all[i]);
        if (all.size() > 1)
            result_.warnings.push_back(fmt::format(
                "{} matrices that agree: taken as one host (--hosts and --fabric join several)", all.size()));
        leave_out_cpus();
        if (std::none_of(matrix_.devices.begin(), matrix_.devices.end(),
                         [](const SmiDevice& device) { return device.gpu; }))
            throw source_.error(matrix_.line, "no column is a GPU (GPU0, GPU1, ...)");
    }

    [[noreturn]] void refuse(int peer_access) const {
        const std::string rest = "the topology is topo -m";
        if (peer_access > 0)
            throw source_.error(peer_access, "this is the output of topo -p2p (peer access), " + rest);
        if (const std::string foreign = foreign_smi_output(source_.text); !foreign.empty())
            throw input_error(foreign, source_.name);
        throw input_error("there is no matrix in it", source_.name,
                          "give the text of `nvidia-smi topo -m`: a line GPU0 GPU1 ..., and a row for each");
    }

    // A second matrix may repeat the first, or show PCIe where that shows NVLink (topo -mp).
    void merge(const SmiMatrix& other) {
        const auto differs = [&](const std::string& how) {
            return source_.error(other.line,
                                 fmt::format("a second matrix, which {} (line {})", how, matrix_.line),
                                 "give each host a file of its own, and --fabric");
        };
        if (other.devices.size() != size()) throw differs("has other columns than the first");
        for (std::size_t i = 0; i < size(); ++i) {
            if (other.devices[i].name != name(i)) throw differs("has other columns than the first");
            if (other.devices[i].numa != matrix_.devices[i].numa ||
                other.devices[i].cpus != matrix_.devices[i].cpus)
                throw differs(fmt::format("has another affinity of {}", name(i)));
            for (std::size_t j = 0; j < size(); ++j) {
                SmiCell& cell = matrix_.cells[i][j];
                const SmiCell& more = other.cells[i][j];
                if (more == cell || more.kind == Kind::missing) continue;
                const bool counts = cell.nvlinks > 0 && more.nvlinks > 0 && cell.nvlinks != more.nvlinks;
                const bool places = cell.closeness != Closeness::unknown &&
                                    more.closeness != Closeness::unknown && cell.closeness != more.closeness;
                if (counts || places) throw differs(fmt::format("differs at {}, {}", name(i), name(j)));
                cell.nvlinks = std::max(cell.nvlinks, more.nvlinks);
                if (more.closeness != Closeness::unknown) cell.closeness = more.closeness;
                if (cell.kind == Kind::missing || more.kind == Kind::nvlink) cell.kind = more.kind;
            }
        }
    }

    void leave_out_cpus() {
        for (std::size_t i = size(); i-- > 0;) {
            if (name(i).rfind("CPU", 0) != 0) continue;
            result_.warnings.push_back(fmt::format("column {} is a CPU: left out", name(i)));
            matrix_.devices.erase(matrix_.devices.begin() + static_cast<std::ptrdiff_t>(i));
            matrix_.cells.erase(matrix_.cells.begin() + static_cast<std::ptrdiff_t>(i));
            for (auto& row : matrix_.cells) row.erase(row.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }

    // A row that is missing or short is in the columns of the others.
    void fill_by_symmetry() {
        std::string incomplete;
        for (std::size_t i = 0; i < size(); ++i) {
            bool filled = false;
            for (std::size_t j = 0; j < size(); ++j) {
                SmiCell& cell = matrix_.cells[i][j];
                if (i == j || cell.kind != Kind::missing) continue;
                cell = matrix_.cells[j][i];
                filled = true;
                // Nothing hangs on how two adapters lie to each other, beyond what GPUs tell.
                if (cell.kind == Kind::missing && !is_gpu(i) && !is_gpu(j)) continue;
                if (cell.kind == Kind::missing)
                    throw source_.error(matrix_.line,
                                        fmt::format("neither the row of {} nor that of {} says how "
                                                    "the two are joined",
                                                    name(i), name(j)),
                                        "give the whole matrix");
            }
            if (filled) incomplete += (incomplete.empty() ? "" : ", ") + name(i);
        }
        if (!incomplete.empty())
            result_.warnings.push_back("rows that are missing or cut off: " + incomplete +
                                       "; their cells are taken from the columns of the others");
        for (std::size_t i = 0; i < size(); ++i)
            for (std::size_t j = i + 1; j < size(); ++j) settle(i, j);
    }

    // Two cells of a pair that differ: the lesser connection.
    void settle(std::size_t i, std::size_t j) {
        SmiCell &cell = matrix_.cells[i][j], &back = matrix_.cells[j][i];
        if (cell == back) return;
        if (++asymmetric_ <= 6)
            result_.warnings.push_back(fmt::format("{} to {} is not as {} to {}: the lesser is taken",
                                                   name(i), name(j), name(j), name(i)));
        cell.nvlinks = std::min(cell.nvlinks, back.nvlinks);
        cell.closeness = std::max(cell.closeness, back.closeness);
        cell.kind = cell.nvlinks > 0 ? Kind::nvlink : Kind::pcie;
        back = cell;
    }

    // Names of products in the lines around the matrix, the user's word, or rates of NVLinks.
    void find_arch() {
        status_in_text();
        const std::vector<TextLine> lines = text_lines(source_);
        std::set<std::string> archs;
        std::vector<int> unread;
        for (const int number : text_.unread) {
            const std::string_view line = lines[at(number - 1)].text;
            const bool names_gpu = line.find("NVIDIA ") != std::string_view::npos ||
                                   line.find("Tesla ") != std::string_view::npos;
            const std::string arch = names_gpu ? arch_by_name(line) : "";
            const bool is_status = status_inside_ && (line.find("Link ") != std::string_view::npos ||
                                                      line.find("UUID") != std::string_view::npos);
            if (!arch.empty()) archs.insert(arch);
            if (arch.empty() && !is_status) unread.push_back(number);
        }
        text_.unread = unread;
        if (archs.size() == 1) {
            arch_ = *archs.begin();
            result_.found.push_back("architecture " + arch_ + " from the name of the GPUs");
        }
        read_status_arch();
        if (arch_.empty()) arch_ = options_.arch;
        if (!options_.arch.empty() && sm_of_arch(options_.arch) == 0)
            throw input_error(fmt::format("'{}' is no architecture of GPUs of NVIDIA", options_.arch),
                              "--arch", "write sm_90, for example");
    }

    // `nvidia-smi nvlink -s` in the same text.
    void status_in_text() {
        if (!options_.nvlink_status.text.empty()) return;
        if (source_.text.find("Link 0:") == std::string_view::npos) return;
        std::size_t lists = 0;
        for (std::size_t found = source_.text.find("GPU 0:"); found != std::string_view::npos;
             found = source_.text.find("GPU 0:", found + 1))
            ++lists;
        if (lists != 1) return;
        options_.nvlink_status = source_;
        status_inside_ = true;
    }

    // The generation by name or by rate, and links that are down.
    void read_status_arch() {
        if (options_.nvlink_status.text.empty()) return;
        Rate rate{};
        for (const NvlinkStatus& gpu : read_nvlink_status(options_.nvlink_status)) {
            if (arch_.empty()) arch_ = arch_by_name(gpu.name);
            if (gpu.inactive > 0)
                result_.warnings.push_back(fmt::format("GPU {} has {} of {} NVLinks inactive", gpu.device,
                                                       gpu.inactive, gpu.active + gpu.inactive));
            rate = std::max(rate, gpu.rate);
        }
        if (!arch_.empty() || !options_.arch.empty() || rate < Rate{40'000'000'000}) return;
        arch_ = "sm_100";
        result_.assumptions.push_back(
            fmt::format("NVLinks of {} are NVLink 5: sm_100 taken", to_string(rate)));
    }

    void name_nics() {
        for (std::size_t i = 0; i < size(); ++i) {
            if (is_gpu(i)) continue;
            const auto named = text_.nic_names.find(name(i));
            if (named != text_.nic_names.end()) names_[i] = named->second;
            // Without a legend, "mlx5_2" is the name; "NIC2" tells none.
            else if (name(i).rfind("NIC", 0) != 0)
                names_[i] = name(i);
        }
    }

    DeviceCloseness closeness() const {
        DeviceCloseness known;
        bool all_numa = true;
        std::int64_t ranks = 0;
        for (const SmiDevice& device : matrix_.devices) {
            if (device.gpu) all_numa = all_numa && !device.numa.empty();
        }
        for (std::size_t i = 0; i < size(); ++i) {
            const SmiDevice& device = matrix_.devices[i];
            MachinePart part;
            part.type = device.gpu ? NodeType::gpu : NodeType::nic;
            part.arch = device.gpu ? arch_ : "";
            // The columns of GPUs are in the order of device numbers, and so are ranks.
            if (device.gpu) part.rank = ranks++;
            if (device.number >= 0) part.device = device.number;
            if (device.gpu && device.number >= 0) part.attributes["device"] = std::to_string(device.number);
            if (!device.numa.empty()) part.attributes["numa"] = device.numa;
            if (!device.cpus.empty()) part.attributes["cpus"] = device.cpus;
            if (const auto named = names_.find(i); named != names_.end()) {
                part.attributes["name"] = named->second;
            }
            known.devices.push_back(std::move(part));
            known.names.push_back(device.name);
            // Equal CPUs mean an equal NUMA node where the matrix has no column for it.
            known.numa.push_back(!device.gpu ? "" : all_numa ? device.numa : device.cpus);
        }
        known.pairs.resize(size());
        for (std::size_t i = 0; i < size(); ++i) {
            for (std::size_t j = 0; j < size(); ++j) known.pairs[i].push_back(matrix_.cells[i][j].closeness);
        }
        return known;
    }

    // Islands of GPUs, and whether a switch joins each.
    void read_nvlinks() {
        island_.assign(size(), -1);
        for (std::size_t i = 0; i < size(); ++i) {
            if (!is_gpu(i) || island_[i] >= 0) continue;
            std::vector<std::size_t> members = {i};
            island_[i] = static_cast<int>(islands_.size());
            for (std::size_t next = 0; next < members.size(); ++next) {
                for (std::size_t j = 0; j < size(); ++j) {
                    if (!is_gpu(j) || island_[j] >= 0 || nvlinks(members[next], j) == 0) continue;
                    island_[j] = island_[i];
                    members.push_back(j);
                }
            }
            std::sort(members.begin(), members.end());
            islands_.push_back({std::move(members), false});
        }
        for (Island& island : islands_) settle_island(island);
        for (const Island& island : islands_) {
            for (const std::size_t i : island.members) most_ = std::max(most_, links_of(island, i));
        }
    }

    struct Island {
        std::vector<std::size_t> members;
        bool switched = false;
    };

    int nvlinks(std::size_t i, std::size_t j) const {
        return is_gpu(i) && is_gpu(j) ? matrix_.cells[i][j].nvlinks : 0;
    }

    // Links of a GPU: those of all pairs together, or, through a switch, those that each pair uses.
    int links_of(const Island& island, std::size_t i) const {
        int sum = 0, most = 0;
        for (const std::size_t j : island.members) {
            sum += nvlinks(i, j);
            most = std::max(most, nvlinks(i, j));
        }
        return island.switched ? most : sum;
    }

    void settle_island(Island& island) {
        if (island.members.size() < 2) return;
        const int most = most_nvlinks(sm_of_arch(arch_));
        int pairs = 0, least_count = kMostDirectNvlinks * 100, most_count = 0, most_sum = 0;
        for (const std::size_t i : island.members) {
            most_sum = std::max(most_sum, links_of(island, i));
            for (const std::size_t j : island.members) {
                if (i >= j || nvlinks(i, j) == 0) continue;
                ++pairs;
                least_count = std::min(least_count, nvlinks(i, j));
                most_count = std::max(most_count, nvlinks(i, j));
            }
        }
        const std::size_t count = island.members.size();
        const bool complete = at(pairs) == count * (count - 1) / 2;
        island.switched = most_sum > most || most_count > kMostDirectNvlinks;
        const std::string what = least_count == most_count ? fmt::format("NV{} between {}{} GPUs", most_count,
                                                                         count == 2 ? ""
                                                                         : complete ? "every two of "
                                                                                    : "pairs of ",
                                                                         count)
                                                           : fmt::format("NV{} to NV{} between {} GPUs",
                                                                         least_count, most_count, count);
        if (!island.switched) {
            if (complete && count > 1) note_direct(what, most_sum);
            return;
        }
        note(
            fmt::format("{}: more than the {} links that a GPU {}, so all lead to one NVSwitch node (how "
                        "many switches there are is not said)",
                        what, most_sum > most ? most : kMostDirectNvlinks,
                        most_sum > most ? "has at most" : "shares with one other without a switch"));
        if (!complete)
            result_.warnings.push_back(
                "some pairs of GPUs on the NVSwitch show no NVLink; the switch here joins them too");
        for (const std::size_t i : island.members) {
            for (const std::size_t j : island.members) {
                if (i < j && nvlinks(i, j) > 0 &&
                    nvlinks(i, j) != std::min(links_of(island, i), links_of(island, j)))
                    ++uneven_switched_;
            }
        }
    }

    void note_direct(const std::string& what, int sum) {
        note(fmt::format("{}: {} a GPU, taken as wired directly, without a switch", what,
                         counted(at(sum), "link")));
    }

    // An assumption, once.
    void note(const std::string& text) {
        auto& all = result_.assumptions;
        if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
    }

    // The slot of every device: the generation that the GPUs are built for.
    UnitLink slot() {
        const bool workstation = has_workstation_bridges();
        const int sm = sm_of_arch(arch_) > 0 ? sm_of_arch(arch_) : workstation ? 86 : sm_by_nvlinks(most_);
        double rate = sm > 0 ? pcie_of_arch(fmt::format("sm_{}", sm)) : 0;
        std::string why = fmt::format("as sm_{} is built for{}", sm,
                                      !arch_.empty() ? ""
                                      : workstation  ? " (taken from NV4 between pairs)"
                                                     : " (taken from the number of NVLinks)");
        if (rate == 0) {
            rate = 16;
            why = "the architecture is not known, --arch sm_90 or the like says it";
        }
        UnitLink link = pcie_link(rate, 16);
        link.provenance.source += fmt::format("; the matrix has no rates: {}", why);
        link.provenance.assumed = true;
        return link;
    }

    void add_nvlinks(const std::vector<int>& parts) {
        int switches = 0;
        for (const Island& island : islands_) {
            const std::string through = fmt::format("nvswitch{}", switches);
            if (island.switched) {
                tree_.switches[through] = "";
                ++switches;
            }
            for (const std::size_t i : island.members) {
                GpuLinks links;
                links.gpu = parts[i];
                if (island.switched) {
                    links.through = through;
                    links.count = links_of(island, i);
                    tree_.links.push_back(links);
                    continue;
                }
                for (const std::size_t j : island.members) {
                    if (nvlinks(i, j) == 0) continue;
                    links.other = parts[j];
                    links.count = nvlinks(i, j);
                    links.unit = bridge_unit(island, links.count);
                    tree_.links.push_back(links);
                }
            }
        }
    }

    // Four links between two GPUs and no others are the bridge of workstation cards.
    std::optional<UnitLink> bridge_unit(const Island& island, int count) const {
        if (!arch_.empty() || island.members.size() != 2 || count != 4 || most_ != 4) return std::nullopt;
        UnitLink unit = *nvlink_unit(86, false);
        unit.provenance.source =
            "NV4 between pairs only: the bridge of A6000, A40 and RTX 3090 (sm_86) is assumed; " +
            unit.provenance.source;
        unit.provenance.assumed = true;
        return unit;
    }

    bool has_workstation_bridges() const {
        for (const Island& island : islands_)
            if (bridge_unit(island, most_)) return true;
        return false;
    }

    // Where all adapters are equally near to all GPUs, nothing says which GPU should use which.
    void warn_of_locality() {
        std::set<Closeness> seen;
        std::size_t gpus = 0;
        for (std::size_t i = 0; i < size(); ++i) {
            gpus += is_gpu(i);
            for (std::size_t j = 0; j < size(); ++j)
                if (is_gpu(i) && !is_gpu(j)) seen.insert(matrix_.cells[i][j].closeness);
        }
        if (gpus < 2 || size() - gpus < 2 || seen.size() != 1) return;
        result_.warnings.push_back(
            "every network adapter is equally near to every GPU, as virtual machines show it: the matrix has "
            "no locality, so GPUs and adapters are matched by number only, which no rails of the real "
            "machine need follow");
    }

    void report() {
        if (names_.size() + gpus() < size())
            result_.warnings.push_back(
                "the text has no legend of the network adapters: their names are not known");
        if (gpus() < size())
            result_.warnings.push_back(
                "rates of network ports are not in the matrix: the fabric that is given decides");
        if (arch_.empty() && most_ > 12)
            note(
                "18 NVLinks are those of Hopper or of Blackwell: Hopper is taken; --arch sm_100 or "
                "--nvlink-status says otherwise");
        if (!legend_has("NV#") && legend_has("PIX") && most_ == 0)
            result_.warnings.push_back(
                "the legend has no NV#: this may be topo -mp, which leaves NVLinks out; topo -m has them");
        if (uneven_switched_ > 0)
            result_.warnings.push_back(fmt::format(
                "{} on the NVSwitch show another number of links than the lesser of the two GPUs has",
                counted(at(uneven_switched_), "pair")));
        if (asymmetric_ > 6)
            result_.warnings.push_back(
                fmt::format("{} more pairs differ in the two directions", asymmetric_ - 6));
        if (!text_.unread.empty())
            result_.warnings.push_back(fmt::format("{} outside of the matrix not read (first: line {})",
                                                   counted(text_.unread.size(), "line"),
                                                   text_.unread.front()));
    }

    std::size_t gpus() const {
        return at(std::count_if(matrix_.devices.begin(), matrix_.devices.end(),
                                [](const SmiDevice& device) { return device.gpu; }));
    }

    const ImportSource& source_;
    ImportOptions options_;
    SmiText text_;
    SmiMatrix matrix_;
    Imported result_;
    MachineTree tree_;
    std::map<std::size_t, std::string> names_;  // of network adapters, by column
    std::vector<int> island_;
    std::vector<Island> islands_;
    std::string arch_;
    bool status_inside_ = false;
    int most_ = 0;  // NVLinks of a GPU
    int asymmetric_ = 0, uneven_switched_ = 0;
};

}  // namespace

bool recognizes_nvidia_smi(std::string_view text) { return has_smi_matrix(text); }

Imported read_nvidia_smi(const ImportSource& source, const ImportOptions& options) {
    return NvidiaSmi(source, options).read();
}

}  // namespace baton::topologies
