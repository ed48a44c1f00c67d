// What fuzz targets of algorithm formats share: any bytes give a program or an input error. What is read
// prints and loads back the same; a program that verifies is written as a text that reads back equal, and is
// lifted, or is refused in words.
#pragma once

#include <baton/base/error.hpp>
#include <baton/codegen/interchange/interchange.hpp>
#include <baton/codegen/interchange/lift.hpp>
#include <baton/ir/program_json.hpp>
#include <baton/ir/verify.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// A format under test.
struct ProgramFormat {
    bool (*recognizes)(std::string_view text);
    baton::codegen::ImportedProgram (*read)(std::string_view text, const std::string& name);
    std::string (*write)(const baton::ir::Program& program);
};

/// Input errors are answers; others are not.
template <typename Work>
void only_input_errors(const Work& work) {
    try {
        work();
    } catch (const baton::Error& error) {
        if (error.kind() != baton::ErrorKind::input) __builtin_trap();
    }
}

inline void check_program(const ProgramFormat& format, const baton::ir::Program& program) {
    using namespace baton;
    // Large programs are accepted, but would slow the search down.
    if (program.instruction_count() > 10'000 || program.collective.ranks > 64 ||
        program.collective.chunks > 4096)
        return;
    const std::string text = ir::to_json(program);
    if (ir::to_json(ir::parse_program(text)) != text) __builtin_trap();
    try {
        ir::verify(program);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::check_failed && error.kind() != ErrorKind::input) __builtin_trap();
        return;
    }
    only_input_errors([&] {
        const std::string written = format.write(program);
        if (format.write(format.read(written, "again").program) != written) __builtin_trap();
    });
    only_input_errors([&] { codegen::lift(program); });
}

/// Feeds one input to a format.
inline void fuzz_program(const ProgramFormat& format, const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    static_cast<void>(format.recognizes(text));
    only_input_errors([&] { check_program(format, format.read(text, "fuzz").program); });
}
