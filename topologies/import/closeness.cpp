#include <baton/topologies/import/closeness.hpp>

#include <baton/base/index.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <numeric>

namespace baton::topologies {
namespace {

constexpr int kLevels = 6;  // of Closeness
constexpr std::size_t kNamedContradictions = 6;

const char* closeness_name(Closeness level) {
    constexpr const char* kNames[] = {"unknown", "PIX", "PXB", "PHB", "NODE", "SYS"};
    return kNames[static_cast<int>(level)];
}

class ClosenessTree {
public:
    ClosenessTree(const DeviceCloseness& known, const UnitLink& slot, MachineTree& tree, Imported& result)
        : known_(known),
          slot_(slot),
          tree_(tree),
          result_(result),
          count_(known.devices.size()),
          parents_(known.devices.size(), -1) {}

    std::vector<int> build() {
        if (anything_known()) {
            cluster();
            join_unknown();
            report_contradictions();
            for (const std::vector<int>& members : groups(Closeness::numa_node, all())) add_cpu(members);
            report_bridges();
        } else {
            result_.assumptions.push_back(
                "where the devices sit on PCIe is not said: the machine has no PCIe, only what joins its "
                "GPUs");
        }
        std::vector<int> parts;
        for (std::size_t i = 0; i < count_; ++i) {
            parts.push_back(static_cast<int>(tree_.parts.size()));
            tree_.parts.push_back(known_.devices[i]);
            tree_.parts.back().parent = parents_[i];
            tree_.parts.back().up = slot_;
        }
        return parts;
    }

private:
    bool anything_known() const {
        for (const std::string& node : known_.numa)
            if (!node.empty()) return true;
        for (const auto& row : known_.pairs)
            for (const Closeness level : row)
                if (level != Closeness::unknown) return true;
        return count_ == 0;
    }

    std::vector<int> all() const {
        std::vector<int> devices(count_);
        std::iota(devices.begin(), devices.end(), 0);
        return devices;
    }

    int& cluster_of(Closeness level, int device) { return cluster_[static_cast<int>(level)][at(device)]; }

    void merge(Closeness level, int a, int b) {
        const int from = cluster_of(level, b), to = cluster_of(level, a);
        if (from == to) return;
        for (std::size_t i = 0; i < count_; ++i) {
            int& cluster = cluster_of(level, static_cast<int>(i));
            if (cluster == from) cluster = to;
        }
    }

    // A bridge joins all devices that a chain of pairs at its level joins.
    void cluster() {
        cluster_.assign(kLevels, all());
        for (int level = 1; level < kLevels - 1; ++level) {
            cluster_[at(level)] = cluster_[at(level - 1)];
            for (std::size_t i = 0; i < count_; ++i) {
                for (std::size_t j = i + 1; j < count_; ++j) {
                    if (known_.pairs[i][j] == static_cast<Closeness>(level))
                        merge(static_cast<Closeness>(level), static_cast<int>(i), static_cast<int>(j));
                }
            }
        }
    }

    bool apart(const std::vector<int>& left, const std::vector<int>& right, bool& same_numa) const {
        same_numa = false;
        for (const int a : left) {
            for (const int b : right) {
                const std::string &p = known_.numa[at(a)], &q = known_.numa[at(b)];
                if (known_.pairs[at(a)][at(b)] == Closeness::system) return true;
                if (!p.empty() && !q.empty() && p != q) return true;
                same_numa = same_numa || (!p.empty() && p == q);
            }
        }
        return false;
    }

    // Pairs of which only the faster link is told: those of one NUMA node are on one CPU, and so are those
    // that nothing keeps apart.
    void join_unknown() {
        bool guessed = false;
        for (const bool by_numa : {true, false}) {
            std::vector<std::vector<int>> joined;
            for (const std::vector<int>& members : groups(Closeness::numa_node, all())) {
                bool done = false;
                for (std::vector<int>& other : joined) {
                    bool same_numa = false;
                    if (apart(other, members, same_numa) || (by_numa && !same_numa)) continue;
                    guessed = guessed || !by_numa;
                    merge(Closeness::numa_node, other.front(), members.front());
                    other.insert(other.end(), members.begin(), members.end());
                    done = true;
                    break;
                }
                if (!done) joined.push_back(members);
            }
        }
        if (guessed)
            result_.assumptions.push_back(
                "which GPUs share a CPU is not said for all: those that nothing keeps apart are taken as on "
                "one");
    }

