// The part of `baton import` that reads schedules.
#pragma once

#include <baton/codegen/interchange/interchange.hpp>

#include <string>
#include <string_view>

namespace baton::cli {

/// The format of that name, or null.
const codegen::ScheduleFormat* schedule_format(std::string_view name);
/// The format of schedules that recognizes the text, or null.
const codegen::ScheduleFormat* recognize_schedule(std::string_view text);

struct ScheduleImport {
    std::string path, text;  ///< the file
    const codegen::ScheduleFormat* format = nullptr;
    bool recognized = false;  ///< the format was found from the content
    std::string output;       ///< file to write; empty: none
    std::string algorithm;    ///< file for the algorithm that the program is lifted to; empty: none
    bool json = false;
};

/// Reads, verifies, lifts, writes and reports. A file that is read but wrong is written all the same, and its
/// fault is reported; returns the exit code: 1 also when the algorithm that was asked for cannot be had.
int import_schedule(const ScheduleImport& request);

}  // namespace baton::cli
