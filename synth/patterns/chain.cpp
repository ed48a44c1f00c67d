// Chain: positions 0..N-1 in a line, neighbors only, no link from the last to the first; what spreads goes
// both ways.
#include <baton/synth/patterns/family.hpp>

namespace baton::synth::patterns {
namespace {

using enum ir::Buffer;
using Kind = ir::CollectiveKind;

/// From `middle` outwards to both ends.
void outwards(TemplateWriter& w, const std::string& middle) {
    w.let("mid", middle);
    w.loop("s", "0", "N-1", [&] {
        w.when("mid+s+1 < N", [&] { w.send({"mid+s", output, "0"}, {"mid+s+1", output, "0"}, "C"); });
        w.when("mid-s-1 >= 0", [&] { w.send({"mid-s", output, "0"}, {"mid-s-1", output, "0"}, "C"); });
    });
}

void broadcast(TemplateWriter& w, const Blocks&) {
    w.copy({"root", input, "0"}, {"root", output, "0"}, "C");
    outwards(w, "root");
}

/// The position `from`, s from an end, adds its sum to that of `to`, one nearer the root.
void reduce_hop(TemplateWriter& w, const std::string& from, const std::string& to) {
    const auto hop = [&](ir::Buffer source) {
        w.when(
            to + " == root",
            [&] {
                w.send_reduce({from, source, "0"}, {to, output, "0"}, "C");
            },
            [&] {
                w.send_reduce({from, source, "0"}, {to, scratch, "0"}, "C");
            });
    };
    w.when(
        "s == 0", [&] { hop(input); }, [&] { hop(scratch); });
}

void reduce(TemplateWriter& w, const Blocks&) {
    w.copy({"root", input, "0"}, {"root", output, "0"}, "C");
    w.when("r != root and r > 0 and r < N-1", [&] { w.copy({"r", input, "0"}, {"r", scratch, "0"}, "C"); });
    w.loop("s", "0", "N-1", [&] {
        w.when("s < root", [&] { reduce_hop(w, "s", "(s+1)"); });
        w.when("N-1-s > root", [&] { reduce_hop(w, "N-1-s", "(N-2-s)"); });
    });
}

// To the middle and back.
void all_reduce(TemplateWriter& w, const Blocks&) {
    w.let("mid", "N/2");
    w.copy({"r", input, "0"}, {"r", output, "0"}, "C");
    w.loop("s", "0", "N/2", [&] {
        w.send_reduce({"s", output, "0"}, {"s+1", output, "0"}, "C");
        w.when("N-1-s > mid", [&] { w.send_reduce({"N-1-s", output, "0"}, {"N-2-s", output, "0"}, "C"); });
    });
    outwards(w, "N/2");
}

/// Shard `to` from the root to its owner, hop by hop in direction `step`.
void scatter_hops(TemplateWriter& w, const std::string& step) {
    w.let("far", "(to-root)*" + step);
    w.loop("h", "0", "far", [&] {
        w.let("at", "root + h*" + step);
        w.let("next", "at + " + step);
        const auto hop = [&](ir::Buffer from) {
            w.when(
                "h == far-1",
                [&] {
                    w.send({"at", from, "to*C"}, {"next", output, "0"}, "C");
                },
                [&] {
                    w.send({"at", from, "to*C"}, {"next", scratch, "to*C"}, "C");
                });
        };
        w.when(
            "h == 0", [&] { hop(input); }, [&] { hop(scratch); });
    });
}

void scatter(TemplateWriter& w, const Blocks&) {
    w.copy({"root", input, "root*C"}, {"root", output, "0"}, "C");
    w.loop_down("d", "N-1", "0", [&] {
        w.when("root+d < N", [&] {
            w.let("to", "root+d");
            scatter_hops(w, "1");
        });
        w.when("root-d >= 0", [&] {
            w.let("to", "root-d");
            scatter_hops(w, "(-1)");
        });
    });
}

/// Shard `of` from its owner to the root, hop by hop in direction `step`.
void gather_hops(TemplateWriter& w, const std::string& step) {
    w.let("far", "(root-of)*" + step);
    w.loop("h", "0", "far", [&] {
        w.let("at", "of + h*" + step);
        w.let("next", "at + " + step);
        const auto hop = [&](ir::Buffer from, const std::string& index) {
            w.when(
                "next == root",
                [&] {
                    w.send({"at", from, index}, {"next", output, "of*C"}, "C");
                },
                [&] {
                    w.send({"at", from, index}, {"next", scratch, "of*C"}, "C");
                });
        };
        w.when(
            "h == 0", [&] { hop(input, "0"); }, [&] { hop(scratch, "of*C"); });
    });
}

void gather(TemplateWriter& w, const Blocks&) {
    w.copy({"root", input, "0"}, {"root", output, "root*C"}, "C");
    w.loop("d", "1", "N", [&] {
        w.when("root+d < N", [&] {
            w.let("of", "root+d");
            gather_hops(w, "(-1)");
        });
        w.when("root-d >= 0", [&] {
            w.let("of", "root-d");
            gather_hops(w, "1");
        });
    });
}

// In round s shard r-s goes up from r and shard r+s goes down.
void all_gather(TemplateWriter& w, const Blocks&) {
    w.copy({"r", input, "0"}, {"r", output, "r*C"}, "C");
    w.loop("s", "0", "N-1", [&] {
        w.when("r-s >= 0 and r+1 < N", [&] {
            w.send({"r", output, "(r-s)*C"}, {"r+1", output, "(r-s)*C"}, "C");
        });
        w.when("r+s < N and r > 0", [&] {
            w.send({"r", output, "(r+s)*C"}, {"r-1", output, "(r+s)*C"}, "C");
        });
    });
}

// The all-gather reversed: partial sums of a shard come towards its owner from both ends.
void reduce_scatter(TemplateWriter& w, const Blocks&) {
    w.copy({"r", input, "0"}, {"r", scratch, "0"}, "N*C");
    w.loop_down("s", "N-2", "-1", [&] {
        w.when("r-s >= 0 and r+1 < N", [&] {
            w.send_reduce({"r+1", scratch, "(r-s)*C"}, {"r", scratch, "(r-s)*C"}, "C");
        });
        w.when("r+s < N and r > 0", [&] {
            w.send_reduce({"r-1", scratch, "(r+s)*C"}, {"r", scratch, "(r+s)*C"}, "C");
        });
    });
    w.copy({"r", scratch, "r*C"}, {"r", output, "0"}, "C");
}

// In round s each position passes on what the one s behind sent to all still ahead, up and down the line.
// Bundles stand in scratch by destination, in two areas per direction, used in turn.
void all_to_all(TemplateWriter& w, const Blocks&) {
    w.copy({"r", input, "r*C"}, {"r", output, "r*C"}, "C");
    w.when("r+1 < N", [&] { w.send({"r", input, "(r+1)*C"}, {"r+1", scratch, "(r+1)*C"}, "(N-1-r)*C"); });
    w.when("r > 0", [&] { w.send({"r", input, "0"}, {"r-1", scratch, "2*N*C"}, "r*C"); });
    w.loop("s", "0", "N-1", [&] {
        w.let("from", "((s+1) mod 2)*N");
        w.let("to", "(s mod 2)*N");
        w.when("s > 0", [&] {
            w.when("r-s >= 0 and r+1 < N", [&] {
                w.send({"r", scratch, "(from+r+1)*C"}, {"r+1", scratch, "(to+r+1)*C"}, "(N-1-r)*C");
            });
            w.when("r+s < N and r > 0", [&] {
                w.send({"r", scratch, "(2*N+from)*C"}, {"r-1", scratch, "(2*N+to)*C"}, "r*C");
            });
        });
        w.when("r-1-s >= 0", [&] { w.copy({"r", scratch, "(to+r)*C"}, {"r", output, "(r-1-s)*C"}, "C"); });
        w.when("r+1+s < N", [&] { w.copy({"r", scratch, "(2*N+to+r)*C"}, {"r", output, "(r+1+s)*C"}, "C"); });
    });
}

}  // namespace

Family chain() {
    Family family;
    family.info = {"chain", "neighbors of a line, both ways; pipelined"};
    family.entries = {{Kind::broadcast, "1", broadcast},   {Kind::scatter, "1", scatter},
                      {Kind::gather, "1", gather},         {Kind::all_gather, "1", all_gather},
                      {Kind::reduce, "1", reduce},         {Kind::reduce_scatter, "1", reduce_scatter},
                      {Kind::all_reduce, "1", all_reduce}, {Kind::all_to_all, "1", all_to_all}};
    return family;
}

}  // namespace baton::synth::patterns
