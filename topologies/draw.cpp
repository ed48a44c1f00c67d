#include <baton/topologies/draw.hpp>

#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/base/index.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>
#include <tuple>

extern char** environ;

namespace baton::topologies {
namespace {

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<unsigned char>(c) >= ' ') out += c;
    }
    return out + "\"";
}

const char* color(LinkKind kind) {
    switch (kind) {
        case LinkKind::nvlink: return "#4f8f00";
        case LinkKind::xgmi: return "#c4361d";
        case LinkKind::c2c: return "#0f7c7c";
        case LinkKind::pcie: return "#8a8a8a";
        case LinkKind::infiniband: return "#1f5fbf";
        case LinkKind::roce_v1:
        case LinkKind::roce_v2: return "#7b3fb5";
        case LinkKind::ethernet: return "#b07a00";
        case LinkKind::upi: return "#404040";
        case LinkKind::custom: break;
    }
    return "#000000";
}

const char* shape(NodeType type) {
    switch (type) {
        case NodeType::gpu: return "shape=box, style=\"rounded,filled\", fillcolor=\"#dff0d0\"";
        case NodeType::cpu: return "shape=box, style=filled, fillcolor=\"#e6e6e6\"";
        case NodeType::nic: return "shape=invhouse, style=filled, fillcolor=\"#d6e4f7\"";
        case NodeType::switch_node: return "shape=hexagon, style=filled, fillcolor=\"#fff1cc\"";
        case NodeType::pcie: return "shape=trapezium, style=filled, fillcolor=\"#f4f4f4\"";
    }
    return "";
}

// Everything between two nodes of one kind, in one direction.
struct Bundle {
    std::int64_t units = 0;
    bool even = true;
    Rate unit{};
    Rate all{};
};

void add(Bundle& bundle, const Link& link) {
    bundle.even = bundle.even && (bundle.units == 0 || bundle.unit == link.goodput);
    bundle.unit = link.goodput;
    bundle.units += link.count;
    bundle.all.bytes_per_second =
        std::min(bundle.all.bytes_per_second, INT64_MAX - link.capacity().bytes_per_second) +
        link.capacity().bytes_per_second;
}

std::string label(const Bundle& bundle) {
    if (bundle.units == 1) return to_string(bundle.unit);
    if (bundle.even) return fmt::format("{} x {}", bundle.units, to_string(bundle.unit));
    return fmt::format("{} links, {}", bundle.units, to_string(bundle.all));
}

bool same(const Bundle& a, const Bundle& b) {
    return a.units == b.units && a.all == b.all && a.unit == b.unit && a.even == b.even;
}

std::string line(int from, int to, LinkKind kind, const std::string& text, const char* more) {
    return fmt::format("  n{} -> n{} [color=\"{}\", fontcolor=\"{}\", label={}{}];\n", from, to, color(kind),
                       color(kind), quoted(text), more);
}

void write_nodes(const Topology& topology, std::string& dot) {
    std::vector<std::string> order;
    std::map<std::string, std::vector<int>> hosts;
    for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
        const auto [place, fresh] = hosts.emplace(topology.nodes[i].host, std::vector<int>{});
        if (fresh) order.push_back(topology.nodes[i].host);
        place->second.push_back(static_cast<int>(i));
    }
    int number = 0;
    for (const std::string& host : order) {
        if (!host.empty())
            dot += fmt::format("  subgraph cluster_{} {{\n    label={}; color=\"#aaaaaa\"; style=rounded;\n",
                               number++, quoted(host));
        for (const int index : hosts[host]) {
            const Node& node = topology.nodes[at(index)];
            // Inside its box a node needs no prefix.
            const bool prefixed = !host.empty() && node.id.rfind(host + "/", 0) == 0;
            std::string text = quoted(prefixed ? node.id.substr(host.size() + 1) : node.id);
            if (node.rank >= 0) text.insert(text.size() - 1, fmt::format("\\nrank {}", node.rank));
            dot += fmt::format("{}  n{} [label={}, {}];\n", host.empty() ? "" : "  ", index, text,
                               shape(node.type));
        }
        if (!host.empty()) dot += "  }\n";
    }
}

void write_links(const Topology& topology, std::string& dot) {
    std::map<std::tuple<int, int, LinkKind>, Bundle> bundles;
    for (const Link& link : topology.links) add(bundles[{link.from, link.to, link.kind}], link);
    for (const auto& [key, bundle] : bundles) {
        const auto [from, to, kind] = key;
        const auto back = bundles.find({to, from, kind});
        const bool both = back != bundles.end() && same(back->second, bundle);
        if (both && from > to) continue;
        dot += line(from, to, kind, label(bundle), both ? ", dir=none" : "");
    }
}

class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "baton-draw-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr) throw input_error("cannot make a temporary folder", pattern);
        path_ = pattern;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    std::string file(const char* name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

// Waits for a child; false when it was ended for taking too long.
bool wait_for(pid_t child, std::chrono::seconds limit, int& status) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (std::chrono::steady_clock::now() > end) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
}

void run_dot(const std::string& in, const std::string& out, const std::string& errors) {
    const std::string output = "-o" + out;
    const char* const arguments[] = {"dot", "-Tsvg", output.c_str(), in.c_str(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT, 0600);
    pid_t child = 0;
    const int failed =
        posix_spawnp(&child, "dot", &actions, nullptr, const_cast<char* const*>(arguments), environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    if (failed == 0 && !wait_for(child, std::chrono::seconds(120), status)) {
        throw input_error("the layout took longer than two minutes", {},
                          "draw a smaller topology, or write DOT and lay it out by hand");
    }
    // Without the program either the spawn fails or the child ends with 127.
    if (failed == ENOENT || (failed == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
        throw missing_error("the program 'dot' of Graphviz is not installed", {},
                            "install the package graphviz, or write DOT with --format dot");
    }
    if (failed != 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        std::error_code ignored;
        const std::string said =
            std::filesystem::exists(errors, ignored) ? read_file(errors).substr(0, 200) : "";
        throw missing_error("the program 'dot' of Graphviz failed: " + said, {},
                            "write DOT with --format dot");
    }
}

}  // namespace

std::string to_dot(const Topology& topology) {
    // Machines without switches have no levels: springs show their symmetry better.
    const bool levels = std::any_of(topology.nodes.begin(), topology.nodes.end(),
                                    [](const Node& node) { return node.rank < 0; });
    std::string dot = fmt::format("digraph {} {{\n  graph [{}];\n", quoted(topology.name),
                                  levels ? "rankdir=TB, ranksep=1.2, newrank=true"
                                         : "layout=neato, overlap=false, splines=true, sep=0.3");
    dot += "  node [fontname=Helvetica, fontsize=10];\n  edge [fontname=Helvetica, fontsize=8];\n";
    write_nodes(topology, dot);
    write_links(topology, dot);
    return dot + "}\n";
}

std::string to_svg(const Topology& topology) {
    if (static_cast<int>(topology.nodes.size()) > kMostDrawnNodes) {
        throw input_error(fmt::format("{} nodes are too many for a picture", topology.nodes.size()),
                          topology.name,
                          fmt::format("draw at most {} nodes, for example one or two hosts, or write DOT",
                                      kMostDrawnNodes));
    }
    const TemporaryFolder folder;
    const std::string in = folder.file("topology.dot"), out = folder.file("topology.svg");
    write_file(in, to_dot(topology));
    run_dot(in, out, folder.file("errors.txt"));
    return read_file(out);
}

}  // namespace baton::topologies
