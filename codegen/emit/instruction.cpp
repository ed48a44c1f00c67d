#include <baton/codegen/emit/instruction.hpp>

#include <fmt/format.h>

namespace baton::codegen {

namespace {

bool custom(const EmitPlan& plan) { return plan.program->collective.kind == ir::CollectiveKind::custom; }

bool in_wire_type(const Access& access) {
    return access.site == Site::message || access.buffer == ir::Buffer::scratch;
}

}  // namespace

struct InstructionPrinter::Text {
    PrintedInstruction* out;
    void line(const std::string& words) { out->text += words + "\n"; }
    /// The placeholder of a number.
    std::string number(std::int64_t value, std::int64_t modulus = 0) {
        out->numbers.push_back({value, modulus});
        return fmt::format("${}$", out->numbers.size() - 1);
    }
    /// An end, or with "at_" before it the buffers behind it.
    std::string end(bool sends, int end) {
        out->numbers.push_back({end, 0, true});
        return fmt::format("{}[${}$]", sends ? 's' : 'r', out->numbers.size() - 1);
    }
};

InstructionPrinter::InstructionPrinter(const EmitPlan& plan, int instances)
    : plan_(&plan),
      instances_(instances),
      shards_(custom(plan) || ir::has_shards(plan.program->collective.kind)) {}

PrintedInstruction InstructionPrinter::print(const EmitThreadblock& threadblock,
                                             const EmitInstruction& instruction) {
    PrintedInstruction out;
    Text text{&out};
    text.line("{  // " + instruction.shape);
    text.line("    block.instruction = " + text.number(instruction.number) + ";");
    waits(text, threadblock, instruction);
    moves(text, threadblock, instruction);
    posts(text, instruction);
    text.line("}");
    return out;
}

void InstructionPrinter::waits(Text& text, const EmitThreadblock& threadblock,
                               const EmitInstruction& instruction) const {
    for (const int end : instruction.wait_messages)
        text.line(fmt::format("    {}.wait_message(block);", text.end(false, end)));
    for (const int end : instruction.wait_slots)
        text.line(fmt::format("    {}.wait_slot(block);", text.end(true, end)));
    for (const auto& wait : instruction.wait_source_free) {
        const std::string end = text.end(true, wait.end);
        text.line(
            fmt::format("    {0}.wait_source_free(block, {0}.next - {1});", end, text.number(wait.back)));
    }
    const std::string shift = instances_ > 1 ? "first_token + " : "";
    for (const auto& need : instruction.needs) {
        const std::string counter = shift + text.number(need.token);
        const std::string value = fmt::format("token(block, n, kAdvance, {})", text.number(need.instruction));
        if (need.peer < 0) {
            text.line(fmt::format("    need(block, {}, {});", counter, value));
            continue;
        }
        std::string peer;  // for the error record: as the communicator calls it, where an end knows
        for (std::size_t i = 0; i < threadblock.send_peers.size() && peer.empty(); ++i) {
            if (threadblock.send_peers[i] == need.peer) peer = text.end(true, static_cast<int>(i)) + ".peer";
        }
        for (std::size_t i = 0; i < threadblock.receive_peers.size() && peer.empty(); ++i) {
            if (threadblock.receive_peers[i] == need.peer)
                peer = text.end(false, static_cast<int>(i)) + ".peer";
        }
        if (peer.empty()) peer = text.number(need.peer);
        text.line(fmt::format("    need_remote(block, {}, {}, {});", counter, value, peer));
    }
    const bool waited = !instruction.wait_messages.empty() || !instruction.wait_slots.empty() ||
                        !instruction.wait_source_free.empty() || !instruction.needs.empty();
    if (waited || !instruction.sources.empty()) text.line("    block.after_waits();");
}

bool InstructionPrinter::listed(const EmitInstruction& instruction) const {
    return custom(*plan_) || instruction.classes.size() > 1;
}

std::string InstructionPrinter::operand(Text& text, const Access& access, const std::string& place) const {
    if (access.site == Site::message) {
        return text.end(access.sends, access.end) + ".message()" + (place.empty() ? "" : " + " + place);
    }
    const std::string buffer =
        access.site == Site::local
            ? fmt::format("block.{}()", to_string(access.buffer))
            : fmt::format("at_{}.{}", text.end(access.sends, access.end), to_string(access.buffer));
    if (access.buffer == ir::Buffer::scratch) {
        return fmt::format("in_scratch<E>(block, {}, {}, begin_of(chunks, k), range)", buffer, place);
    }
    return fmt::format("in_shard<E>(block, {}, {}, range)", buffer, place);
}

/// places: one for each source, then for each destination.
std::string InstructionPrinter::apply(Text& text, const EmitInstruction& instruction,
                                      const std::vector<std::string>& places) const {
    std::vector<std::string> sources, destinations;
    std::uint32_t wire_sources = 0, wire_destinations = 0;
    for (std::size_t i = 0; i < instruction.sources.size(); ++i) {
        sources.push_back(operand(text, instruction.sources[i], places[i]));
        if (in_wire_type(instruction.sources[i])) wire_sources |= 1u << i;
    }
    for (std::size_t i = 0; i < instruction.destinations.size(); ++i) {
        destinations.push_back(
            operand(text, instruction.destinations[i], places[instruction.sources.size() + i]));
        if (in_wire_type(instruction.destinations[i])) wire_destinations |= 1u << i;
    }
    return fmt::format("apply<E, {:#x}, {:#x}, {}>(block, {{{}}},\n        {{{}}}, range.size);",
                       wire_sources, wire_destinations, instruction.finalize, fmt::join(destinations, ", "),
                       fmt::join(sources, ", "));
}

void InstructionPrinter::moves(Text& text, const EmitThreadblock& threadblock,
                               const EmitInstruction& instruction) {
    if (instruction.sources.empty()) return;
    const ir::Collective& collective = plan_->program->collective;
    const std::int64_t classes = collective.chunks;
    std::vector<const Access*> accesses;
    for (const Access& access : instruction.sources) accesses.push_back(&access);
    for (const Access& access : instruction.destinations) accesses.push_back(&access);
    const auto is_place = [&](const Access& access) { return access.site != Site::message; };
    const auto is_scratch = [&](const Access& access) {
        return is_place(access) && access.buffer == ir::Buffer::scratch;
    };
    bool messages = false;
    for (const Access* access : accesses) messages = messages || !is_place(*access);
    std::vector<std::string> places(accesses.size());

    if (listed(instruction)) {
        const std::int64_t first = static_cast<std::int64_t>(pieces_.size());
        std::vector<std::int64_t> of;  // class of each chunk
        for (const ClassRun& run : instruction.classes) {
            for (std::int64_t j = 0; j < run.chunks; ++j) of.push_back((run.first + j) % classes);
        }
        std::size_t width = 0;
        for (std::size_t j = 0; j < of.size(); ++j) {
            width = 1;
            pieces_.push_back(static_cast<std::uint32_t>(of[j]));
            for (std::size_t a = 0; a < accesses.size(); ++a) {
                if (!is_place(*accesses[a])) continue;
                const std::int64_t index = accesses[a]->index + static_cast<std::int64_t>(j);
                std::int64_t number = shards_ ? index / classes : 0;
                if (is_scratch(*accesses[a]))
                    number = index;
                else if (!accesses[a]->shards.empty())
                    number = accesses[a]->shards[j];
                pieces_.push_back(static_cast<std::uint32_t>(number));
                places[a] = fmt::format("piece[{}]", width++);
            }
        }
        for (std::size_t a = 0; a < accesses.size(); ++a) {
            if (!is_place(*accesses[a])) places[a] = "offset";
        }
        if (messages) text.line("    u64 offset = 0;");
        text.line(fmt::format("    for (u32 j = 0; j < {}; ++j) {{",
                              text.number(static_cast<std::int64_t>(of.size()))));
        text.line(fmt::format("        const u32* const piece = kPieces + {} + j * {};", text.number(first),
                              width));
        text.line("        const u32 k = piece[0];");
        text.line("        const Range range = tile_of(chunks, k, t);");
        text.line("        " + apply(text, instruction, places));
        if (messages) text.line("        offset += slot_piece(range.size, E::wire);");
        text.line("    }");
        return;
    }

    const ClassRun run =
        instruction.classes.empty() ? ClassRun{0, instruction.chunks} : instruction.classes[0];
    const bool loops = run.chunks != 1;
    const bool wraps = run.first + run.chunks > classes;
    const std::string first_class = text.number(run.first, classes);
    std::string variables = "u32 k = " + first_class;
    std::string on_wrap = "k = 0";
    for (std::size_t a = 0; a < accesses.size(); ++a) {
        const Access& access = *accesses[a];
        if (!is_place(access)) {
            if (loops) places[a] = "offset";
            continue;
        }
        if (!is_scratch(access) && !shards_) {
            places[a] = "0";
            continue;
        }
        const int rank = access.site == Site::local ? threadblock.rank
                         : access.sends             ? threadblock.send_peers[access.end]
                                                    : threadblock.receive_peers[access.end];
        const std::int64_t modulus =
            is_scratch(access) ? static_cast<std::int64_t>(plan_->program->ranks[rank].scratch_classes.size())
                               : collective.places(rank, access.buffer) / classes;
        const std::string number =
            text.number(is_scratch(access) ? access.index : access.index / classes, modulus);
        if (!loops) {
            places[a] = number;
        } else if (is_scratch(access)) {
            places[a] = number + " + j";
        } else {
            places[a] = fmt::format("a{}", a);
            variables += fmt::format(", a{} = {}", a, number);
            on_wrap += fmt::format(", ++a{}", a);
        }
    }
    if (!loops) {
        text.line("    const u32 k = " + first_class + ";");
        text.line("    const Range range = tile_of(chunks, k, t);");
        text.line("    " + apply(text, instruction, places));
        return;
    }
    if (messages) text.line("    u64 offset = 0;");
    text.line("    " + variables + ";");
    text.line(fmt::format("    for (u32 j = 0; j < {}; ++j) {{", text.number(run.chunks)));
    text.line("        const Range range = tile_of(chunks, k, t);");
    text.line("        " + apply(text, instruction, places));
    if (messages) text.line("        offset += slot_piece(range.size, E::wire);");
    text.line(wraps ? fmt::format("        if (++k == {}) {};", classes, on_wrap) : "        ++k;");
    text.line("    }");
}

void InstructionPrinter::posts(Text& text, const EmitInstruction& instruction) const {
    const bool some =
        !instruction.publishes.empty() || !instruction.releases.empty() || !instruction.posts.empty();
    if (some) text.line("    block.before_posts();");
    for (const int end : instruction.publishes)
        text.line(fmt::format("    {}.publish(block);", text.end(true, end)));
    for (const int end : instruction.releases)
        text.line(fmt::format("    {}.release(block);", text.end(false, end)));
    for (const int end : instruction.passes) text.line(fmt::format("    {}.pass();", text.end(false, end)));
    const std::string shift = instances_ > 1 ? "first_token + " : "";
    for (const int token : instruction.posts) {
        text.line(fmt::format("    post(block, {}, token(block, n, kAdvance, {}));",
                              shift + text.number(token), text.number(instruction.number)));
    }
}

}  // namespace baton::codegen
