#include <baton/ir/algorithm_json.hpp>

#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/ir/program.hpp>
#include <baton/ir/verify.hpp>

#include <doctest/doctest.h>
#include <filesystem>
#include <random>
#include <string>

using namespace baton::ir;

namespace {

std::string steps(const std::string& list, const std::string& more = "") {
    return R"({"baton": "algorithm/1", "name": "t", "collective": {"kind": "all_reduce", "ranks": 4, "chunks": 4})" +
           more + R"(, "steps": [)" + list + "]}";
}

/// The error of reading, or of walking what was read.
std::string message(const std::string& text, const LoadOptions& options = {}) {
    try {
        const auto algorithm = parse_algorithm(text, "file.json", options);
        expand(algorithm, 1'000'000);
    } catch (const baton::Error& error) {
        return error.what();
    }
    return "no error";
}

bool contains(const std::string& text, const std::string& part) {
    CAPTURE(text);
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
    return text.find(part) != std::string::npos;
}

std::string example(const std::string& name) {
    std::string path = BATON_SOURCE_DIR "/examples/algorithms/";
    return path.append(name).append(".json");
}

std::string all_of(const Algorithm& a) { return dump(a) + (a.topology_name + a.topology_hash); }

}  // namespace

TEST_CASE("the design's example reads") {
    const auto a = parse_algorithm(R"({"baton": "algorithm/1", "name": "ring all-gather",
        "collective": {"kind": "all_gather", "ranks": 3, "chunks": 1},
        "steps": [
          {"op": "copy", "src": [0, "input", 0],  "dst": [0, "output", 0]},
          {"op": "send", "src": [0, "output", 0], "dst": [1, "output", 0], "channel": 0}]})");
    CHECK(dump(a) ==
          "algorithm \"ring all-gather\"\nall_gather of 3 ranks, 1 chunk\n2 steps\n"
          "     0   copy [0, input, 0] -> [0, output, 0]\n     1   send [0, output, 0] -> [1, output, 0] "
          "channel 0\n");
}

TEST_CASE("what is written reads back to the same algorithm, as JSON and as CBOR") {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(BATON_SOURCE_DIR) + "/examples/algorithms")) {
        const auto a = load_algorithm(entry.path().string());
        const auto text = to_json(a);
        const auto b = parse_algorithm(text);
        CHECK(to_json(b) == text);
        CHECK(all_of(a) == all_of(b));
        const auto c = parse_algorithm(to_cbor(a));
        CHECK(to_json(c) == text);
        // The loops, params and requirements survive: the copy serves other rank counts.
        LoadOptions four;
        four.ranks = 4;
        if (a.params.count("L")) four.params = {{"L", 2}};
        CHECK(all_of(parse_algorithm(text, "t", four)) ==
              all_of(load_algorithm(entry.path().string(), four)));
    }
}

TEST_CASE("explicit steps with blocks and hints survive writing and reading") {
    std::mt19937 random(2);
    for (int trial = 0; trial < 40; ++trial) {
        Collective c;
        c.kind = CollectiveKind::all_to_all;
        c.ranks = 5;
        c.chunks = 2;
        if (trial % 3 == 1) c.groups = {{3, 1}, {0, 4}};
        if (trial % 3 == 2) c.weights = {2, 9};
        AlgorithmBuilder b("random \"quoted\", name: \\ \n", c);
        for (int i = 0; i < 12; ++i) {
            const bool par = random() % 2;
            if (par) b.begin_par();
            b.channel(static_cast<int>(random() % 3) - 1);
            b.protocol(random() % 4 ? Protocol::automatic : Protocol::ll128);
            b.via(random() % 4 ? "" : "a>b,b>c#2");
            for (unsigned k = 0; k < 1 + random() % 3; ++k)
                b.send({static_cast<int>(random() % 5), static_cast<Buffer>(random() % 3),
                        static_cast<std::int64_t>(random() % 9)},
                       {static_cast<int>(random() % 5), Buffer::scratch,
                        static_cast<std::int64_t>(random() % 9)},
                       1 + random() % 3);
            if (par) b.end_par();
        }
        const auto a = b.build();
        const auto back = parse_algorithm(to_json(a));
        CHECK(dump(back) == dump(a));
        CHECK(back.collective == a.collective);
        CHECK(dump(parse_algorithm(to_cbor(a))) == dump(a));
    }
}