    void report_contradictions() {
        std::vector<std::string> texts;
        for (std::size_t i = 0; i < count_; ++i) {
            for (std::size_t j = i + 1; j < count_; ++j) {
                const Closeness said = known_.pairs[i][j];
                if (said == Closeness::unknown) continue;
                Closeness made = Closeness::system;
                for (int level = kLevels - 2; level > 0; --level) {
                    const auto at_level = static_cast<Closeness>(level);
                    if (cluster_of(at_level, static_cast<int>(i)) ==
                        cluster_of(at_level, static_cast<int>(j)))
                        made = at_level;
                }
                if (made < said)
                    texts.push_back(fmt::format("{} and {} are {} apart, but what lies between makes it {}",
                                                known_.names[i], known_.names[j], closeness_name(said),
                                                closeness_name(made)));
            }
        }
        for (std::size_t i = 0; i < std::min(texts.size(), kNamedContradictions); ++i)
            result_.warnings.push_back(texts[i] + "; the nearer is taken");
        if (texts.size() > kNamedContradictions)
            result_.warnings.push_back(fmt::format("{} more pairs contradict the others in the same way",
                                                   texts.size() - kNamedContradictions));
    }

    std::vector<std::vector<int>> groups(Closeness level, const std::vector<int>& members) {
        std::vector<std::vector<int>> found;
        std::map<int, std::size_t> place;
        for (const int device : members) {
            const auto [entry, is_new] = place.try_emplace(cluster_of(level, device), found.size());
            if (is_new) found.emplace_back();
            found[entry->second].push_back(device);
        }
        return found;
    }

    int add_bridge(int parent, int lanes_of) {
        MachinePart bridge;
        bridge.type = NodeType::pcie;
        bridge.parent = parent;
        bridge.up = slot_;
        bridge.up.count = lanes_of;
        tree_.parts.push_back(std::move(bridge));
        return static_cast<int>(tree_.parts.size()) - 1;
    }

    void add_cpu(const std::vector<int>& members) {
        MachinePart cpu;
        cpu.type = NodeType::cpu;
        std::string numa;
        for (const int device : members)
            if (numa.empty()) numa = known_.numa[at(device)];
        if (!numa.empty()) cpu.attributes["numa"] = numa;
        tree_.parts.push_back(std::move(cpu));
        const int parent = static_cast<int>(tree_.parts.size()) - 1;
        const auto host_bridges = groups(Closeness::host_bridge, members);
        for (const std::vector<int>& under : host_bridges) {
            const bool own = host_bridges.size() > 1 && groups(Closeness::bridges, under).size() > 1;
            // Several slots of a host bridge do not share a slot's rate.
            const int slots = static_cast<int>(groups(Closeness::bridges, under).size());
            host_bridges_ += own;
            add_below(Closeness::bridges, own ? add_bridge(parent, slots) : parent, under);
        }
    }

    void add_below(Closeness level, int parent, const std::vector<int>& members) {
        for (const std::vector<int>& under : groups(level, members)) {
            const bool last = level == Closeness::one_bridge;
            const bool shared = under.size() > 1 && (last || groups(Closeness::one_bridge, under).size() > 1);
            const int above = shared ? add_bridge(parent, 1) : parent;
            shared_ += shared;
            if (!last) {
                add_below(Closeness::one_bridge, above, under);
                continue;
            }
            for (const int device : under) parents_[at(device)] = above;
        }
    }

    void report_bridges() {
        if (shared_ > 0)
            result_.assumptions.push_back(fmt::format(
                "{} rebuilt from the closeness of devices: those below one share its link upwards",
                counted(at(shared_), "PCIe switch or slot", "PCIe switches or slots")));
        if (host_bridges_ > 0)
            result_.assumptions.push_back(
                fmt::format("{} with several slots inside a CPU: all slots at once at full rate",
                            counted(at(host_bridges_), "host bridge")));
    }

    const DeviceCloseness& known_;
    const UnitLink& slot_;
    MachineTree& tree_;
    Imported& result_;
    std::size_t count_;
    std::vector<int> parents_;               // part above each device
    std::vector<std::vector<int>> cluster_;  // by level and device
    int shared_ = 0, host_bridges_ = 0;
};

}  // namespace

std::vector<int> add_closeness_tree(const DeviceCloseness& known, const UnitLink& slot, MachineTree& tree,
                                    Imported& result) {
    return ClosenessTree(known, slot, tree, result).build();
}

}  // namespace baton::topologies
