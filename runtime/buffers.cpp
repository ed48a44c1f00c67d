#include <baton/base/error.hpp>
#include <baton/runtime/buffers.hpp>

#include <fmt/format.h>
#include <algorithm>

namespace baton::runtime {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 62;

std::int64_t shards(const ir::Collective& collective, int rank, ir::Buffer buffer) {
    const std::int64_t places = collective.places(rank, buffer);
    if (collective.kind == ir::CollectiveKind::custom) {
        if (buffer == ir::Buffer::output) return places;
        std::int64_t most = 0;
        for (const auto& place : collective.custom->inputs[static_cast<std::size_t>(rank)])
            most = std::max(most, place.shard + 1);
        return most;
    }
    return places / collective.chunks;
}

std::int64_t product(std::int64_t a, std::int64_t b, const char* what) {
    std::int64_t result = 0;
    if (__builtin_mul_overflow(a, b, &result) || result > kMost)
        throw input_error(fmt::format("a buffer of {} times {} {} is too large", a, b, what));
    return result;
}

}  // namespace

std::int64_t buffer_elements(const ir::Collective& collective, int rank, ir::Buffer buffer,
                             std::int64_t count) {
    if (count < 0) throw input_error(fmt::format("a count must not be negative; got {}", count));
    return product(shards(collective, rank, buffer), count, "elements");
}

std::int64_t buffer_bytes(const ir::Collective& collective, int rank, ir::Buffer buffer, std::int64_t count,
                          ir::DataType type) {
    return product(buffer_elements(collective, rank, buffer, count), ir::size_of(type), "bytes");
}

std::optional<std::int64_t> in_place_offset(const ir::Collective& collective, int rank, std::int64_t count) {
    if (collective.places(rank, ir::Buffer::input) == 0 || collective.places(rank, ir::Buffer::output) == 0)
        return std::nullopt;
    // Sharing is one shifted run, so the first place of the smaller buffer tells all.
    const std::int64_t chunks = collective.chunks;
    if (const auto output = collective.output_alias(rank, 0); output >= 0) return output / chunks * count;
    if (const auto input = collective.input_alias(rank, 0); input >= 0) return -(input / chunks * count);
    return std::nullopt;
}

void check_rank_buffers(const ir::Collective& collective, const CallArguments& arguments, int rank,
                        const RankBuffers& own, std::optional<bool> in_place) {
    const std::int64_t width = ir::size_of(arguments.type);
    const std::int64_t in =
        buffer_bytes(collective, rank, ir::Buffer::input, arguments.count, arguments.type);
    const std::int64_t out =
        buffer_bytes(collective, rank, ir::Buffer::output, arguments.count, arguments.type);
    // No text is formatted while all is well: calls of a few bytes take less than a microsecond.
    const auto where = [&] { return fmt::format("rank {}", rank); };
    if (in > 0 && own.input == nullptr)
        throw input_error(fmt::format("the input of {} bytes is null", in), where());
    if (out > 0 && own.output == nullptr)
        throw input_error(fmt::format("the output of {} bytes is null", out), where());
    const std::uintptr_t alignment = static_cast<std::uintptr_t>(ir::alignment_of(arguments.type));
    if ((in > 0 && reinterpret_cast<std::uintptr_t>(own.input) % alignment != 0) ||
        (out > 0 && reinterpret_cast<std::uintptr_t>(own.output) % alignment != 0))
        throw input_error(
            fmt::format("a buffer of {} is not aligned to {} bytes", to_string(arguments.type), alignment),
            where());
    if (in == 0 || out == 0) return;
    const auto* input = static_cast<const char*>(own.input);
    const auto* output = static_cast<const char*>(own.output);
    if (std::less_equal<>{}(input + in, output) || std::less_equal<>{}(output + out, input)) {
        if (in_place.value_or(false) && in_place_offset(collective, rank, arguments.count))
            throw input_error("the schedule serves calls in place only", where(),
                              "let input and output share memory as the kind defines it");
        return;
    }
    const auto offset = in_place_offset(collective, rank, arguments.count);
    if (!offset)
        throw input_error(
            fmt::format("input and output overlap, but {} has no in-place form", to_string(collective.kind)),
            where());
    if (input != output + *offset * width)
        throw input_error("input and output overlap in part", where(),
                          fmt::format("in place, the input starts {} elements {} the start of the output",
                                      *offset < 0 ? -*offset : *offset, *offset < 0 ? "before" : "after"));
    if (!in_place.value_or(true))
        throw input_error("the schedule serves calls out of place only", where(), "use separate buffers");
}

void check_buffers(const ir::Collective& collective, const CallArguments& arguments,
                   std::span<const RankBuffers> buffers, std::optional<bool> in_place) {
    if (buffers.size() != static_cast<std::size_t>(collective.ranks))
        throw input_error(
            fmt::format("buffers of {} ranks for a collective of {}", buffers.size(), collective.ranks));
    for (int rank = 0; rank < collective.ranks; ++rank)
        check_rank_buffers(collective, arguments, rank, buffers[static_cast<std::size_t>(rank)], in_place);
}

std::int64_t contributions_of(const ir::Collective& collective, int rank, std::int64_t output_index) {
    if (collective.kind == ir::CollectiveKind::custom)
        return static_cast<std::int64_t>(collective.output(rank, output_index).contributions.size());
    return collective.group_size(std::max(0, collective.position_of(rank).first));
}

}  // namespace baton::runtime
