// The documents in docs/ir.md read and verify, or are refused as the page says.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/ir/plan_set.hpp>

#include <doctest/doctest.h>
#include <string>

using namespace baton;

TEST_CASE("every document in docs/ir.md is what the page says it is") {
    const std::string text = read_file(BATON_SOURCE_DIR "/docs/ir.md");
    const std::string opening = "```json\n", mark = "<!-- wrong: ";
    int right = 0, wrong = 0, plans = 0;
    for (auto begin = text.find(opening); begin != std::string::npos; begin = text.find(opening, begin)) {
        // The remark, where there is one, is the line above.
        std::string expected;
        const auto above = text.rfind('\n', begin - 2) + 1;
        if (text.compare(above, mark.size(), mark) == 0)
            expected = text.substr(above + mark.size(), text.find(" -->", above) - above - mark.size());
        begin += opening.size();
        const std::string document = text.substr(begin, text.find("```", begin) - begin);
        CAPTURE(document);
        if (document.find("plans/1") != std::string::npos) {
            const ir::PlanSet set = ir::parse_plan_set(document, "docs/ir.md");
            for (const ir::Plan& plan : set.plans) {
                if (std::holds_alternative<std::string>(plan.schedule)) continue;
                CHECK(ir::verify(std::get<ir::Algorithm>(set.schedule_of(plan))).assurance ==
                      ir::Assurance::proved);
            }
            ++plans;
            continue;
        }
        const ir::Algorithm algorithm = ir::parse_algorithm(document, "docs/ir.md");
        std::string found;
        try {
            ir::verify(algorithm);
        } catch (const Error& error) {
            found = error.what();
        }
        if (expected.empty())
            CHECK(found == "");
        else
            CHECK_MESSAGE(found.find(expected) != std::string::npos, found);
        ++(expected.empty() ? right : wrong);
    }
    CHECK(right >= 5);
    CHECK(wrong >= 2);
    CHECK(plans >= 1);
}
