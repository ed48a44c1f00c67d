// MSCCL's algorithm XML: what is made of it, with small files for each trap, and the files of the field.
#include "support/field.hpp"

#include <baton/base/error.hpp>
#include <baton/codegen/interchange/msccl.hpp>
#include <baton/ir/program_json.hpp>
#include <baton/ir/verify.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace baton;
using namespace baton::codegen;

namespace {

ImportedProgram read(const std::string& text) { return read_msccl_xml(text, "a.xml"); }

std::string fault(const std::string& text) {
    try {
        read(text);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "";
}
std::string verify_fault(const ir::Program& program) {
    try {
        ir::verify(program);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::check_failed);
        return error.what();
    }
    return "";
}
bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}
bool any_contains(const std::vector<std::string>& lines, const std::string& part) {
    for (const std::string& line : lines)
        if (contains(line, part)) return true;
    return false;
}
std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

/// One step of type `type`, with what follows.
std::string step(int s, const char* type, const char* src, int srcoff, const char* dst, int dstoff,
                 int cnt = 1, int depid = -1, int deps = -1, int hasdep = 0) {
    return fmt::format(
        R"(<step s="{}" type="{}" srcbuf="{}" srcoff="{}" dstbuf="{}" dstoff="{}" cnt="{}" depid="{}" deps="{}" hasdep="{}"/>)",
        s, type, src, srcoff, dst, dstoff, cnt, depid, deps, hasdep);
}

/// All-reduce of two ranks in place: each sends one half, adds what it gets to its own half in another
/// threadblock, and sends the sum back; with scratch, a nop and dependencies.
std::string two_ranks() {
    std::string text =
        R"(<algo name="two" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1" outofplace="0" minBytes="0" maxBytes="0">)";
    for (int r = 0; r < 2; ++r) {
        const int p = 1 - r;
        text += fmt::format(
            R"(<gpu id="{}" i_chunks="2" o_chunks="0" s_chunks="1"><tb id="0" send="{}" recv="{}" chan="0">)",
            r, p, p);
        text += step(0, "s", "i", p, "s", 0);
        text += step(1, "r", "i", r, "s", 0, 1, -1, -1, 1);
        text += step(2, "nop", "i", -1, "o", -1, 0, 1, 1);
        text += step(3, "s", "i", r, "i", r, 1, 1, 0);
        text += step(4, "r", "i", p, "i", p);
        text += R"(</tb><tb id="1" send="-1" recv="-1" chan="0">)";
        text += step(0, "re", "s", 0, "i", r, 1, 0, 1, 1);
        text += step(1, "cpy", "i", r, "s", 0, 1, -1, -1, 1);
        text += "</tb></gpu>";
    }
    return text + "</algo>";
}

}  // namespace

TEST_CASE("an algorithm of MSCCL becomes a program that verifies in place only") {
    const ImportedProgram imported = read(two_ranks());
    const ir::Program& program = imported.program;
    CHECK(imported.warnings.empty());
    CHECK(imported.assumptions.empty());
    CHECK(ir::describe(program.collective) == "all_reduce of 2 ranks, 2 chunks");
    REQUIRE(program.connections.size() == 2);
    CHECK(program.connections[0].slots == 2);
    const ir::Threadblock& block = program.ranks[0].threadblocks[0];
    REQUIRE(block.instructions.size() == 4);  // the nop is a need of its successor
    CHECK(block.needs_of(block.instructions[2]).size() == 2);
    CHECK(block.needs_of(block.instructions[2])[0].instruction == 1);
    CHECK(block.needs_of(block.instructions[2])[1].instruction == 0);
    CHECK(ir::verify(program).assurance == ir::Assurance::proved);
    CHECK(ir::to_json(ir::parse_program(ir::to_json(program))) == ir::to_json(program));
    ir::Program both = program;
    both.in_place.reset();
    CHECK(contains(verify_fault(both), "out of place"));
}

