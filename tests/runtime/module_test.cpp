// Modules, their manifests, the host compiler and its cache.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/runtime/content_hash.hpp>
#include <baton/runtime/module.hpp>

#include "hand_modules.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>

using namespace baton;
using namespace baton::runtime;

namespace {

class Folder {
public:
    Folder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "baton-test-XXXXXX").string();
        path_ = mkdtemp(pattern.data());
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

constexpr const char* kTiny =
    "extern \"C\" __attribute__((visibility(\"default\"))) int tiny() { return 42; }\n";

/// Sets a variable of the environment for a scope.
struct Variable {
    std::string name, before;
    bool was = false;
    Variable(const char* n, const char* value) : name(n) {
        if (const char* old = std::getenv(n)) before = old, was = true;
        setenv(n, value, 1);
    }
    ~Variable() {
        if (was)
            setenv(name.c_str(), before.c_str(), 1);
        else
            unsetenv(name.c_str());
    }
};

}  // namespace

TEST_CASE("content hashes are SHA-256") {
    CHECK(content_hash("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(content_hash("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(content_hash(std::string(1'000'000, 'a')) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    ContentHash pieces;
    for (int i = 0; i < 100; ++i) pieces.add(std::string(i, 'x'));
    CHECK(pieces.hex() == content_hash(std::string(4950, 'x')));
    CHECK(ContentHash().add_field("ab").add_field("c").hex() !=
          ContentHash().add_field("a").add_field("bc").hex());
}

TEST_CASE("compiled code is cached, and a damaged entry is built again") {
    const Folder folder;
    const HostCompileOptions options{{}, BinaryCache(folder / "cache")};
    const std::string file = compile_host(kTiny, options);
    CHECK(file.starts_with(folder / "cache"));
    const auto written = std::filesystem::last_write_time(file);
    CHECK(compile_host(kTiny, options) == file);
    CHECK(std::filesystem::last_write_time(file) == written);
    CHECK(compile_host(fmt::format("{}// other\n", kTiny), options) != file);
    CHECK(compile_host(kTiny, {{"-O1"}, options.cache}) != file);

    const std::string sound = read_file(file);
    for (const std::size_t at : {sound.size() / 2, sound.size() - 1, std::size_t{0}}) {
        std::string damaged = sound;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        write_file(file, damaged);
        CHECK(compile_host(kTiny, options) == file);
        CHECK(read_file(file) == sound);
    }
    write_file(file, sound.substr(0, 100));
    CHECK(compile_host(kTiny, options) == file);
    CHECK(read_file(file) == sound);
}

TEST_CASE("a cache that others may write to is refused") {
    const Folder folder;
    const BinaryCache cache(folder / "cache");
    cache.store("key", ".so", "bytes");
    CHECK(cache.find("key", ".so").has_value());
    CHECK(BinaryCache::content(*cache.find("key", ".so")) == "bytes");
    struct stat status {};
    REQUIRE(stat(cache.folder().c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
    chmod(cache.folder().c_str(), 0777);
    CHECK_THROWS_WITH_AS(cache.find("key", ".so"), doctest::Contains("others may write"), Error);
}

TEST_CASE("no compiler is a missing part; source that does not compile is an input error") {
    const Folder folder;
    const HostCompileOptions options{{}, BinaryCache(folder / "cache")};
    {
        const Variable none("BATON_CXX", "/nowhere/c++");
        try {
            compile_host(kTiny, options);
            FAIL("compiled without a compiler");
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::missing_part);
            CHECK(std::string(error.what()).find("/nowhere/c++") != std::string::npos);
        }
    }
    CHECK_THROWS_WITH_AS(compile_host("int broken(", options), doctest::Contains("error"), Error);
}

TEST_CASE("a module loads from a folder, with or without host code, and broken ones are refused") {
    const Folder folder;
    codegen::Manifest manifest = test::hand_ring("ring_staged", 2);
    manifest.source_file = "module.cu";
    write_file(folder / "module.cu", test::hand_source());
    write_file(folder / "manifest.json", codegen::to_json(manifest));
    const auto module = Module::load(folder.path());
    CHECK(module->name() == "ring_staged");
    CHECK((module->host_entry(module->manifest().entries[0]) != nullptr));

    // With the shared object beside it, the source is not needed.
    std::filesystem::copy_file(compile_host(test::hand_source()), folder / "host.so");
    manifest.binaries.push_back({"host", "host.so"});
    manifest.source_file.clear();
    manifest.entries.push_back(manifest.entries[0]);
    manifest.entries[1].name = "no_such_entry";
    write_file(folder / "manifest.json", codegen::to_json(manifest));
    auto other = Module::load(folder / "manifest.json");
    CHECK((other->host_entry(other->manifest().entries[0]) != nullptr));
    CHECK_THROWS_WITH_AS(other->host_entry(other->manifest().entries[1]),
                         doctest::Contains("no entry no_such_entry"), Error);
    other.reset();
    write_file(folder / "host.so", "no ELF file");
    CHECK_THROWS_WITH_AS(Module::load(folder.path())->host_entry(manifest.entries[0]),
                         doctest::Contains("cannot load the host code"), Error);
    CHECK_THROWS_AS(Module::load(folder / "nothing"), Error);
}

TEST_CASE("inconsistent manifests are refused") {
    const auto refused = [](const std::function<void(codegen::Manifest&)>& change, const char* words) {
        codegen::Manifest manifest = test::hand_ring("ring_staged", 3);
        check_manifest(manifest, "m");
        change(manifest);
        CHECK_THROWS_WITH_AS(check_manifest(manifest, "m"), doctest::Contains(words), Error);
    };
    refused([](auto& m) { m.abi_version = 99; }, "ABI version 99");
    refused([](auto& m) { m.ranks[1].connections[0].first = 2; }, "does not end here");
    refused([](auto& m) { m.ranks[1].connections.pop_back(); }, "lacks its receiver");
    refused([](auto& m) { m.ranks[1].connections.push_back(m.ranks[1].connections[0]); }, "twice");
    refused([](auto& m) { m.ranks[1].peers.clear(); }, "does not name this peer back");
    refused([](auto& m) { m.ranks[1].peers.push_back(1); }, "its own peer");
    refused([](auto& m) { m.ranks[0].tokens[0] = 2; }, "concerns other ranks");
    refused([](auto& m) { m.tokens[0].threadblock = 5; }, "threadblock that is not there");
    refused([](auto& m) { m.entries.push_back(m.entries[0]); }, "distinct names");
    refused([](auto& m) { m.ranks[2].threadblocks = 0; }, "without threadblocks");
}

TEST_CASE("cubins are chosen by architecture") {
    const Folder folder;
    codegen::Manifest manifest = test::hand_ring("ring_staged", 2);
    for (const char* target : {"sm_80", "sm_86", "sm_90", "sm_90a", "sm_100"}) {
        manifest.binaries.push_back({target, std::string(target) + ".cubin"});
        write_file(folder / (std::string(target) + ".cubin"), target);
    }
    write_file(folder / "manifest.json", codegen::to_json(manifest));
    const auto module = Module::load(folder.path());
    CHECK(module->cubin(8, 0) == "sm_80");
    CHECK(module->cubin(8, 9) == "sm_86");
    CHECK(module->cubin(9, 0).has_value());
    CHECK(module->cubin(10, 3) == "sm_100");
    CHECK_FALSE(module->cubin(7, 5).has_value());
    CHECK_FALSE(module->cubin(12, 0).has_value());
}
