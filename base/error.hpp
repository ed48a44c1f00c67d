// The one error type of Baton.
#pragma once

#include <exception>
#include <string>
#include <utility>

namespace baton {

/// Whose fault an error is; each kind maps to one exit code of the command line.
enum class ErrorKind {
    input,         ///< A file, an argument or a call is wrong (exit 2).
    check_failed,  ///< A schedule or a result did not pass its check (exit 1).
    missing_part,  ///< A compiler, a GPU, a driver or a library is absent (exit 3).
    internal,      ///< A fault of Baton itself; please report it (exit 70).
};

/// Exit code of the command line for an error of this kind.
int exit_code(ErrorKind kind);

/// What went wrong, where, and how to mend it. Thrown by value; caught at the borders
/// (command line, C API), where it becomes one line of text or a status code.
class Error : public std::exception {
public:
    /// `what`: the fault in a sentence without a final stop. `where`: file, JSON pointer,
    /// line, or step ("" when there is no place). `remedy`: how to mend it ("" when obvious).
    Error(ErrorKind kind, std::string what, std::string where = {}, std::string remedy = {});

    ErrorKind kind() const { return kind_; }
    const std::string& message() const { return message_; }
    const std::string& where() const { return where_; }
    const std::string& remedy() const { return remedy_; }

    /// One line: "WHERE: MESSAGE; REMEDY". Line breaks inside the parts are escaped.
    const char* what() const noexcept override { return line_.c_str(); }

private:
    ErrorKind kind_;
    std::string message_, where_, remedy_, line_;
};

/// Shorthands for the kinds.
Error input_error(std::string what, std::string where = {}, std::string remedy = {});
Error check_error(std::string what, std::string where = {}, std::string remedy = {});
Error missing_error(std::string what, std::string where = {}, std::string remedy = {});
Error internal_error(std::string what, std::string where = {});

}  // namespace baton
