#include <baton/topologies/draw.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/svg.hpp>
#include <baton/topologies/picture.hpp>
#include <baton/topologies/picture_layout.hpp>
#include <baton/topologies/picture_rows.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

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

const char* fill(NodeType type) {
    switch (type) {
        case NodeType::gpu: return "#dff0d0";
        case NodeType::cpu: return "#e6e6e6";
        case NodeType::nic: return "#d6e4f7";
        case NodeType::switch_node: return "#fff1cc";
        case NodeType::pcie: return "#f4f4f4";
    }
    return "#ffffff";
}

const char* shape(NodeType type) {
    switch (type) {
        case NodeType::gpu: return "shape=box, style=\"rounded,filled\"";
        case NodeType::cpu: return "shape=box, style=filled";
        case NodeType::nic: return "shape=invhouse, style=filled";
        case NodeType::switch_node: return "shape=hexagon, style=filled";
        case NodeType::pcie: return "shape=trapezium, style=filled";
    }
    return "";
}

void write_dot_nodes(const Picture& picture, std::string& dot) {
    std::vector<std::string> order;
    std::map<std::string, std::vector<int>> hosts;
    for (std::size_t i = 0; i < picture.nodes.size(); ++i) {
        const auto [place, fresh] = hosts.emplace(picture.nodes[i].host, std::vector<int>{});
        if (fresh) order.push_back(picture.nodes[i].host);
        place->second.push_back(static_cast<int>(i));
    }
    int number = 0;
    for (const std::string& host : order) {
        if (!host.empty())
            dot += fmt::format("  subgraph cluster_{} {{\n    label={}; color=\"#aaaaaa\"; style=rounded;\n",
                               number++, quoted(host));
        for (const int index : hosts[host]) {
            const PictureNode& node = picture.nodes[at(index)];
            std::string text = quoted(node.name);
            if (node.ranks > 0) text.insert(text.size() - 1, "\\n" + ranks_of(node));
            dot += fmt::format("{}  n{} [label={}, {}, fillcolor=\"{}\"];\n", host.empty() ? "" : "  ", index,
                               text, shape(node.type), fill(node.type));
        }
        if (!host.empty()) dot += "  }\n";
    }
}

// Lines that look alike share an entry of the legend.
using LegendKey = std::tuple<LinkKind, std::int64_t, std::string>;
LegendKey legend_key(const PictureLine& line) { return {line.kind, -line.all.bytes_per_second, label(line)}; }

std::map<LegendKey, int> legend_of(const Picture& picture) {
    std::map<LegendKey, int> legend;
    for (const PictureLine& line : picture.lines) ++legend[legend_key(line)];
    return legend;
}

class SvgPicture {
public:
    SvgPicture(const Topology& topology, const Picture& picture)
        : topology_(topology), picture_(picture), layout_(lay_out(picture)), legend_(legend_of(picture)) {
        for (const PictureLine& line : picture.lines)
            slowest_ = std::min(slowest_, std::max<std::int64_t>(1, line.all.bytes_per_second));
    }

    std::string draw() {
        title();
        for (const PictureFrame& frame : layout_.hosts) draw_frame(frame);
        // Thick lines first, so that thin ones stay visible on top of them.
        std::vector<std::size_t> order(picture_.lines.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return picture_.lines[a].all > picture_.lines[b].all;
        });
        for (const std::size_t i : order) draw_line(i);
        for (const PictureFrame& frame : layout_.hosts) name_frame(frame);
        for (std::size_t i = 0; i < picture_.nodes.size(); ++i) draw_node(i);
        if (legend_.size() > 1 && picture_.lines.size() <= kMostPictureLabels)
            for (std::size_t i = 0; i < picture_.lines.size(); ++i) draw_label(i);
        const double below = draw_legend();
        return svg_.document(std::max(layout_.width, least_width_), below, topology_.name);
    }

