// Program to MSCCL's XML.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/codegen/interchange/executor_form.hpp>
#include <baton/codegen/interchange/msccl.hpp>
#include <baton/codegen/interchange/msccl_file.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <charconv>

namespace baton::codegen {
namespace msccl {
namespace {

using ir::CollectiveKind;
using ir::Operand;
using ir::OperandKind;

std::string_view collective_name(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::all_reduce: return "allreduce";
        case CollectiveKind::all_gather: return "allgather";
        case CollectiveKind::reduce_scatter: return "reduce_scatter";
        case CollectiveKind::all_to_all: return "alltoall";
        case CollectiveKind::broadcast: return "broadcast";
        case CollectiveKind::reduce: return "reduce";
        case CollectiveKind::gather: return "gather";
        case CollectiveKind::scatter: return "scatter";
        default: return "custom";
    }
}

bool lives_in_output(CollectiveKind kind) {
    return kind == CollectiveKind::all_gather || kind == CollectiveKind::gather;
}

std::string_view protocol_name(ir::Protocol protocol) {
    return protocol == ir::Protocol::ll ? "LL" : protocol == ir::Protocol::ll128 ? "LL128" : "Simple";
}

class FileMaker {
public:
    explicit FileMaker(const ir::Program& program) : program_(program) {}

    File make() {
        const ir::Collective& collective = program_.collective;
        File file;
        file.name = program_.name;
        file.collective = collective_name(collective.kind);
        if (!program_.connections.empty()) file.protocol = protocol_name(program_.connections[0].protocol);
        file.chunks = collective.chunks * (ir::has_shards(collective.kind) ? collective.ranks : 1);
        if (ir::has_root(collective.kind)) file.root = collective.root;
        file.in_place = program_.in_place.value_or(true) ? 1 : 0;
        file.out_of_place = program_.in_place.value_or(false) ? 0 : 1;
        file.min_bytes = file.max_bytes = 0;
        file.channels = 1;
        for (const ir::Connection& c : program_.connections)
            file.channels = std::max<std::int64_t>(file.channels, c.channel + 1);
        pair_messages();
        for (std::size_t r = 0; r < program_.ranks.size(); ++r)
            gpu(static_cast<int>(r), file.gpus.emplace_back());
        return file;
    }

private:
    struct Site {
        int rank, threadblock, instruction;
    };

    void pair_messages() {
        sent_.resize(program_.connections.size());
        received_.resize(program_.connections.size());
        for (std::size_t r = 0; r < program_.ranks.size(); ++r)
            for (std::size_t b = 0; b < program_.ranks[r].threadblocks.size(); ++b) {
                const ir::Threadblock& block = program_.ranks[r].threadblocks[b];
                for (std::size_t i = 0; i < block.instructions.size(); ++i) {
                    const Site site{static_cast<int>(r), static_cast<int>(b), static_cast<int>(i)};
                    for (const Operand& each : block.sources(block.instructions[i]))
                        if (each.kind == OperandKind::message) received_[at(each.target)].push_back(site);
                    for (const Operand& each : block.destinations(block.instructions[i]))
                        if (each.kind == OperandKind::message) sent_[at(each.target)].push_back(site);
                }
            }
        next_sent_.assign(program_.connections.size(), 0);
        next_received_ = next_sent_;
    }

    /// In place, the format calls an output place by its name in the input, except where the input is part of
    /// it.
    Place place(int rank, const Operand& operand) const {
        if (operand.buffer == ir::Buffer::scratch) return {'s', operand.index};
        if (operand.buffer == ir::Buffer::input) return {'i', operand.index};
        const ir::Collective& collective = program_.collective;
        if (!program_.in_place.value_or(false) || lives_in_output(collective.kind))
            return {'o', operand.index};
        if (const std::int64_t input = collective.input_alias(rank, operand.index); input >= 0)
            return {'i', input};
        return {collective.places(rank, ir::Buffer::input) == 0 ? 'i' : 'o', operand.index};
    }

    static const Operand* local(std::span<const Operand> all) {
        for (auto each = all.rbegin(); each != all.rend(); ++each)
            if (each->kind == OperandKind::local) return &*each;
        return nullptr;
    }
    const ir::Threadblock& block_of(const Site& site) const {
        return program_.ranks[at(site.rank)].threadblocks[at(site.threadblock)];
    }

