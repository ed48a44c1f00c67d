// MSCCL++'s execution plan: data to JSON.
#include <baton/base/index.hpp>
#include <baton/codegen/interchange/mscclpp_file.hpp>
#include <baton/ir/collective_json.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace baton::codegen::mscclpp {
namespace {

using Json = nlohmann::ordered_json;

/// Numbers things in the order in which they come.
template <class Thing>
std::int64_t number_in(std::vector<Thing>& list, const Thing& thing) {
    const auto known = std::find(list.begin(), list.end(), thing);
    const std::int64_t number = known - list.begin();
    if (known == list.end()) list.push_back(thing);
    return number;
}

using NumberedBuffer = std::pair<std::int64_t, char>;  ///< rank, buffer

/// Numbers that operations of a threadblock use: their own, for its channels and remote buffers.
struct BlockNumbers {
    std::vector<std::int64_t> channels, groups, buffers;
};

Json chunks_json(const Chunks& run, std::vector<NumberedBuffer>& buffers, BlockNumbers& numbers) {
    Json out = Json::object();
    if (run.space == Space::own)
        out["type"] = std::string(1, run.buffer);
    else if (run.space == Space::remote)
        out["buffer_id"] =
            number_in(numbers.buffers, number_in(buffers, NumberedBuffer{run.target, run.buffer}));
    else
        out["switch_channel_id"] = number_in(numbers.groups, run.target);
    out["index"] = run.index;
    out["size"] = run.size;
    return out;
}

Json op_json(const Op& op, std::vector<NumberedBuffer>& buffers, BlockNumbers& numbers) {
    Json out = {{"name", to_string(op.type)}};
    if (!op.src.empty()) {
        out["src_buff"] = Json::array();
        for (const Chunks& run : op.src) out["src_buff"].push_back(chunks_json(run, buffers, numbers));
    }
    if (!op.dst.empty()) {
        out["dst_buff"] = Json::array();
        for (const Chunks& run : op.dst) out["dst_buff"].push_back(chunks_json(run, buffers, numbers));
    }
    if (!op.channels.empty()) {
        out["channel_ids"] = Json::array();
        for (const std::int64_t channel : op.channels)
            out["channel_ids"].push_back(number_in(numbers.channels, channel));
    }
    if (op.channel_type != ChannelType::none) out["channel_type"] = to_string(op.channel_type);
    const bool reduces = op.type == OpType::re || op.type == OpType::res || op.type == OpType::rre ||
                         op.type == OpType::rres || op.type == OpType::glres;
    if (reduces) out["reduce_op"] = "sum";
    if (!op.semaphores.empty()) out["semaphore_ids"] = op.semaphores;
    return out;
}

Json gpu_json(const Gpu& gpu, std::int64_t id) {
    Json out = {{"id", id},
                {"input_chunks", gpu.input_chunks},
                {"output_chunks", gpu.output_chunks},
                {"scratch_chunks", gpu.scratch_chunks},
                {"threadblocks", Json::array()}};
    std::vector<NumberedBuffer> buffers;
    for (std::size_t b = 0; b < gpu.threadblocks.size(); ++b) {
        BlockNumbers numbers;
        Json block = {{"id", b}, {"ops", Json::array()}};
        for (const Op& op : gpu.threadblocks[b].ops) block["ops"].push_back(op_json(op, buffers, numbers));
        block["channels"] = Json::array();
        if (!numbers.channels.empty())
            block["channels"].push_back({{"channel_type", "memory"}, {"channel_ids", numbers.channels}});
        if (!numbers.groups.empty())
            block["channels"].push_back({{"channel_type", "switch"}, {"channel_ids", numbers.groups}});
        block["remote_buffer_refs"] = Json::array();
        if (!numbers.buffers.empty())
            block["remote_buffer_refs"].push_back(
                {{"access_channel_type", "memory"}, {"remote_buffer_ids", numbers.buffers}});
        out["threadblocks"].push_back(std::move(block));
    }
    out["channels"] = Json::array();
    if (!gpu.memory_peers.empty())
        out["channels"].push_back({{"channel_type", "memory"}, {"connected_to", gpu.memory_peers}});
    for (const SwitchGroup& group : gpu.switch_groups)
        out["channels"].push_back(
            {{"channel_type", "switch"},
             {"buffer_type", std::string(1, group.buffer)},
             {"rank_groups", {{{"size", group.ranks.size()}, {"ranks", group.ranks}}}}});
    out["remote_buffers"] = Json::array();
    for (const auto& [rank, buffer] : buffers)
        out["remote_buffers"].push_back(
            {{"rank", rank}, {"type", std::string(1, buffer)}, {"access_channel_types", {"memory"}}});
    out["semaphores"] = Json::array();
    for (const std::int64_t value : gpu.semaphores) out["semaphores"].push_back({{"init_value", value}});
    return out;
}

/// What the format has no words for.
Json more_json(const File& file, const ir::Program& program) {
    Json more = Json::object();
    ir::Collective plain;
    plain.kind = program.collective.kind;
    plain.ranks = program.collective.ranks, plain.chunks = program.collective.chunks;
    if (file.collective == "custom" || ir::has_root(plain.kind) || !(plain == program.collective))
        more["collective"] = ir::collective_json(program.collective);
    if (!program.in_place) more["in_place"] = nullptr;
    for (const auto& [key, value] : file.foreign)
        if (!is_attribute(key)) more["foreign"][key] = value;
    return more;
}

}  // namespace

bool is_attribute(const std::string& key) {
    return key.starts_with('@') && key != "@protocol" && key != "@baton";
}

std::string print(const File& file, const ir::Program& program) {
    Json out = {{"name", file.name},
                {"collective", file.collective},
                {"protocol", file.protocol},
                {"inplace", file.in_place}};
    for (const auto& [key, value] : file.foreign)
        if (is_attribute(key)) out[key.substr(1)] = Json::parse(value, nullptr, false);
    if (Json more = more_json(file, program); !more.empty()) out["baton"] = std::move(more);
    out["gpus"] = Json::array();
    for (std::size_t r = 0; r < file.gpus.size(); ++r)
        out["gpus"].push_back(gpu_json(file.gpus[r], static_cast<std::int64_t>(r)));
    return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace baton::codegen::mscclpp
