#include <baton/topologies/picture_layout.hpp>

#include <baton/base/index.hpp>
#include <baton/topologies/picture_rows.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <queue>

namespace baton::topologies {
namespace {

constexpr double kGap = 18, kBend = 10;

// Something that takes room in a row: a box, or a way that leads past the row.
struct Item {
    int node = -1;  // -1: a bend of a way
    double width = kBend, x = 0;
    std::vector<int> below, above;  // items of the next rows that it is joined to
};

// Rows of items, from the top.
struct Rows {
    std::vector<Item> items;
    std::vector<std::vector<int>> rows;

    int add(int row, int node, double width) {
        items.push_back({node, width, 0, {}, {}});
        rows[at(row)].push_back(static_cast<int>(items.size()) - 1);
        return static_cast<int>(items.size()) - 1;
    }
    void join(int upper, int lower) {
        items[at(upper)].below.push_back(lower);
        items[at(lower)].above.push_back(upper);
    }
};

// The places nearest to `wanted` (sum of squares) that keep the distances: pools of neighbors that touch.
void spread(Rows& all, std::vector<int>& row, const std::vector<double>& wanted, double gap) {
    std::vector<std::size_t> order(row.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
    struct Pool {
        double sum = 0;
        int members = 0;
        double mean() const { return sum / members; }
    };
    std::vector<Pool> pools;
    std::vector<int> sorted;
    std::vector<double> offsets;
    double offset = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const Item& item = all.items[at(row[order[i]])];
        if (i > 0) offset += (all.items[at(sorted.back())].width + item.width) / 2 + gap;
        sorted.push_back(row[order[i]]);
        offsets.push_back(offset);
        pools.push_back({wanted[order[i]] - offset, 1});
        while (pools.size() > 1 && pools[pools.size() - 2].mean() >= pools.back().mean()) {
            pools[pools.size() - 2].sum += pools.back().sum;
            pools[pools.size() - 2].members += pools.back().members;
            pools.pop_back();
        }
    }
    std::size_t next = 0;
    for (const Pool& pool : pools)
        for (int i = 0; i < pool.members; ++i, ++next)
            all.items[at(sorted[next])].x = pool.mean() + offsets[next];
    row = sorted;
}

// Places a row by the neighbors on the side that is placed already.
void place_row(Rows& all, int row, bool by_below, double gap) {
    std::vector<double> wanted;
    double last = 0;
    for (const int id : all.rows[at(row)]) {
        const std::vector<int>& near = by_below ? all.items[at(id)].below : all.items[at(id)].above;
        double sum = 0;
        for (const int other : near) sum += all.items[at(other)].x;
        // What is joined to nothing stays behind the one before it.
        last = near.empty() ? last : sum / static_cast<double>(near.size());
        wanted.push_back(last);
    }
    spread(all, all.rows[at(row)], wanted, gap);
}

double extent(const Rows& all, double& left) {
    double right = 0;
    left = 0;
    bool first = true;
    for (const Item& item : all.items) {
        left = first ? item.x - item.width / 2 : std::min(left, item.x - item.width / 2);
        right = first ? item.x + item.width / 2 : std::max(right, item.x + item.width / 2);
        first = false;
    }
    return right - left;
}

// One host, or the ranks that belong to none.
struct Block {
    std::string host;
    std::vector<int> nodes;
    Rows rows;
    int base = 0;  // the row of the ranks
    double width = 0, left = 0, x = 0;
};

class RowLayout {
public:
    explicit RowLayout(const Picture& picture)
        : picture_(picture),
          block_(picture.nodes.size(), -1),
          row_(picture.nodes.size(), 0),
          item_(picture.nodes.size(), -1),
          chains_(picture.lines.size()),
          wide_gap_(picture.lines.size() > kMostPictureLabels ? 30 : 58) {}

    PictureLayout run() {
        make_blocks();
        for (Block& block : blocks_) make_rows(block);
        make_fabric();
        chain_lines();
        double x = kPictureMargin + kFrame;
        for (Block& block : blocks_) {
            place_block(block);
            block.x = x;
            for (Item& item : block.rows.items) item.x += x - block.left;
            x += block.width + 2 * kFrame + kGap;
        }
        place_fabric();
        return draw();
    }

private:
    static constexpr double kFrame = 14, kHeader = 22;

