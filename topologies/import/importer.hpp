// Reading machines from the files of other tools: what an importer is, and which there are.
#pragma once

#include <baton/base/error.hpp>
#include <baton/topologies/topology.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::topologies {

/// What an importer made of a file, and what it had to add to it. Texts are one line each, without a final
/// stop.
struct Imported {
    Topology topology;                     ///< finished
    std::vector<std::string> found;        ///< "8 GPUs (sm 90)", "56 NVLink links, 25 GB/s each", ...
    std::vector<std::string> assumptions;  ///< what the file does not say and where the figure is from
    std::vector<std::string> warnings;     ///< what is odd in the file, and what was left out of it
};

/// A file's text and its name for messages.
struct ImportSource {
    std::string_view text;
    std::string name;

    /// An input error at a line, from 1.
    Error error(int line, std::string what, std::string remedy = {}) const;
};

/// What a user may say beside the file.
struct ImportOptions {
    /// Text of `nvidia-smi nvlink -s` for the same host: the rates of its NVLinks; empty when not given.
    ImportSource nvlink_status;
    /// Architecture of the GPUs as "sm_90" or "gfx942", where a file does not say; empty when not given.
    std::string arch;
};

/// One format. All there is to know about it is declared here; help, documentation and recognition follow.
struct Importer {
    const char* name;     ///< as in `baton import NAME FILE`
    const char* summary;  ///< one line
    /// True when the text is of this format as far as its first lines and marks tell. Never throws.
    bool (*recognizes)(std::string_view text);
    /// Reads one file. Throws an input error with file and line or element.
    Imported (*read)(const ImportSource& source, const ImportOptions& options);
};

/// All formats, the most particular first (recognition takes the first that says yes).
std::span<const Importer> importers();

/// The importer of that name; an input error lists near names.
const Importer& importer(std::string_view name);

/// The importer that recognizes the text. Throws an input error which names what the text looks like when it
/// is a known file of another purpose (a graph search, a table of peer access), else lists the formats.
const Importer& recognize(const ImportSource& source);

/// Reads a file in the format that a user named. Where that fails and the text is not of that format, the
/// input error tells what it looks like: a known file of another purpose, or a file of another format.
Imported read_named(const Importer& format, const ImportSource& source, const ImportOptions& options);

}  // namespace baton::topologies
