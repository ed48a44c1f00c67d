#include <baton/synth/embed.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>
#include <algorithm>

namespace baton::synth {
std::int32_t place_number(std::int64_t index, std::int64_t chunks) {
    if (index < 0 || index + chunks > (std::int64_t{1} << 31))
        throw input_error(fmt::format("place {} of a schedule is outside 0..2^31-1", index), {},
                          "take fewer ranks or chunks");
    return static_cast<std::int32_t>(index);
}

void embed(const ir::Algorithm& part, const std::vector<int>& ranks, const PlaceMap& place,
           std::vector<ir::Step>& steps, const EmbedOptions& options) {
    auto cursor = part.steps();
    bool block_open = false;  // a step of the current par block was kept
    for (ir::Step whole; cursor.next(whole);) {
        if (!whole.in_par || !whole.par) block_open = false;
        if (whole.dst_rank == options.skip_to && whole.src_rank != whole.dst_rank) continue;
        bool joins = false;  // the last step kept is of this run
        for (std::int64_t done = 0; done < whole.chunks;) {
            const Placed source = place(whole.src_rank, whole.src_buffer, whole.src_index + done);
            const Placed destination = place(whole.dst_rank, whole.dst_buffer, whole.dst_index + done);
            const std::int64_t run = std::min({whole.chunks - done, source.run, destination.run});
            if (run < 1) throw internal_error("a place map gives an empty run");
            done += run;
            if (whole.op == ir::StepOp::copy && source.buffer == destination.buffer &&
                source.index == destination.index) {
                joins = false;
                continue;
            }
            if (joins) {
                ir::Step& last = steps.back();
                if (last.src_buffer == source.buffer && last.dst_buffer == destination.buffer &&
                    last.src_index + last.chunks == source.index &&
                    last.dst_index + last.chunks == destination.index) {
                    last.chunks += static_cast<std::int32_t>(run);
                    continue;
                }
            }
            ir::Step step = whole;
            step.src_rank = ranks[static_cast<std::size_t>(whole.src_rank)];
            step.dst_rank = ranks[static_cast<std::size_t>(whole.dst_rank)];
            step.src_buffer = source.buffer;
            step.dst_buffer = destination.buffer;
            step.src_index = place_number(source.index, run);
            step.dst_index = place_number(destination.index, run);
            step.chunks = static_cast<std::int32_t>(run);
            step.par = whole.in_par && block_open;
            if (options.channel >= 0) step.channel = static_cast<std::int16_t>(options.channel);
            block_open = whole.in_par != 0;
            joins = true;
            steps.push_back(step);
        }
    }
}

ir::Algorithm explicit_algorithm(std::string name, ir::Collective collective, std::vector<ir::Step> steps) {
    ir::Algorithm algorithm;
    algorithm.name = std::move(name);
    algorithm.collective = std::move(collective);
    algorithm.over_positions = false;
    if (!steps.empty())
        algorithm.body.push_back(
            {ir::ExplicitSteps{std::make_shared<const std::vector<ir::Step>>(std::move(steps))}, 0});
    return algorithm;
}

}  // namespace baton::synth