    // A bend or box of a line's way, from the top; block -1 is the fabric.
    struct Place {
        int block = -1, row = 0, item = 0;
    };

    bool in_fabric(int node) const { return block_[at(node)] < 0; }

    void make_blocks() {
        std::map<std::string, int> of_host;
        for (std::size_t i = 0; i < picture_.nodes.size(); ++i) {
            const PictureNode& node = picture_.nodes[i];
            if (node.host.empty() && node.ranks == 0) continue;
            const auto [found, fresh] = of_host.emplace(node.host, static_cast<int>(blocks_.size()));
            if (fresh) blocks_.emplace_back().host = node.host;
            block_[i] = found->second;
            blocks_[at(found->second)].nodes.push_back(static_cast<int>(i));
        }
    }

    // Rows of a host from the top: NICs, CPUs, PCIe bridges by their distance from CPUs, ranks, switches.
    void make_rows(Block& block) {
        std::map<int, int> depth;
        std::queue<int> open;
        for (const int node : block.nodes)
            if (picture_.nodes[at(node)].type == NodeType::cpu) depth[node] = 0, open.push(node);
        std::map<int, std::vector<int>> bridges;
        const auto is_bridge = [&](int node) { return picture_.nodes[at(node)].type == NodeType::pcie; };
        for (const PictureLine& line : picture_.lines) {
            if (is_bridge(line.to)) bridges[line.from].push_back(line.to);
            if (is_bridge(line.from)) bridges[line.to].push_back(line.from);
        }
        while (!open.empty()) {
            const int node = open.front();
            open.pop();
            for (const int next : bridges[node])
                if (depth.emplace(next, depth[node] + 1).second) open.push(next);
        }
        std::map<int, std::vector<int>> rows;
        constexpr int kRanks = 1 << 24;
        for (const int node : block.nodes) {
            const PictureNode& each = picture_.nodes[at(node)];
            int row = 1;
            if (each.ranks > 0 || each.type == NodeType::gpu)
                row = kRanks;
            else if (each.type == NodeType::nic)
                row = -1;
            else if (each.type == NodeType::cpu)
                row = 0;
            else if (each.type == NodeType::switch_node)
                row = kRanks + 1;
            else if (const auto found = depth.find(node); found != depth.end())
                row = found->second;
            rows[row].push_back(node);
        }
        block.base = static_cast<int>(rows.size()) - 1;
        block.rows.rows.resize(rows.size());
        int number = 0;
        for (auto& [row, nodes] : rows) {
            if (row == kRanks) {
                block.base = number;
                std::stable_sort(nodes.begin(), nodes.end(), [&](int a, int b) {
                    return picture_.nodes[at(a)].first_rank < picture_.nodes[at(b)].first_rank;
                });
            }
            for (const int node : nodes) {
                row_[at(node)] = number;
                item_[at(node)] = block.rows.add(number, node, picture_box_width(picture_.nodes[at(node)]));
            }
            ++number;
        }
    }

    // Tiers of the fabric by their distance from hosts; row 0 is the highest.
    void make_fabric() {
        std::vector<std::vector<int>> near(picture_.nodes.size());
        for (const PictureLine& line : picture_.lines) {
            near[at(line.from)].push_back(line.to);
            near[at(line.to)].push_back(line.from);
        }
        std::vector<int> tier(picture_.nodes.size(), -1);
        std::queue<int> open;
        for (std::size_t i = 0; i < tier.size(); ++i)
            if (block_[i] >= 0) tier[i] = 0, open.push(static_cast<int>(i));
        int highest = 0;
        while (!open.empty()) {
            const int node = open.front();
            open.pop();
            for (const int next : near[at(node)]) {
                if (tier[at(next)] >= 0) continue;
                tier[at(next)] = tier[at(node)] + 1;
                highest = std::max(highest, tier[at(next)]);
                open.push(next);
            }
        }
        for (std::size_t i = 0; i < tier.size(); ++i)
            if (tier[i] < 0) tier[i] = highest = std::max(highest, 1);
        fabric_.rows.resize(at(highest));
        for (std::size_t i = 0; i < tier.size(); ++i) {
            if (block_[i] >= 0) continue;
            row_[i] = highest - tier[i];
            item_[i] = fabric_.add(row_[i], static_cast<int>(i), picture_box_width(picture_.nodes[i]));
        }
    }

