// MSCCL++'s execution plan: data to Program.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/codegen/interchange/complete.hpp>
#include <baton/codegen/interchange/mscclpp.hpp>
#include <baton/codegen/interchange/mscclpp_file.hpp>
#include <baton/codegen/interchange/mscclpp_order.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <numeric>

namespace baton::codegen {
namespace mscclpp {
namespace {

using ir::CollectiveKind;
using ir::Operand;

/// Most pieces that a chunk is cut into for shares of groups of threadblocks.
constexpr std::int64_t kMostPieces = 1 << 12;

bool reads_packets(OpType type) {
    switch (type) {
        case OpType::rppkt:
        case OpType::upkt:
        case OpType::repkt:
        case OpType::recpkt:
        case OpType::respkt:
        case OpType::recspkt: return true;
        default: return false;
    }
}
/// First destination that is written as packets; past the end: none.
std::size_t first_packet_destination(const Op& op) {
    switch (op.type) {
        case OpType::ppkt:
        case OpType::rppkt:
        case OpType::cpkt: return 0;
        case OpType::recpkt:
        case OpType::respkt:
        case OpType::recspkt: return 1;
        default: return op.dst.size();
    }
}
/// First source that is read as packets.
std::size_t first_packet_source(const Op& op) {
    if (op.type == OpType::rppkt || op.type == OpType::upkt || op.type == OpType::gstorepkt) return 0;
    return reads_packets(op.type) ? 1 : op.src.size();
}
bool is_pairwise(OpType type) {
    return type == OpType::put || type == OpType::pws || type == OpType::pwsf || type == OpType::get ||
           type == OpType::ppkt;
}

class PlanReader {
public:
    PlanReader(const File& file, const std::string& name, Remarks& remarks)
        : file_(file), name_(name), remarks_(remarks), order_(file, name, remarks) {}

    ir::Program read() {
        program_.name = file_.name.empty() ? file_.collective : file_.name;
        if (!file_.both_placements) program_.in_place = file_.in_place;
        set_pieces();
        set_collective();
        program_.ranks.resize(file_.gpus.size());
        for (std::size_t r = 0; r < file_.gpus.size(); ++r) rank(static_cast<int>(r));
        order_.set_needs(program_);
        program_.foreign = file_.foreign;
        if (file_.protocol != "Simple") program_.foreign["@protocol"] = '"' + file_.protocol + '"';
        note_clobbers(program_);
        for (std::string& each : complete_values(program_)) remarks_.warnings.push_back(std::move(each));
        ir::mark_posts(program_);
        return std::move(program_);
    }
    std::int64_t pieces() const { return pieces_; }

private:
    Error error_at(std::size_t r, std::size_t b, const Op& op, std::string what) const {
        return input_error(std::move(what), name_ + "#" + pointer(r, b, op));
    }

    /// Shares of groups of threadblocks are runs of pieces: every chunk is cut into as many.
    void set_pieces() {
        for (std::size_t r = 0; r < file_.gpus.size(); ++r)
            for (std::size_t b = 0; b < file_.gpus[r].threadblocks.size(); ++b)
                for (const Op& op : file_.gpus[r].threadblocks[b].ops) {
                    if (op.shares <= 1) continue;
                    for (const auto* runs : {&op.src, &op.dst})
                        for (const Chunks& run : *runs) {
                            pieces_ = std::lcm(pieces_, op.shares / std::gcd(op.shares, run.size));
                            if (pieces_ > kMostPieces)
                                throw error_at(r, b, op,
                                               fmt::format("shares of threadblocks would cut each chunk "
                                                           "into more than {} pieces",
                                                           kMostPieces));
                        }
                }
        if (pieces_ > 1)
            remarks_.assumptions.push_back(fmt::format(
                "shares of groups of threadblocks (tbg_info) cut each chunk into {} pieces", pieces_));
    }

