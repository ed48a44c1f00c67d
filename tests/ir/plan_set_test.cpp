#include <baton/ir/plan_set.hpp>

#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <support/small_algorithms.hpp>

#include <doctest/doctest.h>
#include <unistd.h>
#include <filesystem>
#include <random>
#include <string>

using namespace baton;
using namespace baton::ir;
using Kind = CollectiveKind;

namespace {

std::shared_ptr<const Schedule> held(Algorithm algorithm) {
    return std::make_shared<const Schedule>(std::move(algorithm));
}

Plan row(std::string id, std::int64_t from, std::optional<std::int64_t> below, Kind kind = Kind::all_reduce) {
    Plan plan;
    plan.id = std::move(id);
    plan.kind = kind;
    plan.from = {from};
    if (below) plan.below = Bytes{*below};
    plan.schedule = std::string("ring.json");
    return plan;
}

PlanSet set_of(std::vector<Plan> plans, int ranks = 4) {
    PlanSet set;
    set.name = "test";
    set.ranks = ranks;
    set.plans = std::move(plans);
    return set;
}

template <class Call>
std::string refused(Call&& call) {
    try {
        call();
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "accepted";
}

std::string fault(const PlanSet& set) {
    return refused([&] { set.check("plans.json"); });
}
std::string fault(const std::string& text) {
    return refused([&] { parse_plan_set(text, "plans.json"); });
}

bool contains(const std::string& text, const std::string& part) {
    if (text.find(part) != std::string::npos) return true;
    MESSAGE("\"" << part << "\" is not in: " << text);
    return false;
}

std::string id_of(const Plan* plan) { return plan == nullptr ? "none" : plan->id; }

PlanCall call(Kind kind, std::int64_t size, int root = 0, bool in_place = false,
              DataType type = DataType::f32) {
    return {kind, root, {size}, in_place, type};
}

}  // namespace

TEST_CASE("a plan set reads as written in the documentation's form") {
    const PlanSet set = parse_plan_set(
        R"({"baton": "plans/1", "name": "two plans", "topology": {"name": "dgx", "hash": "5f"}, "ranks": 8,
      "model": "simulated: flow",
      "plans": [
        {"id": "small", "collective": "all_reduce", "from": 0, "below": "64KiB", "schedule": "doubling.json", "protocol": "ll",
         "time": "12.5us", "bound": "4us", "order": "replicas_equal"},
        {"id": "large", "collective": "all_reduce", "from": "64KiB", "types": ["f32", "f16"], "in_place": true, "tiles": 64, "channels": 2,
         "slots": 8, "mode": "put", "wide": true, "schedule": "ring.json"},
        {"id": "spread", "collective": "broadcast", "root": 3, "schedule": "chain.json"}]})");
    CHECK(set.topology_hash == "5f");
    REQUIRE(set.plans.size() == 3);
    CHECK(set.plans[0].below == Bytes{65536});
    CHECK(set.plans[0].time == Time{12'500'000});
    CHECK(set.plans[0].order == Order::replicas_equal);
    CHECK(set.plans[0].protocol == Protocol::ll);
    CHECK(set.plans[1].mode == Mode::put);
    CHECK(set.plans[1].in_place == true);
    CHECK(!set.plans[1].below);
    CHECK(set.plans[1].tiles == 64);
    CHECK(set.plans[2].root == 3);
    CHECK(to_json(parse_plan_set(to_json(set))) == to_json(set));
}

TEST_CASE("a size belongs to the row whose half-open range holds it") {
    const PlanSet set = set_of({row("a", 0, 1024), row("b", 1024, 1025), row("c", 1025, std::nullopt)});
    CHECK(fault(set) == "accepted");
    CHECK(id_of(set.find(call(Kind::all_reduce, 0))) == "a");
    CHECK(id_of(set.find(call(Kind::all_reduce, 1023))) == "a");
    CHECK(id_of(set.find(call(Kind::all_reduce, 1024))) == "b");
    CHECK(id_of(set.find(call(Kind::all_reduce, 1025))) == "c");
    CHECK(id_of(set.find(call(Kind::all_reduce, INT64_MAX))) == "c");
    CHECK(id_of(set.find(call(Kind::reduce, 0))) == "none");
}

