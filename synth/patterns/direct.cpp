// Direct: every value goes straight from its owner to its user, in one hop.
#include <baton/synth/patterns/family.hpp>

namespace baton::synth::patterns {
namespace {

using enum ir::Buffer;
using Kind = ir::CollectiveKind;

void broadcast(TemplateWriter& w, const Blocks&) {
    w.copy({"root", input, "0"}, {"root", output, "0"}, "C");
    w.loop("d", "1", "N", [&] { w.send({"root", input, "0"}, {"(root+d) mod N", output, "0"}, "C"); });
}

void reduce(TemplateWriter& w, const Blocks&) {
    w.copy({"root", input, "0"}, {"root", output, "0"}, "C");
    w.loop("d", "1", "N", [&] { w.send_reduce({"(root+d) mod N", input, "0"}, {"root", output, "0"}, "C"); });
}

void scatter(TemplateWriter& w, const Blocks&) {
    w.copy({"root", input, "root*C"}, {"root", output, "0"}, "C");
    w.loop("d", "1", "N", [&] {
        w.let("to", "(root+d) mod N");
        w.send({"root", input, "to*C"}, {"to", output, "0"}, "C");
    });
}

void gather(TemplateWriter& w, const Blocks&) {
    w.copy({"root", input, "0"}, {"root", output, "root*C"}, "C");
    w.loop("d", "1", "N", [&] {
        w.let("of", "(root+d) mod N");
        w.send({"of", input, "0"}, {"root", output, "of*C"}, "C");
    });
}

// Ranks d before and d behind exchange at once, so that an in-place call needs no copy.
void all_to_all(TemplateWriter& w, const Blocks&) {
    w.copy({"r", input, "r*C"}, {"r", output, "r*C"}, "C");
    w.loop("d", "1", "N/2 + 1", [&] {
        w.par([&] {
            w.send({"r", input, "((r+d) mod N)*C"}, {"(r+d) mod N", output, "r*C"}, "C");
            w.when("2*d != N", [&] {
                w.send({"r", input, "((r-d) mod N)*C"}, {"(r-d) mod N", output, "r*C"}, "C");
            });
        });
    });
}

void send_recv(TemplateWriter& w, const Blocks&) { w.send({"root", input, "0"}, {"peer", output, "0"}, "C"); }

}  // namespace

Family direct() {
    Family family;
    family.info = {"direct", "every value straight from owner to user, one hop"};
    family.entries = {{Kind::broadcast, "1", broadcast},   {Kind::scatter, "1", scatter},
                      {Kind::gather, "1", gather},         {Kind::reduce, "1", reduce},
                      {Kind::all_to_all, "1", all_to_all}, {Kind::send_recv, "1", send_recv}};
    return family;
}

}  // namespace baton::synth::patterns
