// Export to GOAL and Graphviz: every send has its receive of the same size, and what has no counterpart is
// refused.
#include <baton/base/error.hpp>
#include <baton/codegen/interchange/dot.hpp>
#include <baton/codegen/interchange/goal.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/algorithm_json.hpp>

#include <doctest/doctest.h>

#include <map>
#include <sstream>

using namespace baton;
using namespace baton::codegen;

namespace {

ir::Program ring(int ranks, ModePreference mode = ModePreference::staged) {
    ir::LoadOptions options;
    options.ranks = ranks;
    LowerOptions lower_options;
    lower_options.mode = mode;
    return lower(ir::load_algorithm(BATON_SOURCE_DIR "/examples/algorithms/ring_all_reduce.json", options),
                 lower_options);
}

int count(const std::string& text, const std::string& part) {
    int n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
    return n;
}

}  // namespace

TEST_CASE("GOAL has a receive of the same size for every send, and only labels that exist") {
    const std::string text = write_goal(ring(4), 1 << 20);
    std::istringstream lines(text);
    std::string line;
    std::map<std::string, int> balance;  // "SRC DST TAG SIZE"
    std::int64_t bytes = 0;
    int rank = -1, last = 0;
    while (std::getline(lines, line)) {
        int label = 0, peer = 0, tag = 0, other = 0;
        long long size = 0;
        if (std::sscanf(line.c_str(), "rank %d {", &rank) == 1) last = 0;
        if (std::sscanf(line.c_str(), "l%d: send %lldb to %d tag %d", &label, &size, &peer, &tag) == 4) {
            ++balance[std::to_string(rank) + " " + std::to_string(peer) + " " + std::to_string(tag) + " " +
                      std::to_string(size)];
            bytes += size;
        }
        if (std::sscanf(line.c_str(), "l%d: recv %lldb from %d tag %d", &label, &size, &peer, &tag) == 4)
            --balance[std::to_string(peer) + " " + std::to_string(rank) + " " + std::to_string(tag) + " " +
                      std::to_string(size)];
        if (std::sscanf(line.c_str(), "l%d requires l%d", &label, &other) == 2) {
            CHECK(label == last);
            CHECK(other < label);
        } else if (label > 0) {
            CHECK(label == last + 1);
            last = label;
        }
    }
    for (const auto& [message, n] : balance) CHECK(n == 0);
    CHECK(bytes == std::int64_t{2} * 3 * (1 << 20));  // 2 (N - 1) / N of the buffer from each of N ranks
    CHECK(count(text, "num_ranks 4\n") == 1);
}

TEST_CASE("GOAL takes the sizes of unequal classes, and refuses what it has no word for") {
    ir::Program program = ring(3);
    program.collective.weights = {1, 2, 1};
    const std::string text = write_goal(program, 64 * 16);
    CHECK(count(text, "send 512b") == 4);
    CHECK(count(text, "send 256b") == 8);
    program.connections.clear();
    ir::Program remote = ring(2);
    remote.ranks[0].threadblocks[0].operands[0].kind = ir::OperandKind::remote;
    CHECK_THROWS_AS(write_goal(remote, 1024), Error);
}

TEST_CASE("Graphviz text of a schedule's messages has each connection") {
    const std::string schedule = write_dot(ring(4));
    CHECK(count(schedule, " -> ") == 4);
    CHECK(count(schedule, "6 messages, 6 chunks") == 4);
}