TEST_CASE("a threadblock waits at the next step that publishes, and for ever when there is none") {
    const std::string late = replaced(two_ranks(), step(0, "re", "s", 0, "i", 0, 1, 0, 1, 1),
                                      step(0, "re", "s", 0, "i", 0, 1, 0, 1, 0));
    const ImportedProgram imported = read(late);
    CHECK(any_contains(imported.warnings, "goes on after step 1"));
    CHECK(ir::verify(imported.program).assurance == ir::Assurance::proved);
    const std::string never = replaced(two_ranks(), step(1, "r", "i", 0, "s", 0, 1, -1, -1, 1),
                                       step(1, "r", "i", 0, "s", 0, 1, -1, -1, 0));
    CHECK(contains(fault(never), "gpu 0, tb 1, step 0: waits for ever: step 1 of tb 0"));
}

TEST_CASE("dependencies may be absent, and lists") {
    std::string text = two_ranks();
    for (std::size_t at; (at = text.find(R"( depid="-1" deps="-1")")) != std::string::npos;)
        text.erase(at, 21);
    text = replaced(text, R"(cnt="0" depid="1" deps="1")", R"(cnt="0" depid="1,1" deps="0, 1")");
    const ImportedProgram imported = read(text);
    CHECK(ir::verify(imported.program).assurance == ir::Assurance::proved);
    const ir::Threadblock& block = imported.program.ranks[0].threadblocks[0];
    CHECK(block.needs_of(block.instructions[2]).size() == 3);
}

TEST_CASE("missing attributes get defaults and a remark") {
    std::string text = replaced(two_ranks(), R"( outofplace="0" minBytes="0" maxBytes="0")", "");
    ImportedProgram imported = read(text);
    CHECK(any_contains(imported.assumptions,
                       "no outofplace attribute: the algorithm serves calls in place only"));
    CHECK(any_contains(imported.assumptions, "any size"));
    CHECK(ir::verify(imported.program).assurance == ir::Assurance::proved);
    text = replaced(text, R"( proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2")", "");
    imported = read(text);
    CHECK(any_contains(imported.assumptions, "<algo> nchunksperloop (taken as 2)"));
    CHECK(ir::verify(imported.program).assurance == ir::Assurance::proved);
}

TEST_CASE("what has no counterpart is kept aside") {
    std::string text = replaced(two_ranks(), R"(maxBytes="0")", R"(maxBytes="100000000000" redop="nop")");
    text = replaced(text, R"(s_chunks="1">)", R"(s_chunks="1"><copy i_off="0" o_off="1"/>)");
    const ImportedProgram imported = read(text);
    CHECK(imported.program.foreign.at("algo@redop") == "nop");
    CHECK(imported.program.foreign.at("gpu/0/copy/0") == R"(i_off="0" o_off="1")");
    CHECK(any_contains(imported.warnings, "kept aside: <copy>, redop"));
    CHECK(any_contains(imported.found, "100000000000"));
}

TEST_CASE("errors of the file name gpu, threadblock and step or line") {
    const std::string good = two_ranks();
    CHECK(contains(fault(replaced(good, R"(type="s")", R"(type="x")")), "a.xml:1 <step>: step type \"x\""));
    CHECK(contains(fault(replaced(good, R"(send="1")", R"(send="0")")), "has itself as its peer"));
    CHECK(contains(fault(replaced(good, R"(tb id="1")", R"(tb id="2")")), "ids have a gap"));
    CHECK(contains(fault(replaced(good, R"(<step s="1")", R"(<step s="7")")),
                   "step 7 stands where step 1 belongs"));
    CHECK(contains(fault(replaced(good, R"(ngpus="2")", R"(ngpus="3")")), "there are 2 <gpu>"));
    CHECK(contains(fault(replaced(good, R"(coll="allreduce")", R"(coll="custom")")), "known: allreduce"));
    CHECK(
        contains(fault(replaced(good, R"(depid="1" deps="1")", R"(depid="5" deps="1")")), "waits for tb 5"));
    CHECK(contains(fault(replaced(good, R"(s_chunks="1")", R"(s_chunks="2000000000")")), "more than"));
}