TEST_CASE("custom collectives and switch groups survive writing and reading") {
    const std::string text = R"({"baton": "algorithm/1", "name": "c", "topology": {"name": "m", "hash": "12"},
      "switch_groups": [[0, 1]],
      "collective": {"kind": "custom", "ranks": 2, "chunks": 2, "inputs": [[[0, 1]], [[3, 1]]],
                     "outputs": [[{"class": 1, "from": [[0, 0], [1, 3]]}], []]},
      "steps": [{"op": "copy", "src": [0, "input", 0], "dst": [0, "scratch", 0]}, {"op": "copy", "src": [1, "input", 0], "dst": [1, "scratch", 0]},
                {"op": "switch_reduce", "src": [0, "scratch", 0], "dst": [0, "output", 0]},
                {"op": "multicast", "src": [0, "output", 0], "dst": [0, "scratch", 1]}]})";
    const auto a = parse_algorithm(text);
    CHECK(verify(a).assurance == Assurance::proved);
    CHECK(dump(a).find("switch_reduce [switch group 0, scratch, 0] -> [0, output, 0]") != std::string::npos);
    const auto b = parse_algorithm(to_json(a));
    CHECK(all_of(b) == all_of(a));
    CHECK(b.collective == a.collective);
    CHECK(b.topology_hash == "12");
}

TEST_CASE("faults of a file are named with their place") {
    contains(message("[]"), "expected an algorithm");
    contains(message("{}"), "'baton' is missing");
    contains(message(R"({"baton": "topology/1"})"), "expected \"algorithm/1\", got \"topology/1\"");
    contains(message(steps(R"({"op": "send", "src": [0, "input", 0]})")),
             "file.json#/steps/0: the key 'dst' is missing");
    contains(message(steps(R"({"op": "sned", "src": [0, "input", 0], "dst": [1, "output", 0]})")),
             "file.json#/steps/0/op: unknown op \"sned\"");
    contains(message(steps(R"({"op": "send", "src": [0, "inptu", 0], "dst": [1, "output", 0]})")),
             "/steps/0/src/1: unknown buffer \"inptu\"");
    contains(message(steps(R"({"op": "send", "src": [0, "input"], "dst": [1, "output", 0]})")),
             "expected [rank, buffer, index]");
    contains(message(steps(R"({"op": "send", "src": [4, "input", 0], "dst": [1, "output", 0]})")),
             "rank 4, but there are 4 ranks");
    contains(message(steps(R"({"op": "send", "src": [0, "input", 0], "dst": ["r+1", "output", 0]})")),
             "at r = 3: the destination is rank 4");
    contains(message(steps(R"({"op": "send", "src": [0, "input", "1 +"], "dst": [1, "output", 0]})")),
             "file.json#/steps/0/src/2: expected a value at column 4");
    contains(message(steps(R"({"op": "send", "src": [0, "input", 1.5], "dst": [1, "output", 0]})")),
             "expected an integer or an expression");
    contains(
        message(steps(R"({"op": "send", "src": [0, "input", 0], "dst": [1, "output", 0], "chanel": 1})")),
        "chanel");
    contains(message(steps(R"({"op": "copy", "src": [0, "input", 0], "dst": [1, "output", 0]})")),
             "copy between ranks 0 and 1");
    contains(
        message(steps(R"({"op": "send", "src": [0, "input", 0], "dst": [1, "output", 0], "chunks": -1})")),
        "-1 chunks");
    contains(
        message(steps(
            R"({"op": "send", "src": [0, "input", 0], "dst": [1, "output", 0], "chunks": 1000000000000000000})")),
        "chunks");
    contains(message(steps(
                 R"({"op": "send", "src": [0, "input", 18446744073709551615], "dst": [1, "output", 0]})")),
             "/steps/0/src/2");
    contains(message(steps(R"({"for": ["i", 0], "do": []})")), "expected [variable, from, to]");
    contains(message(steps(R"({"for": ["r", 0, 1], "do": []})")), "the name \"r\" is taken");
    contains(message(steps(R"({"for": ["i", 0, "r"], "do": []})")), "may not use r");
    contains(message(steps(R"({"for": ["i", 0, 4], "do": [], "mul": 2, "add": 1})")), "not both");
    contains(message(steps(R"({"for": ["i", 0, 4], "do": [], "mul": 2})")), "never ends");
    contains(
        message(steps(
            R"({"par": [{"par": []}, {"op": "send", "src": ["r", "input", 0], "dst": [1, "output", 0]}]})")),
        "inside a par block");
    contains(message(steps("7")), "expected a step");
    contains(message(steps("{}")), "expected one of op, for, let, if, par");
    contains(message(steps("", R"(, "params": {"L": "x"})")), "/params/L");
    contains(message(steps("", R"(, "requires": "M > 1")")), "unknown name \"M\"");
    contains(message(steps("", R"(, "requires": ["N > 4"])")), "this algorithm needs N > 4; got N = 4");
    contains(
        message(R"({"baton": "algorithm/1", "collective": {"kind": "allreduce", "ranks": 4}, "steps": []})"),
        "unknown collective \"allreduce\"");
    contains(message(R"({"baton": "algorithm/1", "collective": {"kind": "all_reduce"}, "steps": []})"),
             "number of ranks is missing");
    contains(
        message(
            R"({"baton": "algorithm/1", "collective": {"kind": "broadcast", "ranks": 4, "root": 4}, "steps": []})"),
        "root 4");
}

