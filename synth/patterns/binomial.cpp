// Binomial trees: ceil(log2 N) rounds; in each, all ranks that have something pass it on.
#include <baton/synth/patterns/family.hpp>

#include <fmt/format.h>

namespace baton::synth::patterns {
namespace {

using enum ir::Buffer;
using Kind = ir::CollectiveKind;

// `r` counts from the root in templates of this file: rank (root + r) mod N.
const std::string kRank = "(root+r) mod N";

std::string rank_at(const std::string& distance) { return fmt::format("(root+{}) mod N", distance); }

/// From the root outwards, largest distance first: r (a multiple of 2d) to r+d.
void spread_out(TemplateWriter& w, const std::string& length) {
    w.when("N > 1", [&] {
        w.loop_down("k", "ilog2(N-1)", "-1", [&] {
            w.let("d", "1 << k");
            w.when("r mod (2*d) == 0 and r + d < N", [&] {
                w.send({kRank, output, "0"}, {rank_at("r+d"), output, "0"}, length);
            });
        });
    });
}

void broadcast(TemplateWriter& w, const Blocks&) {
    w.copy({"root", input, "0"}, {"root", output, "0"}, "C");
    spread_out(w, "C");
}

/// Towards the root, smallest distance first: r+d to r. Leaves send their input; inner ranks add up in
/// `inner`.
void gather_sums(TemplateWriter& w, ir::Buffer inner) {
    w.copy({"root", input, "0"}, {"root", output, "0"}, "C");
    w.when("r > 0 and r mod 2 == 0 and r + 1 < N", [&] {
        w.copy({kRank, input, "0"}, {kRank, inner, "0"}, "C");
    });
    w.when("r mod 2 == 0 and r + 1 < N", [&] {
        w.when(
            "r == 0",
            [&] {
                w.send_reduce({rank_at("1"), input, "0"}, {kRank, output, "0"}, "C");
            },
            [&] {
                w.send_reduce({rank_at("r+1"), input, "0"}, {kRank, inner, "0"}, "C");
            });
    });
    w.loop_doubling("d", "2", "N", [&] {
        w.when("r mod (2*d) == 0 and r + d < N", [&] {
            // The last position is a leaf when N is odd.
            const auto pass = [&](ir::Buffer from) {
                w.when(
                    "r == 0",
                    [&] {
                        w.send_reduce({rank_at("d"), from, "0"}, {kRank, output, "0"}, "C");
                    },
                    [&] {
                        w.send_reduce({rank_at("r+d"), from, "0"}, {kRank, inner, "0"}, "C");
                    });
            };
            w.when(
                "r + d == N - 1", [&] { pass(input); }, [&] { pass(inner); });
        });
    });
}

void reduce(TemplateWriter& w, const Blocks&) { gather_sums(w, scratch); }

void all_reduce(TemplateWriter& w, const Blocks&) {
    w.copy({"r", input, "0"}, {"r", output, "0"}, "C");
    w.loop_doubling("d", "1", "N", [&] {
        w.when("r mod (2*d) == 0 and r + d < N", [&] {
            w.send_reduce({rank_at("r+d"), output, "0"}, {kRank, output, "0"}, "C");
        });
    });
    spread_out(w, "C");
}

// Inner ranks hold the shards of their subtree in scratch: at index i the shard of the rank i behind them.
void scatter(TemplateWriter& w, const Blocks&) {
    w.copy({"root", input, "root*C"}, {"root", output, "0"}, "C");
    w.when("N > 1", [&] {
        w.loop_down("k", "ilog2(N-1)", "-1", [&] {
            w.let("d", "1 << k");
            // From the root's input, around the end of the shards.
            w.let("first", "(root+d) mod N");
            w.let("many", "min(d, N-d)");
            w.let("before", "min(many, N-first)");
            w.send({"root", input, "first*C"}, {"first", scratch, "0"}, "before*C");
            w.send({"root", input, "0"}, {"first", scratch, "before*C"}, "(many-before)*C");
            w.when("r > 0 and r mod (2*d) == 0 and r + d < N", [&] {
                w.send({kRank, scratch, "d*C"}, {rank_at("r+d"), scratch, "0"}, "min(d, N-r-d)*C");
            });
        });
    });
    w.when("r > 0", [&] { w.copy({kRank, scratch, "0"}, {kRank, output, "0"}, "C"); });
}

void gather(TemplateWriter& w, const Blocks&) {
    w.copy({"root", input, "0"}, {"root", output, "root*C"}, "C");
    w.when("r > 0", [&] { w.copy({kRank, input, "0"}, {kRank, scratch, "0"}, "C"); });
    w.loop_doubling("d", "1", "N", [&] {
        w.when("r > 0 and r mod (2*d) == 0 and r + d < N", [&] {
            w.send({rank_at("r+d"), scratch, "0"}, {kRank, scratch, "d*C"}, "min(d, N-r-d)*C");
        });
        w.let("first", "(root+d) mod N");
        w.let("many", "min(d, N-d)");
        w.let("before", "min(many, N-first)");
        w.send({"first", scratch, "0"}, {"root", output, "first*C"}, "before*C");
        w.send({"first", scratch, "before*C"}, {"root", output, "0"}, "(many-before)*C");
    });
}

}  // namespace

Family binomial() {
    Family family;
    family.info = {"binomial", "binomial trees; ceil(log2 N) rounds"};
    family.entries = {{Kind::broadcast, "1", broadcast},
                      {Kind::scatter, "1", scatter},
                      {Kind::gather, "1", gather},
                      {Kind::reduce, "1", reduce},
                      {Kind::all_reduce, "1", all_reduce}};
    return family;
}

}  // namespace baton::synth::patterns
