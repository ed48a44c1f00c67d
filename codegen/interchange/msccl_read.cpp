// MSCCL's XML: data to Program.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/codegen/interchange/complete.hpp>
#include <baton/codegen/interchange/msccl.hpp>
#include <baton/codegen/interchange/msccl_file.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <tuple>

namespace baton::codegen {
namespace msccl {
namespace {

using ir::CollectiveKind;

constexpr std::array<std::pair<std::string_view, CollectiveKind>, 9> kCollectives{{
    {"allreduce", CollectiveKind::all_reduce},
    {"allgather", CollectiveKind::all_gather},
    {"reduce_scatter", CollectiveKind::reduce_scatter},
    {"reducescatter", CollectiveKind::reduce_scatter},
    {"alltoall", CollectiveKind::all_to_all},
    {"broadcast", CollectiveKind::broadcast},
    {"reduce", CollectiveKind::reduce},
    {"gather", CollectiveKind::gather},
    {"scatter", CollectiveKind::scatter},
}};

class FileReader {
public:
    FileReader(const File& file, const std::string& name, Remarks& remarks)
        : file_(file), name_(name), remarks_(remarks) {}

    ir::Program read() {
        program_.name = file_.name.empty() ? file_.collective : file_.name;
        set_collective();
        set_placement();
        program_.ranks.resize(file_.gpus.size());
        count_places();
        for (std::size_t r = 0; r < file_.gpus.size(); ++r) rank(static_cast<int>(r));
        for (std::size_t r = 0; r < file_.gpus.size(); ++r) set_needs(static_cast<int>(r));
        note_clobbers(program_);
        program_.foreign = file_.foreign;
        sort_connections(program_);
        for (std::string& each : complete_values(program_)) remarks_.warnings.push_back(std::move(each));
        ir::mark_posts(program_);
        return std::move(program_);
    }

private:
    Error error(std::string what, std::string remedy = {}) const {
        return input_error(std::move(what), name_, std::move(remedy));
    }
    Error error_at(int rank, std::size_t block, std::size_t step, std::string what,
                   std::string remedy = {}) const {
        return input_error(std::move(what),
                           fmt::format("{}: gpu {}, tb {}, step {}", name_, rank, block, step),
                           std::move(remedy));
    }

    void set_collective() {
        ir::Collective& collective = program_.collective;
        const auto known = std::find_if(kCollectives.begin(), kCollectives.end(),
                                        [&](const auto& each) { return each.first == file_.collective; });
        if (known == kCollectives.end()) {
            std::string names;
            for (const auto& each : kCollectives)
                names += (names.empty() ? "" : ", ") + std::string(each.first);
            throw error(fmt::format("coll=\"{}\" says nothing about what the result is",
                                    file_.collective.substr(0, 40)),
                        "known: " + names);
        }
        collective.kind = known->second;
        collective.ranks = static_cast<int>(file_.gpus.size());
        collective.chunks = file_.chunks;
        if (ir::has_shards(collective.kind)) {
            if (file_.chunks % collective.ranks != 0)
                throw error(fmt::format("nchunksperloop=\"{}\" is no multiple of the {} ranks, as {} needs",
                                        file_.chunks, collective.ranks, file_.collective));
            collective.chunks = file_.chunks / collective.ranks;
        }
        if (ir::has_root(collective.kind)) set_root();
        collective.check(name_);
    }

    /// The format has no root: data starts where nothing is received, and ends where nothing is sent.
    void set_root() {
        ir::Collective& collective = program_.collective;
        if (file_.root) {
            collective.root = static_cast<int>(*file_.root);
            return;
        }
        const bool ends =
            collective.kind == CollectiveKind::reduce || collective.kind == CollectiveKind::gather;
        std::vector<int> candidates;
        for (std::size_t r = 0; r < file_.gpus.size(); ++r) {
            const auto& blocks = file_.gpus[r].threadblocks;
            const bool moves = std::any_of(blocks.begin(), blocks.end(), [&](const Threadblock& block) {
                return std::any_of(block.steps.begin(), block.steps.end(), [&](const Step& step) {
                    return ends ? sends(step.type) : receives(step.type);
                });
            });
            if (!moves) candidates.push_back(static_cast<int>(r));
        }
        collective.root = candidates.size() == 1 ? candidates.front() : 0;
        remarks_.assumptions.push_back(fmt::format(
            "root {}: {}", collective.root,
            candidates.size() == 1
                ? (ends ? "the one rank that sends nothing" : "the one rank that receives nothing")
                : "the file does not say"));
    }

    void set_placement() {
        const bool in = file_.in_place.value_or(0) != 0;
        if (!file_.out_of_place) {
            program_.in_place = in;
            remarks_.assumptions.push_back(
                fmt::format("no outofplace attribute: the algorithm serves calls {} only",
                            in ? "in place" : "out of place"));
        } else if (in && *file_.out_of_place == 0) {
            program_.in_place = true;
        } else if (!in) {
            program_.in_place = false;
            if (*file_.out_of_place == 0)
                remarks_.warnings.push_back(
                    "inplace and outofplace are both 0: no call is served; taken as out of place");
        }
        if (!file_.min_bytes && !file_.max_bytes)
            remarks_.assumptions.push_back("no minBytes and maxBytes: for calls of any size");
    }

