#include <baton/synth/linear_program.hpp>

#include <doctest/doctest.h>

using baton::synth::LinearProgram;
using baton::synth::LinearSolution;

TEST_CASE("a linear program is solved, and rows added later only cost the change") {
    LinearProgram program(true);  // 3x + 5y, x <= 4, 2y <= 12, 3x + 2y <= 18: 36 at (2, 6)
    const int x = program.add_variable(3), y = program.add_variable(5);
    program.add_row(-LinearProgram::kInfinity, 4, {{x, 1}});
    const int half = program.add_row(-LinearProgram::kInfinity, 12, {{y, 2}});
    const int both = program.add_row(-LinearProgram::kInfinity, 18, {{x, 3}, {y, 2}});
    LinearSolution solution = program.solve();
    REQUIRE(solution.status == LinearSolution::Status::optimal);
    CHECK(solution.objective == doctest::Approx(36));
    CHECK(solution.values[0] == doctest::Approx(2));
    CHECK(solution.values[1] == doctest::Approx(6));
    CHECK(solution.duals[static_cast<std::size_t>(half)] == doctest::Approx(1.5));
    CHECK(solution.duals[static_cast<std::size_t>(both)] == doctest::Approx(1));

    program.add_row(-LinearProgram::kInfinity, 5, {{y, 1}});
    solution = program.solve();
    REQUIRE(solution.status == LinearSolution::Status::optimal);
    CHECK(solution.objective == doctest::Approx(33));  // x = 8/3, y = 5

    const int z = program.add_variable(10, 0, 2);
    program.add_row(-LinearProgram::kInfinity, 3, {{x, 1}, {z, 1}});
    solution = program.solve();
    REQUIRE(solution.status == LinearSolution::Status::optimal);
    CHECK(solution.objective == doctest::Approx(48));  // x = 1, y = 5, z = 2
}

TEST_CASE("linear programs without a solution say which kind") {
    LinearProgram none(false);
    const int x = none.add_variable(1);
    none.add_row(2, LinearProgram::kInfinity, {{x, 1}});
    none.add_row(-LinearProgram::kInfinity, 1, {{x, 1}});
    CHECK(none.solve().status == LinearSolution::Status::infeasible);

    LinearProgram endless(true);
    endless.add_variable(1);
    CHECK(endless.solve().status == LinearSolution::Status::unbounded);
}