TEST_CASE("the more specific row goes first: root, then placement, then type") {
    auto any = row("any", 0, std::nullopt, Kind::broadcast), typed = any, placed = any, rooted = any;
    typed.id = "typed";
    typed.types = {DataType::f16, DataType::f32};
    placed.id = "placed";
    placed.in_place = true;
    rooted.id = "rooted";
    rooted.root = 2;
    const PlanSet set = set_of({any, typed, placed, rooted});
    CHECK(fault(set) == "accepted");
    CHECK(id_of(set.find(call(Kind::broadcast, 8, 0, false, DataType::i8))) == "any");
    CHECK(id_of(set.find(call(Kind::broadcast, 8, 0, false))) == "typed");
    CHECK(id_of(set.find(call(Kind::broadcast, 8, 0, true))) == "placed");
    CHECK(id_of(set.find(call(Kind::broadcast, 8, 2, true))) == "rooted");
}

TEST_CASE("refusals say why") {
    auto plan = row("p", 1 << 20, 1 << 22, Kind::broadcast);
    plan.root = 2;
    plan.in_place = false;
    plan.types = {DataType::bf16};
    const PlanCall good = call(Kind::broadcast, 1 << 20, 2, false, DataType::bf16);
    CHECK(refusal(plan, good) == "");
    auto bad = good;
    bad.kind = Kind::reduce;
    CHECK(refusal(plan, bad) == "is for broadcast, the call is reduce");
    bad = good;
    bad.root = 1;
    CHECK(refusal(plan, bad) == "is for root 2, the call has root 1");
    bad = good;
    bad.in_place = true;
    CHECK(refusal(plan, bad) == "is for calls out of place");
    bad = good;
    bad.type = DataType::f32;
    CHECK(refusal(plan, bad) == "is not for type f32");
    bad = good;
    bad.size = {4096};
    CHECK(refusal(plan, bad) == "serves sizes from 1MiB, the call has 4KiB");
    bad.size = {1 << 22};
    CHECK(refusal(plan, bad) == "serves sizes below 4MiB, the call has 4MiB");
}

TEST_CASE("gaps, overlaps and doubles are errors that name the plans") {
    CHECK(contains(fault(set_of({row("a", 0, 1024), row("b", 2048, 4096)})),
                   "plans.json: plan \"a\" (all_reduce) ends below 1KiB and plan \"b\" begins at 2KiB: the "
                   "sizes between have no plan"));
    CHECK(contains(fault(set_of({row("b", 512, 4096), row("a", 0, 1024)})),
                   "plan \"a\" (all_reduce) and plan \"b\" both serve size 512B"));
    CHECK(contains(fault(set_of({row("a", 0, std::nullopt), row("b", 1024, std::nullopt)})),
                   "both serve size 1KiB"));
    CHECK(contains(fault(set_of({row("a", 0, 1024), row("a", 1024, 2048)})), "the id \"a\" is used twice"));
    auto one = row("one", 0, std::nullopt), two = one;
    one.types = {DataType::f32, DataType::f16};
    two.id = "two";
    two.types = {DataType::f16};
    CHECK(contains(fault(set_of({one, two})), "both serve type f16"));
    two.types = {DataType::f16, DataType::f32};  // the same key, in another order
    CHECK(contains(fault(set_of({one, two})), "both serve size 0B"));
}

TEST_CASE("faults of a row are named") {
    const auto with = [](auto change) {
        auto plan = row("p", 0, 1024);
        change(plan);
        return fault(set_of({plan}));
    };
    CHECK(contains(with([](Plan& p) { p.below = Bytes{0}; }), "serves no size: from 0B below 0B"));
    CHECK(contains(with([](Plan& p) { p.tiles = 0; }), "0 tiles are out of range; use 1 to"));
    CHECK(contains(with([](Plan& p) { p.slots = 5000; }), "5000 slots are out of range"));
    CHECK(contains(with([](Plan& p) { p.slots = -1; }), "-1 slots are out of range"));
    CHECK(contains(with([](Plan& p) { p.channels = 0; }), "0 channels"));
    CHECK(contains(with([](Plan& p) { p.root = 0; }), "all_reduce has no root"));
    CHECK(contains(with([](Plan& p) { p.kind = Kind::reduce, p.root = 4; }), "root 4 of 4 ranks"));
    CHECK(contains(with([](Plan& p) { p.types = {DataType::i8, DataType::i8}; }), "type i8 is listed twice"));
    CHECK(contains(with([](Plan& p) { p.protocol = Protocol::ll, p.mode = Mode::get; }),
                   "protocol ll is staged, mode is get"));
    CHECK(contains(with([](Plan& p) { p.id.clear(); }), "the id is empty"));
    CHECK(contains(with([](Plan& p) { p.schedule = std::string(); }), "the path of its schedule is empty"));
    CHECK(contains(with([](Plan& p) { p.schedule = std::shared_ptr<const Schedule>(); }),
                   "it has no schedule"));
    CHECK(contains(with([](Plan& p) { p.schedule = held(test::ring_all_gather(4)); }),
                   "its schedule is of kind all_gather"));
    CHECK(contains(with([](Plan& p) { p.schedule = held(test::ring_all_reduce(5)); }),
                   "its schedule is for 5 ranks, the plans are for 4"));
    CHECK(contains(with([](Plan& p) {
                       p.kind = Kind::broadcast, p.root = 1,
                       p.schedule = held(test::chain_broadcast(4, 2, 1));
                   }),
                   "its schedule has root 2"));
    CHECK(with([](Plan& p) { p.schedule = held(test::ring_all_reduce(4)); }) == "accepted");
    Program program;
    program.collective = test::collective(Kind::reduce, 4, 1, 1);
    program.ranks.resize(4);
    CHECK(contains(
        with([&](Plan& p) { p.kind = Kind::reduce, p.schedule = std::make_shared<const Schedule>(program); }),
        "a program for root 1 only"));
}

