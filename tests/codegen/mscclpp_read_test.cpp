// MSCCL++'s execution plans: what is made of them, with small plans for each way of ordering, and the files
// of the field.
#include "support/field.hpp"
#include "support/imported.hpp"

#include <baton/base/error.hpp>
#include <baton/codegen/interchange/mscclpp.hpp>
#include <baton/ir/program_json.hpp>
#include <baton/ir/verify.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace baton;
using namespace baton::codegen;
using test::says;

namespace {

ImportedProgram read_plan(const std::string& text) { return read_mscclpp_json(text, "a.json"); }

std::string plan_fault(const std::string& text) {
    try {
        read_plan(text);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "";
}
std::string plan_verdict(const std::string& text) {
    try {
        ir::verify(read_plan(text).program);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::check_failed);
        return error.what();
    }
    return "right";
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
std::string exchanged(std::string text, const std::string& from, const std::string& to) {
    const auto place = text.find(from);
    REQUIRE_MESSAGE(place != std::string::npos, from);
    return text.replace(place, from.size(), to);
}

std::string own(char buffer, int index, int size = 1) {
    return fmt::format(R"({{"type": "{}", "index": {}, "size": {}}})", buffer, index, size);
}
std::string remote(int id, int index, int size = 1) {
    return fmt::format(R"({{"buffer_id": {}, "index": {}, "size": {}}})", id, index, size);
}
std::string move(const std::string& name, const std::string& src, const std::string& dst) {
    return fmt::format(R"({{"name": "{}", "src_buff": [{}], "dst_buff": [{}], "channel_type": "memory"}})",
                       name, src, dst);
}
std::string sync(const std::string& name, const std::string& type = "memory") {
    return fmt::format(R"({{"name": "{}", "channel_ids": [0], "channel_type": "{}"}})", name, type);
}

/// A plan of two ranks with a channel of each type and the three buffers of the peer; `blocks` gives the
/// operations of the threadblocks of a rank.
std::string two_rank_plan(const std::string& collective, bool in_place, int inputs, int outputs, int scratch,
                          const std::function<std::vector<std::vector<std::string>>(int)>& blocks,
                          const std::string& more = "") {
    std::string text =
        fmt::format(R"({{"name": "two", "collective": "{}", "protocol": "Simple", "inplace": {}, "gpus": [)",
                    collective, in_place);
    for (int r = 0; r < 2; ++r) {
        text += fmt::format(R"({}{{"id": {}, "input_chunks": {}, "output_chunks": {}, "scratch_chunks": {},
 "channels": [{{"channel_type": "memory", "connected_to": [{}]}}, {{"channel_type": "port", "connected_to": [{}]}},
  {{"channel_type": "switch", "buffer_type": "i", "rank_groups": [{{"size": 2, "ranks": [0, 1]}}]}}],
 "semaphores": [{{"init_value": 0}}],
 "remote_buffers": [)",
                            r > 0 ? "," : "", r, inputs, outputs, scratch, 1 - r, 1 - r);
        for (const char* const type : {"i", "o", "s"})
            text +=
                fmt::format(R"({}{{"rank": {}, "type": "{}", "access_channel_types": ["memory", "port"]}})",
                            *type == 'i' ? "" : ", ", 1 - r, type);
        text += R"(], "threadblocks": [)";
        const auto all = blocks(r);
        for (std::size_t b = 0; b < all.size(); ++b) {
            text += fmt::format(R"({}{{"id": {}, "ops": [)", b > 0 ? "," : "", b);
            for (std::size_t i = 0; i < all[b].size(); ++i) text += (i > 0 ? ",\n" : "") + all[b][i];
            text += R"(], "channels": [{"channel_type": "memory", "channel_ids": [0]},
 {"channel_type": "port", "channel_ids": [0]}, {"channel_type": "switch", "channel_ids": [0]}],
 "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0, 1, 2]},
 {"access_channel_type": "port", "remote_buffer_ids": [0, 1, 2]}]})";
        }
        text += "]}";
    }
    return text + "]" + more + "}";
}

/// All-gather out of place: each copies its own, puts it at the peer, and waits for the peer's.
std::string gather_plan() {
    return two_rank_plan("allgather", false, 1, 2, 0, [](int r) {
        return std::vector<std::vector<std::string>>{
            {move("copy", own('i', 0), own('o', r)), R"({"name": "nop"})",
             move("put", own('i', 0), remote(1, r)), sync("signal"), sync("wait")}};
    });
}

}  // namespace

