// Bruck: ceil(log2 N) rounds for any N. Jehoshua Bruck et al., "Efficient algorithms for all-to-all
// communications in multiport message-passing systems", 1997. Its all-gather reversed is a reduce-scatter of
// as many rounds and least volume: Jesper Traeff, "Optimal, non-pipelined reduce-scatter and allreduce
// algorithms", 2024.
#include <baton/synth/patterns/family.hpp>

#include <fmt/format.h>

namespace baton::synth::patterns {
namespace {

using enum ir::Buffer;
using Kind = ir::CollectiveKind;

/// In the round of distance d, r passes its first min(d, N-d) blocks (r, r+1, ... around the end) to r-d, in
/// place.
void spread_blocks(TemplateWriter& w, const Blocks& blocks) {
    w.loop_doubling("d", "1", "N", [&] {
        w.wrapped(ir::StepOp::send, "r", output, "(r-d) mod N", output, blocks, "r", "min(d, N-d)");
    });
}

/// The same reversed: r adds what it has of blocks r+d, r+d+1, ... into the sums of r+d; in the end block r
/// is at r.
void collect_blocks(TemplateWriter& w, const Blocks& blocks, ir::Buffer sums) {
    w.when("N > 1", [&] {
        w.loop_down("k", "ilog2(N-1)", "-1", [&] {
            w.let("d", "1 << k");
            w.let("to", "(r+d) mod N");
            w.wrapped(ir::StepOp::send_reduce, "r", sums, "to", sums, blocks, "to", "min(d, N-d)");
        });
    });
}

void all_gather(TemplateWriter& w, const Blocks& blocks) {
    w.copy({"r", input, "0"}, {"r", output, "r*C"}, "C");
    spread_blocks(w, blocks);
}

void reduce_scatter(TemplateWriter& w, const Blocks& blocks) {
    w.copy({"r", input, "0"}, {"r", scratch, "0"}, "N*C");
    collect_blocks(w, blocks, scratch);
    w.copy({"r", scratch, "r*C"}, {"r", output, "0"}, "C");
}

void all_reduce(TemplateWriter& w, const Blocks& blocks) {
    w.copy({"r", input, "0"}, {"r", output, "0"}, "C");
    collect_blocks(w, blocks, output);
    spread_blocks(w, blocks);
}

// The block for the rank j ahead travels the bits of j, lowest first: in the round of bit d all blocks whose
// j has the bit go d ahead in one message. Before that a block stands where the round of the next lower bit
// of its j left it, at its place among that round's blocks, or still in the input. Round k of K uses scratch
// area 2k for what it sends and 2k+1 for what it receives, H blocks each.
void all_to_all(TemplateWriter& w, const Blocks&) {
    w.let("H", "(N+1)/2");
    w.copy({"r", input, "r*C"}, {"r", output, "r*C"}, "C");
    w.when("N > 1", [&] {
        w.loop("k", "0", "ilog2(N-1)+1", [&] {
            w.let("d", "1 << k");
            w.loop("j", "d", "N", [&] {
                w.when("(j and d) != 0", [&] {
                    w.let("at", "j/(2*d)*d + j mod d");
                    w.when(
                        "j mod d == 0",
                        [&] {
                            w.copy({"r", input, "((r+j) mod N)*C"}, {"r", scratch, "(2*k*H+at)*C"}, "C");
                        },
                        [&] {
                            w.let("last", "ilog2(j mod d)");
                            w.let("e", "1 << last");
                            w.copy({"r", scratch, "((2*last+1)*H + j/(2*e)*e + j mod e)*C"},
                                   {"r", scratch, "(2*k*H+at)*C"}, "C");
                        });
                });
            });
            w.let("many", "N/(2*d)*d + max(0, N mod (2*d) - d)");
            w.send({"r", scratch, "2*k*H*C"}, {"(r+d) mod N", scratch, "(2*k+1)*H*C"}, "many*C");
        });
    });
    w.loop("j", "1", "N", [&] {
        w.let("last", "ilog2(j)");
        w.let("e", "1 << last");
        w.copy({"r", scratch, "((2*last+1)*H + j/(2*e)*e + j mod e)*C"}, {"r", output, "((r-j) mod N)*C"},
               "C");
    });
}

}  // namespace

Family bruck() {
    Family family;
    family.info = {
        "bruck",
        "ceil(log2 N) rounds for any number of ranks; all-gather, its reverse, and all-to-all by bits"};
    family.entries = {{Kind::all_gather, "1", all_gather},
                      {Kind::reduce_scatter, "1", reduce_scatter},
                      {Kind::all_reduce, "N", all_reduce},
                      {Kind::all_to_all, "1", all_to_all}};
    return family;
}

}  // namespace baton::synth::patterns
