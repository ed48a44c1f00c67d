// Execution plans of MSCCL++. Any bytes: a program or an input error. What is read prints and loads back the
// same; a program that verifies writes a plan that reads back equal, and is lifted, or is refused in words.
#include <baton/base/error.hpp>
#include <baton/codegen/interchange/lift.hpp>
#include <baton/codegen/interchange/mscclpp.hpp>
#include <baton/ir/program_json.hpp>
#include <baton/ir/verify.hpp>

#include <cstddef>
#include <cstdint>

namespace {

using namespace baton;

void check(const ir::Program& program) {
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
    try {
        const std::string plan = codegen::write_mscclpp_json(program);
        const ir::Program again = codegen::read_mscclpp_json(plan, "again").program;
        if (codegen::write_mscclpp_json(again) != plan) __builtin_trap();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) __builtin_trap();
    }
    try {
        codegen::lift(program);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) __builtin_trap();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    static_cast<void>(codegen::recognizes_mscclpp_json(text));
    try {
        check(codegen::read_mscclpp_json(text, "fuzz").program);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) __builtin_trap();
    }
    return 0;
}