private:
    static constexpr std::size_t kMostLegend = 16;

    void title() {
        std::set<std::string> hosts;
        for (const Node& node : topology_.nodes)
            if (!node.host.empty()) hosts.insert(node.host);
        std::string words =
            fmt::format("{} rank{}, ", topology_.rank_count(), topology_.rank_count() == 1 ? "" : "s");
        if (!hosts.empty()) words += fmt::format("{} host{}, ", hosts.size(), hosts.size() == 1 ? "" : "s");
        words += fmt::format(
            "{} nodes, {} directed links{}", topology_.nodes.size(), topology_.links.size(),
            picture_.summary
                ? "; a box \"x +n\" stands for x and n that are alike, a thick frame for several nodes"
                : "");
        say({kLeft, 26}, topology_.name, 16, true);
        say({kLeft, 44}, words, 11, false);
    }

    void say(SvgPoint place, const std::string& words, double size, bool bold) {
        svg_.text(place, words, size, SvgAnchor::start, "#222222", bold);
        least_width_ = std::max(least_width_, place.x + svg_text_width(words, size) + kLeft);
    }

    void draw_frame(const PictureFrame& frame) {
        svg_.rect(frame.box.corner, frame.box.width, frame.box.height,
                  {.fill = "#fafafa", .stroke = "#aaaaaa", .width = 1, .title = frame.host, .kind = "host"},
                  8);
    }

    // On top of the lines that cross the frame.
    void name_frame(const PictureFrame& frame) {
        svg_.text({frame.box.corner.x + 10, frame.box.corner.y + 16}, frame.host, 12, SvgAnchor::start,
                  "#555555", true, true);
    }

    double thickness(const PictureLine& line) const {
        const double times = static_cast<double>(std::max<std::int64_t>(1, line.all.bytes_per_second)) /
                             static_cast<double>(slowest_);
        return std::min(1.2 + 0.7 * std::log2(times), 6.0);
    }

    void draw_line(std::size_t i) {
        const PictureLine& line = picture_.lines[i];
        const PictureWay& way = layout_.ways[i];
        const std::string words =
            fmt::format("{} {} {}: {} {}", picture_.nodes[at(line.from)].name, line.both ? "-" : "to",
                        picture_.nodes[at(line.to)].name, label(line), to_string(line.kind));
        SvgStyle style{.stroke = color(line.kind), .width = thickness(line), .title = words, .kind = "link"};
        if (!line.both)
            draw_one_way(i, style);
        else if (way.curved)
            svg_.curve(way.points[0], way.points[1], way.points[2], style);
        else
            svg_.path(way.points, style);
    }

    // Ways may be drawn from the other end; boxes hide the ends of those that lead from center to center.
    void draw_one_way(std::size_t i, SvgStyle style) {
        const PictureLine& line = picture_.lines[i];
        std::vector<SvgPoint> points = layout_.ways[i].points;
        const SvgPoint from = layout_.boxes[at(line.from)].center();
        const auto far = [&](SvgPoint a) { return std::hypot(a.x - from.x, a.y - from.y); };
        if (far(points.front()) > far(points.back())) std::reverse(points.begin(), points.end());
        const PictureBox& box = layout_.boxes[at(line.to)];
        SvgPoint& end = points.back();
        const SvgPoint before = points[points.size() - 2];
        const SvgPoint to = box.center();
        if (std::hypot(end.x - to.x, end.y - to.y) < 1) {
            const double dx = std::abs(before.x - to.x), dy = std::abs(before.y - to.y);
            const double share =
                std::min(dx > 0 ? box.width / 2 / dx : 1.0, dy > 0 ? box.height / 2 / dy : 1.0);
            end = {to.x + (before.x - to.x) * std::min(share, 1.0),
                   to.y + (before.y - to.y) * std::min(share, 1.0)};
        }
        style.arrow_end = true;
        if (layout_.ways[i].curved)
            svg_.curve(points[0], points[1], points[2], style);
        else
            svg_.path(points, style);
    }

    void draw_node(std::size_t i) {
        const PictureNode& node = picture_.nodes[i];
        const PictureBox& box = layout_.boxes[i];
        const std::string second = node.note.empty() ? ranks_of(node) : node.note;
        std::string words = (node.host.empty() ? "" : node.host + "/") + node.name;
        if (node.ranks > 0) words += ", " + ranks_of(node);
        const double radius = node.type == NodeType::gpu ? 6 : node.type == NodeType::switch_node ? 14 : 2;
        svg_.rect(box.corner, box.width, box.height,
                  {.fill = fill(node.type),
                   .stroke = "#666666",
                   .width = node.nodes > 1 ? 2.0 : 1.0,
                   .title = words,
                   .kind = std::string(to_string(node.type))},
                  std::min(radius, box.height / 2));
        const SvgPoint middle = box.center();
        // Boxes that are narrower than their names hold the rank alone.
        const bool small = box.width + 0.5 < picture_box_width(node);
        if (small || second.empty()) {
            svg_.text({middle.x, middle.y + 4}, small ? std::to_string(node.first_rank) : node.name, 11,
                      SvgAnchor::middle);
            return;
        }
        svg_.text({middle.x, middle.y - 2}, node.name, 11, SvgAnchor::middle);
        svg_.text({middle.x, middle.y + 11}, second, 10, SvgAnchor::middle, "#555555");
    }

    void draw_label(std::size_t i) {
        const PictureWay& way = layout_.ways[i];
        const std::vector<SvgPoint>& p = way.points;
        SvgPoint place;
        if (way.curved) {
            place = {(p[0].x + 2 * p[1].x + p[2].x) / 4, (p[0].y + 2 * p[1].y + p[2].y) / 4};
        } else {
            std::size_t longest = 0;
            const auto length = [&](std::size_t k) {
                return std::hypot(p[k + 1].x - p[k].x, p[k + 1].y - p[k].y);
            };
            for (std::size_t k = 1; k + 1 < p.size(); ++k)
                if (length(k) > length(longest)) longest = k;
            if (length(longest) < 30) return;
            // Off the middle, where lines of the same shape cross.
            const double share = i % 2 == 0 ? 0.4 : 0.6;
            place = {p[longest].x + share * (p[longest + 1].x - p[longest].x),
                     p[longest].y + share * (p[longest + 1].y - p[longest].y)};
        }
        svg_.text({place.x, place.y + 3}, label(picture_.lines[i]), 8, SvgAnchor::middle,
                  color(picture_.lines[i].kind), false, true);
    }

    double draw_legend() {
        double y = layout_.height + 4;
        std::size_t shown = 0;
        std::int64_t rest = 0;
        for (const auto& [key, lines] : legend_) {
            const auto& [kind, minus_rate, words] = key;
            if (++shown > kMostLegend) {
                rest += lines;
                continue;
            }
            PictureLine sample;
            sample.all.bytes_per_second = -minus_rate;
            svg_.line({kLeft, y}, {kLeft + 34, y},
                      {.stroke = color(kind), .width = thickness(sample), .kind = "legend"});
            say({kLeft + 44, y + 4},
                fmt::format("{}: {} ({} line{})", to_string(kind), words, lines, lines == 1 ? "" : "s"), 11,
                false);
            y += 18;
        }
        if (rest > 0) {
            say({kLeft + 44, y + 4}, fmt::format("and {} lines at other rates", rest), 11, false);
            y += 18;
        }
        say({kLeft, y + 4},
            "rates are goodput in one direction; lines without arrow heads carry it both ways", 10, false);
        return y + 22;
    }

    static constexpr double kLeft = 24;
    const Topology& topology_;
    const Picture& picture_;
    const PictureLayout layout_;
    const std::map<LegendKey, int> legend_;
    std::int64_t slowest_ = INT64_MAX;
    double least_width_ = 0;
    Svg svg_;
};

