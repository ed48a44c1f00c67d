// Schedules in the formats of other executors: what reading one gives, and what all formats share.
#pragma once

#include <baton/ir/program.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::codegen {

/// What a reader made of a file, and what it had to add to it. Texts are one line each, without a final stop.
struct ImportedProgram {
    ir::Program program;
    std::vector<std::string> found;        ///< "8 ranks, all_reduce in place, 128 chunks", ...
    std::vector<std::string> assumptions;  ///< what the file does not say
    std::vector<std::string> warnings;     ///< what is odd in the file, and what has no counterpart
};

/// One format of schedules that Baton reads.
struct ScheduleFormat {
    const char* name;     ///< as in `baton import NAME FILE`
    const char* summary;  ///< one line
    /// True when the text is of this format as far as its first lines tell. Never throws.
    bool (*recognizes)(std::string_view text);
    /// Reads one file; `name` stands for it in messages. The program is well formed but not verified: whether
    /// the file is right is for ir::verify to say. Throws an input error with line or element.
    ImportedProgram (*read)(std::string_view text, const std::string& name);
};

/// All formats of schedules that are read.
std::span<const ScheduleFormat> schedule_formats();

}  // namespace baton::codegen