TEST_CASE("faults of a file are named with their place") {
    const std::string head = R"({"baton": "plans/1", "ranks": 4, "plans": [)";
    CHECK(
        contains(fault(R"({"baton": "plan/1"})"), "plans.json#/baton: expected \"plans/1\", got \"plan/1\""));
    CHECK(contains(fault(R"({"baton": "plans/1", "plans": []})"), "ranks"));
    CHECK(contains(fault(R"({"baton": "plans/1", "ranks": 0, "plans": []})"), "plans.json#/ranks"));
    CHECK(contains(fault(head + "7]}"), "plans.json#/plans/0: expected a plan"));
    CHECK(contains(fault(head + R"({"id": "a", "collective": "all_reduce", "form": 0, "schedule": "x"}]})"),
                   "form"));
    CHECK(contains(fault(head + R"({"id": "a", "collective": "allreduce", "schedule": "x"}]})"),
                   "plans.json#/plans/0/collective"));
    CHECK(contains(fault(head + R"({"id": "a", "collective": "all_reduce"}]})"), "schedule"));
    CHECK(contains(fault(head + R"({"id": "a", "collective": "all_reduce", "types": [], "schedule": "x"}]})"),
                   "an empty list of types"));
    CHECK(contains(
        fault(head + R"({"id": "a", "collective": "all_reduce", "types": ["f33"], "schedule": "x"}]})"),
        "plans.json#/plans/0/types/0"));
    CHECK(contains(fault(head + R"({"id": "a", "collective": "all_reduce", "root": 1, "schedule": "x"}]})"),
                   "all_reduce has no root"));
    CHECK(contains(
        fault(head + R"({"id": "a", "collective": "all_reduce", "order": "best", "schedule": "x"}]})"),
        "known: any, fixed, replicas_equal, rank_order"));
    CHECK(
        contains(fault(head + R"({"id": "a", "collective": "all_reduce", "from": "-1", "schedule": "x"}]})"),
                 "plans.json#/plans/0/from"));
    CHECK(contains(
        fault(
            head +
            R"({"id": "a", "collective": "all_reduce", "schedule": {"baton": "algorithm/1", "collective": {"kind": "all_reduce", "ranks": 4, "chunks": 1}, "steps": [{"op": "dance"}]}}]})"),
        "plans.json#/plans/0/schedule/steps/0/op"));
    CHECK(contains(
        fault(
            head +
            R"({"id": "a", "collective": "all_reduce", "below": 10, "schedule": "x"}, {"id": "b", "collective": "all_reduce", "from": 11, "schedule": "x"}]})"),
        "the sizes between have no plan"));
}

