// Recursive doubling and halving, and Rabenseifner's reductions made of both. P = the largest power of two
// within N: positions from P on (the extras) hand what they have to the partner P before them and get the
// result from it. Rolf Rabenseifner, "Optimization of collective reduction operations", 2004; Thakur,
// Rabenseifner and Gropp, 2005.
#include <baton/synth/patterns/family.hpp>

#include <fmt/format.h>

namespace baton::synth::patterns {
namespace {

using enum ir::Buffer;
using Kind = ir::CollectiveKind;

void doubling_all_reduce(TemplateWriter& w, const Blocks&) {
    w.let("P", "pow2floor(N)");
    w.copy({"r", input, "0"}, {"r", output, "0"}, "C");
    w.loop("i", "P", "N", [&] { w.send_reduce({"i", output, "0"}, {"i-P", output, "0"}, "C"); });
    w.loop_doubling("d", "1", "P", [&] {
        w.par([&] {
            w.when("r < P", [&] { w.send_reduce({"r", output, "0"}, {"r xor d", output, "0"}, "C"); });
        });
    });
    w.loop("i", "P", "N", [&] { w.send({"i-P", output, "0"}, {"i", output, "0"}, "C"); });
}

/// The shards of positions [from, from+count) and of their extras, at the same places on both ends.
void with_extras(TemplateWriter& w, ir::StepOp op, ir::Buffer buffer, const std::string& to,
                 const std::string& from, const std::string& count) {
    const auto step = [&](const std::string& first, const std::string& many) {
        const At source{"r", buffer, first + "*C"}, destination{to, buffer, first + "*C"};
        if (op == ir::StepOp::send)
            w.send(source, destination, many + "*C");
        else
            w.send_reduce(source, destination, many + "*C");
    };
    step(from, count);
    step(fmt::format("({}+P)", from), fmt::format("max(0, min({}, N-P-{}))", count, from));
}

void doubling_all_gather(TemplateWriter& w, const Blocks&) {
    w.let("P", "pow2floor(N)");
    w.copy({"r", input, "0"}, {"r", output, "r*C"}, "C");
    w.loop("i", "P", "N", [&] { w.send({"i", input, "0"}, {"i-P", output, "i*C"}, "C"); });
    w.loop_doubling("d", "1", "P", [&] {
        w.let("mine", "(r/d*d)");
        w.when("r < P", [&] { with_extras(w, ir::StepOp::send, output, "r xor d", "mine", "d"); });
    });
    w.loop("i", "P", "N", [&] {  // all but its own
        w.send({"i-P", output, "0"}, {"i", output, "0"}, "i*C");
        w.send({"i-P", output, "(i+1)*C"}, {"i", output, "(i+1)*C"}, "(N-1-i)*C");
    });
}

void halving_reduce_scatter(TemplateWriter& w, const Blocks&) {
    w.let("P", "pow2floor(N)");
    w.when("r < P", [&] { w.copy({"r", input, "0"}, {"r", scratch, "0"}, "N*C"); });
    w.loop("i", "P", "N", [&] { w.send_reduce({"i", input, "0"}, {"i-P", scratch, "0"}, "N*C"); });
    w.loop_down("k", "ilog2(P)-1", "-1", [&] {
        w.let("d", "1 << k");
        w.let("theirs", "((r xor d) >> k << k)");
        w.when("r < P", [&] { with_extras(w, ir::StepOp::send_reduce, scratch, "r xor d", "theirs", "d"); });
    });
    w.when("r < P", [&] { w.copy({"r", scratch, "r*C"}, {"r", output, "0"}, "C"); });
    w.loop("i", "P", "N", [&] { w.send({"i-P", scratch, "i*C"}, {"i", output, "0"}, "C"); });
}

/// Positions below P exchange halves of what they still add up, in `buffer`: position r ends with block r of
/// P.
void halve(TemplateWriter& w, const Blocks& blocks, const std::string& rank, const std::string& partner,
           ir::Buffer buffer) {
    w.loop_down("k", "ilog2(P)-1", "-1", [&] {
        w.let("d", "1 << k");
        w.let("theirs", "(r xor d) >> k << k");
        w.when("r < P", [&] {
            w.send_reduce({rank, buffer, blocks.at("theirs")}, {partner, buffer, blocks.at("theirs")},
                          blocks.run("theirs", "d"));
        });
    });
}

void rabenseifner_all_reduce(TemplateWriter& w, const Blocks& blocks) {
    w.let("P", "pow2floor(N)");
    w.copy({"r", input, "0"}, {"r", output, "0"}, "C");
    w.loop("i", "P", "N", [&] { w.send_reduce({"i", output, "0"}, {"i-P", output, "0"}, "C"); });
    halve(w, blocks, "r", "r xor d", output);
    w.loop_doubling("d", "1", "P", [&] {
        w.let("mine", "r/d*d");
        w.when("r < P", [&] {
            w.send({"r", output, blocks.at("mine")}, {"r xor d", output, blocks.at("mine")},
                   blocks.run("mine", "d"));
        });
    });
    w.loop("i", "P", "N", [&] { w.send({"i-P", output, "0"}, {"i", output, "0"}, "C"); });
}

// `r` counts from the root here: rank (root + r) mod N. Halving, then a binomial gather of the blocks.
void rabenseifner_reduce(TemplateWriter& w, const Blocks& blocks) {
    const std::string rank = "(root+r) mod N";
    w.let("P", "pow2floor(N)");
    w.when("r < P", [&] { w.copy({rank, input, "0"}, {rank, scratch, "0"}, "C"); });
    w.loop("i", "P", "N", [&] {
        w.send_reduce({"(root+i) mod N", input, "0"}, {"(root+i-P) mod N", scratch, "0"}, "C");
    });
    halve(w, blocks, rank, "(root + (r xor d)) mod N", scratch);
    w.copy({"root", scratch, "0"}, {"root", output, "0"}, blocks.run("0", "1"));  // with P = 1 all there is
    w.loop_doubling("d", "1", "P", [&] {
        w.let("theirs", "r+d");
        w.when("r < P and r mod (2*d) == 0", [&] {
            const auto take = [&](ir::Buffer to) {
                w.send({"(root+r+d) mod N", scratch, blocks.at("theirs")}, {rank, to, blocks.at("theirs")},
                       blocks.run("theirs", "d"));
            };
            w.when(
                "r == 0", [&] { take(output); }, [&] { take(scratch); });
        });
    });
}

// Scatter by halves from the root (r counts from it), then recursive doubling; extras get the whole at the
// end. Robert van de Geijn, "On global combine operations", 1994.
void halving_broadcast(TemplateWriter& w, const Blocks& blocks) {
    const std::string rank = "(root+r) mod N";
    w.let("P", "pow2floor(N)");
    w.copy({"root", input, "0"}, {"root", output, "0"}, "C");
    w.loop_down("k", "ilog2(P)-1", "-1", [&] {
        w.let("d", "1 << k");
        w.let("theirs", "r+d");
        w.when("r < P and r mod (2*d) == 0", [&] {
            w.send({rank, output, blocks.at("theirs")}, {"(root+r+d) mod N", output, blocks.at("theirs")},
                   blocks.run("theirs", "d"));
        });
    });
    w.loop_doubling("d", "1", "P", [&] {
        w.let("mine", "r/d*d");
        w.when("r < P and (r xor d) != 0", [&] {
            w.send({rank, output, blocks.at("mine")}, {"(root + (r xor d)) mod N", output, blocks.at("mine")},
                   blocks.run("mine", "d"));
        });
    });
    w.loop("i", "P", "N", [&] {
        w.send({"(root+i-P) mod N", output, "0"}, {"(root+i) mod N", output, "0"}, "C");
    });
}

}  // namespace

Family recursive_doubling() {
    Family family;
    family.info = {"recursive_doubling", "exchanges at distances 1, 2, 4, ...; fewest rounds"};
    family.entries = {{Kind::all_gather, "1", doubling_all_gather},
                      {Kind::all_reduce, "1", doubling_all_reduce}};
    return family;
}

Family recursive_halving() {
    Family family;
    family.info = {"recursive_halving",
                   "exchanges of halves at distances ..., 4, 2, 1; least volume for powers of two"};
    family.entries = {{Kind::broadcast, "pow2floor(N)", halving_broadcast},
                      {Kind::reduce_scatter, "1", halving_reduce_scatter}};
    return family;
}

Family rabenseifner() {
    Family family;
    family.info = {"rabenseifner",
                   "recursive halving, then doubling (or a gather); log2 N rounds each, least volume"};
    family.entries = {{Kind::reduce, "pow2floor(N)", rabenseifner_reduce},
                      {Kind::all_reduce, "pow2floor(N)", rabenseifner_all_reduce}};
    return family;
}

}  // namespace baton::synth::patterns