TEST_CASE("a plan of MSCCL++ becomes a program on remote places, ordered by its signals") {
    const ImportedProgram imported = read_plan(gather_plan());
    const ir::Program& program = imported.program;
    CHECK(imported.warnings.empty());
    CHECK(ir::describe(program.collective) == "all_gather of 2 ranks, 1 chunk");
    CHECK(program.in_place == false);
    CHECK(program.connections.empty());
    const ir::Threadblock& block = program.ranks[0].threadblocks[0];
    REQUIRE(block.instructions.size() == 3);
    CHECK(ir::shape(block, block.instructions[1]) == "write");
    CHECK(block.destinations(block.instructions[1])[0].target == 1);
    // The wait is a need of the instruction in front of the peer's signal.
    REQUIRE(block.needs_of(block.instructions[2]).size() == 1);
    CHECK(block.needs_of(block.instructions[2])[0] == ir::Need{1, 0, 1, ir::Event::completed});
    CHECK(ir::verify(program).assurance == ir::Assurance::proved);
    CHECK(ir::to_json(ir::parse_program(ir::to_json(program))) == ir::to_json(program));
    CHECK(recognizes_mscclpp_json(gather_plan()));
    CHECK_FALSE(recognizes_mscclpp_json(ir::to_json(program)));
}

TEST_CASE("an operation that has no counterpart is named with its place") {
    const std::string text = exchanged(gather_plan(), R"("name": "copy")", R"("name": "glre")");
    CHECK(
        has(plan_fault(text), "a.json#/gpus/0/threadblocks/0/ops/0: operation \"glre\" has no counterpart"));
    CHECK(has(plan_fault(exchanged(gather_plan(), "allgather", "custom")),
              "a.json#/collective: collective \"custom\" says nothing about what the result is"));
    CHECK(has(plan_fault(R"({"name": "x", "collective": "allreduce", "protocol": "Simple", "inplace": true,
                            "gpus": [{"id": 0, "inputChunks": 1}]})"),
              "early version of MSCCL++"));
    CHECK(recognizes_mscclpp_json(
        "{\"colletive\": \"allreduce\", \"gpus\": [{\"inputChunks\": 1, \"threadblocks\": []}]}"));
    CHECK(has(plan_fault(exchanged(gather_plan(), R"("buffer_id": 1)", R"("buffer_id": 3)")),
              "ops/2/dst_buff/0/buffer_id: the threadblock has 3 remote buffers on memory channels"));
    CHECK(has(plan_fault(exchanged(gather_plan(), R"("input_chunks": 1)", R"("input_chunks": 7)")),
              "output_chunks is 2"));
}

TEST_CASE("a wait without a signal never ends, and a missing wait shows in the proof") {
    CHECK(has(plan_fault(exchanged(gather_plan(), R"("name": "signal")", R"("name": "flush")")),
              "/gpus/1/threadblocks/0/ops/4: waits for ever"));
    // Rank 0 does not wait, so that its output is not complete when it ends: nobody reads it, and the put of
    // the peer is ordered after nothing.
    const std::string eager = two_rank_plan("allreduce", true, 2, 2, 2, [](int r) {
        return std::vector<std::vector<std::string>>{
            {move("put", own('i', 1 - r), remote(2, 0)), sync("signal"), sync(r == 0 ? "flush" : "wait"),
             move("re", own('i', r) + "," + own('s', 0), own('i', r)), sync("signal"), sync("wait"),
             move("get", remote(0, 1 - r), own('i', 1 - r))}};
    });
    CHECK(has(plan_verdict(eager), "race"));
}

TEST_CASE("packets order their readers, and readers of packets that nobody writes never go on") {
    const auto blocks = [](int r) {
        return std::vector<std::vector<std::string>>{
            {move("ppkt", own('i', 1 - r), remote(2, 0)),
             move("respkt", own('i', r) + "," + own('s', 0), own('i', r) + "," + remote(2, 1))},
            {move("upkt", own('s', 1), own('i', 1 - r))}};
    };
    const std::string good = two_rank_plan("allreduce", true, 2, 2, 2, blocks);
    const ir::Program program = read_plan(good).program;
    CHECK(plan_verdict(good) == "right");
    const ir::Threadblock& block = program.ranks[0].threadblocks[1];
    CHECK(block.needs_of(block.instructions[0])[0] == ir::Need{1, 0, 1, ir::Event::completed});
    // The executor adds the packets first.
    const ir::Threadblock& adds = program.ranks[0].threadblocks[0];
    CHECK(adds.sources(adds.instructions[1])[0].buffer == ir::Buffer::scratch);
    const std::string missing = exchanged(good, remote(2, 1), remote(2, 0));
    CHECK(has(plan_fault(missing), "waits for ever: nobody writes packets to scratch place 1 of rank 1"));
}

