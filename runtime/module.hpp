// A generated module: its manifest and the code that was or will be compiled from its source.
#pragma once

#include <baton/codegen/prelude/abi.h>
#include <baton/codegen/manifest.hpp>
#include <baton/runtime/host_compiler.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace baton::runtime {

/// Throws an input error at `where` unless the manifest is consistent: the ABI version of this library, every
/// connection with its two ends at its ranks, tokens of existing threadblocks, symmetric peers, entries with
/// distinct names.
void check_manifest(const codegen::Manifest& manifest, const std::string& where);

/// Manifest, source and binaries of a plan. Immutable from outside; code is loaded when it is first asked
/// for. May be shared by threads and by communicators.
class Module : public std::enable_shared_from_this<Module> {
public:
    /// Reads a folder with `manifest.json`, or a manifest file. Binaries are looked for beside it. Throws an
    /// input error when a file is absent or the manifest is wrong.
    static std::shared_ptr<const Module> load(const std::string& path);
    /// A module that was just emitted; code is compiled when it is needed.
    static std::shared_ptr<const Module> from_source(codegen::Manifest manifest, std::string source,
                                                     HostCompileOptions options = {});
    ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    const codegen::Manifest& manifest() const { return manifest_; }
    /// Name for messages: the plan's name, else the folder.
    const std::string& name() const { return name_; }
    /// Source text; "" when the folder has none.
    const std::string& source() const { return source_; }

    /// The host code of an entry: from the folder's shared object, else compiled from the source. Throws an
    /// input error when the object lacks the entry or cannot be loaded, a missing-part error without object
    /// and compiler.
    baton_host_entry host_entry(const codegen::ManifestEntry& entry) const;
    /// Bytes of the cubin that runs on compute capability major.minor: of the same major and the largest
    /// minor up to the device's; none when there is none.
    std::optional<std::string> cubin(int major, int minor) const;

private:
    Module() = default;
    void* object() const;

    codegen::Manifest manifest_;
    std::string name_, source_, folder_;
    HostCompileOptions compile_;
    mutable std::mutex mutex_;
    mutable void* object_ = nullptr;
};

}  // namespace baton::runtime
