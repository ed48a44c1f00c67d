// Execution plans of MSCCL++.
#include "program_target.hpp"

#include <baton/codegen/interchange/mscclpp.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace baton;
    fuzz_program({codegen::recognizes_mscclpp_json, codegen::read_mscclpp_json,
                  [](const ir::Program& program) { return codegen::write_mscclpp_json(program); }},
                 data, size);
    return 0;
}