    void set_collective() {
        if (file_.exact) {
            if (pieces_ > 1)
                throw input_error(
                    "shares of threadblocks (tbg_info) in a plan that names its collective exactly",
                    name_ + "#/baton/collective");
            program_.collective = *file_.exact;
            check_places(program_.collective);
            return;
        }
        struct Name {
            std::string_view name;
            CollectiveKind kind;
        };
        constexpr std::array<Name, 6> kNames{{{"allreduce", CollectiveKind::all_reduce},
                                              {"allgather", CollectiveKind::all_gather},
                                              {"reducescatter", CollectiveKind::reduce_scatter},
                                              {"alltoall", CollectiveKind::all_to_all},
                                              {"broadcast", CollectiveKind::broadcast},
                                              {"sendrecv", CollectiveKind::custom}}};
        const auto known = std::find_if(kNames.begin(), kNames.end(),
                                        [&](const Name& each) { return each.name == file_.collective; });
        const auto wrong = [&](std::string what) {
            return input_error(std::move(what), name_ + "#/collective");
        };
        if (known == kNames.end()) {
            std::string names;
            for (const Name& each : kNames) names += (names.empty() ? "" : ", ") + std::string(each.name);
            throw input_error(fmt::format("collective \"{}\" says nothing about what the result is",
                                          file_.collective.substr(0, 40)),
                              name_ + "#/collective", "known: " + names);
        }
        ir::Collective& collective = program_.collective;
        const auto ranks = static_cast<std::int64_t>(file_.gpus.size());
        collective.kind = known->kind;
        collective.ranks = static_cast<int>(ranks);
        const bool from_output = collective.kind == CollectiveKind::reduce_scatter;
        const Gpu& first = file_.gpus[0];
        collective.chunks = (from_output ? first.output_chunks : first.input_chunks) * pieces_;
        if (collective.kind == CollectiveKind::all_to_all) {
            if (first.input_chunks % ranks != 0)
                throw wrong(
                    fmt::format("input_chunks {} is no multiple of the {} ranks", first.input_chunks, ranks));
            collective.chunks /= ranks;
        }
        if (collective.chunks < 1) throw wrong("the buffers have no chunks");
        if (collective.kind == CollectiveKind::custom) exchange(collective);
        collective.check(name_);
        if (ir::has_root(collective.kind)) remarks_.assumptions.push_back("root 0: the file does not say");
        check_places(collective);
    }

    /// sendrecv: two ranks get each other's input.
    void exchange(ir::Collective& collective) const {
        if (collective.ranks != 2)
            throw input_error(
                fmt::format("sendrecv is an exchange of two ranks, and there are {}", collective.ranks),
                name_ + "#/collective");
        ir::CustomPlaces places;
        places.inputs.resize(2), places.outputs.resize(2);
        for (int r = 0; r < 2; ++r)
            for (std::int64_t c = 0; c < collective.chunks; ++c) {
                places.inputs[at(r)].push_back({r, c});
                places.outputs[at(r)].push_back({c, {{1 - r, 1 - r}}});
            }
        collective.custom = std::make_shared<const ir::CustomPlaces>(std::move(places));
    }

    /// All ranks name the chunks of the largest buffers, as calls pass the same sizes everywhere.
    void check_places(const ir::Collective& collective) const {
        std::int64_t places = 0, inputs = 0, outputs = 0;
        for (std::size_t r = 0; r < file_.gpus.size(); ++r) {
            const std::int64_t in = collective.places(static_cast<int>(r), ir::Buffer::input);
            const std::int64_t out = collective.places(static_cast<int>(r), ir::Buffer::output);
            inputs = std::max(inputs, in), outputs = std::max(outputs, out);
            places += in + out + file_.gpus[r].scratch_chunks * pieces_;
            if (places > kMostImportedPlaces)
                throw input_error(
                    fmt::format("the buffers of all ranks have more than {} chunks", kMostImportedPlaces),
                    name_);
        }
        const auto check = [&](std::size_t r, const char* key, std::int64_t is, std::int64_t must) {
            // In place, a plan may name one of the two only.
            if (is == must || (is == 0 && file_.in_place)) return;
            throw input_error(fmt::format("{} is {}, and {} of these ranks has {}", key, is,
                                          file_.collective.substr(0, 40), must),
                              fmt::format("{}#/gpus/{}/{}", name_, r, key));
        };
        for (std::size_t r = 0; r < file_.gpus.size(); ++r) {
            check(r, "input_chunks", file_.gpus[r].input_chunks, inputs / pieces_);
            check(r, "output_chunks", file_.gpus[r].output_chunks, outputs / pieces_);
        }
    }