TEST_CASE("verification names a place beyond the scratch, and an access without order") {
    const std::string beyond = replaced(two_ranks(), R"(s_chunks="1")", R"(s_chunks="0")");
    CHECK(contains(verify_fault(read(beyond).program), "which has 0 places"));
    const std::string unordered =
        replaced(two_ranks(), step(3, "s", "i", 0, "i", 0, 1, 1, 0), step(3, "s", "i", 0, "i", 0, 1, -1, -1));
    const std::string loose = replaced(unordered, step(2, "nop", "i", -1, "o", -1, 0, 1, 1),
                                       step(2, "nop", "i", -1, "o", -1, 0, -1, -1));
    CHECK(contains(verify_fault(read(loose).program), "race"));
}

TEST_CASE("a wrong algorithm gets the message that says why") {
    const auto verdict = [](const std::string& text) { return verify_fault(read(text).program); };
    REQUIRE(verdict(two_ranks()) == "");
    // A received sum goes to the wrong place.
    const std::string offset =
        verdict(replaced(two_ranks(), step(4, "r", "i", 1, "i", 1), step(4, "r", "i", 1, "i", 0)));
    INFO(offset);
    CHECK((contains(offset, "rank 0") && !contains(offset, "deadlock")));
    // What came is added once more.
    CHECK(contains(verdict(replaced(two_ranks(), step(1, "cpy", "i", 0, "s", 0, 1, -1, -1, 1),
                                    step(1, "re", "s", 0, "i", 0, 1, -1, -1, 1))),
                   "twice"));
    // Each waits for the other's message before it sends its own.
    std::string order = two_ranks();
    for (int r = 0; r < 2; ++r)
        order = replaced(
            order, step(0, "s", "i", 1 - r, "s", 0) + step(1, "r", "i", r, "s", 0, 1, -1, -1, 1),
            step(0, "r", "i", r, "s", 0, 1, -1, -1, 1) + step(1, "s", "i", 1 - r, "s", 0, 1, -1, -1, 1));
    CHECK(contains(verdict(order), "deadlock"));
    // The two ends of a message disagree on its length.
    const std::string length =
        verdict(replaced(two_ranks(), step(4, "r", "i", 1, "i", 1), step(4, "r", "i", 1, "i", 0, 2)));
    INFO(length);
    CHECK(contains(length, "chunk"));
    // Nobody receives the last message.
    const std::string lost = verdict(replaced(two_ranks(), step(4, "r", "i", 1, "i", 1), ""));
    INFO(lost);
    CHECK(contains(lost, "received"));
}

namespace {

struct FieldFact {
    const char* file;
    int ranks;
    std::int64_t steps;
    std::optional<bool> in_place;
    int smallest_slots;
};

}  // namespace

TEST_CASE("algorithms of the field are read, and verify as they are meant") {
    if (!test::field_present()) return;
    const FieldFact facts[] = {
        {"msccl/ncv4-allreduce-hier-12-simple.xml", 4, 336, true, 1},
        {"msccl/ndv4-alltoall-2ll.xml", 8, 240, false, 1},
        {"msccl/ndv4-allgather-inplace-1k-512k.xml", 8, 224, true, 1},
        {"msccl/ndv4-allreduce-pairs-2ll.xml", 8, 2672, true, 1},
        {"msccl/ndv4-allreduce-ring-4ch-ll.xml", 8, 960, true, 1},
        {"msccl/teccl-amd-32rank-allgather.xml", 32, 3886, true, 1},
        {"msccl/astra-ring-allreduce-8-no-sizes.xml", 8, 224, true, 1},
    };
    for (const FieldFact& fact : facts) {
        CAPTURE(fact.file);
        const auto text = test::field_file(fact.file);
        CHECK(recognizes_msccl_xml(*text));
        const ImportedProgram imported = read_msccl_xml(*text, fact.file);
        CHECK(imported.program.collective.ranks == fact.ranks);
        CHECK(any_contains(imported.found, fmt::format("{} steps: ", fact.steps)));
        CHECK(imported.program.in_place == fact.in_place);
        const ir::ProgramReport report = ir::verify(imported.program);
        CHECK(report.assurance == ir::Assurance::proved);
        CHECK(report.smallest_slots == fact.smallest_slots);
        // No other placement is served.
        ir::Program other = imported.program;
        other.in_place = !*fact.in_place;
        if (*fact.in_place) CHECK(verify_fault(other) != "");
    }
}
