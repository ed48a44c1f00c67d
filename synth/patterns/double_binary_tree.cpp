// Two binary trees, each with half of the data; a rank is an inner node of at most one of them, so that it
// sends and receives the buffer once per phase. Sanders, Speck and Traeff, "Two-tree algorithms for full
// bandwidth broadcast, reduction and scan", 2009.
#include <baton/synth/patterns/family.hpp>

#include <fmt/format.h>
#include <array>
#include <functional>

namespace baton::synth::patterns {
namespace {

using enum ir::Buffer;
using Kind = ir::CollectiveKind;

/// A tree over nodes 0..N-1 in order: node n with lowest bit d has the parent (n xor d) or 2d, or n xor d
/// when that is beyond the end; 0 is the root with one child. Odd nodes are leaves, even ones inner nodes.
/// The second tree mirrors or shifts the nodes 1..N-1, which turns even into odd.
struct Tree {
    int number;
    std::string rank(const std::string& node) const {
        if (number == 0) return fmt::format("(root + {}) mod N", node);
        return fmt::format(
            "(root + select({0} == 0, 0, select(N mod 2 == 1, N - {0}, 1 + {0} mod (N-1)))) mod N", node);
    }
};

const std::array<Tree, 2> kTrees{Tree{0}, Tree{1}};

/// The half of the buffer that a tree carries.
std::string half(const Blocks& blocks, const Tree& tree) { return blocks.at(tree.number == 0 ? "0" : "1"); }
std::string length(const Blocks& blocks, const Tree& tree) {
    return blocks.run(tree.number == 0 ? "0" : "1", "1");
}

/// `edge` for all edges of both trees between the level of lowest bit d (the loop's) and their parents; `r`
/// is the child and `up` the parent.
void edges_of_level(TemplateWriter& w, const std::function<void(const Tree&)>& edge) {
    w.let("join", "(r xor d) or (2*d)");
    w.let("up", "select(join < N, join, r xor d)");
    for (const Tree& tree : kTrees) w.when("r mod (2*d) == d", [&] { edge(tree); });
}

void outwards(TemplateWriter& w, const Blocks& blocks) {
    w.when("N > 1", [&] {
        w.loop_down("k", "ilog2(N-1)", "-1", [&] {
            w.let("d", "1 << k");
            edges_of_level(w, [&](const Tree& tree) {
                w.send({tree.rank("up"), output, half(blocks, tree)},
                       {tree.rank("r"), output, half(blocks, tree)}, length(blocks, tree));
            });
        });
    });
}

void broadcast(TemplateWriter& w, const Blocks& blocks) {
    w.copy({"root", input, "0"}, {"root", output, "0"}, "C");
    outwards(w, blocks);
}

void reduce(TemplateWriter& w, const Blocks& blocks) {
    w.copy({"root", input, "0"}, {"root", output, "0"}, "C");
    for (const Tree& tree : kTrees)
        w.when("r > 0 and r mod 2 == 0", [&] {
            w.copy({tree.rank("r"), input, half(blocks, tree)}, {tree.rank("r"), scratch, half(blocks, tree)},
                   length(blocks, tree));
        });
    w.loop_doubling("d", "1", "N", [&] {
        edges_of_level(w, [&](const Tree& tree) {
            const auto send = [&](ir::Buffer from) {
                w.when(
                    "up == 0",
                    [&] {
                        w.send_reduce({tree.rank("r"), from, half(blocks, tree)},
                                      {"root", output, half(blocks, tree)}, length(blocks, tree));
                    },
                    [&] {
                        w.send_reduce({tree.rank("r"), from, half(blocks, tree)},
                                      {tree.rank("up"), scratch, half(blocks, tree)}, length(blocks, tree));
                    });
            };
            w.when(
                "d == 1", [&] { send(input); }, [&] { send(scratch); });
        });
    });
}

void all_reduce(TemplateWriter& w, const Blocks& blocks) {
    w.copy({"r", input, "0"}, {"r", output, "0"}, "C");
    w.loop_doubling("d", "1", "N", [&] {
        edges_of_level(w, [&](const Tree& tree) {
            w.send_reduce({tree.rank("r"), output, half(blocks, tree)},
                          {tree.rank("up"), output, half(blocks, tree)}, length(blocks, tree));
        });
    });
    outwards(w, blocks);
}

}  // namespace

Family double_binary_tree() {
    Family family;
    family.info = {"double_binary_tree", "two pipelined binary trees with half of the data each"};
    family.entries = {
        {Kind::broadcast, "2", broadcast}, {Kind::reduce, "2", reduce}, {Kind::all_reduce, "2", all_reduce}};
    return family;
}

}  // namespace baton::synth::patterns
