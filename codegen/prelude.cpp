#include <baton/codegen/prelude.hpp>

#include <baton/base/embedded.hpp>
#include <baton/base/error.hpp>

namespace baton {
std::span<const EmbeddedFile> prelude_files();
}

namespace baton::codegen {

const std::string& prelude_source() {
    static const std::string text = [] {
        std::string all;
        for (const EmbeddedFile& file : prelude_files()) all += file.content;
        return all;
    }();
    return text;
}

std::string_view abi_header() {
    for (const EmbeddedFile& file : prelude_files())
        if (file.name == "prelude/abi.h") return file.content;
    throw internal_error("the prelude was built without prelude/abi.h");
}

std::string prelude_element(ir::DataType type) {
    return "baton_kernel::element::" + std::string(to_string(type));
}

std::string prelude_op(ir::ReduceOp op, ir::NanMode nan) {
    const bool number =
        nan == ir::NanMode::ignore && (op == ir::ReduceOp::max || op == ir::ReduceOp::min ||
                                       op == ir::ReduceOp::maxloc || op == ir::ReduceOp::minloc);
    return "baton_kernel::op::" + std::string(to_string(op)) + (number ? "_number" : "");
}

}  // namespace baton::codegen
