// Ring: every position talks to the next one only (gather, scatter and all-to-all to both neighbors, the
// shorter way).
#include <baton/synth/patterns/family.hpp>

#include <fmt/format.h>

namespace baton::synth::patterns {
namespace {

using enum ir::Buffer;
using Kind = ir::CollectiveKind;

const std::string kNext = "(r+1) mod N";

void all_gather(TemplateWriter& w, const Blocks& blocks) {
    w.copy({"r", input, "0"}, {"r", output, "r*C"}, "C");
    w.loop("s", "0", "N-1", [&] {
        w.let("b", "(r-s) mod N");
        w.send({"r", output, blocks.at("b")}, {kNext, output, blocks.at("b")}, blocks.run("b", "1"));
    });
}

// Partial sums of shard b set out at b+1 and gather a contribution at each rank until they reach b.
void reduce_scatter(TemplateWriter& w, const Blocks&) {
    w.copy({"r", input, "r*C"}, {"r", output, "0"}, "C");
    w.when("N == 2", [&] { w.send_reduce({"r", input, "(1-r)*C"}, {kNext, output, "0"}, "C"); });
    w.when("N > 2", [&] {
        w.let("first", "((r-1) mod N)*C");
        w.let("start", "((r-2) mod N)*C");
        w.copy({"r", input, "start"}, {"r", scratch, "start"}, "C");
        w.send_reduce({"r", input, "first"}, {kNext, scratch, "first"}, "C");
        w.loop("s", "1", "N-2", [&] {
            w.let("here", "((r-2-s) mod N)*C");
            w.let("on", "((r-1-s) mod N)*C");
            w.copy({"r", input, "here"}, {"r", scratch, "here"}, "C");
            w.send_reduce({"r", scratch, "on"}, {kNext, scratch, "on"}, "C");
        });
        w.let("last", "((r+1) mod N)*C");
        w.send_reduce({"r", scratch, "last"}, {kNext, output, "0"}, "C");
    });
}

// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
void all_reduce(TemplateWriter& w, const Blocks& blocks) {
    w.copy({"r", input, "0"}, {"r", output, "0"}, "C");
    w.loop("s", "0", "N-1", [&] {
        w.let("b", "(r-s) mod N");
        w.send_reduce({"r", output, blocks.at("b")}, {kNext, output, blocks.at("b")}, blocks.run("b", "1"));
    });
    w.loop("s", "0", "N-1", [&] {
        w.let("b", "(r+1-s) mod N");
        w.send({"r", output, blocks.at("b")}, {kNext, output, blocks.at("b")}, blocks.run("b", "1"));
    });
}

void broadcast(TemplateWriter& w, const Blocks&) {
    w.copy({"root", input, "0"}, {"root", output, "0"}, "C");
    w.loop("s", "0", "N-1", [&] {
        w.send({"(root+s) mod N", output, "0"}, {"(root+s+1) mod N", output, "0"}, "C");
    });
}

void reduce(TemplateWriter& w, const Blocks&) {
    w.copy({"root", input, "0"}, {"root", output, "0"}, "C");
    w.loop("s", "2", "N", [&] {
        w.copy({"(root+s) mod N", input, "0"}, {"(root+s) mod N", scratch, "0"}, "C");
    });
    w.when("N == 2", [&] { w.send_reduce({"1-root", input, "0"}, {"root", output, "0"}, "C"); });
    w.when("N > 2", [&] {
        w.send_reduce({"(root+1) mod N", input, "0"}, {"(root+2) mod N", scratch, "0"}, "C");
        w.loop("s", "2", "N-1", [&] {
            w.send_reduce({"(root+s) mod N", scratch, "0"}, {"(root+s+1) mod N", scratch, "0"}, "C");
        });
        w.send_reduce({"(root-1) mod N", scratch, "0"}, {"root", output, "0"}, "C");
    });
}

/// One shard on its way from `root` to the rank `d` hops in direction `sign`, the farthest ones first.
void scatter_hops(TemplateWriter& w, const std::string& sign) {
    w.let("to", fmt::format("(root {} d) mod N", sign));
    w.when("d == 1", [&] { w.send({"root", input, "to*C"}, {"to", output, "0"}, "C"); });
    w.when("d > 1", [&] {
        w.send({"root", input, "to*C"}, {fmt::format("(root {} 1) mod N", sign), scratch, "to*C"}, "C");
        w.loop("h", "1", "d-1", [&] {
            w.send({fmt::format("(root {} h) mod N", sign), scratch, "to*C"},
                   {fmt::format("(root {} (h+1)) mod N", sign), scratch, "to*C"}, "C");
        });
        w.send({fmt::format("(root {} (d-1)) mod N", sign), scratch, "to*C"}, {"to", output, "0"}, "C");
    });
}

void scatter(TemplateWriter& w, const Blocks&) {
    w.copy({"root", input, "root*C"}, {"root", output, "0"}, "C");
    w.loop_down("d", "N/2", "0", [&] {
        scatter_hops(w, "+");
        w.when("2*d < N", [&] { scatter_hops(w, "-"); });
    });
}

/// The shard of the rank `d` hops in direction `sign` from `root`, on its way there.
void gather_hops(TemplateWriter& w, const std::string& sign) {
    w.let("of", fmt::format("(root {} d) mod N", sign));
    w.when("d == 1", [&] { w.send({"of", input, "0"}, {"root", output, "of*C"}, "C"); });
    w.when("d > 1", [&] {
        w.send({"of", input, "0"}, {fmt::format("(root {} (d-1)) mod N", sign), scratch, "of*C"}, "C");
        w.loop_down("h", "d-1", "1", [&] {
            w.send({fmt::format("(root {} h) mod N", sign), scratch, "of*C"},
                   {fmt::format("(root {} (h-1)) mod N", sign), scratch, "of*C"}, "C");
        });
        w.send({fmt::format("(root {} 1) mod N", sign), scratch, "of*C"}, {"root", output, "of*C"}, "C");
    });
}

void gather(TemplateWriter& w, const Blocks&) {
    w.copy({"root", input, "0"}, {"root", output, "root*C"}, "C");
    w.loop("d", "1", "N/2 + 1", [&] {
        gather_hops(w, "+");
        w.when("2*d < N", [&] { gather_hops(w, "-"); });
    });
}

// In round s each rank passes on, in both directions, what the rank s hops behind sent to those still ahead.
// Bundles stand in scratch in two areas per direction, used in turn.
void all_to_all(TemplateWriter& w, const Blocks&) {
    w.let("A", "N/2");      // ranks served ahead
    w.let("B", "(N-1)/2");  // ranks served behind
    w.copy({"r", input, "r*C"}, {"r", output, "r*C"}, "C");
    w.when("N > 1", [&] {
        w.let("a", "(r+1) mod N");
        w.let("z", "(r-B) mod N");
        w.send({"r", input, "a*C"}, {kNext, scratch, "0"}, "min(A, N-a)*C");
        w.send({"r", input, "0"}, {kNext, scratch, "(N-a)*C"}, "max(0, A-(N-a))*C");
        w.send({"r", input, "z*C"}, {"(r-1) mod N", scratch, "2*A*C"}, "min(B, N-z)*C");
        w.send({"r", input, "0"}, {"(r-1) mod N", scratch, "(2*A+N-z)*C"}, "max(0, B-(N-z))*C");
    });
    w.loop("s", "0", "A", [&] {
        w.when("s > 0", [&] {
            w.let("from", "((s-1) mod 2)");
            w.let("to", "s mod 2");
            w.send({"r", scratch, "(from*A+s)*C"}, {kNext, scratch, "(to*A+s)*C"}, "(A-s)*C");
            w.send({"r", scratch, "(2*A+from*B)*C"}, {"(r-1) mod N", scratch, "(2*A+to*B)*C"},
                   "max(0, B-s)*C");
        });
        w.copy({"r", scratch, "((s mod 2)*A+s)*C"}, {"r", output, "((r-1-s) mod N)*C"}, "C");
        w.when("s < B", [&] {
            w.copy({"r", scratch, "(2*A+(s mod 2)*B+B-1-s)*C"}, {"r", output, "((r+1+s) mod N)*C"}, "C");
        });
    });
}

}  // namespace

Family ring() {
    Family family;
    family.info = {"ring", "neighbors of a ring; least volume, N-1 rounds"};
    family.entries = {{Kind::broadcast, "1", broadcast},   {Kind::scatter, "1", scatter},
                      {Kind::gather, "1", gather},         {Kind::all_gather, "1", all_gather},
                      {Kind::reduce, "1", reduce},         {Kind::reduce_scatter, "1", reduce_scatter},
                      {Kind::all_reduce, "N", all_reduce}, {Kind::all_to_all, "1", all_to_all}};
    return family;
}

}  // namespace baton::synth::patterns