    void gpu(int rank, Gpu& gpu) {
        const ir::Collective& collective = program_.collective;
        const std::int64_t inputs = collective.places(rank, ir::Buffer::input);
        const std::int64_t outputs = collective.places(rank, ir::Buffer::output);
        gpu.input_chunks = inputs;
        gpu.output_chunks = outputs;
        gpu.scratch_chunks = static_cast<std::int64_t>(program_.ranks[at(rank)].scratch_classes.size());
        if (program_.in_place.value_or(false)) {
            if (lives_in_output(collective.kind) && outputs > 0) {
                gpu.input_chunks = 0;
            } else if (inputs == 0 || collective.output_alias(rank, 0) >= 0 ||
                       collective.input_alias(rank, 0) >= 0) {
                gpu.input_chunks = inputs == 0 ? outputs : inputs;
                gpu.output_chunks = 0;
            }
        }
        const auto& blocks = program_.ranks[at(rank)].threadblocks;
        std::vector<std::vector<std::int64_t>> numbers;  // step of each instruction
        for (const ir::Threadblock& block : blocks) {
            std::int64_t next = 0;
            numbers.emplace_back();
            for (const ir::Instruction& i : block.instructions) {
                next += i.sources == 0 ? i.needs : std::max<std::int64_t>(1, i.needs);
                numbers.back().push_back(std::max<std::int64_t>(0, next - 1));
            }
        }
        for (const ir::Threadblock& block : blocks) {
            Threadblock& out = gpu.threadblocks.emplace_back();
            if (!block.sends.empty()) {
                const ir::Connection& c = program_.connections[at(block.sends[0])];
                out.send = c.dst, out.channel = c.channel;
            }
            if (!block.receives.empty()) {
                const ir::Connection& c = program_.connections[at(block.receives[0])];
                out.receive = c.src, out.channel = c.channel;
            }
            for (const ir::Instruction& i : block.instructions) steps(rank, block, i, numbers, out);
        }
    }

    void steps(int rank, const ir::Threadblock& block, const ir::Instruction& i,
               const std::vector<std::vector<std::int64_t>>& numbers, Threadblock& out) {
        const auto needs = block.needs_of(i);
        const std::size_t nops =
            i.sources == 0 ? needs.size() : needs.size() - std::min<std::size_t>(1, needs.size());
        const auto dependency = [&](const ir::Need& need) {
            return Dependency{need.threadblock, numbers[at(need.threadblock)][at(need.instruction)]};
        };
        for (std::size_t n = 0; n < nops; ++n) {
            Step nop;
            nop.dependencies = {dependency(needs[n])};
            nop.published = i.sources == 0 && n + 1 == nops && i.post;
            out.steps.push_back(nop);
        }
        if (i.sources == 0) return;
        Step step = data_step(rank, block, i);
        if (!needs.empty()) step.dependencies = {dependency(needs.back())};
        step.published = i.post;
        out.steps.push_back(std::move(step));
    }

    Step data_step(int rank, const ir::Threadblock& block, const ir::Instruction& i) {
        const auto sources = block.sources(i), destinations = block.destinations(i);
        const bool in = sources[0].kind == OperandKind::message;
        const bool out = destinations.back().kind == OperandKind::message;
        const Operand* const from = local(sources);
        const Operand* const to = local(destinations);
        Step step;
        step.count = sources[0].chunks;
        step.type = in                   ? from == nullptr ? out ? StepType::rcs : StepType::r
                                           : to == nullptr ? StepType::rrs
                                           : out           ? StepType::rrcs
                                                           : StepType::rrc
                    : out                ? StepType::s
                    : sources.size() > 1 ? StepType::re
                                         : StepType::cpy;
        Site sender{}, receiver{};
        if (in) sender = sent_[at(sources[0].target)][next_received_[at(sources[0].target)]++];
        if (out) {
            const int connection = destinations.back().target;
            receiver = received_[at(connection)][next_sent_[at(connection)]++];
        }
        if (from != nullptr) step.src = place(rank, *from);
        if (to != nullptr) step.dst = place(rank, *to);
        if (from == nullptr) {  // what the sender reads
            const ir::Threadblock& other = block_of(sender);
            const Operand* const source = local(other.sources(other.instructions[at(sender.instruction)]));
            step.src = source != nullptr && step.type == StepType::r ? place(sender.rank, *source) : step.dst;
        }
        if (to == nullptr) {  // where the receiver stores
            const ir::Threadblock& other = block_of(receiver);
            const Operand* const target =
                local(other.destinations(other.instructions[at(receiver.instruction)]));
            step.dst = target != nullptr ? place(receiver.rank, *target) : step.src;
        }
        return step;
    }