TEST_CASE("barriers and semaphores order the threadblocks of a rank") {
    const auto blocks = [](const std::string& first, const std::string& second) {
        return [=](int r) {
            return std::vector<std::vector<std::string>>{
                {move("put", own('i', 1 - r), remote(2, 0)), sync("signal"), sync("wait"), first},
                {second, move("re", own('i', r) + "," + own('s', 0), own('o', r)), sync("signal", "port"),
                 sync("wait", "port"), move("get", remote(1, 1 - r), own('o', 1 - r))}};
        };
    };
    const std::string barrier = R"({"name": "barrier", "barrier_id": 0, "num_threadblocks": 2})";
    const std::string with_barrier = two_rank_plan("allreduce", false, 2, 2, 1, blocks(barrier, barrier));
    CHECK(plan_verdict(with_barrier) == "right");
    const std::string with_semaphore =
        two_rank_plan("allreduce", false, 2, 2, 1,
                      blocks(R"({"name": "sem_release", "semaphore_ids": [0]})",
                             R"({"name": "sem_acquire", "semaphore_ids": [0]})"));
    CHECK(plan_verdict(with_semaphore) == "right");
    const std::string unordered =
        two_rank_plan("allreduce", false, 2, 2, 1, blocks(R"({"name": "nop"})", R"({"name": "nop"})"));
    CHECK(has(plan_verdict(unordered), "race"));
    CHECK(has(plan_fault(exchanged(with_barrier, R"("num_threadblocks": 2)", R"("num_threadblocks": 3)")),
              "barrier 0 is for"));
    CHECK(has(plan_fault(exchanged(with_semaphore, "sem_release", "sem_acquire")), "waits for ever"));
}

TEST_CASE("switches reduce and multicast, and shares of threadblocks cut chunks into pieces") {
    const auto op = [](int r) {
        return fmt::format(
            R"({{"name": "glres", "src_buff": [{{"switch_channel_id": 0, "index": {0}, "size": 1}}],
                "dst_buff": [{{"switch_channel_id": 0, "index": {0}, "size": 1}}], "channel_type": "switch"}})",
            r);
    };
    const std::string switched = two_rank_plan("allreduce", true, 2, 2, 0, [&](int r) {
        return std::vector<std::vector<std::string>>{
            {sync("rlxsignal"), sync("rlxwait"), op(r), sync("rlxsignal"), sync("rlxwait")}};
    });
    CHECK(plan_verdict(switched) == "right");
    CHECK(says(read_plan(switched).warnings, "relaxed"));
    const std::string shared = two_rank_plan("allgather", false, 1, 2, 0, [](int r) {
        std::vector<std::vector<std::string>> blocks;
        for (int b = 0; b < 3; ++b) {
            std::string put = move("put", own('i', 0), remote(1, r));
            put.insert(put.size() - 1, fmt::format(R"(, "tbg_info": {{"tb_id": {}, "tbg_size": 3}})", b));
            blocks.push_back({put});
            if (b == 0) blocks.back().push_back(move("copy", own('i', 0), own('o', r)));
        }
        return blocks;
    });
    const ImportedProgram imported = read_plan(shared);
    CHECK(imported.program.collective.chunks == 3);
    CHECK(says(imported.assumptions, "into 3 pieces"));
    CHECK(ir::verify(imported.program).assurance == ir::Assurance::proved);
}

TEST_CASE("what has no counterpart in a program is kept aside") {
    const std::string text = two_rank_plan(
        "sendrecv", false, 1, 1, 0,
        [](int) {
            return std::vector<std::vector<std::string>>{
                {move("put", own('i', 0), remote(1, 0)), sync("signal"), sync("wait")}};
        },
        R"(, "num_threads_per_block": 512, "max_message_size": 18446744073709551615, "note": "x")");
    const ImportedProgram imported = read_plan(text);
    CHECK(imported.program.foreign.at("@num_threads_per_block") == "512");
    CHECK(imported.program.foreign.at("@max_message_size") == "18446744073709551615");
    CHECK(imported.program.foreign.at("@note") == "\"x\"");
    CHECK(ir::verify(imported.program).assurance == ir::Assurance::proved);
}

TEST_CASE("plans of the field are read, and verify") {
    if (!test::field_present()) return;
    for (const char* const file : {"mscclpp/reduce.json", "mscclpp/allreduce_packet.json"}) {
        CAPTURE(file);
        const auto text = test::field_file(file);
        CHECK(recognizes_mscclpp_json(*text));
        const ImportedProgram imported = read_mscclpp_json(*text, file);
        CHECK(imported.program.collective.ranks == 2);
        CHECK(imported.program.in_place == true);
        CHECK(imported.warnings.empty());
        CHECK(ir::verify(imported.program).assurance == ir::Assurance::proved);
    }
}