bool fits(const Picture& picture) {
    return picture.nodes.size() <= kMostDrawnNodes && picture.lines.size() <= kMostDrawnLines;
}

bool fits_at_a_glance(const Picture& picture) {
    return fits(picture) && lay_out(picture).width <= kWidestDrawing;
}

// Whether alike switches have more lines than can be told apart.
bool crowded(const Picture& picture, const Picture& merged) {
    return picture.lines.size() > merged.lines.size() + 64;
}

Picture drawable(const Topology& topology) {
    Picture picture = picture_of(topology);
    if (Picture merged = alike_as_one(picture, true); crowded(picture, merged)) picture = std::move(merged);
    if (fits_at_a_glance(picture)) return picture;
    picture = hosts_as_boxes(picture);
    if (fits_at_a_glance(picture)) return picture;
    picture = alike_as_one(picture, false);
    if (fits(picture)) return picture;
    throw input_error(
        fmt::format("{} nodes are too many for a picture: {} boxes and {} lines are left when "
                    "hosts and what is alike are drawn as one",
                    topology.nodes.size(), picture.nodes.size(), picture.lines.size()),
        topology.name,
        fmt::format("draw a smaller machine of the kind ({} boxes and {} lines at most), or write "
                    "DOT, which has no limit",
                    kMostDrawnNodes, kMostDrawnLines));
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
    const Picture picture = picture_of(topology);
    write_dot_nodes(picture, dot);
    for (const PictureLine& line : picture.lines)
        dot += fmt::format("  n{} -> n{} [color=\"{}\", fontcolor=\"{}\", label={}{}];\n", line.from, line.to,
                           color(line.kind), color(line.kind), quoted(label(line)),
                           line.both ? ", dir=none" : "");
    return dot + "}\n";
}

std::string to_svg(const Topology& topology) {
    const Picture picture = drawable(topology);
    return SvgPicture(topology, picture).draw();
}

}  // namespace baton::topologies
