#include <baton/base/error.hpp>
#include <baton/ir/verify.hpp>
#include <baton/ir/verify/program_schedule.hpp>
#include <support/programs.hpp>

#include <doctest/doctest.h>
#include <random>

using namespace baton;
using namespace baton::test;
using ir::CollectiveKind;
using ir::Event;
using ir::Mode;
using ir::Order;

namespace {

// The message of the check error that `verify` throws; "" when it passes.
std::string fault(const ir::Program& program, const ir::VerifyOptions& options = {}) {
    try {
        ir::verify(program, options);
        return {};
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::check_failed);
        return error.what();
    }
}

bool contains(const std::string& text, const std::string& part) {
    const bool found = text.find(part) != std::string::npos;
    if (!found) MESSAGE("\"" << part << "\" is not in: " << text);
    return found;
}

}  // namespace

TEST_CASE("a ring all-reduce is proved, keeps replicas equal and needs two slots") {
    for (const int ranks : {2, 3, 4, 5, 8, 16}) {
        const auto report = ir::verify(ring_all_reduce_program(ranks));
        CHECK(report.assurance == ir::Assurance::proved);
        // Two ranks reduce in either order, and a reduction of two commutes.
        CHECK(report.order == (ranks == 2 ? Order::rank_order : Order::replicas_equal));
        CHECK(report.smallest_slots == 2);
    }
}

TEST_CASE("a ring all-reduce with one slot deadlocks, and the cycle is named") {
    const std::string text = fault(ring_all_reduce_program(4, 1));
    CHECK(contains(text, "deadlock"));
    for (int rank = 0; rank < 4; ++rank)
        CHECK(contains(text, "rank " + std::to_string(rank) + ", threadblock 0, instruction 1"));
    CHECK(contains(text, "a free slot of connection"));
    CHECK(contains(text, "with 2 slots"));
    ir::VerifyOptions one;
    one.slots = 1;
    CHECK(contains(fault(ring_all_reduce_program(4, 8), one), "deadlock"));
}

TEST_CASE("one wider connection is enough to free a ring, and the minimum per connection says so") {
    ir::Program program = ring_all_reduce_program(5, 1);
    program.connections[2].slots = 2;
    const auto report = ir::verify(program);
    CHECK(report.smallest_slots == 2);
    CHECK(report.smallest_per_connection == std::vector<int>{1, 1, 2, 1, 1});
    CHECK(ir::verify(ring_all_reduce_program(5, 2)).smallest_per_connection ==
          std::vector<int>{1, 1, 1, 1, 1});
}

TEST_CASE("direct all-gathers are proved in every mode") {
    for (const Mode mode : {Mode::staged, Mode::put, Mode::get}) {
        for (const int ranks : {1, 2, 3, 5}) {
            const auto report = ir::verify(direct_all_gather(ranks, mode, 2));
            CHECK(report.assurance == ir::Assurance::proved);
            CHECK(report.order == Order::rank_order);
            CHECK(report.smallest_slots == (mode == Mode::staged && ranks > 1 ? 1 : 0));
        }
    }
}

TEST_CASE("a one-shot all-reduce folds in rank order") {
    for (const int ranks : {1, 2, 3, 7})
        CHECK(ir::verify(one_shot_all_reduce_program(ranks)).order == Order::rank_order);
    // Two operands swapped on one rank: its own fold differs from the others'.
    ir::Program program = one_shot_all_reduce_program(4);
    auto& operands = program.ranks[2].threadblocks[0].operands;
    std::swap(operands[0], operands[3]);
    CHECK(ir::verify(program).order == Order::fixed);
    // Swapping the first two is commutativity only.
    program = one_shot_all_reduce_program(4);
    for (auto& rank : program.ranks)
        std::swap(rank.threadblocks[0].operands[0], rank.threadblocks[0].operands[1]);
    CHECK(ir::verify(program).order == Order::rank_order);
    // The same other order on all ranks: replicas are equal, in an order of their own.
    program = one_shot_all_reduce_program(4);
    for (auto& rank : program.ranks) {
        auto& ops = rank.threadblocks[0].operands;
        const auto own = std::find_if(ops.begin(), ops.begin() + 4,
                                      [](const Operand& o) { return o.kind == OperandKind::local; }) -
                         ops.begin();
        CHECK(own >= 0);
        std::reverse(ops.begin(), ops.begin() + 4);
    }
    CHECK(ir::verify(program).order == Order::replicas_equal);
}

