#include <baton/topologies/picture.hpp>

#include <baton/base/index.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace baton::topologies {
namespace {

using LineKey = std::tuple<int, int, LinkKind>;

std::int64_t added(std::int64_t a, std::int64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }

void add_units(PictureLine& line, std::int64_t units, Rate unit, Rate all, bool even) {
    line.even = line.even && even && (line.units == 0 || line.unit == unit);
    line.unit = unit;
    line.units = added(line.units, units);
    line.all.bytes_per_second = added(line.all.bytes_per_second, all.bytes_per_second);
}

bool alike(const PictureLine& a, const PictureLine& b) {
    return a.units == b.units && a.all == b.all && a.unit == b.unit && a.even == b.even;
}

/// Lines of one direction each, joined where the way back is alike.
std::vector<PictureLine> joined(const std::map<LineKey, PictureLine>& directed) {
    std::vector<PictureLine> lines;
    for (const auto& [key, line] : directed) {
        const auto& [from, to, kind] = key;
        const auto back = directed.find({to, from, kind});
        const bool both = back != directed.end() && alike(back->second, line);
        if (both && from > to) continue;
        lines.push_back(line);
        lines.back().from = from;
        lines.back().to = to;
        lines.back().kind = kind;
        lines.back().both = both;
    }
    return lines;
}

/// The picture with node i drawn as box `box[i]`; what is inside one box is not drawn.
std::vector<PictureLine> moved(const std::vector<PictureLine>& lines, const std::vector<int>& box) {
    std::map<LineKey, PictureLine> directed;
    const auto add = [&](int from, int to, const PictureLine& line) {
        if (from != to)
            add_units(directed[{from, to, line.kind}], line.units, line.unit, line.all, line.even);
    };
    for (const PictureLine& line : lines) {
        add(box[at(line.from)], box[at(line.to)], line);
        if (line.both) add(box[at(line.to)], box[at(line.from)], line);
    }
    return joined(directed);
}

void take_ranks(PictureNode& box, const PictureNode& node) {
    if (node.first_rank < 0) return;
    box.first_rank = box.first_rank < 0 ? node.first_rank : std::min(box.first_rank, node.first_rank);
    box.last_rank = std::max(box.last_rank, node.last_rank);
    box.ranks += node.ranks;
}

}  // namespace

std::string label(const PictureLine& line) {
    if (line.units == 1) return to_string(line.unit);
    if (line.even) return fmt::format("{} x {}", line.units, to_string(line.unit));
    return fmt::format("{} links, {}", line.units, to_string(line.all));
}

std::string ranks_of(const PictureNode& node) {
    if (node.first_rank < 0) return {};
    if (node.ranks == 1) return fmt::format("rank {}", node.first_rank);
    if (node.last_rank - node.first_rank >= node.ranks)
        return fmt::format("{} ranks of {}-{}", node.ranks, node.first_rank, node.last_rank);
    return fmt::format("ranks {}-{}", node.first_rank, node.last_rank);
}

Picture picture_of(const Topology& topology) {
    Picture picture;
    for (const Node& node : topology.nodes) {
        PictureNode box;
        box.type = node.type;
        box.host = node.host;
        const bool prefixed = !node.host.empty() && node.id.starts_with(node.host + "/");
        box.name = prefixed ? node.id.substr(node.host.size() + 1) : node.id;
        box.first_rank = box.last_rank = node.rank;
        box.ranks = node.rank >= 0 ? 1 : 0;
        picture.nodes.push_back(box);
    }
    std::map<LineKey, PictureLine> directed;
    for (const Link& link : topology.links)
        add_units(directed[{link.from, link.to, link.kind}], link.count, link.goodput, link.capacity(), true);
    picture.lines = joined(directed);
    return picture;
}

Picture hosts_as_boxes(const Picture& picture) {
    Picture out;
    out.summary = true;
    std::map<std::string, int> boxes;
    std::vector<std::map<NodeType, std::int64_t>> inside;
    std::vector<int> box;
    for (const PictureNode& node : picture.nodes) {
        int place = static_cast<int>(out.nodes.size());
        if (!node.host.empty()) place = boxes.emplace(node.host, place).first->second;
        if (place == static_cast<int>(out.nodes.size())) {
            out.nodes.push_back(node);
            inside.emplace_back();
            if (!node.host.empty()) {
                PictureNode& made = out.nodes.back();
                made = {};
                made.name = node.host;
                made.nodes = 0;
            }
        }
        if (!node.host.empty()) {
            out.nodes[at(place)].nodes += node.nodes;
            take_ranks(out.nodes[at(place)], node);
            inside[at(place)][node.type] += node.nodes;
        }
        box.push_back(place);
    }
    for (std::size_t i = 0; i < out.nodes.size(); ++i) {
        std::string note;
        for (const NodeType type : {NodeType::gpu, NodeType::nic, NodeType::switch_node})
            if (const auto found = inside[i].find(type); found != inside[i].end())
                note += fmt::format("{}{} {}", note.empty() ? "" : ", ", found->second, to_string(type));
        if (!note.empty()) out.nodes[i].note = note;
    }
    out.lines = moved(picture.lines, box);
    return out;
}

Picture alike_as_one(const Picture& picture, bool switches_only) {
    // What a node is seen as from outside: type, host, text, and its lines by the other end.
    using Line = std::tuple<int, LinkKind, bool, bool, std::int64_t, std::int64_t>;
    using Sight = std::tuple<NodeType, std::string, std::string, bool, std::vector<Line>>;
    std::vector<std::vector<Line>> lines(picture.nodes.size());
    for (const PictureLine& line : picture.lines) {
        const auto all = line.all.bytes_per_second;
        lines[at(line.from)].emplace_back(line.to, line.kind, line.both, true, line.units, all);
        lines[at(line.to)].emplace_back(line.from, line.kind, line.both, line.both, line.units, all);
    }
    Picture out;
    out.summary = picture.summary;
    std::map<Sight, int> boxes;
    std::vector<int> box;
    for (std::size_t i = 0; i < picture.nodes.size(); ++i) {
        const PictureNode& node = picture.nodes[i];
        const int next = static_cast<int>(out.nodes.size());
        int place = next;
        if (!lines[i].empty() && (!switches_only || node.type == NodeType::switch_node)) {
            std::sort(lines[i].begin(), lines[i].end());
            place =
                boxes.emplace(Sight{node.type, node.host, node.note, node.first_rank >= 0, lines[i]}, next)
                    .first->second;
        }
        if (place == next) {
            out.nodes.push_back(node);
        } else {
            PictureNode& made = out.nodes[at(place)];
            made.nodes += node.nodes;
            take_ranks(made, node);
            out.summary = true;
        }
        box.push_back(place);
    }
    std::vector<std::int64_t> members(out.nodes.size());
    for (const int place : box) ++members[at(place)];
    for (std::size_t i = 0; i < out.nodes.size(); ++i)
        if (members[i] > 1) out.nodes[i].name += fmt::format(" +{}", members[i] - 1);
    out.lines = moved(picture.lines, box);
    return out;
}

}  // namespace baton::topologies
