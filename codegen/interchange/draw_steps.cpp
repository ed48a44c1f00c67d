// Pictures of the steps of a schedule.
#include <baton/codegen/interchange/step_diagram.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/svg.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace baton::codegen {
namespace {

// Neighbors in the list differ in hue and in lightness.
constexpr std::array<const char*, 12> kColors{"#0072b2", "#d55e00", "#009e73", "#cc3399",
                                              "#b08000", "#56b4e9", "#7a3fa0", "#66a61e",
                                              "#8c510a", "#e31a1c", "#3f4f8f", "#666666"};
constexpr const char* kMixed = "#111111";

// Colors of values: one a shard, a source of all_to_all or a chunk; contiguous groups where there are more
// than colors.
class Palette {
public:
    Palette(const ir::Collective& collective, std::int64_t values) : collective_(collective) {
        const std::int64_t chunks = std::max<std::int64_t>(collective.chunks, 1);
        if (collective.kind == ir::CollectiveKind::all_to_all)
            per_item_ = chunks * collective.group_size();
        else if (ir::has_shards(collective.kind))
            per_item_ = chunks;
        if (values <= per_item_) per_item_ = 1;  // one shard: its chunks
        items_ = std::max<std::int64_t>(1, (values + per_item_ - 1) / per_item_);
        groups_ = std::min<std::int64_t>(items_, std::int64_t{kColors.size()});
    }

    std::int64_t groups() const { return groups_; }
    std::int64_t group(std::int64_t value) const {
        // Sizes that differ by one at most; no product can overflow.
        const std::int64_t item = value / per_item_, size = items_ / groups_, longer = items_ % groups_;
        const std::int64_t in_longer = longer * (size + 1);
        return item < in_longer ? item / (size + 1) : longer + (item - in_longer) / size;
    }
    const char* color(std::int64_t group) const { return kColors[at(group) % kColors.size()]; }

    std::string name(std::int64_t value) const {
        const std::int64_t c = std::max<std::int64_t>(collective_.chunks, 1);
        if (!ir::has_shards(collective_.kind)) return std::to_string(value);
        const std::string chunk = c > 1 ? fmt::format(".{}", value % c) : "";
        if (collective_.kind != ir::CollectiveKind::all_to_all) return std::to_string(value / c) + chunk;
        const std::int64_t n = collective_.group_size();
        return fmt::format("{}>{}{}", value / c / n, value / c % n, chunk);
    }

    /// "0-3, 8": runs of an ascending list.
    std::string names(const std::vector<std::int64_t>& values, std::size_t most) const {
        std::string text;
        for (std::size_t i = 0; i < values.size();) {
            std::size_t end = i + 1;
            while (end < values.size() && values[end] == values[end - 1] + 1) ++end;
            std::string run = name(values[i]);
            if (end - i > 1) run += (end - i == 2 ? ", " : "-") + name(values[end - 1]);
            if (!text.empty() && text.size() + run.size() > most) return text + ", ...";
            text += (text.empty() ? "" : ", ") + run;
            i = end;
        }
        return text;
    }

    /// What the entry of a group in the legend says.
    std::string legend(std::int64_t which) const {
        const std::int64_t size = items_ / groups_, longer = items_ % groups_;
        const std::int64_t first = which * size + std::min(which, longer);
        const std::int64_t last = first + size + (which < longer ? 1 : 0) - 1;
        return first == last ? std::to_string(first) : fmt::format("{} to {}", first, last);
    }
    /// What a color stands for.
    const char* item() const {
        if (per_item_ == 1 && collective_.chunks > 1) return "chunk";
        if (collective_.kind == ir::CollectiveKind::all_to_all) return "source";
        return ir::has_shards(collective_.kind) ? "shard" : "chunk";
    }
    const char* what() const {
        if (collective_.kind == ir::CollectiveKind::all_to_all)
            return collective_.chunks > 1 ? "source>destination.chunk" : "source>destination";
        if (ir::has_shards(collective_.kind)) return collective_.chunks > 1 ? "shard.chunk" : "shard";
        return "chunk";
    }

private:
    const ir::Collective& collective_;
    std::int64_t per_item_ = 1, items_ = 1, groups_ = 1;
};

// The first steps that hold no more arrows than fit.
std::int64_t drawn_steps(const StepDiagram& diagram) {
    if (diagram.arrows.size() <= kMostDrawnArrows) return diagram.steps;
    return std::max<std::int64_t>(1, diagram.arrows[kMostDrawnArrows].step);
}

class StepPicture {
public:
    StepPicture(const ir::Program& program, const StepDiagram& diagram)
        : program_(program),
          diagram_(diagram),
          palette_(program.collective, diagram.values),
          ranks_(static_cast<int>(program.ranks.size())),
          steps_(drawn_steps(diagram)) {
        for (const StepArrow& arrow : diagram.arrows) arrows_ += arrow.step < steps_ ? 1 : 0;
        labels_ = arrows_ <= 200 && static_cast<std::int64_t>(arrows_) <= 2 * ranks_ * steps_;
        row_ = ranks_ <= 4 ? 70 : ranks_ <= 8 ? 56 : ranks_ <= 16 ? 40 : ranks_ <= 32 ? 28 : 18;
        // Steep arrows need room to be told apart.
        column_ = steps_ > 24 ? 76 : 120;
        if (ranks_ * row_ > 500) column_ += 60;
    }