TEST_CASE("rounding between the reductions of a chain is seen unless partial results travel wide") {
    const auto chain = [](bool wide) {
        ir::Program program = blank(CollectiveKind::reduce, 3, 1);
        program.collective.root = 2;
        program.wide = wide;
        const int a = connect(program, 0, 1), b = connect(program, 1, 2);
        add(program.ranks[0].threadblocks[0], {input(0)}, {message(a)});
        add(program.ranks[1].threadblocks[0], {message(a), input(0)}, {message(b)});
        add(program.ranks[2].threadblocks[0], {message(b), input(0)}, {output(0)}, {}, true);
        return program;
    };
    CHECK(ir::verify(chain(true)).order == Order::rank_order);
    CHECK(ir::verify(chain(false)).order == Order::replicas_equal);
}

TEST_CASE("a dropped instruction is found") {
    // The last receive of a ring: the message has no partner.
    ir::Program program = ring_all_reduce_program(4);
    program.ranks[1].threadblocks[0].instructions.pop_back();
    CHECK(contains(fault(program), "6 messages are sent and 5 received"));
    // The copy of the own shard: an output without a value.
    program = direct_all_gather(3, Mode::staged);
    program.ranks[2].threadblocks[2].instructions.clear();
    for (auto& block : program.ranks[2].threadblocks) {
        for (auto& instruction : block.instructions) instruction.needs = 0;
    }
    const std::string text = fault(program);
    CHECK(contains(text, "rank 2, output[2]"));
    CHECK(contains(text, "never written"));
}

TEST_CASE("swapped instructions are found") {
    // Rank 0 sends its chunks in the other order: a wrong contribution arrives.
    ir::Program program = blank(CollectiveKind::broadcast, 2, 2);
    const int c = connect(program, 0, 1);
    ir::Threadblock& root = program.ranks[0].threadblocks[0];
    add(root, {input(0, 2)}, {output(0, 2)});
    add(root, {input(0)}, {message(c)});
    add(root, {input(1)}, {message(c)});
    add(program.ranks[1].threadblocks[0], {message(c)}, {output(0)}, {}, false, 11);
    add(program.ranks[1].threadblocks[0], {message(c)}, {output(1)});
    CHECK(fault(program).empty());
    std::swap(root.instructions[1], root.instructions[2]);
    const std::string text = fault(program);
    CHECK(contains(text, "different classes"));
    CHECK(contains(text, "rank 1, threadblock 0, instruction 0 (recv, step 11)"));
    // Without classes (two shards of one class) the postcondition names both ranks.
    program = blank(CollectiveKind::all_gather, 3, 1);
    const int d = connect(program, 1, 0), e = connect(program, 2, 0);
    add(program.ranks[1].threadblocks[0], {input(0)}, {message(d)});
    add(program.ranks[2].threadblocks[0], {input(0)}, {message(e)});
    add(program.ranks[0].threadblocks[0], {message(e)}, {output(1)});
    add(program.ranks[0].threadblocks[0], {message(d)}, {output(2)});
    add(program.ranks[0].threadblocks[0], {input(0)}, {output(0)});
    CHECK(contains(fault(program),
                   "misses the contribution of shard 0 of rank 1 and holds that of shard 0 of rank 2"));
}

TEST_CASE("a doubled reduction is found") {
    ir::Program program = blank(CollectiveKind::all_reduce, 2, 1);
    const int a = connect(program, 0, 1), b = connect(program, 1, 0);
    for (int r = 0; r < 2; ++r) {
        ir::Threadblock& block = program.ranks[r].threadblocks[0];
        add(block, {input(0)}, {message(r == 0 ? a : b)});
        add(block, {message(r == 0 ? b : a), input(0)}, {output(0)}, {}, true);
    }
    CHECK(fault(program).empty());
    add(program.ranks[0].threadblocks[0], {output(0), output(0)}, {output(0)});
    CHECK(contains(fault(program), "already finalized"));
    for (auto& instruction : program.ranks[0].threadblocks[0].instructions) instruction.finalize = false;
    program.ranks[0].threadblocks[0].instructions.back().finalize = true;
    CHECK(contains(fault(program), "the contribution of rank 0 twice"));
}

