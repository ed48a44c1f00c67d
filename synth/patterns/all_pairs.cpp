// All pairs: every rank sends to every other at once; one shot with whole buffers, or two shots with a block
// each.
#include <baton/synth/patterns/family.hpp>

#include <fmt/format.h>

namespace baton::synth::patterns {
namespace {

using enum ir::Buffer;
using Kind = ir::CollectiveKind;

/// Folds the values that stand in scratch, the one of position q at index q*`length`, in the order of
/// positions: the same order on every rank.
void fold(TemplateWriter& w, const std::string& index, const std::string& length) {
    w.copy({"r", scratch, "0"}, {"r", output, index}, length);
    w.loop("q", "1", "N", [&] {
        w.reduce({"r", scratch, fmt::format("q*{}", length)}, {"r", output, index}, length);
    });
}

void all_reduce(TemplateWriter& w, const Blocks&) {
    w.par([&] {
        w.loop("d", "1", "N", [&] { w.send({"r", input, "0"}, {"(r+d) mod N", scratch, "r*C"}, "C"); });
    });
    w.copy({"r", input, "0"}, {"r", scratch, "r*C"}, "C");
    fold(w, "0", "C");
}

void reduce_scatter(TemplateWriter& w, const Blocks&) {
    w.par([&] {
        w.loop("d", "1", "N", [&] {
            w.send({"r", input, "((r+d) mod N)*C"}, {"(r+d) mod N", scratch, "r*C"}, "C");
        });
    });
    w.copy({"r", input, "r*C"}, {"r", scratch, "r*C"}, "C");
    fold(w, "0", "C");
}

void all_gather(TemplateWriter& w, const Blocks&) {
    w.copy({"r", input, "0"}, {"r", output, "r*C"}, "C");
    w.loop("d", "1", "N", [&] { w.send({"r", input, "0"}, {"(r+d) mod N", output, "r*C"}, "C"); });
}

/// Block b of every rank is folded at rank b, into the output when `to_output`, else in place of its own
/// scratch. Blocks of other ranks stand in scratch at q*L, L being the length of the longest block.
void reduce_blocks(TemplateWriter& w, const Blocks& blocks, ir::Buffer to) {
    w.let("L", "(C + N - 1)/N");
    w.par([&] {
        w.loop("d", "1", "N", [&] {
            w.let("b", "(r+d) mod N");
            w.send({"r", input, blocks.at("b")}, {"b", scratch, "r*L"}, blocks.run("b", "1"));
        });
    });
    w.let("own", blocks.at("r"));
    w.let("length", blocks.run("r", "1"));
    w.copy({"r", input, "own"}, {"r", scratch, "r*L"}, "length");
    const std::string index = to == output ? "own" : "N*L";
    w.copy({"r", scratch, "0"}, {"r", to, index}, "length");
    w.loop("q", "1", "N", [&] { w.reduce({"r", scratch, "q*L"}, {"r", to, index}, "length"); });
}

void two_shot_all_reduce(TemplateWriter& w, const Blocks& blocks) {
    reduce_blocks(w, blocks, output);
    w.loop("d", "1", "N", [&] {
        w.send({"r", output, blocks.at("r")}, {"(r+d) mod N", output, blocks.at("r")}, blocks.run("r", "1"));
    });
}

void two_shot_reduce(TemplateWriter& w, const Blocks& blocks) {
    reduce_blocks(w, blocks, scratch);
    w.send({"r", scratch, "N*L"}, {"root", output, blocks.at("r")}, blocks.run("r", "1"));
}

// Scatter of the blocks, then everyone tells everyone.
void two_shot_broadcast(TemplateWriter& w, const Blocks& blocks) {
    w.copy({"root", input, "0"}, {"root", output, "0"}, "C");
    w.loop("d", "1", "N", [&] {
        w.let("b", "(root+d) mod N");
        w.send({"root", input, blocks.at("b")}, {"b", output, blocks.at("b")}, blocks.run("b", "1"));
    });
    w.loop("d", "1", "N", [&] {
        w.let("to", "(r+d) mod N");
        w.when("to != root", [&] {
            w.send({"r", output, blocks.at("r")}, {"to", output, blocks.at("r")}, blocks.run("r", "1"));
        });
    });
}

}  // namespace

Family all_pairs() {
    Family family;
    family.info = {"all_pairs", "one shot: every rank sends its contribution to every other"};
    family.entries = {{Kind::all_gather, "1", all_gather},
                      {Kind::reduce_scatter, "1", reduce_scatter},
                      {Kind::all_reduce, "1", all_reduce}};
    return family;
}

Family all_pairs_two_shot() {
    Family family;
    family.info = {"all_pairs_two_shot",
                   "two shots: a block to each owner, then from each owner to all; least volume"};
    family.entries = {{Kind::broadcast, "N", two_shot_broadcast},
                      {Kind::reduce, "N", two_shot_reduce},
                      {Kind::all_reduce, "N", two_shot_all_reduce}};
    return family;
}

}  // namespace baton::synth::patterns