    Rows& rows_of(int block) { return block < 0 ? fabric_ : blocks_[at(block)].rows; }

    // From a node of a block up to the block's upper edge.
    std::vector<Place> way_up(int node) {
        const int block = block_[at(node)];
        std::vector<Place> way{{block, row_[at(node)], item_[at(node)]}};
        Rows& rows = rows_of(block);
        while (way.back().row > 0) {
            const int row = way.back().row - 1, bend = rows.add(row, -1, kBend);
            rows.join(bend, way.back().item);
            way.push_back({block, row, bend});
        }
        std::reverse(way.begin(), way.end());
        return way;
    }

    void chain_lines() {
        for (std::size_t i = 0; i < picture_.lines.size(); ++i) {
            int upper = picture_.lines[i].from, lower = picture_.lines[i].to;
            const bool same = block_[at(upper)] == block_[at(lower)];
            if (in_fabric(lower) && !in_fabric(upper)) std::swap(upper, lower);
            if (same && row_[at(upper)] > row_[at(lower)]) std::swap(upper, lower);
            std::vector<Place>& chain = chains_[i];
            if (!same && !in_fabric(upper)) {  // between two hosts: an arc above them
                chain = way_up(upper);
                std::reverse(chain.begin(), chain.end());
                turn_[i] = static_cast<int>(chain.size());
                const auto other = way_up(lower);
                chain.insert(chain.end(), other.begin(), other.end());
                continue;
            }
            chain.push_back({block_[at(upper)], row_[at(upper)], item_[at(upper)]});
            if (same && row_[at(upper)] == row_[at(lower)]) {
                chain.push_back({block_[at(lower)], row_[at(lower)], item_[at(lower)]});
                continue;
            }
            std::vector<Place> rest;
            if (same)
                rest = {{block_[at(lower)], row_[at(lower)], item_[at(lower)]}};
            else
                rest = way_up(lower);
            // Bends in the rows between.
            Rows& rows = rows_of(block_[at(upper)]);
            const int end = same ? row_[at(lower)] : static_cast<int>(rows.rows.size());
            for (int row = row_[at(upper)] + 1; row < end; ++row) {
                const int bend = rows.add(row, -1, kBend);
                rows.join(chain.back().item, bend);
                chain.push_back({block_[at(upper)], row, bend});
            }
            if (same) {
                rows.join(chain.back().item, rest.front().item);
            } else {
                fabric_below_[chain.back().item].push_back(rest.front());
            }
            chain.insert(chain.end(), rest.begin(), rest.end());
        }
    }

    bool has_arcs(int block, int row) const {
        for (std::size_t i = 0; i < chains_.size(); ++i)
            if (chains_[i].size() == 2 && chains_[i][0].block == block && chains_[i][1].block == block &&
                chains_[i][0].row == row && chains_[i][1].row == row)
                return true;
        return false;
    }

    void place_block(Block& block) {
        const int number = static_cast<int>(&block - blocks_.data());
        Rows& all = block.rows;
        double x = 0;
        const double gap = has_arcs(number, block.base) ? wide_gap_ : kGap;
        for (const int id : all.rows[at(block.base)]) {
            Item& item = all.items[at(id)];
            item.x = x + item.width / 2;
            x += item.width + gap;
        }
        for (int row = block.base - 1; row >= 0; --row)
            place_row(all, row, true, has_arcs(number, row) ? wide_gap_ : kGap);
        for (int row = block.base + 1; row < static_cast<int>(all.rows.size()); ++row)
            place_row(all, row, false, has_arcs(number, row) ? wide_gap_ : kGap);
        block.width = std::max(extent(all, block.left), svg_text_width(block.host, 12));
    }