    // ---- operands

    Operand operand(int rank, const Op& op, const Chunks& run) {
        const std::int64_t size = run.size * pieces_ / op.shares;
        const std::int64_t index = run.index * pieces_ + size * op.share;
        if ((moves_ += size) > kMostImportedMoves)
            throw input_error(fmt::format("the operations move more than {} chunks", kMostImportedMoves),
                              name_);
        if (run.space == Space::switches) return switched(rank, run, index, size);
        const int owner = run.space == Space::remote ? static_cast<int>(run.target) : rank;
        Operand out = own_places(program_, owner, run.buffer, index, size);
        if (run.space == Space::remote) {
            out.kind = ir::OperandKind::remote;
            out.target = owner;
        }
        return out;
    }

    Operand switched(int rank, const Chunks& run, std::int64_t index, std::int64_t size) {
        const SwitchGroup& group = file_.gpus[at(rank)].switch_groups[at(run.target)];
        Operand out = own_places(program_, group.ranks[0], run.buffer, index, size);
        for (const int member : group.ranks)
            if (own_places(program_, member, run.buffer, index, size) != out) {
                out.buffer = ir::Buffer::input;  // in no output place that all members share
                out.index = static_cast<std::int32_t>(index);
            }
        auto& groups = program_.switch_groups;
        const auto known = std::find(groups.begin(), groups.end(), group.ranks);
        out.kind = ir::OperandKind::switch_group;
        out.target = static_cast<std::int32_t>(known - groups.begin());
        if (known == groups.end()) groups.push_back(group.ranks);
        return out;
    }

    // ---- operations

    void rank(int r) {
        const Gpu& gpu = file_.gpus[at(r)];
        ir::RankProgram& out = program_.ranks[at(r)];
        out.scratch_classes.assign(at(gpu.scratch_chunks * pieces_), 0);
        out.threadblocks.resize(gpu.threadblocks.size());
        for (std::size_t b = 0; b < gpu.threadblocks.size(); ++b) {
            order_.enter(r, static_cast<int>(b), out.threadblocks[b]);
            for (const Op& op : gpu.threadblocks[b].ops) operation(r, b, op, out.threadblocks[b]);
            order_.leave();
        }
    }

    void operation(int r, std::size_t b, const Op& op, ir::Threadblock& code) {
        switch (op.type) {
            case OpType::nop:
            case OpType::flush:
            case OpType::pipeline: return;
            case OpType::barrier: return order_.barrier(op);
            case OpType::sem_acquire: return order_.acquire(op);
            case OpType::sem_release: return order_.release(op);
            case OpType::rlxsignal: ++relaxed_; [[fallthrough]];
            case OpType::signal: return order_.signal(op);
            case OpType::rlxwait: ++relaxed_; [[fallthrough]];
            case OpType::wait: return order_.wait(op);
            default: break;
        }
        warn_of(r, b, op);
        std::vector<Operand> sources, destinations;
        for (const Chunks& run : op.src) sources.push_back(operand(r, op, run));
        for (const Chunks& run : op.dst) destinations.push_back(operand(r, op, run));
        for (std::size_t s = first_packet_source(op); s < sources.size(); ++s)
            order_.wait_for_packets(op, sources[s]);
        if (is_pairwise(op.type)) {
            for (std::size_t i = 0; i < sources.size(); ++i) {
                order_.carry();
                code.add({&sources[i], 1}, {&destinations[i], 1});
            }
        } else {
            // The executor adds up the packets first, then the plain source.
            if (reads_packets(op.type) && sources.size() > 1)
                std::rotate(sources.begin(), sources.begin() + 1, sources.end());
            order_.carry();
            code.add(sources, destinations);
        }
        for (std::size_t d = first_packet_destination(op); d < destinations.size(); ++d)
            order_.write_packets(r, op, destinations[d]);
        if (op.type == OpType::pws || op.type == OpType::pwsf) order_.signal(op);
    }