    std::string draw() {
        std::string words = ir::describe(program_.collective);
        words +=
            fmt::format("; one pass: {} step{}, {} arrow{}", diagram_.steps, diagram_.steps == 1 ? "" : "s",
                        diagram_.arrows.size(), diagram_.arrows.size() == 1 ? "" : "s");
        say({kMargin, 26}, program_.name, 16, true);
        say({kMargin, 44}, words, 11, false);
        if (steps_ < diagram_.steps)
            say({kMargin, 60},
                fmt::format("steps 1 to {} are drawn, {} are not", steps_, diagram_.steps - steps_), 11,
                true);
        const double bottom = draw_frame();
        for (const StepArrow& arrow : diagram_.arrows)
            if (arrow.step < steps_) draw_arrow(arrow);
        const double below = draw_legend(bottom);
        const double width = kLeft + static_cast<double>(steps_) * column_ + kMargin;
        return svg_.document(std::max(width, least_width_), below, program_.name);
    }

private:
    static constexpr double kMargin = 24, kLeft = 90, kTop = 96, kInset = 10;

    void say(SvgPoint place, const std::string& words, double size, bool bold) {
        svg_.text(place, words, size, SvgAnchor::start, "#222222", bold);
        least_width_ = std::max(least_width_, place.x + svg_text_width(words, size) + kMargin);
    }
    double x(std::int64_t step) const { return kLeft + static_cast<double>(step) * column_; }
    double y(int rank) const { return kTop + row_ / 2 + rank * row_; }

    double draw_frame() {
        const double bottom = kTop + ranks_ * row_, right = x(steps_);
        for (std::int64_t step = 0; step < steps_; ++step) {
            if (step % 2 == 0)
                svg_.rect({x(step), kTop - 6}, column_, bottom - kTop + 6,
                          {.fill = "#f4f6f8", .kind = "column"});
            svg_.text({x(step) + column_ / 2, kTop - 12}, fmt::format("step {}", step + 1), 11,
                      SvgAnchor::middle, "#555555");
        }
        for (int rank = 0; rank < ranks_; ++rank) {
            svg_.line({kLeft, y(rank)}, {right, y(rank)}, {.stroke = "#b8b8b8", .width = 1, .kind = "rank"});
            svg_.text({kLeft - 10, y(rank) + 4}, fmt::format("rank {}", rank), std::min(12.0, row_ - 6),
                      SvgAnchor::end);
        }
        return bottom;
    }

    void draw_arrow(const StepArrow& arrow) {
        std::set<std::int64_t> groups;
        for (const std::int64_t value : arrow.values) groups.insert(palette_.group(value));
        const std::string words = fmt::format(
            "step {}: rank {} to rank {}, {} {}{}", arrow.step + 1, arrow.from, arrow.to, palette_.what(),
            palette_.names(arrow.values, 120), arrow.reduces ? ", combined there" : "");
        std::vector<const char*> colors;
        for (const std::int64_t group : groups) colors.push_back(palette_.color(group));
        // Several colors stand side by side; more than four would hide each other.
        if (colors.size() > 4 || colors.empty()) colors = {kMixed};
        const SvgPoint from{x(arrow.step) + kInset, y(arrow.from)};
        const SvgPoint to{x(arrow.step + 1) - kInset, y(arrow.to)};
        const double length = std::hypot(to.x - from.x, to.y - from.y);
        const double dx = -(to.y - from.y) / length, dy = (to.x - from.x) / length;
        for (std::size_t i = 0; i < colors.size(); ++i) {
            const double aside =
                2.6 * (static_cast<double>(i) - (static_cast<double>(colors.size()) - 1) / 2);
            const SvgPoint a{from.x + dx * aside, from.y + dy * aside},
                b{to.x + dx * aside, to.y + dy * aside};
            const bool first = i == 0;
            svg_.line(a, b,
                      {.stroke = colors[i],
                       .width = 1.8,
                       .arrow_end = true,
                       .title = words,
                       .kind = first ? "arrow" : "beside"});
        }
        if (arrow.reduces)
            svg_.circle(to, 4.5, {.stroke = colors.front(), .width = 1.4, .title = words, .kind = "reduces"});
        if (labels_) {
            // Near the sender, where arrows that cross have not met yet.
            const double share = std::min(0.3, 26 / length);
            svg_.text({from.x + share * (to.x - from.x), from.y + share * (to.y - from.y) + 3},
                      palette_.names(arrow.values, 12), 9, SvgAnchor::middle, colors.front(), false, true);
        }
    }

