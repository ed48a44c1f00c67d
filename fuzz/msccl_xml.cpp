// Algorithm XML of MSCCL.
#include "program_target.hpp"

#include <baton/codegen/interchange/msccl.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace baton;
    fuzz_program({codegen::recognizes_msccl_xml, codegen::read_msccl_xml,
                  [](const ir::Program& program) { return codegen::write_msccl_xml(program); }},
                 data, size);
    return 0;
}