    void count_places() const {
        std::int64_t places = 0, moves = 0;
        for (std::size_t r = 0; r < file_.gpus.size(); ++r) {
            for (const auto buffer : {ir::Buffer::input, ir::Buffer::output})
                places += program_.collective.places(static_cast<int>(r), buffer);
            places += file_.gpus[r].scratch_chunks;
            if (places > kMostImportedPlaces)
                throw error(
                    fmt::format("the buffers of all ranks have more than {} chunks", kMostImportedPlaces));
            for (const Threadblock& block : file_.gpus[r].threadblocks)
                for (const Step& step : block.steps)
                    if ((moves += step.count) > kMostImportedMoves)
                        throw error(fmt::format("the steps move more than {} chunks", kMostImportedMoves));
        }
    }

    int connection(std::int64_t src, std::int64_t dst, std::int64_t channel) {
        const auto [found, added] =
            connections_.try_emplace({src, dst, channel}, program_.connections.size());
        if (added) {
            ir::Connection c;
            c.src = static_cast<int>(src), c.dst = static_cast<int>(dst),
            c.channel = static_cast<int>(channel);
            c.protocol = file_.protocol == "Simple" ? ir::Protocol::simple
                         : file_.protocol == "LL"   ? ir::Protocol::ll
                                                    : ir::Protocol::ll128;
            c.slots = slots_of(file_.protocol);
            program_.connections.push_back(c);
        }
        return static_cast<int>(found->second);
    }

    ir::Operand local(int rank, Place place, std::int64_t count) const {
        return own_places(program_, rank, place.buffer, place.offset, count);
    }

    void rank(int r) {
        const Gpu& gpu = file_.gpus[at(r)];
        ir::RankProgram& out = program_.ranks[at(r)];
        out.scratch_classes.assign(at(gpu.scratch_chunks), 0);
        out.threadblocks.resize(gpu.threadblocks.size());
        numbers_.emplace_back(gpu.threadblocks.size());
        for (std::size_t b = 0; b < gpu.threadblocks.size(); ++b) {
            const Threadblock& block = gpu.threadblocks[b];
            ir::Threadblock& code = out.threadblocks[b];
            std::vector<std::int32_t>& numbers = numbers_.back()[b];
            int to = -1, from = -1;
            for (const Step& step : block.steps) {
                if (sends(step.type)) to = connection(r, block.send, block.channel);
                if (receives(step.type)) from = connection(block.receive, r, block.channel);
            }
            if (to >= 0) code.sends.push_back(to);
            if (from >= 0) code.receives.push_back(from);
            bool open = false;  // nops that wait for their instruction
            for (const Step& step : block.steps) {
                numbers.push_back(static_cast<std::int32_t>(code.instructions.size()));
                open = step.type == StepType::nop;
                if (!open) instruction(r, step, to, from, code);
            }
            if (open) code.add({}, {});  // nops at the end: an instruction that only waits
        }
    }

    void instruction(int rank, const Step& step, int to, int from, ir::Threadblock& code) const {
        ir::Operand message;
        message.kind = ir::OperandKind::message;
        message.chunks = static_cast<std::int32_t>(step.count);
        std::vector<ir::Operand> sources, destinations;
        if (receives(step.type)) {
            message.target = from;
            sources.push_back(message);
        }
        if (step.type == StepType::re) sources.push_back(local(rank, step.dst, step.count));
        if (uses_source(step.type)) sources.push_back(local(rank, step.src, step.count));
        if (uses_destination(step.type)) destinations.push_back(local(rank, step.dst, step.count));
        if (sends(step.type)) {
            message.target = to;
            destinations.push_back(message);
        }
        code.add(sources, destinations);
    }

    void set_needs(int r) {
        const Gpu& gpu = file_.gpus[at(r)];
        for (std::size_t b = 0; b < gpu.threadblocks.size(); ++b) {
            ir::Threadblock& code = program_.ranks[at(r)].threadblocks[b];
            const auto& steps = gpu.threadblocks[b].steps;
            std::size_t step = 0;
            for (std::size_t i = 0; i < code.instructions.size(); ++i) {
                ir::Instruction& instruction = code.instructions[i];
                instruction.first_need = static_cast<std::uint32_t>(code.needs.size());
                for (; step < steps.size() && numbers_[at(r)][b][step] == static_cast<std::int32_t>(i);
                     ++step)
                    for (const Dependency& each : steps[step].dependencies)
                        code.needs.push_back(need(r, b, step, each));
                const auto count = code.needs.size() - instruction.first_need;
                if (count > UINT16_MAX)
                    throw error_at(r, b, step - 1, fmt::format("waits for {} steps at once", count));
                instruction.needs = static_cast<std::uint16_t>(count);
            }
        }
    }