    double draw_legend(double bottom) {
        double line = bottom + 28;
        say({kMargin, line}, fmt::format("colors: {}", palette_.item()), 11, true);
        line += 10;
        std::set<std::int64_t> used;
        bool reduces = false, mixed = false;
        for (const StepArrow& arrow : diagram_.arrows) {
            if (arrow.step >= steps_) continue;
            std::set<std::int64_t> groups;
            for (const std::int64_t value : arrow.values) groups.insert(palette_.group(value));
            used.insert(groups.begin(), groups.end());
            reduces = reduces || arrow.reduces;
            mixed = mixed || groups.size() > 4;
        }
        double across = kMargin;
        const double entry = legend_width();
        for (const std::int64_t group : used) {
            entry_line({across, line + 8}, palette_.color(group), palette_.legend(group), false);
            across += entry;
            if (across + entry > std::max(700.0, x(steps_))) across = kMargin, line += 18;
        }
        if (across > kMargin) line += 18;
        if (mixed)
            entry_line({kMargin, line + 8}, kMixed, "more than four of these colors", false), line += 18;
        if (reduces)
            entry_line({kMargin, line + 8}, "#222222", "combined with what stands at the receiver", true),
                line += 18;
        say({kMargin, line + 12},
            "a message leaves in the first step in which what it needs is there, and arrives at the end of "
            "it",
            10, false);
        return line + 30;
    }

    double legend_width() const {
        double widest = 0;
        for (std::int64_t group = 0; group < palette_.groups(); ++group)
            widest = std::max(widest, svg_text_width(palette_.legend(group), 11));
        return widest + 70;
    }

    void entry_line(SvgPoint place, const char* color, const std::string& words, bool ring) {
        const SvgPoint end{place.x + 30, place.y};
        svg_.line(place, end, {.stroke = color, .width = 1.8, .arrow_end = true, .kind = "legend"});
        if (ring) svg_.circle(end, 4.5, {.stroke = color, .width = 1.4, .kind = "legend"});
        say({place.x + 40, place.y + 4}, words, 11, false);
    }

    const ir::Program& program_;
    const StepDiagram& diagram_;
    const Palette palette_;
    const int ranks_;
    const std::int64_t steps_;
    std::size_t arrows_ = 0;
    bool labels_ = true;
    double row_ = 40, column_ = 100, least_width_ = 0;
    Svg svg_;
};

std::string dot_quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    return out + "\"";
}

}  // namespace

std::string write_step_svg(const ir::Program& program) {
    if (program.ranks.size() > kMostDrawnRanks)
        throw input_error(fmt::format("{} ranks are too many for a picture of steps", program.ranks.size()),
                          program.name,
                          fmt::format("draw a case of {} ranks at most, or write DOT, which has no limit",
                                      kMostDrawnRanks));
    return StepPicture(program, step_diagram(program)).draw();
}

std::string write_step_dot(const ir::Program& program) {
    const StepDiagram diagram = step_diagram(program);
    const Palette palette(program.collective, diagram.values);
    std::string text = "digraph " + dot_quoted(program.name) +
                       " {\n  rankdir=LR;\n  node [shape=box, fontname=Helvetica, fontsize=10];\n"
                       "  edge [fontname=Helvetica, fontsize=8];\n";
    // Where each rank takes part: it sends at a step's start and receives at its end.
    std::vector<std::set<int>> columns(static_cast<std::size_t>(diagram.steps) + 1);
    for (const StepArrow& arrow : diagram.arrows) {
        columns[at(arrow.step)].insert(arrow.from);
        columns[at(arrow.step + 1)].insert(arrow.to);
    }
    std::vector<std::int64_t> last(program.ranks.size(), -1);
    for (std::size_t step = 0; step < columns.size(); ++step) {
        text += "  {\n    rank=same;\n";
        for (const int rank : columns[step])
            text += fmt::format("    s{}r{} [label=\"rank {}\"];\n", step, rank, rank);
        text += "  }\n";
        for (const int rank : columns[step]) {
            if (last[at(rank)] >= 0)
                text += fmt::format("  s{}r{} -> s{}r{} [style=dotted, arrowhead=none];\n", last[at(rank)],
                                    rank, step, rank);
            last[at(rank)] = static_cast<std::int64_t>(step);
        }
    }
    for (const StepArrow& arrow : diagram.arrows) {
        std::set<std::int64_t> groups;
        for (const std::int64_t value : arrow.values) groups.insert(palette.group(value));
        text += fmt::format("  s{}r{} -> s{}r{} [label={}, color=\"{}\"{}];\n", arrow.step, arrow.from,
                            arrow.step + 1, arrow.to, dot_quoted(palette.names(arrow.values, 40)),
                            groups.size() == 1 ? palette.color(*groups.begin()) : kMixed,
                            arrow.reduces ? ", arrowhead=odotnormal" : "");
    }
    return text + "}\n";
}

}  // namespace baton::codegen
