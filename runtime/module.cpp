#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/runtime/module.hpp>

#include <dlfcn.h>
#include <fmt/format.h>
#include <charconv>
#include <filesystem>
#include <set>

namespace baton::runtime {

namespace {

void check_rank(const codegen::Manifest& m, int r, const std::string& where, std::vector<char>& ends) {
    const codegen::ManifestRank& rank = m.ranks[r];
    const auto wrong = [&](const std::string& what) {
        return input_error(what, fmt::format("{}: ranks[{}]", where, r));
    };
    for (const auto& [number, sends] : rank.connections) {
        const codegen::ManifestConnection& connection = m.connections.at(number);
        if ((sends ? connection.src : connection.dst) != r)
            throw wrong(fmt::format("connection {} does not end here", number));
        char& seen = ends[static_cast<std::size_t>(number) * 2 + (sends ? 0 : 1)];
        if (seen) throw wrong(fmt::format("connection {} ends here twice", number));
        seen = 1;
    }
    for (const int number : rank.tokens) {
        const codegen::ManifestToken& token = m.tokens.at(number);
        if (token.rank != r && token.waiter != r)
            throw wrong(fmt::format("token {} concerns other ranks", number));
    }
    for (const int peer : rank.peers) {
        if (peer == r) throw wrong("the rank is its own peer");
        const std::vector<int>& back = m.ranks[peer].peers;
        if (std::find(back.begin(), back.end(), r) == back.end())
            throw wrong(fmt::format("rank {} does not name this peer back", peer));
    }
    if (rank.threadblocks == 0 && (!rank.connections.empty() || !rank.peers.empty()))
        throw wrong("connections without threadblocks");
}

/// "sm_90" and a device of 9.0 or 9.2 -> 0; -1 when the cubin does not run there.
int minor_that_runs(const std::string& target, int major, int minor) {
    if (!target.starts_with("sm_")) return -1;
    int number = 0;
    const char* end = target.data() + target.size();
    const auto [rest, failed] = std::from_chars(target.data() + 3, end, number);
    if (failed != std::errc() || number / 10 != major) return -1;
    const bool exact = rest != end;  // sm_90a and the like run on that chip only
    if (exact ? number % 10 != minor : number % 10 > minor) return -1;
    return number % 10;
}

}  // namespace

void check_manifest(const codegen::Manifest& m, const std::string& where) {
    if (m.abi_version != BATON_ABI_VERSION) {
        throw input_error(fmt::format("the module speaks ABI version {}, this library version {}",
                                      m.abi_version, BATON_ABI_VERSION),
                          where, "emit it again with this version");
    }
    if (m.ranks.size() != static_cast<std::size_t>(m.collective.ranks))
        throw input_error("not one entry per rank", where);
    std::vector<char> ends(m.connections.size() * 2);
    for (int r = 0; r < m.collective.ranks; ++r) check_rank(m, r, where, ends);
    for (std::size_t i = 0; i < ends.size(); ++i) {
        if (!ends[i])
            throw input_error(
                fmt::format("connection {} lacks its {}", i / 2, i % 2 == 0 ? "sender" : "receiver"), where);
    }
    for (const codegen::ManifestToken& token : m.tokens) {
        if (token.threadblock >= m.ranks[token.rank].threadblocks)
            throw input_error("a token of a threadblock that is not there", where);
    }
    std::set<std::string> names;
    for (const codegen::ManifestEntry& entry : m.entries) {
        if (entry.name.empty() || !names.insert(entry.name).second)
            throw input_error("entries without distinct names", where);
    }
}

std::shared_ptr<const Module> Module::load(const std::string& path) {
    std::error_code error;
    const std::string file = std::filesystem::is_directory(path, error) ? path + "/manifest.json" : path;
    std::shared_ptr<Module> module(new Module);
    module->manifest_ = codegen::load_manifest(file);
    check_manifest(module->manifest_, file);
    const std::filesystem::path parent = std::filesystem::path(file).parent_path();
    module->folder_ = parent.empty() ? std::string(".") : parent.string();
    module->name_ = module->manifest_.name.empty() ? path : module->manifest_.name;
    if (!module->manifest_.source_file.empty()) {
        const std::string source = module->folder_ + "/" + module->manifest_.source_file;
        if (std::filesystem::exists(source, error)) module->source_ = read_file(source);
    }
    return module;
}

std::shared_ptr<const Module> Module::from_source(codegen::Manifest manifest, std::string source,
                                                  HostCompileOptions options) {
    std::shared_ptr<Module> module(new Module);
    check_manifest(manifest, manifest.name);
    module->name_ = manifest.name.empty() ? "module" : manifest.name;
    module->manifest_ = std::move(manifest);
    module->source_ = std::move(source);
    module->compile_ = std::move(options);
    return module;
}

Module::~Module() {
    if (object_ != nullptr) dlclose(object_);
}

void* Module::object() const {
    const std::lock_guard lock(mutex_);
    if (object_ != nullptr) return object_;
    std::string file;
    for (const codegen::ManifestBinary& binary : manifest_.binaries) {
        if (binary.target == "host" && !folder_.empty()) file = folder_ + "/" + binary.file;
    }
    if (file.empty()) {
        if (source_.empty())
            throw input_error("the module holds neither host code nor source", name_,
                              "emit it with its source");
        file = compile_host(source_, compile_);
    }
    // A name without a slash would be searched for in the library path.
    file = std::filesystem::absolute(file).string();
    object_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (object_ == nullptr) {
        const char* why = dlerror();
        throw input_error(
            fmt::format("cannot load the host code: {}", why == nullptr ? "no reason given" : why), file);
    }
    return object_;
}

baton_host_entry Module::host_entry(const codegen::ManifestEntry& entry) const {
    void* address = dlsym(object(), entry.name.c_str());
    if (address == nullptr)
        throw input_error(fmt::format("the host code has no entry {}", entry.name), name_,
                          "emit the module again");
    return reinterpret_cast<baton_host_entry>(address);
}

std::optional<std::string> Module::cubin(int major, int minor) const {
    const codegen::ManifestBinary* best = nullptr;
    int best_minor = -1;
    for (const codegen::ManifestBinary& binary : manifest_.binaries) {
        const int runs = minor_that_runs(binary.target, major, minor);
        if (runs > best_minor) best = &binary, best_minor = runs;
    }
    if (best == nullptr || folder_.empty()) return std::nullopt;
    return read_file(folder_ + "/" + best->file);
}

}  // namespace baton::runtime