TEST_CASE("finalize belongs to one instruction") {
    ir::Program program = one_shot_all_reduce_program(3);
    program.ranks[1].threadblocks[0].instructions[0].finalize = false;
    CHECK(contains(fault(program), "no instruction finalized"));
    program = one_shot_all_reduce_program(3);
    add(program.ranks[1].threadblocks[0], {output(0)}, {output(0)}, {}, true);
    CHECK(contains(fault(program), "finalizes a value twice"));
}

TEST_CASE("a missing need is a race and both instructions are named") {
    ir::Program program = blank(CollectiveKind::all_reduce, 1, 1, 2);
    program.ranks[0].scratch_classes = {0};
    add(program.ranks[0].threadblocks[0], {input(0)}, {scratch(0)}, {}, false, 4);
    add(program.ranks[0].threadblocks[1], {scratch(0)}, {output(0)}, {{0, 0, 0, Event::completed}}, false, 5);
    ir::mark_posts(program);
    CHECK(fault(program).empty());
    program.ranks[0].threadblocks[1].needs[0].instruction = 0;
    program.ranks[0].threadblocks[1].instructions[0].needs = 0;
    const std::string text = fault(program);
    CHECK(contains(text, "race"));
    CHECK(contains(text, "rank 0, threadblock 0, instruction 0 (copy, step 4)"));
    CHECK(contains(text, "rank 0, threadblock 1, instruction 0 (copy, step 5)"));
    // A write after a write, where values agree, is a race as well.
    program = one_shot_all_reduce_program(1);
    add(program.ranks[0].threadblocks[1], {input(0)}, {output(0)}, {}, false, 9);
    const std::string race = fault(program);
    CHECK(contains(race, "race"));
    CHECK(contains(race, "rank 0, threadblock 0, instruction 0 (copy)"));
    CHECK(contains(race, "rank 0, threadblock 1, instruction 0 (copy, step 9)"));
}

TEST_CASE("a race that exists in place only is found") {
    // Threadblock 1 sends the input while threadblock 0 writes the output over it.
    ir::Program program = one_shot_all_reduce_program(3);
    for (auto& rank : program.ranks) rank.threadblocks[0].instructions[0].needs = 0;
    const std::string text = fault(program);
    CHECK(contains(text, "race"));
    CHECK(contains(text, "in place"));
}

TEST_CASE("a copy forwarded past an aliased write is found") {
    // Rank 1 forwards its input after it was overwritten in place by what rank 0 sent.
    ir::Program program = blank(CollectiveKind::all_to_all, 2, 1);
    const int a = connect(program, 0, 1), b = connect(program, 1, 0);
    for (int r = 0; r < 2; ++r) {
        ir::Threadblock& block = program.ranks[r].threadblocks[0];
        add(block, {input(r)}, {output(r)});
        add(block, {input(1 - r)}, {message(r == 0 ? a : b)});
        add(block, {message(r == 0 ? b : a)}, {output(1 - r)});
    }
    CHECK(fault(program).empty());
    auto& instructions = program.ranks[1].threadblocks[0].instructions;
    std::swap(instructions[1], instructions[2]);
    CHECK(contains(fault(program), "carries other values in place than out of place"));
}

TEST_CASE("a put needs an order against earlier accesses of its destination") {
    // Rank 1 still sends scratch[0] to rank 2 when rank 0 puts into it, unless a token says it is done.
    const auto program = [](bool token) {
        ir::Program p = blank(CollectiveKind::broadcast, 3, 1, 1);
        p.ranks[1].scratch_classes = {0};
        const int first = connect(p, 0, 1, Mode::put);
        const int on = connect(p, 1, 2);
        const int again = connect(p, 0, 1, Mode::put, 2, 0, 0, 1);
        ir::Threadblock& root = p.ranks[0].threadblocks[0];
        ir::Threadblock& middle = p.ranks[1].threadblocks[0];
        add(root, {input(0)}, {output(0)});
        add(root, {input(0)}, {message(first)});
        add(middle, {message(first)}, {scratch(0)});
        add(middle, {scratch(0)}, {message(on)});
        add(middle, {scratch(0)}, {output(0)});
        add(root, {input(0)}, {message(again)},
            token ? std::vector<ir::Need>{{1, 0, 2, Event::completed}} : std::vector<ir::Need>{});
        add(middle, {message(again)}, {scratch(0)});
        add(p.ranks[2].threadblocks[0], {message(on)}, {output(0)});
        ir::mark_posts(p);
        return p;
    };
    CHECK(fault(program(true)).empty());
    const std::string text = fault(program(false));
    CHECK(contains(text, "race"));
    CHECK(contains(text, "rank 0, threadblock 0, instruction 2 (send)"));
    CHECK(contains(text, "rank 1, threadblock 0"));
    CHECK(contains(text, "scratch[0] of rank 1"));
}

