#include <baton/base/error.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace baton;

TEST_CASE("an error is one line: where, what, how to mend it") {
    CHECK(
        std::string(input_error("no link \"a>b\"", "cluster.json#/links/3", "see baton topo show").what()) ==
        "cluster.json#/links/3: no link \"a>b\"; see baton topo show");
    CHECK(std::string(check_error("wrong result").what()) == "wrong result");
    const std::string line = input_error("two\nlines\r\nhere").what();
    CHECK(line.find('\n') == std::string::npos);
    CHECK(line.find('\r') == std::string::npos);
}

TEST_CASE("each kind of error has its exit code") {
    CHECK(exit_code(ErrorKind::check_failed) == 1);
    CHECK(exit_code(ErrorKind::input) == 2);
    CHECK(exit_code(ErrorKind::missing_part) == 3);
    CHECK(exit_code(ErrorKind::internal) == 70);
}