TEST_CASE("options replace ranks, root and params, and unknown ones are refused") {
    LoadOptions options;
    options.params = {{"K", 1}};
    contains(message(steps(""), options), "no param \"K\"");
    options = {};
    options.ranks = 5;
    contains(message(steps(R"({"op": "send", "src": [0, "input", 0], "dst": [1, "output", 0]})"), options),
             "is written for 4 ranks, step by step; got 5");
    options = {};
    options.root = 2;
    const auto a = parse_algorithm(
        R"({"baton": "algorithm/1", "name": "b", "collective": {"kind": "broadcast", "ranks": 4},
      "steps": [{"op": "send", "src": ["root", "input", 0], "dst": ["r", "output", 0]}]})",
        "t", options);
    CHECK(a.collective.root == 2);
    CHECK(verify(a).assurance == Assurance::proved);
    for (const int bad : {-1, 4}) {
        options.root = bad;
        CHECK_THROWS_AS(
            parse_algorithm(
                R"({"baton": "algorithm/1", "collective": {"kind": "broadcast", "ranks": 4}, "steps": []})",
                "t", options),
            baton::Error);
    }
    for (const int bad : {-1, 0, 1 << 21}) {
        options = {};
        options.ranks = bad;
        CHECK_THROWS_AS(parse_algorithm(steps(""), "t", options), baton::Error);
    }
}

TEST_CASE("hostile files are refused in bounded time and memory") {
    const std::string send = R"({"op": "send", "src": [0, "input", 0], "dst": [1, "output", 0]})";
    contains(message(steps(R"({"for": ["i", 0, 1000000000000000000], "do": [)" + send + "]}")),
             "more than the 1000000");
    contains(
        message(steps(R"({"for": ["i", 0, 1000000000000000000], "do": [{"for": ["j", 0, "i"], "do": []}]})")),
        "loop iterations");
    contains(
        message(
            R"({"baton": "algorithm/1", "collective": {"kind": "all_reduce", "ranks": 4, "chunks": 1000000000000000000}, "steps": []})"),
        "chunks must be");
    contains(
        message(
            R"({"baton": "algorithm/1", "collective": {"kind": "all_reduce", "ranks": 4000000000, "chunks": 1}, "steps": []})"),
        "ranks");
    std::string deep = send;
    for (int i = 0; i < 70; ++i) deep = R"({"for": ["i", 0, 1], "do": [)" + deep + "]}";
    CHECK(message(steps(deep)) != "no error");
    deep = "1";
    for (int i = 0; i < 100000; ++i) deep = "[" + deep;
    CHECK(message(deep) != "no error");
    const auto whole = baton::read_file(example("two_level_all_reduce"));
    for (std::size_t cut = 0; cut + 3 < whole.size(); cut += 7)
        CHECK(message(whole.substr(0, cut)) != "no error");
    const auto cbor = to_cbor(load_algorithm(example("ring_all_reduce")));
    for (std::size_t cut = 0; cut < cbor.size(); ++cut) CHECK(message(cbor.substr(0, cut)) != "no error");
    // 2^31 chunks in one run verify as one interval.
    const auto wide = parse_algorithm(
        R"({"baton": "algorithm/1", "collective": {"kind": "broadcast", "ranks": 2, "chunks": 2147483647},
      "steps": [{"op": "send", "src": [0, "input", 0], "dst": ["r", "output", 0], "chunks": "C"}]})");
    CHECK(verify(wide).assurance == Assurance::proved);
}

TEST_CASE("files with random bytes changed are refused or read, and never crash") {
    std::mt19937 random(17);
    for (const char* name : {"two_level_all_reduce", "recursive_doubling_all_reduce", "direct_all_to_all"}) {
        const auto whole = baton::read_file(example(name));
        const std::string letters = "0123456789rNC+-*/()[]{}\",: modxandfor";
        for (int trial = 0; trial < 400; ++trial) {
            auto text = whole;
            for (unsigned k = 0; k < 1 + random() % 3; ++k)
                text[random() % text.size()] = letters[random() % letters.size()];
            try {
                const auto a = parse_algorithm(text);
                if (a.step_count() < 100'000) verify(a);
            } catch (const baton::Error&) {
            }
        }
    }
}