    ir::Need need(int r, std::size_t b, std::size_t step, const Dependency& dependency) {
        const Gpu& gpu = file_.gpus[at(r)];
        if (at(dependency.threadblock) >= gpu.threadblocks.size())
            throw error_at(r, b, step,
                           fmt::format("waits for tb {}, and there are {}", dependency.threadblock,
                                       gpu.threadblocks.size()));
        const auto& steps = gpu.threadblocks[at(dependency.threadblock)].steps;
        if (at(dependency.step) >= steps.size())
            throw error_at(r, b, step,
                           fmt::format("waits for step {} of tb {}, which has {}", dependency.step,
                                       dependency.threadblock, steps.size()));
        // A threadblock publishes after steps with hasdep=1 only; whoever waits for another goes on at the
        // next.
        std::size_t published = at(dependency.step);
        while (published < steps.size() && !steps[published].published) ++published;
        if (published == steps.size())
            throw error_at(
                r, b, step,
                fmt::format("waits for ever: step {} of tb {} has hasdep=\"0\", and so have all after it",
                            dependency.step, dependency.threadblock),
                "set hasdep=\"1\" on the step that is waited for");
        if (published != at(dependency.step) && late_++ == 0)
            remarks_.warnings.push_back(
                fmt::format("gpu {}, tb {}, step {} waits for step {} of tb {}, which has hasdep=\"0\": it "
                            "goes on after step {}",
                            r, b, step, dependency.step, dependency.threadblock, published));
        return {r, static_cast<std::int32_t>(dependency.threadblock),
                numbers_[at(r)][at(dependency.threadblock)][published], ir::Event::completed};
    }

    const File& file_;
    const std::string& name_;
    Remarks& remarks_;
    ir::Program program_;
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::size_t> connections_;
    std::vector<std::vector<std::vector<std::int32_t>>> numbers_;  // [rank][tb][step]: instruction
    std::int64_t late_ = 0;
};

/// Whether every message has its other end.
bool is_writable(const ir::Program& program) {
    std::vector<std::int64_t> surplus(program.connections.size(), 0);
    for (const ir::RankProgram& rank : program.ranks)
        for (const ir::Threadblock& block : rank.threadblocks)
            for (const ir::Instruction& i : block.instructions) {
                for (const ir::Operand& each : block.sources(i))
                    if (each.kind == ir::OperandKind::message) --surplus[at(each.target)];
                for (const ir::Operand& each : block.destinations(i))
                    if (each.kind == ir::OperandKind::message) ++surplus[at(each.target)];
            }
    return std::all_of(surplus.begin(), surplus.end(), [](std::int64_t n) { return n == 0; });
}

std::string size_range(const File& file) {
    if (!file.min_bytes && !file.max_bytes) return "calls of any size";
    std::string text = fmt::format("calls of {} bytes", file.min_bytes.value_or(0));
    if (file.max_bytes.value_or(0) > 0)
        text += fmt::format(" to {}", *file.max_bytes);
    else
        text += " and more";
    return text;
}

std::vector<std::string> found(const File& file, const ir::Program& program) {
    std::array<std::int64_t, 9> counts{};
    std::int64_t steps = 0;
    std::size_t least = SIZE_MAX, most = 0;
    for (const Gpu& gpu : file.gpus) {
        least = std::min(least, gpu.threadblocks.size());
        most = std::max(most, gpu.threadblocks.size());
        for (const Threadblock& block : gpu.threadblocks)
            for (const Step& step : block.steps) ++counts[static_cast<std::size_t>(step.type)], ++steps;
    }
    std::string types;
    for (std::size_t t = 0; t < counts.size(); ++t)
        if (counts[t] > 0)
            types += fmt::format("{}{} {}", types.empty() ? "" : ", ", counts[t],
                                 to_string(static_cast<StepType>(t)));
    const char* const placement = !program.in_place   ? "in place and out of place"
                                  : *program.in_place ? "in place"
                                                      : "out of place";
    return {
        fmt::format("{}, {}", ir::describe(program.collective), placement),
        fmt::format("{} steps: {}", steps, types.empty() ? "none" : types),
        fmt::format("{} threadblocks a rank, {} channel{}, {} connections, protocol {}",
                    least == most ? std::to_string(most) : fmt::format("{} to {}", least, most),
                    file.channels, file.channels == 1 ? "" : "s", program.connections.size(), file.protocol),
        "for " + size_range(file)};
}

}  // namespace
}  // namespace msccl

bool recognizes_msccl_xml(std::string_view text) {
    return text.substr(0, 1 << 16).find("<algo ") != std::string_view::npos;
}

ImportedProgram read_msccl_xml(std::string_view text, const std::string& name) {
    msccl::Remarks remarks;
    const msccl::File file = msccl::parse(text, name, remarks);
    ImportedProgram imported;
    imported.program = msccl::FileReader(file, name, remarks).read();
    // What the program does not say again when it is written is noted; only where it can be written.
    if (msccl::is_writable(imported.program))
        msccl::note_differences(file, msccl::from_program(imported.program), imported.program.foreign);
    imported.found = msccl::found(file, imported.program);
    imported.assumptions = std::move(remarks.assumptions);
    imported.warnings = std::move(remarks.warnings);
    return imported;
}

}  // namespace baton::codegen
