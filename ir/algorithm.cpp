#include <baton/ir/algorithm.hpp>

#include <baton/base/error.hpp>
#include <baton/base/stop.hpp>
#include <baton/ir/program.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>

namespace baton::ir {

std::string_view to_string(StepOp op) {
    constexpr std::array<std::string_view, 6> names{"copy",        "reduce",    "send",
                                                    "send_reduce", "multicast", "switch_reduce"};
    return names[static_cast<std::size_t>(op)];
}

std::string_view to_string(Protocol protocol) {
    constexpr std::array<std::string_view, 4> names{"automatic", "simple", "ll", "ll128"};
    return names[static_cast<std::size_t>(protocol)];
}

std::vector<Step> expand(const Algorithm& algorithm, std::int64_t limit) {
    const std::int64_t count = algorithm.step_count();
    if (count > limit)
        throw input_error(fmt::format("{} steps, more than the {} that are expanded", count, limit),
                          algorithm.name);
    std::vector<Step> steps;
    steps.reserve(static_cast<std::size_t>(count));
    auto cursor = algorithm.steps();
    for (Step step; cursor.next(step);) steps.push_back(step);
    return steps;
}

std::vector<std::int64_t> Algorithm::scratch_places() const {
    std::vector<std::int64_t> places(static_cast<std::size_t>(collective.ranks));
    const auto use = [&](int rank, Buffer buffer, std::int64_t end) {
        if (buffer == Buffer::scratch)
            places[static_cast<std::size_t>(rank)] = std::max(places[static_cast<std::size_t>(rank)], end);
    };
    auto cursor = steps();
    for (Step step; cursor.next(step);) {
        const std::int64_t src_end = std::int64_t{step.src_index} + step.chunks;
        const std::int64_t dst_end = std::int64_t{step.dst_index} + step.chunks;
        if (step.op == StepOp::switch_reduce) {
            for (const int member : switch_groups[static_cast<std::size_t>(step.dst_rank)])
                use(member, step.src_buffer, src_end);
            use(step.src_rank, step.dst_buffer, dst_end);
        } else if (step.op == StepOp::multicast) {
            use(step.src_rank, step.src_buffer, src_end);
            for (const int member : switch_groups[static_cast<std::size_t>(step.dst_rank)])
                use(member, step.dst_buffer, dst_end);
        } else {
            use(step.src_rank, step.src_buffer, src_end);
            use(step.dst_rank, step.dst_buffer, dst_end);
        }
    }
    return places;
}

void Algorithm::check_requirements() const {
    for (std::size_t i = 0; i < requirements.size(); ++i)
        for (int g = 0; g < (over_positions ? collective.group_count() : 1); ++g) {
            Bindings bindings;
            const std::int64_t n = over_positions ? collective.group_size(g) : collective.ranks;
            bindings.values = {{"N", n}, {"C", collective.chunks}, {"root", collective.root}};
            for (const auto& [key, value] : params) bindings.values.emplace_back(key, value);
            const auto& requirement = requirements[i];
            std::string values;
            for (const auto& key : requirement.names())
                if (const auto* value = bindings.find(key))
                    values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", key, *value);
            std::string words = i < requirement_words.size() ? requirement_words[i] : std::string();
            if (words.empty()) words = requirement.text();
            bool holds = false;
            try {
                holds = requirement.evaluate(bindings) != 0;
            } catch (const Error& error) {
                throw input_error(
                    fmt::format("this algorithm needs {}; {} for {}", words, error.message(), values), name);
            }
            if (!holds)
                throw input_error(fmt::format("this algorithm needs {}; got {}", words, values), name);
        }
}

std::string describe(const Step& step) {
    std::string source =
        fmt::format("[{}, {}, {}]", step.src_rank, to_string(step.src_buffer), step.src_index);
    std::string destination =
        fmt::format("[{}, {}, {}]", step.dst_rank, to_string(step.dst_buffer), step.dst_index);
    if (step.op == StepOp::multicast)
        destination = fmt::format("[switch group {}, {}, {}]", step.dst_rank, to_string(step.dst_buffer),
                                  step.dst_index);
    if (step.op == StepOp::switch_reduce) {
        source = fmt::format("[switch group {}, {}, {}]", step.dst_rank, to_string(step.src_buffer),
                             step.src_index);
        destination = fmt::format("[{}, {}, {}]", step.src_rank, to_string(step.dst_buffer), step.dst_index);
    }
    std::string text = fmt::format("{} {} -> {}", to_string(step.op), source, destination);
    if (step.chunks != 1) text += fmt::format(" x{}", step.chunks);
    return text;
}

std::string dump(const Algorithm& algorithm, std::int64_t limit) {
    std::string text = fmt::format("algorithm \"{}\"\n{}\n", algorithm.name, describe(algorithm.collective));
    const std::int64_t count = algorithm.step_count();
    text += fmt::format("{} step{}\n", count, count == 1 ? "" : "s");
    auto cursor = algorithm.steps();
    std::int64_t shown = 0;
    for (Step step; shown < limit && cursor.next(step); ++shown) {
        const std::string_view par = step.in_par == 0 ? "  " : step.par == 0 ? "{ " : "| ";
        text += fmt::format("{:>6} {}{}", cursor.position(), par, describe(step));
        if (step.channel >= 0) text += fmt::format(" channel {}", step.channel);
        if (step.protocol != Protocol::automatic) text += fmt::format(" {}", to_string(step.protocol));
        if (step.via >= 0) text += fmt::format(" via {}", algorithm.vias[static_cast<std::size_t>(step.via)]);
        text += '\n';
    }
    if (shown < count) text += fmt::format("... {} more steps\n", count - shown);
    return text;
}

// ---- builder

AlgorithmBuilder::AlgorithmBuilder(std::string name, Collective collective) {
    algorithm_.name = std::move(name);
    algorithm_.collective = std::move(collective);
    algorithm_.over_positions = false;
    algorithm_.collective.check(algorithm_.name);
}

AlgorithmBuilder& AlgorithmBuilder::add(StepOp op, Place source, Place destination, std::int64_t chunks) {
    if (steps_.size() % 1024 == 0) stop_point();
    const auto where = [&] { return fmt::format("{}: step {}", algorithm_.name, steps_.size()); };
    constexpr std::int64_t kLimit = std::int64_t{1} << 31;
    for (const auto& place : {source, destination}) {
        if (place.rank < 0 || place.rank >= algorithm_.collective.ranks)
            throw input_error(
                fmt::format("rank {}, but there are {} ranks", place.rank, algorithm_.collective.ranks),
                where());
        if (place.index < 0 || chunks < 1 || chunks >= kLimit || place.index + chunks > kLimit)
            throw input_error(
                fmt::format("index {} with {} chunks is outside 0..2^31-1", place.index, chunks), where());
    }
    const bool same = source.rank == destination.rank;
    if (same && op == StepOp::send) op = StepOp::copy;
    if (same && op == StepOp::send_reduce) op = StepOp::reduce;
    if (!same && (op == StepOp::copy || op == StepOp::reduce))
        throw input_error(
            fmt::format("{} between ranks {} and {}", to_string(op), source.rank, destination.rank), where(),
            "copy and reduce stay on one rank; use send or send_reduce");
    Step step;
    step.op = op;
    step.src_buffer = source.buffer;
    step.dst_buffer = destination.buffer;
    step.src_rank = source.rank;
    step.dst_rank = destination.rank;
    step.src_index = static_cast<std::int32_t>(source.index);
    step.dst_index = static_cast<std::int32_t>(destination.index);
    step.chunks = static_cast<std::int32_t>(chunks);
    step.channel = static_cast<std::int16_t>(channel_);
    step.protocol = protocol_;
    step.via = via_;
    step.in_par = par_open_;
    step.par = par_open_ && !par_first_;
    par_first_ = false;
    steps_.push_back(step);
    return *this;
}

AlgorithmBuilder& AlgorithmBuilder::copy(Place source, Place destination, std::int64_t chunks) {
    return add(StepOp::copy, source, destination, chunks);
}
AlgorithmBuilder& AlgorithmBuilder::reduce(Place source, Place destination, std::int64_t chunks) {
    return add(StepOp::reduce, source, destination, chunks);
}
AlgorithmBuilder& AlgorithmBuilder::send(Place source, Place destination, std::int64_t chunks) {
    return add(StepOp::send, source, destination, chunks);
}
AlgorithmBuilder& AlgorithmBuilder::send_reduce(Place source, Place destination, std::int64_t chunks) {
    return add(StepOp::send_reduce, source, destination, chunks);
}

AlgorithmBuilder& AlgorithmBuilder::begin_par() {
    if (par_open_) throw input_error("a par block inside a par block", algorithm_.name, "call end_par first");
    par_open_ = par_first_ = true;
    return *this;
}
AlgorithmBuilder& AlgorithmBuilder::end_par() {
    if (!par_open_) throw input_error("end_par without begin_par", algorithm_.name);
    par_open_ = false;
    return *this;
}

AlgorithmBuilder& AlgorithmBuilder::channel(int channel) {
    if (channel < -1 || channel > INT16_MAX)
        throw input_error(fmt::format("channel {} is outside 0..{}", channel, INT16_MAX), algorithm_.name);
    channel_ = channel;
    return *this;
}
AlgorithmBuilder& AlgorithmBuilder::protocol(Protocol protocol) {
    protocol_ = protocol;
    return *this;
}
AlgorithmBuilder& AlgorithmBuilder::via(const std::string& route) {
    via_ = -1;
    if (route.empty()) return *this;
    auto& vias = algorithm_.vias;
    const auto [place, fresh] = via_number_.emplace(route, static_cast<int>(vias.size()));
    via_ = place->second;
    if (fresh) vias.push_back(route);
    return *this;
}

Algorithm AlgorithmBuilder::build() {
    if (par_open_) throw input_error("a par block is still open", algorithm_.name, "call end_par");
    via_number_.clear();
    Item item;
    item.value = ExplicitSteps{std::make_shared<const std::vector<Step>>(std::move(steps_))};
    algorithm_.body.push_back(std::move(item));
    steps_.clear();
    return std::move(algorithm_);
}

}  // namespace baton::ir