    void place_fabric() {
        // What hangs below a fabric item in hosts pulls it, as what hangs below in the fabric does.
        for (int row = static_cast<int>(fabric_.rows.size()) - 1; row >= 0; --row) {
            std::vector<double> wanted;
            double last = kPictureMargin;
            for (const int id : fabric_.rows[at(row)]) {
                double sum = 0;
                std::size_t n = 0;
                for (const int other : fabric_.items[at(id)].below) sum += fabric_.items[at(other)].x, ++n;
                for (const Place& place : fabric_below_[id])
                    sum += blocks_[at(place.block)].rows.items[at(place.item)].x, ++n;
                last = n == 0 ? last : sum / static_cast<double>(n);
                wanted.push_back(last);
            }
            spread(fabric_, fabric_.rows[at(row)], wanted, has_arcs(-1, row) ? wide_gap_ : kGap);
        }
    }

    static double arc_height(double across) { return std::min(26 + 0.16 * across, 170.0); }

    // Room that the arcs of a row need.
    double arc_room(int block, int row) const {
        double room = 0;
        for (std::size_t i = 0; i < chains_.size(); ++i) {
            const auto& chain = chains_[i];
            if (chain.size() == 2 && chain[0].block == block && chain[1].block == block &&
                chain[0].row == row && chain[1].row == row && !adjacent(chain[0], chain[1]))
                room = std::max(room, arc_height(std::abs(item(chain[0]).x - item(chain[1]).x)));
        }
        return room;
    }

    const Item& item(const Place& place) const {
        return place.block < 0 ? fabric_.items[at(place.item)]
                               : blocks_[at(place.block)].rows.items[at(place.item)];
    }

    bool adjacent(const Place& a, const Place& b) const {
        const auto& row = (a.block < 0 ? fabric_ : blocks_[at(a.block)].rows).rows[at(a.row)];
        const auto first = std::find(row.begin(), row.end(), a.item),
                   second = std::find(row.begin(), row.end(), b.item);
        return std::abs(first - second) == 1;
    }

    static double row_gap(double width) { return std::clamp(44 + width / 22, 52.0, 220.0); }

    // Upper edges of all rows.
    void set_heights(PictureLayout& layout, double width) {
        double y = kPictureTop;
        for (std::size_t row = 0; row < fabric_.rows.size(); ++row) {
            y += arc_room(-1, static_cast<int>(row));
            fabric_y_.push_back(y);
            y += kPictureBoxHeight + row_gap(width);
        }
        double between = 0;
        for (const auto& [line, at_turn] : turn_) {
            const double across =
                std::abs(item(chains_[at(line)][at(at_turn - 1)]).x - item(chains_[at(line)][at(at_turn)]).x);
            between = std::max(between, arc_height(across));
        }
        y += between;
        double bottom = y;
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            const Block& block = blocks_[b];
            const bool framed = !block.host.empty();
            double at_row = y + (framed ? kHeader : 0);
            std::vector<double>& ys = block_y_.emplace_back();
            const int last = static_cast<int>(block.rows.rows.size()) - 1;
            for (int row = 0; row <= last; ++row) {
                const double room = arc_room(static_cast<int>(b), row);
                if (row < block.base) at_row += room;
                ys.push_back(at_row);
                at_row += kPictureBoxHeight + (row >= block.base ? room : 0) +
                          (row < last ? row_gap(block.width) : 0);
            }
            if (framed)
                layout.hosts.push_back(
                    {block.host, {{block.x - kFrame, y}, block.width + 2 * kFrame, at_row + kFrame - y}});
            bottom = std::max(bottom, at_row + (framed ? kFrame : 0));
        }
        layout.height = bottom + kPictureMargin;
    }

    double top(const Place& place) const {
        return place.block < 0 ? fabric_y_[at(place.row)] : block_y_[at(place.block)][at(place.row)];
    }

    PictureWay arc(const Place& a, const Place& b, bool above) const {
        const double y = top(a) + (above ? 0 : kPictureBoxHeight);
        const SvgPoint from{item(a).x, y}, to{item(b).x, top(b) + (above ? 0 : kPictureBoxHeight)};
        const double height = 2 * arc_height(std::abs(from.x - to.x)) - 8;
        return {{from, {(from.x + to.x) / 2, std::min(from.y, to.y) + (above ? -height : height)}, to}, true};
    }