TEST_CASE("a get source must stay until its reader acknowledged") {
    const auto program = [](bool wait, Event event) {
        ir::Program p = blank(CollectiveKind::broadcast, 2, 1);
        p.ranks[0].scratch_classes = {0};
        const int c = connect(p, 0, 1, Mode::get);
        ir::Threadblock& root = p.ranks[0].threadblocks[0];
        add(root, {input(0)}, {scratch(0)});
        add(root, {scratch(0)}, {message(c)});
        add(root, {input(0)}, {scratch(0)},
            wait ? std::vector<ir::Need>{{0, 0, 1, event}} : std::vector<ir::Need>{});
        add(root, {input(0)}, {output(0)});
        add(p.ranks[1].threadblocks[0], {message(c)}, {output(0)});
        return p;
    };
    CHECK(fault(program(true, Event::source_free)).empty());
    CHECK(contains(fault(program(true, Event::completed)), "race"));
    CHECK(contains(fault(program(false, Event::completed)), "race"));
}

TEST_CASE("remote operands are ordered by tokens") {
    const auto program = [](bool token) {
        ir::Program p = blank(CollectiveKind::broadcast, 2, 2);
        add(p.ranks[0].threadblocks[0], {input(0, 2)}, {output(0, 2)});
        add(p.ranks[0].threadblocks[0], {input(0, 2)}, {remote(1, Buffer::output, 0, 2)});
        p.ranks[1].scratch_classes = {0, 1};
        add(p.ranks[1].threadblocks[0], {output(0, 2)}, {scratch(0, 2)},
            token ? std::vector<ir::Need>{{0, 0, 1, Event::completed}} : std::vector<ir::Need>{});
        ir::mark_posts(p);
        return p;
    };
    CHECK(fault(program(true)).empty());
    CHECK(contains(fault(program(false)), "race"));
}

TEST_CASE("cyclic waits are a deadlock with any number of slots") {
    ir::Program program = blank(CollectiveKind::all_reduce, 1, 1, 2);
    add(program.ranks[0].threadblocks[0], {input(0)}, {output(0)}, {{0, 1, 0, Event::completed}});
    add(program.ranks[0].threadblocks[1], {}, {}, {{0, 0, 0, Event::completed}});
    ir::mark_posts(program);
    const std::string text = fault(program);
    CHECK(contains(text, "deadlock"));
    CHECK(contains(text,
                   "rank 0, threadblock 0, instruction 0 (copy) waits for the token of rank 0, threadblock "
                   "1, instruction 0 (wait)"));
    // An instruction that waits for a later one of its own threadblock.
    program = blank(CollectiveKind::all_reduce, 1, 1);
    add(program.ranks[0].threadblocks[0], {}, {}, {{0, 0, 1, Event::completed}});
    add(program.ranks[0].threadblocks[0], {input(0)}, {output(0)});
    CHECK(contains(fault(program), "deadlock"));
    // Two ranks that receive before they send.
    program = blank(CollectiveKind::all_to_all, 2, 1);
    const int a = connect(program, 0, 1), b = connect(program, 1, 0);
    for (int r = 0; r < 2; ++r) {
        ir::Threadblock& block = program.ranks[r].threadblocks[0];
        add(block, {message(r == 0 ? b : a)}, {output(1 - r)});
        add(block, {input(1 - r)}, {message(r == 0 ? a : b)});
        add(block, {input(r)}, {output(r)});
    }
    CHECK(contains(fault(program), "the message on connection"));
}

