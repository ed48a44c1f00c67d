// The files of examples/algorithms: right for every number of ranks that they claim, and in words for no
// other.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/verify.hpp>

#include <doctest/doctest.h>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

using namespace baton::ir;

namespace {

const std::string kFolder = std::string(BATON_SOURCE_DIR) + "/examples/algorithms/";

struct Example {
    std::string name;
    std::function<bool(int)> serves;
    std::string words;  ///< of the refusal of other counts
};

bool any(int) { return true; }
bool power_of_two(int n) { return (n & (n - 1)) == 0; }

const std::vector<Example>& examples() {
    static const std::vector<Example> list = {
        {"binomial_broadcast", any, ""},
        {"binomial_reduce", any, ""},
        {"bruck_all_gather", any, ""},
        {"chain_broadcast", any, ""},
        {"direct_all_to_all", any, ""},
        {"direct_gather", any, ""},
        {"direct_scatter", any, ""},
        {"one_shot_all_reduce", any, ""},
        {"rabenseifner_all_reduce", power_of_two, "this algorithm needs N to be a power of two; got N = "},
        {"recursive_doubling_all_reduce", any, ""},
        {"recursive_halving_reduce_scatter", power_of_two,
         "this algorithm needs N to be a power of two; got N = "},
        {"ring_all_gather", any, ""},
        {"ring_all_reduce", any, ""},
        {"ring_reduce_scatter", any, ""},
        {"send_recv", any, ""},
        {"two_level_all_reduce", [](int n) { return n % 8 == 0; },
         "this algorithm needs N to be a multiple of L, the ranks per host; got L = 8, N = "},
        {"two_shot_all_reduce", any, ""},
    };
    return list;
}

std::vector<int> counts() {
    std::vector<int> list;
    for (int n = 1; n <= 32; ++n) list.push_back(n);
    for (const int n : {64, 100, 128}) list.push_back(n);
    return list;
}

LoadOptions with(int ranks, int root = 0) {
    LoadOptions options;
    options.ranks = ranks;
    options.root = root;
    return options;
}

}  // namespace

TEST_CASE("every example file is listed here, and every standard kind has one") {
    std::set<std::string> files, listed;
    std::set<CollectiveKind> kinds;
    for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
        if (entry.path().extension() == ".json") files.insert(entry.path().stem().string());
    }
    for (const Example& example : examples()) {
        listed.insert(example.name);
        kinds.insert(load_algorithm(kFolder + example.name + ".json").collective.kind);
    }
    CHECK(files == listed);
    CHECK(kinds.size() == standard_kinds().size());
}

TEST_CASE(
    "every example verifies for every rank count it claims, from any root, and others are refused in words") {
    for (const Example& example : examples()) {
        CAPTURE(example.name);
        const std::string path = kFolder + example.name + ".json";
        for (const int n : counts()) {
            CAPTURE(n);
            if (!example.serves(n)) {
                std::string text = "accepted";
                try {
                    load_algorithm(path, with(n));
                } catch (const baton::Error& error) {
                    text = error.message();
                }
                CHECK(text == example.words + std::to_string(n));
                continue;
            }
            const Algorithm algorithm = load_algorithm(path, with(n));
            const auto report = verify(algorithm);
            CHECK(report.assurance == Assurance::proved);
            CHECK(report.warnings.empty());
            if (!has_root(algorithm.collective.kind) || n > 32) continue;
            for (int root = 1; root < n; root += 1 + n / 6) {
                CAPTURE(root);
                CHECK(verify(load_algorithm(path, with(n, root))).assurance == Assurance::proved);
            }
        }
    }
}

TEST_CASE("examples of one chunk verify with several chunks") {
    for (const Example& example : examples()) {
        std::string text = baton::read_file(kFolder + example.name + ".json");
        const auto at = text.find("\"chunks\": 1}");
        if (at == std::string::npos) continue;
        text.replace(at, 12, "\"chunks\": 5}");
        CAPTURE(example.name);
        for (const int n : {1, 2, 3, 4, 7, 8, 16}) {
            if (example.serves(n))
                CHECK(verify(parse_algorithm(text, example.name, with(n))).assurance == Assurance::proved);
        }
    }
}

TEST_CASE("the two-level all-reduce serves every number of hosts and of ranks per host") {
    for (int hosts = 1; hosts <= 6; ++hosts) {
        for (int local = 1; local <= 6; ++local) {
            LoadOptions options = with(hosts * local);
            options.params = {{"L", local}};
            CHECK(verify(load_algorithm(kFolder + "two_level_all_reduce.json", options)).assurance ==
                  Assurance::proved);
            if (local == 1) continue;
            options.ranks = hosts * local + 1;
            CHECK_THROWS_AS(load_algorithm(kFolder + "two_level_all_reduce.json", options), baton::Error);
        }
    }
    LoadOptions zero;
    zero.params = {{"L", 0}};
    CHECK_THROWS_AS(load_algorithm(kFolder + "two_level_all_reduce.json", zero), baton::Error);
}
