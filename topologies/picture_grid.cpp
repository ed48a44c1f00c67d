// Layouts of machines of ranks alone: grids and circles.
#include <baton/topologies/picture_rows.hpp>

#include <baton/base/index.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

namespace baton::topologies {
namespace {

// Columns, rows and planes; rank = (plane * rows + row) * columns + column.
using Grid = std::array<int, 3>;

std::array<int, 3> place(const Grid& grid, int rank) {
    return {rank % grid[0], rank / grid[0] % grid[1], rank / (grid[0] * grid[1])};
}

// The dimension along which a and b are neighbors, with or without wrap-around; nothing when they are not.
std::optional<int> along(const Grid& grid, int a, int b) {
    const auto p = place(grid, a), q = place(grid, b);
    std::optional<int> found;
    for (int d = 0; d < 3; ++d) {
        const int far = std::abs(p[at(d)] - q[at(d)]);
        if (far == 0) continue;
        if (found || (far != 1 && far != grid[at(d)] - 1)) return {};
        found = d;
    }
    return found;
}

bool is_grid(const Picture& picture, const std::vector<int>& ranks, const Grid& grid) {
    std::array<std::int64_t, 3> lines{};
    for (const PictureLine& line : picture.lines) {
        const auto d = along(grid, ranks[at(line.from)], ranks[at(line.to)]);
        if (!d) return false;
        ++lines[at(*d)];
    }
    // A mesh has n - 1 lines for every n ranks along a dimension; fewer would be no grid.
    const std::int64_t all = std::int64_t{grid[0]} * grid[1] * grid[2];
    for (int d = 0; d < 3; ++d)
        if (lines[at(d)] < all / grid[at(d)] * (grid[at(d)] - 1)) return false;
    return true;
}

std::optional<Grid> grid_of(const Picture& picture, const std::vector<int>& ranks) {
    const int n = static_cast<int>(ranks.size());
    std::optional<Grid> best;
    // Fewer planes first, and the squarest of those.
    for (int planes = 1; planes <= n / 4; ++planes) {
        if (n % planes != 0) continue;
        for (int rows = 2; rows <= n / planes / 2; ++rows) {
            const int columns = n / planes / rows;
            if (n % (planes * rows) != 0 ||
                (best && std::abs((*best)[0] - (*best)[1]) <= std::abs(columns - rows)))
                continue;
            if (is_grid(picture, ranks, {columns, rows, planes})) best = Grid{columns, rows, planes};
        }
        if (best) return best;
    }
    return {};
}

void lay_out_grid(const Picture& picture, const std::vector<int>& ranks, const Grid& grid,
                  PictureLayout& layout) {
    const double box = grid[2] > 1 ? 30 : 54, high = grid[2] > 1 ? 22 : 32;
    // Planes stand behind each other, each a little to the right and higher.
    const double aside = 40, up = 30;
    const double across = grid[2] > 1 ? aside * grid[2] + box + 24 : 130;
    const double down = grid[2] > 1 ? up * grid[2] + high + 24 : 100;
    const double left = kPictureMargin + 45, top = kPictureTop + 45 + up * (grid[2] - 1);
    for (const int rank : ranks) {
        const auto p = place(grid, rank);
        const SvgPoint corner{left + p[0] * across + p[2] * aside, top + p[1] * down - p[2] * up};
        layout.boxes.push_back({corner, box, high});
    }
    for (const PictureLine& line : picture.lines) {
        const int a = ranks[at(line.from)], b = ranks[at(line.to)];
        const int d = along(grid, a, b).value_or(0);
        const SvgPoint from = layout.boxes[at(line.from)].center(), to = layout.boxes[at(line.to)].center();
        if (std::abs(place(grid, a)[at(d)] - place(grid, b)[at(d)]) == 1) {
            layout.ways.push_back({{from, to}, false});
            continue;
        }
        // Around the ranks between them: above the row, left of the column.
        const SvgPoint middle{(from.x + to.x) / 2, (from.y + to.y) / 2};
        const double out = grid[2] > 1 ? 40 : 76;
        const SvgPoint control =
            d == 1 ? SvgPoint{middle.x - out, middle.y} : SvgPoint{middle.x, middle.y - out};
        layout.ways.push_back({{from, control, to}, true});
    }
    layout.width = left + (grid[0] - 1) * across + (grid[2] - 1) * aside + box + kPictureMargin;
    layout.height = top + (grid[1] - 1) * down + high + kPictureMargin;
}

void lay_out_circle(const Picture& picture, const std::vector<int>& ranks, PictureLayout& layout) {
    const int n = static_cast<int>(ranks.size());
    double widest = 0;
    for (const PictureNode& node : picture.nodes) widest = std::max(widest, picture_box_width(node));
    const double radius = n < 2 ? 0 : std::max(110.0, n * (widest + 26) / (2 * std::numbers::pi));
    const SvgPoint center{kPictureMargin + radius + widest / 2,
                          kPictureTop + 20 + radius + kPictureBoxHeight / 2};
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        const double angle = 2 * std::numbers::pi * ranks[i] / std::max(n, 1) - std::numbers::pi / 2;
        const double width = picture_box_width(picture.nodes[i]);
        layout.boxes.push_back({{center.x + radius * std::cos(angle) - width / 2,
                                 center.y + radius * std::sin(angle) - kPictureBoxHeight / 2},
                                width,
                                kPictureBoxHeight});
    }
    for (const PictureLine& line : picture.lines)
        layout.ways.push_back(
            {{layout.boxes[at(line.from)].center(), layout.boxes[at(line.to)].center()}, false});
    layout.width = 2 * center.x;
    layout.height = center.y + radius + kPictureBoxHeight / 2 + kPictureMargin;
}

}  // namespace

bool lay_out_ranks(const Picture& picture, PictureLayout& layout) {
    if (picture.nodes.empty()) return false;
    std::vector<int> ranks;
    for (const PictureNode& node : picture.nodes) {
        if (node.ranks != 1 || node.host != picture.nodes.front().host) return false;
        ranks.push_back(node.first_rank);
    }
    for (const int rank : ranks)
        if (rank >= static_cast<int>(ranks.size())) return false;
    if (const auto grid = grid_of(picture, ranks))
        lay_out_grid(picture, ranks, *grid, layout);
    else
        lay_out_circle(picture, ranks, layout);
    if (const std::string& host = picture.nodes.front().host; !host.empty())
        layout.hosts.push_back(
            {host, {{8, kPictureTop - 6}, layout.width - 16, layout.height - kPictureTop - 2}});
    return true;
}

}  // namespace baton::topologies
