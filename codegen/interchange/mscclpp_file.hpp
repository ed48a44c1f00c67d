// MSCCL++'s execution plan as data, between its text and a Program. Internal to the folder.
#pragma once

#include <baton/ir/program.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::codegen::mscclpp {

enum class OpType : std::uint8_t {
    nop,
    barrier,
    copy,
    put,
    pws,
    pwsf,
    get,
    signal,
    wait,
    rlxsignal,
    rlxwait,
    flush,
    re,
    res,
    rre,
    rres,
    ppkt,
    rppkt,
    cpkt,
    upkt,
    repkt,
    recpkt,
    respkt,
    recspkt,
    gstore,
    gstorepkt,
    glres,
    sem_acquire,
    sem_release,
    pipeline
};
/// The name in the file.
std::string_view to_string(OpType type);

enum class ChannelType : std::uint8_t { none, memory, port, switches };
std::string_view to_string(ChannelType type);

enum class Space : std::uint8_t { own, remote, switches };

/// A run of chunks: own; of rank `target`; or of all members of group `target` of the rank's switch channels.
struct Chunks {
    Space space = Space::own;
    char buffer = 'i';
    std::int64_t target = -1, index = 0, size = 0;
    bool operator==(const Chunks&) const = default;
};

struct Op {
    OpType type = OpType::nop;
    ChannelType channel_type = ChannelType::none;
    std::vector<Chunks> src, dst;
    std::vector<std::int64_t> channels;  ///< numbers among the rank's channels of that type
    std::int64_t share = 0, shares = 1;  ///< tbg_info: this threadblock's share of all runs
    std::int64_t barrier = -1, threadblocks = 0;
    std::vector<std::int64_t> semaphores;
    std::int32_t position = -1, inner = -1;  ///< place in the file: ops/position[/ops/inner]
};

struct Threadblock {
    std::vector<Op> ops;  ///< bodies of pipelines stand behind their operation
};

struct SwitchGroup {
    char buffer = 'i';
    std::vector<int> ranks;
};

struct Gpu {
    std::int64_t input_chunks = 0, output_chunks = 0, scratch_chunks = 0;
    std::vector<int> memory_peers, port_peers;  ///< of each channel
    std::vector<SwitchGroup> switch_groups;
    std::vector<std::int64_t> semaphores;  ///< initial values
    std::vector<Threadblock> threadblocks;
    const std::vector<int>& peers(ChannelType type) const {
        return type == ChannelType::port ? port_peers : memory_peers;
    }
};

/// `foreign`: values without a field here, as JSON text, by pointer and key ("/gpus/0@note").
struct File {
    std::string name, collective, protocol = "Simple";
    bool in_place = false;
    std::vector<Gpu> gpus;
    std::map<std::string, std::string> foreign;
    /// What Baton wrote beside the format's own words: the collective, and that it serves both placements.
    std::optional<ir::Collective> exact;
    bool both_placements = false;
};

/// What reading adds to the data.
struct Remarks {
    std::vector<std::string> assumptions, warnings;
};

/// Text to data. Throws an input error with file and JSON pointer.
File parse(std::string_view text, const std::string& name, Remarks& remarks);

/// Data of a program to text. Values of `foreign` stand where they came from when that is the top of the
/// file, else in the object "baton".
std::string print(const File& file, const ir::Program& program);
/// Whether a key of `foreign` stands for an attribute at the top of the file.
bool is_attribute(const std::string& key);

/// A program in the executor's form (mscclpp_form) as data. Throws an input error that names the limit of the
/// executor that stands in the way.
File from_program(const ir::Program& program);

/// Cuts threadblocks of a program in the executor's form that have too many operations, channels or remote
/// buffers: the rest becomes a threadblock of its own, which waits for the first part. Instructions that meet
/// too many threadblocks of other ranks do so through threadblocks that pass on signals.
void cut_threadblocks(ir::Program& program);

/// Drops needs that earlier needs of the threadblock imply, and instructions that move nothing and that
/// nobody has to wait for; needs of the rest go to the next instruction. Needs are sorted by threadblock.
void tidy(ir::Program& program);

/// "/gpus/0/threadblocks/1/ops/2".
std::string pointer(std::size_t gpu, std::size_t threadblock, const Op& op);

}  // namespace baton::codegen::mscclpp