TEST_CASE("broken structure is named, not followed") {
    const auto broken = [](const std::function<void(ir::Program&)>& damage) {
        ir::Program program = ring_all_reduce_program(3);
        damage(program);
        return fault(program);
    };
    CHECK(contains(broken([](auto& p) { p.connections[1].slots = 0; }), "connection 1: has 0 slots"));
    CHECK(contains(broken([](auto& p) { p.connections[1].slots = -4; }), "-4 slots"));
    CHECK(contains(broken([](auto& p) { p.connections[1].dst = 7; }), "names rank 7"));
    CHECK(contains(broken([](auto& p) { p.connections[1].dst = 1; }), "joins rank 1 with itself"));
    CHECK(contains(broken([](auto& p) {
                       p.connections[1].mode = Mode::put;
                       p.connections[1].protocol = ir::Protocol::ll;
                   }),
                   "staged only"));
    CHECK(
        contains(broken([](auto& p) { p.ranks[0].threadblocks[0].sends.clear(); }), "no threadblock sends"));
    CHECK(contains(broken([](auto& p) { p.ranks[0].threadblocks[0].sends.push_back(0); }), "two senders"));
    CHECK(contains(broken([](auto& p) { p.ranks[1].threadblocks[0].sends.push_back(0); }),
                   "whose sender is rank 0"));
    CHECK(contains(broken([](auto& p) { p.ranks[0].threadblocks[0].operands[0].index = 3; }),
                   "input[3] of rank 0, which has 3 places"));
    CHECK(contains(broken([](auto& p) { p.ranks[0].threadblocks[0].operands[0].index = INT32_MAX; }),
                   "which has 3 places"));
    CHECK(contains(broken([](auto& p) { p.ranks[0].threadblocks[0].operands[0].chunks = 2; }),
                   "operands of 2 and 1 chunks"));
    CHECK(contains(broken([](auto& p) { p.ranks[0].threadblocks[0].operands[1].target = 9; }),
                   "names connection 9"));
    CHECK(
        contains(broken([](auto& p) { p.ranks[0].threadblocks[0].operands[1].target = 1; }), "does not own"));
    CHECK(
        contains(broken([](auto& p) { p.ranks[0].threadblocks[0].instructions[0].first_operand = 1u << 31; }),
                 "outside its threadblock's pools"));
    CHECK(contains(broken([](auto& p) { p.ranks[0].threadblocks[0].instructions[0].destinations = 0; }),
                   "no destination"));
    CHECK(contains(broken([](auto& p) { p.ranks.pop_back(); }), "the program has 2 ranks"));
    CHECK(
        contains(broken([](auto& p) { p.ranks[0].threadblocks[0].operands[1] = input(0); }), "writes input"));
    CHECK(contains(broken([](auto& p) {
                       auto& block = p.ranks[0].threadblocks[0];
                       block.needs.push_back({0, 3, 0, Event::completed});
                       block.instructions[0].first_need = 0;
                       block.instructions[0].needs = 1;
                   }),
                   "needs instruction 0 of threadblock 3 of rank 0, which does not exist"));
    CHECK(contains(broken([](auto& p) {
                       auto& block = p.ranks[0].threadblocks[0];
                       block.needs.push_back({1, 0, 0, Event::completed});
                       block.instructions[1].first_need = 0;
                       block.instructions[1].needs = 1;
                   }),
                   "posts no token"));
    CHECK(contains(broken([](auto& p) {
                       p.ranks[0].threadblocks[0].repeats.push_back({3, 4, 5});
                   }),
                   "repeat 0"));
    ir::Program gather = blank(CollectiveKind::all_gather, 1, 2);
    add(gather.ranks[0].threadblocks[0], {input(0), input(1)}, {output(0)});
    CHECK(contains(fault(gather), "reduces in a all_gather"));
}

TEST_CASE("an instruction whose operands partly overlap is refused") {
    ir::Program program = blank(CollectiveKind::all_gather, 1, 4);
    ir::Threadblock& block = program.ranks[0].threadblocks[0];
    add(block, {input(0, 4)}, {output(0, 4)});
    CHECK(fault(program).empty());
    program.collective.chunks = 1;
    program.collective.kind = CollectiveKind::all_to_all;
    block = {};
    program.ranks[0].scratch_classes = {0, 0, 0};
    add(block, {input(0)}, {output(0)});
    add(block, {output(0)}, {scratch(0)});
    add(block, {output(0)}, {scratch(1)});
    add(block, {scratch(0, 2)}, {scratch(1, 2)});
    CHECK(contains(fault(program), "partly overlap"));
}

TEST_CASE("put and get pair with plain receives and local sources") {
    ir::Program program = direct_all_gather(2, Mode::put);
    auto& receive = program.ranks[1].threadblocks[0];
    receive.operands.insert(receive.operands.end(), 0, Operand{});
    program.ranks[1].scratch_classes = {0};
    receive.instructions.clear();
    receive.operands.clear();
    for (std::size_t c = 0; c < 2; ++c) {
        if (program.connections[c].dst == 1)
            add(receive, {message(static_cast<int>(c))}, {output(0), scratch(0)});
        if (program.connections[c].src == 1) add(receive, {input(0)}, {message(static_cast<int>(c))});
    }
    CHECK(contains(fault(program), "otherwise than into one local destination"));
    program = ring_all_reduce_program(3);
    for (auto& connection : program.connections) connection.mode = Mode::get;
    CHECK(contains(fault(program), "something else than one local source"));
}

