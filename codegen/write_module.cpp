#include <baton/codegen/write_module.hpp>

#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/codegen/compile.hpp>
#include <baton/ir/program_json.hpp>
#include <baton/ir/verify.hpp>

#include <algorithm>
#include <utility>

namespace baton::codegen {

WrittenModule write_module(const std::string& folder, const ir::Program& program,
                           const ModuleOptions& options) {
    for (const std::string& architecture : options.architectures)
        check_architecture(architecture, "architecture");
    const ir::ProgramReport report = ir::verify(program);
    if (report.assurance != ir::Assurance::proved && report.assurance != ir::Assurance::hashed) {
        throw check_error("a program that is not proven is not emitted", program.name,
                          "lower to fewer instructions");
    }
    Module module = emit(program, options.emit, &report);
    WrittenModule written;
    std::vector<std::pair<std::string, std::string>> files = {{"module.cu", module.source},
                                                              {"module.h", module.header}};
    module.manifest.source_file = "module.cu";
    module.manifest.header_file = "module.h";
    if (options.program) {
        files.emplace_back("program.json", ir::to_json(program));
        module.manifest.program_file = "program.json";
    }
    if (options.host) {
        files.emplace_back("module.so", compile_host(module.source));
        module.manifest.binaries.push_back({"host", "module.so"});
    }
    std::vector<std::string> architectures = options.architectures;
    std::sort(architectures.begin(), architectures.end());
    architectures.erase(std::unique(architectures.begin(), architectures.end()), architectures.end());
    for (const std::string& architecture : architectures) {
        const std::string name = "module." + architecture + ".cubin";
        files.emplace_back(name, compile_cubin(module.source, architecture));
        module.manifest.binaries.push_back({architecture, name});
    }
    files.emplace_back("manifest.json", to_json(module.manifest));
    for (const auto& [name, content] : files) {
        write_file(folder + "/" + name, content);
        written.files.push_back(name);
    }
    written.manifest = std::move(module.manifest);
    return written;
}

}  // namespace baton::codegen