TEST_CASE("schedules are inline or files beside the plan set, for any root where the plan says so") {
    const auto folder =
        std::filesystem::temp_directory_path() / ("baton_plans_" + std::to_string(::getpid()));
    const std::string chain =
        R"({"baton": "algorithm/1", "name": "chain", "collective": {"kind": "broadcast", "ranks": 2, "chunks": 1},
        "steps": [{"op": "copy", "src": ["root", "input", 0], "dst": ["root", "output", 0]},
                  {"for": ["i", 0, "N-1"], "do": [{"op": "send", "src": ["(root+i) mod N", "output", 0], "dst": ["(root+i+1) mod N", "output", 0]}]}]})";
    write_file((folder / "parts" / "chain.json").string(), chain);
    write_file((folder / "plans.json").string(), R"({"baton": "plans/1", "ranks": 5, "plans": [
        {"id": "file", "collective": "broadcast", "root": "any", "below": 4096, "schedule": "parts/chain.json"},
        {"id": "absent", "collective": "broadcast", "from": 4096, "schedule": "nothing.json"},
        {"id": "wrong", "collective": "reduce", "schedule": "parts/chain.json"}]})");
    PlanSet set = load_plan_set((folder / "plans.json").string());
    for (int root = 0; root < 5; ++root) {
        const Schedule schedule = set.schedule_of(set.plans[0], root);
        CHECK(collective_of(schedule).ranks == 5);
        CHECK(collective_of(schedule).root == root);
        CHECK(verify(std::get<Algorithm>(schedule)).assurance == Assurance::proved);
    }
    CHECK(contains(refused([&] { set.schedule_of(set.plans[1], 0); }), "nothing.json: cannot read"));
    CHECK(contains(refused([&] { set.schedule_of(set.plans[2], 0); }), "its schedule is of kind broadcast"));
    std::filesystem::remove_all(folder);

    LoadOptions five;
    five.ranks = 5;
    set.plans[0].schedule = held(parse_algorithm(chain, "chain", five));
    const PlanSet copy = parse_plan_set(to_json(set));
    const Schedule schedule = copy.schedule_of(copy.plans[0], 3);
    CHECK(collective_of(schedule).root == 3);
    CHECK(verify(std::get<Algorithm>(schedule)).assurance == Assurance::proved);
}

TEST_CASE("random plan sets survive writing and reading, and lookups agree with a search") {
    std::mt19937_64 random(41);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    for (int trial = 0; trial < 200; ++trial) {
        PlanSet set = set_of({}, 4);
        for (const Kind kind : {Kind::all_reduce, Kind::broadcast, Kind::all_gather}) {
            for (int variant = 0; variant < 3; ++variant) {
                if (below(3) == 0) continue;
                std::int64_t from = below(3) == 0 ? 0 : below(100);
                const int rows = 1 + below(4);
                for (int i = 0; i < rows; ++i) {
                    const bool last = i + 1 == rows && below(2) == 0;
                    const std::int64_t to = from + 1 + below(50);
                    auto plan = row("p" + std::to_string(set.plans.size()), from,
                                    last ? std::nullopt : std::optional(to), kind);
                    if (variant == 1) plan.in_place = true;
                    if (variant == 2) plan.types = {DataType::f16, DataType::i8};
                    if (kind == Kind::broadcast && variant == 0) plan.root = 2;
                    if (below(2) == 0)
                        plan.time = Time{static_cast<std::int64_t>(random() % 1'000'000'000'000'000)};
                    if (kind == Kind::all_reduce && below(2) == 0)
                        plan.schedule = held(test::ring_all_reduce(4));
                    plan.tiles = 1 + below(64);
                    set.plans.push_back(std::move(plan));
                    from = to;
                }
            }
        }
        std::shuffle(set.plans.begin(), set.plans.end(), random);
        REQUIRE(fault(set) == "accepted");
        const PlanSet copy = parse_plan_set(to_json(set));
        CHECK(to_json(copy) == to_json(set));
        REQUIRE(copy.plans.size() == set.plans.size());
        for (std::size_t i = 0; i < set.plans.size(); ++i) CHECK(copy.plans[i].time == set.plans[i].time);
        for (int query = 0; query < 50; ++query) {
            const PlanCall asked =
                call(query % 2 == 0 ? Kind::all_reduce : Kind::broadcast, below(300), below(4), below(2) == 0,
                     below(2) == 0 ? DataType::f16 : DataType::f64);
            const Plan* found = copy.find(asked);
            int serving = 0;
            for (const Plan& plan : copy.plans) serving += refusal(plan, asked).empty() ? 1 : 0;
            CHECK((found != nullptr) == (serving > 0));
            if (found == nullptr) continue;
            CHECK(refusal(*found, asked).empty());
            for (const Plan& plan : copy.plans) {
                if (&plan == found || !refusal(plan, asked).empty()) continue;
                const auto rank = [](const Plan& p) {
                    return (p.root ? 4 : 0) + (p.in_place ? 2 : 0) + (p.types.empty() ? 0 : 1);
                };
                CHECK(rank(plan) < rank(*found));
            }
        }
    }
}