    const ir::Program& program_;
    std::vector<std::vector<Site>> sent_, received_;
    std::vector<std::size_t> next_sent_, next_received_;
};

struct Limits {
    const char* name;
    std::int64_t threadblocks, steps, channels;
};
constexpr Limits kMsccl{"MSCCL", 216, 256, 32}, kRccl{"RCCL's MSCCL executor", 64, 64, 32};
constexpr std::size_t kLongestName = 63;

const Limits& limits(MscclExecutor executor) { return executor == MscclExecutor::rccl ? kRccl : kMsccl; }

void check_limits(const File& file, const Limits& limit) {
    const auto refuse = [&](const std::string& what, std::int64_t most, const char* remedy) {
        throw input_error(fmt::format("{}; {} takes {} at most", what, limit.name, most), file.name, remedy);
    };
    if (file.channels > limit.channels)
        refuse(fmt::format("the program uses {} channels", file.channels), limit.channels,
               "lower it with fewer channels");
    for (std::size_t r = 0; r < file.gpus.size(); ++r) {
        const auto& blocks = file.gpus[r].threadblocks;
        const auto count = static_cast<std::int64_t>(blocks.size());
        if (count > limit.threadblocks)
            refuse(fmt::format("rank {} has {} threadblocks", r, count), limit.threadblocks,
                   "use fewer channels, or a schedule in which a rank has fewer peers");
        for (std::size_t b = 0; b < blocks.size(); ++b) {
            const auto steps = static_cast<std::int64_t>(blocks[b].steps.size());
            if (steps > limit.steps - 1)
                refuse(fmt::format("threadblock {} of rank {} has {} steps", b, r, steps), limit.steps - 1,
                       "use fewer chunks, or more channels");
        }
    }
}

}  // namespace

File from_program(const ir::Program& program) { return FileMaker(program).make(); }

}  // namespace msccl

int msccl_slots(const MscclOptions& options) {
    const bool open = options.protocol == ir::Protocol::automatic;
    return msccl::slots_of(msccl::protocol_name(open ? ir::Protocol::simple : options.protocol));
}

ir::Program msccl_form(const ir::Program& program, const MscclOptions& options) {
    ExecutorForm form;
    form.executor = msccl::limits(options.executor).name;
    form.protocol = options.protocol;
    if (form.protocol == ir::Protocol::automatic) {
        form.protocol = program.connections.empty() ? ir::Protocol::simple : program.connections[0].protocol;
        for (const ir::Connection& c : program.connections)
            if (c.protocol != form.protocol) form.protocol = ir::Protocol::simple;
    }
    form.slots = msccl::slots_of(msccl::protocol_name(form.protocol));
    ir::Program formed = executor_form(program, form);
    if (formed.name.size() > msccl::kLongestName) formed.name.resize(msccl::kLongestName);
    return formed;
}

std::string write_msccl_xml(const ir::Program& program, const MscclOptions& options) {
    const ir::Program formed = msccl_form(program, options);
    msccl::File file = msccl::from_program(formed);
    file.foreign = formed.foreign;
    if (options.executor == MscclExecutor::rccl && file.collective == "reduce_scatter")
        file.collective = "reducescatter";
    msccl::restore_differences(file);
    if (options.min_bytes > 0) file.min_bytes = options.min_bytes;
    if (options.max_bytes > 0) file.max_bytes = options.max_bytes;
    msccl::check_limits(file, msccl::limits(options.executor));
    return msccl::print(file);
}

}  // namespace baton::codegen
