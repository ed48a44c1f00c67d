// Compiled code on disk: shared objects and cubins, named by the hash of what they were made from.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton::runtime {

/// A folder of compiled binaries. Entries are written under a temporary name and renamed, so that concurrent
/// writers and readers never meet half an entry; the hash of its content stands behind each binary and is
/// checked when it is read. A damaged entry is deleted and counts as absent.
class BinaryCache {
public:
    /// `folder` is created when an entry is stored, readable and writable by its owner only.
    explicit BinaryCache(std::string folder);
    /// $BATON_CACHE_DIR, else $XDG_CACHE_HOME/baton, else ~/.cache/baton, else a folder of this user below
    /// the temporary one.
    static BinaryCache user();

    const std::string& folder() const { return folder_; }
    /// Path of a sound entry, which may be handed to dlopen (bytes behind an ELF file do not count), or none.
    /// Throws an input error when others than this user may write to the folder.
    std::optional<std::string> find(const std::string& key, std::string_view suffix) const;
    /// Stores and returns the path. Throws an input error when the folder cannot be written.
    std::string store(const std::string& key, std::string_view suffix, std::string_view binary) const;
    /// The content of an entry without the check value.
    static std::string content(const std::string& path);

private:
    void check_folder() const;
    std::string path(const std::string& key, std::string_view suffix) const;
    std::string folder_;
};

}  // namespace baton::runtime
