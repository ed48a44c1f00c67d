#include <baton/codegen/compile.hpp>

#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/codegen/compile/process.hpp>

#include <cstdlib>

namespace baton::codegen {

namespace {

constexpr std::size_t kLargeSource = std::size_t{256} << 10;

bool answers(const std::string& command) {
    if (command.empty()) return false;
    const ScratchFolder folder;
    return run_process({command, "--version"}, folder).status == 0;
}

}  // namespace

std::string find_host_compiler(const HostObjectOptions& options) {
    if (!options.compiler.empty()) return answers(options.compiler) ? options.compiler : "";
    if (const char* wanted = std::getenv("BATON_CXX"); wanted != nullptr && *wanted != 0)
        return answers(wanted) ? wanted : "";
    const char* usual = std::getenv("CXX");
    for (const std::string& command : {std::string(usual == nullptr ? "" : usual), std::string("c++"),
                                       std::string("g++"), std::string("clang++")}) {
        if (answers(command)) return command;
    }
    return {};
}

std::string compile_host(const std::string& source, const HostObjectOptions& options) {
    const std::string compiler = find_host_compiler(options);
    if (compiler.empty()) {
        throw missing_error("no C++ compiler answers", options.compiler,
                            "install g++ or clang++, or set BATON_CXX to one");
    }
    const ScratchFolder folder;
    write_file(folder / "module.cpp", source);
    std::vector<std::string> words = {compiler, "-std=c++17",          "-shared",
                                      "-fPIC",  "-fvisibility=hidden", "-ffp-contract=off"};
    // The code of a large module is its many instructions, each run for microseconds at most: what matters
    // are the loops over elements.
    if (source.size() > kLargeSource) {
        words.insert(words.end(), {"-O1", "-ftree-vectorize"});
    } else {
        words.emplace_back("-O2");
    }
    words.insert(words.end(), options.flags.begin(), options.flags.end());
    for (const char* word : {"-x", "c++"}) words.emplace_back(word);
    words.push_back(folder / "module.cpp");
    words.emplace_back("-o");
    words.push_back(folder / "module.so");
    const ProcessResult result = run_process(words, folder);
    if (result.status != 0)
        throw internal_error("the emitted source does not compile: " + first_message(result.output),
                             compiler);
    return read_file(folder / "module.so");
}

}  // namespace baton::codegen