    PictureWay way(std::size_t line) const {
        const std::vector<Place>& chain = chains_[line];
        if (chain.size() == 2 && chain[0].block == chain[1].block && chain[0].row == chain[1].row) {
            const bool above = chain[0].block < 0 || chain[0].row < blocks_[at(chain[0].block)].base;
            if (!adjacent(chain[0], chain[1])) return arc(chain[0], chain[1], above);
            const bool right = item(chain[0]).x < item(chain[1]).x;
            const double y = top(chain[0]) + kPictureBoxHeight / 2;
            const double side = right ? 0.5 : -0.5;
            return {{{item(chain[0]).x + side * item(chain[0]).width, y},
                     {item(chain[1]).x - side * item(chain[1]).width, y}},
                    false};
        }
        if (const auto turn = turn_.find(static_cast<int>(line)); turn != turn_.end() && chain.size() == 2)
            return arc(chain[0], chain[1], true);
        std::vector<SvgPoint> points;
        const auto turn = turn_.find(static_cast<int>(line));
        for (std::size_t i = 0; i < chain.size(); ++i) {
            const bool up = turn != turn_.end() && static_cast<int>(i) < turn->second;
            const SvgPoint high{item(chain[i]).x, top(chain[i])}, low{high.x, high.y + kPictureBoxHeight};
            const bool first = i == 0, last = i + 1 == chain.size();
            if (!(first && !up)) points.push_back(up ? low : high);
            if (first && up) points.back() = high;
            if (first && !up) points.push_back(low);
            if (!first && !last) points.push_back(up ? high : low);
            if (turn != turn_.end() && static_cast<int>(i) + 1 == turn->second) {
                const double peak = high.y - arc_height(std::abs(high.x - item(chain[i + 1]).x)) / 2;
                points.push_back({high.x, peak});
                points.push_back({item(chain[i + 1]).x, peak});
            }
        }
        return {points, false};
    }

    PictureLayout draw() {
        PictureLayout layout;
        double left = 0, low = 0;
        const double fabric_width = extent(fabric_, left);
        low = fabric_.items.empty() ? kPictureMargin : std::min(left, kPictureMargin);
        // The fabric may reach further left than the hosts.
        const double shift = kPictureMargin - low;
        for (Item& each : fabric_.items) each.x += shift;
        double right = left + shift + fabric_width;
        for (Block& block : blocks_) {
            for (Item& each : block.rows.items) each.x += shift;
            block.x += shift;
            right = std::max(right, block.x + block.width + kFrame);
        }
        layout.width = right + kPictureMargin;
        set_heights(layout, layout.width);
        for (std::size_t i = 0; i < picture_.nodes.size(); ++i) {
            const Place place{block_[i], row_[i], item_[i]};
            const Item& each = item(place);
            layout.boxes.push_back({{each.x - each.width / 2, top(place)}, each.width, kPictureBoxHeight});
        }
        for (std::size_t i = 0; i < chains_.size(); ++i) layout.ways.push_back(way(i));
        return layout;
    }

    const Picture& picture_;
    std::vector<Block> blocks_;
    std::vector<int> block_, row_, item_;  // of each node
    Rows fabric_;
    std::vector<std::vector<Place>> chains_;          // of each line, from the top
    std::map<int, int> turn_;                         // lines between hosts: where they start downwards
    std::map<int, std::vector<Place>> fabric_below_;  // fabric items: what they join in hosts
    const double wide_gap_;                           // between boxes of a row that are linked to each other
    std::vector<double> fabric_y_;
    std::vector<std::vector<double>> block_y_;
};

}  // namespace

double picture_box_width(const PictureNode& node) {
    const double name = svg_text_width(node.name, 11);
    const double second = svg_text_width(node.note.empty() ? ranks_of(node) : node.note, 10);
    return std::max(44.0, std::max(name, second) + 12);
}

PictureLayout lay_out(const Picture& picture) {
    PictureLayout layout;
    if (lay_out_ranks(picture, layout)) return layout;
    return RowLayout(picture).run();
}

}  // namespace baton::topologies
