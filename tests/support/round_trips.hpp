// Export of a program to another executor's format and import again.
#pragma once

#include <baton/base/error.hpp>
#include <baton/codegen/interchange/msccl.hpp>
#include <baton/codegen/interchange/mscclpp.hpp>
#include <baton/ir/program_json.hpp>
#include <baton/ir/verify.hpp>

#include <doctest/doctest.h>

#include <string>

namespace baton::test {

/// The reason why a program is not exported to MSCCL; "" when it is, and then reading the text gives the
/// program that was written, and writing that the text.
inline std::string msccl_round_trip(const ir::Program& program, const codegen::MscclOptions& options = {}) {
    ir::Program formed;
    std::string text;
    try {
        formed = codegen::msccl_form(program, options);
        CHECK(ir::verify(formed).assurance == ir::Assurance::proved);
        text = codegen::write_msccl_xml(program, options);
    } catch (const Error& error) {
        CHECK_MESSAGE(error.kind() == ErrorKind::input, error.what());
        return error.what();
    }
    const codegen::ImportedProgram imported = codegen::read_msccl_xml(text, "again.xml");
    CHECK(codegen::recognizes_msccl_xml(text));
    CHECK(imported.assumptions.empty());
    CHECK(ir::to_json(imported.program) == ir::to_json(formed));
    CHECK(codegen::write_msccl_xml(imported.program, options) == text);
    return "";
}

/// The same for MSCCL++.
inline std::string mscclpp_round_trip(const ir::Program& program) {
    ir::Program formed;
    std::string text;
    try {
        formed = codegen::mscclpp_form(program);
        CHECK(ir::verify(formed).assurance == ir::Assurance::proved);
        text = codegen::write_mscclpp_json(program);
    } catch (const Error& error) {
        CHECK_MESSAGE(error.kind() == ErrorKind::input, error.what());
        return error.what();
    }
    const codegen::ImportedProgram imported = codegen::read_mscclpp_json(text, "again.json");
    CHECK(codegen::recognizes_mscclpp_json(text));
    CHECK(imported.warnings.empty());
    CHECK(imported.assumptions.empty());
    CHECK(ir::to_json(imported.program) == ir::to_json(formed));
    CHECK(codegen::write_mscclpp_json(imported.program) == text);
    return "";
}

}  // namespace baton::test