TEST_CASE("several tiles run exactly when one does") {
    // Random exchanges over connections with random slots: messages in a random global order, so that some
    // deadlock.
    std::mt19937 random(7);
    int complete = 0;
    for (int round = 0; round < 400; ++round) {
        const int ranks = 2 + static_cast<int>(random() % 3);
        ir::Program program = blank(CollectiveKind::broadcast, ranks, 1);
        for (auto& rank : program.ranks) rank.scratch_classes = {0};
        for (int a = 0; a < ranks; ++a) {
            for (int b = 0; b < ranks; ++b) {
                if (a != b && random() % 3 > 0)
                    connect(program, a, b, Mode::staged, 1 + static_cast<int>(random() % 2));
            }
        }
        if (program.connections.empty()) continue;
        std::vector<std::vector<std::pair<bool, int>>> events(static_cast<std::size_t>(ranks));
        for (int m = 0; m < 6; ++m) {
            const int c = static_cast<int>(random() % program.connections.size());
            events[program.connections[c].src].push_back({true, c});
            events[program.connections[c].dst].push_back({false, c});
        }
        for (int r = 0; r < ranks; ++r) {
            for (std::size_t i = events[r].size(); i > 1; --i) {
                if (random() % 3 == 0) std::swap(events[r][i - 1], events[r][random() % i]);
            }
            for (const auto& [send, c] : events[r]) {
                if (send) add(program.ranks[r].threadblocks[0], {scratch(0)}, {message(c)});
                if (!send) add(program.ranks[r].threadblocks[0], {message(c)}, {scratch(0)});
            }
        }
        const auto graph = ir::checks::build_graph(program);
        const auto slots = ir::checks::slot_counts(program, 0);
        const bool one = ir::checks::run_schedule(graph, slots, false, 1).complete;
        complete += one;
        for (const std::int64_t tiles : {2, 3, 5})
            CHECK(ir::checks::run_schedule(graph, slots, false, tiles).complete == one);
    }
    CHECK(complete > 50);
    CHECK(complete < 350);
}

TEST_CASE("the minimum per connection agrees with trying every slot count") {
    std::mt19937 random(11);
    int checked = 0;
    for (int round = 0; round < 200; ++round) {
        const int ranks = 3 + static_cast<int>(random() % 3);
        ir::Program program = ring_all_reduce_program(ranks, 1);
        for (auto& connection : program.connections) connection.slots = 1 + static_cast<int>(random() % 3);
        const auto graph = ir::checks::build_graph(program);
        const auto slots = ir::checks::slot_counts(program, 0);
        if (!ir::checks::run_schedule(graph, slots, false).complete) continue;
        const auto report = ir::verify(program);
        for (std::size_t c = 0; c < slots.size(); ++c) {
            auto fewer = slots;
            fewer[c] = report.smallest_per_connection[c];
            CHECK(ir::checks::run_schedule(graph, fewer, false).complete);
            if (--fewer[c] > 0) CHECK(!ir::checks::run_schedule(graph, fewer, false).complete);
            ++checked;
        }
    }
    CHECK(checked > 100);
}

TEST_CASE("a Program above the instruction limit is not proven, in words") {
    ir::VerifyOptions options;
    options.instruction_limit = 10;
    const auto report = ir::verify(ring_all_reduce_program(8), options);
    CHECK(report.assurance == ir::Assurance::not_proven);
    CHECK(contains(report.warnings.at(0), "not proven: 120 instructions"));
    options = {};
    options.memory_budget = 16;
    CHECK(ir::verify(ring_all_reduce_program(8), options).assurance == ir::Assurance::not_proven);
}

TEST_CASE("a switch reduction has any order") {
    ir::Program program = blank(CollectiveKind::all_reduce, 4, 1);
    program.switch_groups = {{0, 1, 2, 3}};
    add(program.ranks[0].threadblocks[0], {{OperandKind::switch_group, Buffer::input, 0, 0, 1}},
        {{OperandKind::switch_group, Buffer::output, 0, 0, 1}}, {}, true);
    CHECK(ir::verify(program).order == Order::any);
}