    void warn_of(int r, std::size_t b, const Op& op) {
        const auto once = [&](bool& said, const char* what) {
            if (said) return;
            said = true;
            remarks_.warnings.push_back(pointer(at(r), b, op) + ": " + what);
        };
        if (op.type == OpType::get)
            for (std::size_t i = 0; i < op.src.size(); ++i)
                if (op.src[i].index != op.dst[i].index)
                    once(said_get_, "get between different places: the executor (0.9) swaps their offsets");
        if (op.type == OpType::put && op.channel_type == ChannelType::memory)
            for (const Chunks& run : op.src)
                if (run.buffer != op.src[0].buffer)
                    once(said_put_, "put from different buffers: the executor reads all from the first");
    }

public:
    std::int64_t relaxed() const { return relaxed_; }

private:
    const File& file_;
    const std::string& name_;
    Remarks& remarks_;
    PlanOrder order_;
    ir::Program program_;
    std::int64_t pieces_ = 1, moves_ = 0, relaxed_ = 0;
    bool said_get_ = false, said_put_ = false;
};

std::vector<std::string> found(const File& file, const ir::Program& program) {
    std::array<std::int64_t, 32> counts{};
    std::int64_t ops = 0;
    std::size_t least = SIZE_MAX, most = 0, memory = 0, port = 0, switches = 0;
    for (const Gpu& gpu : file.gpus) {
        least = std::min(least, gpu.threadblocks.size());
        most = std::max(most, gpu.threadblocks.size());
        memory += gpu.memory_peers.size();
        port += gpu.port_peers.size();
        switches += gpu.switch_groups.size();
        for (const Threadblock& block : gpu.threadblocks) {
            ops += static_cast<std::int64_t>(block.ops.size());
            for (const Op& op : block.ops) ++counts[at(static_cast<int>(op.type))];
        }
    }
    std::string types;
    for (std::size_t t = 0; t < counts.size(); ++t)
        if (counts[t] > 0)
            types += fmt::format("{}{} {}", types.empty() ? "" : ", ", counts[t],
                                 to_string(static_cast<OpType>(t)));
    return {fmt::format("{}, {}", ir::describe(program.collective),
                        file.both_placements ? "in place and out of place"
                        : file.in_place      ? "in place"
                                             : "out of place"),
            fmt::format("{} operations: {}", ops, types.empty() ? "none" : types),
            fmt::format("{} threadblocks a rank, channels: {} memory, {} port, {} switch; protocol {}",
                        least == most ? std::to_string(most) : fmt::format("{} to {}", least, most), memory,
                        port, switches, file.protocol)};
}

}  // namespace
}  // namespace mscclpp

bool recognizes_mscclpp_json(std::string_view text) {
    const std::string_view head = text.substr(0, 1 << 16);
    const auto has = [&](std::string_view mark) { return head.find(mark) != std::string_view::npos; };
    // Plans of early versions are recognized too, to be refused for what they are.
    if (has("\"inputChunks\"") && has("\"threadblocks\"")) return true;
    return has("\"gpus\"") && has("\"inplace\"") && has("\"collective\"");
}

ImportedProgram read_mscclpp_json(std::string_view text, const std::string& name) {
    mscclpp::Remarks remarks;
    const mscclpp::File file = mscclpp::parse(text, name, remarks);
    ImportedProgram imported;
    mscclpp::PlanReader reader(file, name, remarks);
    imported.program = reader.read();
    imported.found = mscclpp::found(file, imported.program);
    if (reader.relaxed() > 0)
        remarks.warnings.push_back(fmt::format(
            "{} relaxed signals and waits: they order execution without making data visible, and are "
            "verified as if they did",
            reader.relaxed()));
    imported.assumptions = std::move(remarks.assumptions);
    imported.warnings = std::move(remarks.warnings);
    return imported;
}

}  // namespace baton::codegen
