#include <baton/sim/binding_uses.hpp>

#include <baton/base/index.hpp>

#include <doctest/doctest.h>

#include <random>

using namespace baton;
using namespace baton::sim;

namespace {

Path path_over(std::vector<Use> uses) {
    Path path;
    path.uses = std::move(uses);
    return path;
}

std::vector<int> resources(const std::vector<Use>& uses) {
    std::vector<int> all;
    for (const Use& use : uses) all.push_back(use.resource);
    return all;
}

std::vector<double> rates(const std::vector<Path>& paths, const std::vector<double>& capacity, bool binding) {
    MaxMin sharing(capacity);
    for (std::size_t p = 0; p < paths.size(); ++p)
        sharing.add(static_cast<int>(p), binding ? paths[p].binding : paths[p].uses);
    sharing.solve();
    std::vector<double> all;
    for (std::size_t p = 0; p < paths.size(); ++p) all.push_back(sharing.rate(static_cast<int>(p)));
    return all;
}

}  // namespace

TEST_CASE("of a chain of links its narrowest binds, of planes between which messages are spread one") {
    std::vector<Path> chain = {path_over({{0, 1}, {1, 1}, {2, 1}})};
    find_binding_uses(chain, {4, 2, 3});
    CHECK(resources(chain[0].binding) == std::vector<int>{1});

    std::vector<Path> planes = {path_over({{0, 0.5}, {1, 0.5}, {2, 1}}), path_over({{0, 0.5}, {1, 0.5}})};
    find_binding_uses(planes, {1, 1, 9});
    CHECK(resources(planes[0].binding).size() == 1);
    CHECK(resources(planes[0].binding) == resources(planes[1].binding));
}

TEST_CASE("a link that is narrower, or that others use too, stays") {
    std::vector<Path> shared = {path_over({{0, 1}, {1, 1}}), path_over({{1, 1}, {2, 1}})};
    find_binding_uses(shared, {1, 4, 4});  // link 1 holds all that 2 holds, and more; 0 is narrower
    CHECK(resources(shared[0].binding) == std::vector<int>{0, 1});
    CHECK(resources(shared[1].binding) == std::vector<int>{1});
}

TEST_CASE("rates over binding uses are the rates over all uses") {
    for (unsigned seed = 0; seed < 300; ++seed) {
        std::mt19937 random(seed);
        const int links = 2 + static_cast<int>(random() % 12);
        std::vector<double> capacity;
        for (int l = 0; l < links; ++l) capacity.push_back(1 + static_cast<double>(random() % 4));
        std::vector<Path> paths;
        const int count = 1 + static_cast<int>(random() % 10);
        for (int p = 0; p < count; ++p) {
            std::vector<Use> uses;
            // Neighboring links go together often, as the planes and chains of real routes do.
            for (int l = 0; l < links; ++l) {
                const bool with_last = !uses.empty() && uses.back().resource == l - 1;
                if (random() % 4 < (with_last ? 3U : 1U)) uses.push_back({l, random() % 3 == 0 ? 0.5 : 1.0});
            }
            if (uses.empty()) uses.push_back({static_cast<int>(random() % at(links)), 1});
            paths.push_back(path_over(std::move(uses)));
        }
        find_binding_uses(paths, capacity);
        const std::vector<double> all = rates(paths, capacity, false), few = rates(paths, capacity, true);
        CAPTURE(seed);
        for (std::size_t p = 0; p < paths.size(); ++p) {
            CHECK(!paths[p].binding.empty());
            CHECK(few[p] == doctest::Approx(all[p]).epsilon(1e-9));
        }
    }
}
