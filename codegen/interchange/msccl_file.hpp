// MSCCL's XML as data, between its text and a Program. Internal to the folder.
#pragma once

#include <baton/ir/program.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::codegen::msccl {

/// s: send; r: receive; c: copy to the own destination; r: reduce. cpy and re are local.
enum class StepType : std::uint8_t { s, r, rcs, rrs, rrc, rrcs, cpy, re, nop };
std::string_view to_string(StepType type);
inline bool sends(StepType t) {
    return t == StepType::s || t == StepType::rcs || t == StepType::rrs || t == StepType::rrcs;
}
inline bool receives(StepType t) {
    return t == StepType::r || t == StepType::rcs || t == StepType::rrs || t == StepType::rrc ||
           t == StepType::rrcs;
}
/// Whether the source (destination) fields name a place of the own rank that the step touches; otherwise they
/// tell what the peer does.
inline bool uses_source(StepType t) { return t != StepType::r && t != StepType::rcs && t != StepType::nop; }
inline bool uses_destination(StepType t) {
    return t != StepType::s && t != StepType::rrs && t != StepType::nop;
}

/// A place: 'i', 'o' or 's' and a chunk number; -1 in nops.
struct Place {
    char buffer = 'i';
    std::int64_t offset = -1;
    bool operator==(const Place&) const = default;
};
/// "wait until threadblock `threadblock` has published step `step`"; -1 and -1: none.
struct Dependency {
    std::int64_t threadblock = -1, step = -1;
    bool operator==(const Dependency&) const = default;
};
struct Step {
    StepType type = StepType::nop;
    Place src{'i', -1}, dst{'o', -1};
    std::int64_t count = 0;
    std::vector<Dependency> dependencies;  ///< at most one as MSCCL writes it
    bool published = false;                ///< hasdep
};
struct Threadblock {
    std::int64_t send = -1, receive = -1, channel = 0;
    std::vector<Step> steps;
};
struct Gpu {
    std::int64_t input_chunks = 0, output_chunks = 0, scratch_chunks = 0;
    std::vector<Threadblock> threadblocks;
};
/// `foreign`: attributes and elements without a field here, by place ("gpu/0/tb/1@note").
struct File {
    std::string name, protocol = "Simple", collective;
    std::int64_t channels = 1, chunks = 1;
    std::optional<std::int64_t> root, in_place, out_of_place, min_bytes, max_bytes;
    std::vector<Gpu> gpus;
    std::map<std::string, std::string> foreign;
};

/// What reading adds to the data.
struct Remarks {
    std::vector<std::string> assumptions, warnings;
};

/// Text to data. Throws an input error with line and element; what is missing gets MSCCL's default and a
/// remark.
File parse(std::string_view text, const std::string& name, Remarks& remarks);
/// Data to text, with every attribute that an executor reads.
std::string print(const File& file);

/// A program in the executor's form (msccl_form) as data, before what stands in Program::foreign is put back.
File from_program(const ir::Program& program);

/// Notes in `to` (as "PLACE@ATTRIBUTE") where `original` differs from `written`: fields that tell what a peer
/// does, numbers of buffers, hasdep that nobody waits for.
void note_differences(const File& original, const File& written, std::map<std::string, std::string>& to);
/// Puts noted differences back; what does not fit any more is left out.
void restore_differences(File& file);

/// The protocol's messages under way on a connection of the executor.
int slots_of(std::string_view protocol);

}  // namespace baton::codegen::msccl
