#include <baton/codegen/emit.hpp>

#include <baton/base/error.hpp>
#include <baton/codegen/emit/analysis.hpp>
#include <baton/codegen/emit/prepare.hpp>
#include <baton/codegen/emit/roles.hpp>
#include <baton/codegen/prelude.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cctype>

namespace baton::codegen {

std::vector<EntryRequest> pair_entries(const std::vector<ir::DataType>& types,
                                       const std::vector<ir::ReduceOp>& ops, ir::NanMode nan) {
    std::vector<EntryRequest> entries;
    for (const ir::DataType type : types) {
        for (const ir::ReduceOp op : ops) {
            if (ir::valid(op, type)) entries.push_back({type, op, nan});
        }
    }
    for (const ir::DataType type : types) {
        const bool served =
            std::any_of(ops.begin(), ops.end(), [&](ir::ReduceOp op) { return ir::valid(op, type); });
        if (!served && !ops.empty()) ir::check_valid(ops[0], type, "type");
    }
    for (const ir::ReduceOp op : ops) {
        const bool served =
            std::any_of(types.begin(), types.end(), [&](ir::DataType type) { return ir::valid(op, type); });
        if (!served && !types.empty()) ir::check_valid(op, types[0], "operator");
    }
    return entries;
}

bool needs_operator(const ir::Program& program) {
    for (const ir::RankProgram& rank : program.ranks) {
        for (const ir::Threadblock& threadblock : rank.threadblocks) {
            for (const ir::Instruction& instruction : threadblock.instructions) {
                if (instruction.sources > 1 || instruction.finalize) return true;
            }
        }
    }
    return false;
}

namespace {

/// Two independent 64-bit hashes as 32 hex digits.
std::string content_hash(const std::string& text) {
    std::uint64_t a = 0xcbf29ce484222325ull, b = 0x9e3779b97f4a7c15ull;
    for (const unsigned char c : text) {
        a = (a ^ c) * 0x100000001b3ull;
        b = (b + c) * 0xff51afd7ed558ccdull;
        b ^= b >> 32;
    }
    return fmt::format("{:016x}{:016x}", a, b);
}

/// Lower-case letters, digits and single underscores.
std::string identifier(const std::string& name) {
    std::string out;
    for (const unsigned char c : name) {
        if (std::isalnum(c) && c < 128)
            out += static_cast<char>(std::tolower(c));
        else if (!out.empty() && out.back() != '_')
            out += '_';
        if (out.size() >= 40) break;
    }
    while (!out.empty() && out.back() == '_') out.pop_back();
    return out.empty() ? "plan" : out;
}

/// On one line, so that it can stand in a comment.
std::string one_line(const std::string& name) {
    std::string out;
    for (const unsigned char c : name) out += c < 32 || c == 127 || c == '\\' ? ' ' : static_cast<char>(c);
    return out;
}

std::string table(const std::string& name, const std::vector<std::uint32_t>& values) {
    if (values.empty()) return {};
    std::string text = fmt::format("BATON_TABLE u32 {}[] = {{", name);
    for (std::size_t i = 0; i < values.size(); ++i) {
        text += i % 16 == 0 ? "\n    " : " ";
        text += std::to_string(values[i]) + ",";
    }
    return text + "\n};\n";
}

ir::DataType copying_type(std::int64_t size) {
    for (const ir::DataType type :
         {ir::DataType::u8, ir::DataType::f16, ir::DataType::u32, ir::DataType::u64, ir::DataType::f64_i32}) {
        if (ir::size_of(type) == size) return type;
    }
    throw internal_error("no element type of this size");
}

std::vector<ManifestEntry> choose_entries(const ir::Program& program, const EmitOptions& options) {
    std::vector<ManifestEntry> entries;
    if (!needs_operator(program)) {
        std::vector<std::int64_t> sizes;
        for (const EntryRequest& request : options.entries) sizes.push_back(ir::size_of(request.type));
        if (sizes.empty()) sizes = {1, 2, 4, 8, 16};
        std::sort(sizes.begin(), sizes.end());
        sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
        for (const std::int64_t size : sizes) {
            const ir::DataType type = copying_type(size);
            entries.push_back(
                {fmt::format("copy{}", size), type, std::nullopt, ir::NanMode::propagate, type});
        }
        return entries;
    }
    std::vector<EntryRequest> requests = options.entries;
    if (requests.empty()) requests.push_back({});
    for (const EntryRequest& request : requests) {
        ir::check_valid(request.op, request.type, "entry");
        if (ir::always_wide(request.op, request.type) && !program.wide) {
            throw input_error(fmt::format("{} of {} needs a program that was lowered wide",
                                          to_string(request.op), to_string(request.type)),
                              program.name, "lower with --wide");
        }
        ManifestEntry entry{fmt::format("{}_{}{}", to_string(request.type), to_string(request.op),
                                        request.nan == ir::NanMode::ignore ? "_number" : ""),
                            request.type, request.op, request.nan,
                            ir::wire_type(request.op, request.type, program.wide)};
        const bool known = std::any_of(entries.begin(), entries.end(),
                                       [&](const ManifestEntry& e) { return e.name == entry.name; });
        if (!known) entries.push_back(std::move(entry));
    }
    return entries;
}

/// An element whose bits are copied: of a type without special values.
std::string element_of(const ManifestEntry& entry, ir::DataType type) {
    return "element::" + std::string(to_string(entry.op ? type : copying_type(ir::size_of(type))));
}

std::string entry_type(const ManifestEntry& entry) {
    std::string op = "op::sum";
    if (entry.op) {
        op = prelude_op(*entry.op, entry.nan);
        op = op.substr(op.find("op::"));
    }
    const std::string scope = "baton_kernel::";
    return fmt::format("{0}Entry<{0}{1}, {0}{2}, {0}{3}>", scope, op, element_of(entry, entry.type),
                       element_of(entry, entry.wire));
}

/// Connections, tokens and threadblocks of all instances.
void repeat_instances(Manifest& m, int instances) {
    const std::size_t connections = m.connections.size(), tokens = m.tokens.size();
    int channels = 1;
    for (const ManifestConnection& connection : m.connections)
        channels = std::max(channels, connection.channel + 1);
    const std::vector<ManifestRank> ranks = m.ranks;
    for (int instance = 1; instance < instances; ++instance) {
        for (std::size_t c = 0; c < connections; ++c) {
            ManifestConnection copy = m.connections[c];
            copy.channel += instance * channels;
            m.connections.push_back(std::move(copy));
        }
        for (std::size_t t = 0; t < tokens; ++t) {
            ManifestToken copy = m.tokens[t];
            copy.threadblock += instance * ranks[copy.rank].threadblocks;
            m.tokens.push_back(copy);
        }
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            m.ranks[r].threadblocks += ranks[r].threadblocks;
            for (const auto& [number, sends] : ranks[r].connections) {
                m.ranks[r].connections.emplace_back(number + instance * static_cast<int>(connections), sends);
            }
            for (const int token : ranks[r].tokens)
                m.ranks[r].tokens.push_back(token + instance * static_cast<int>(tokens));
        }
    }
}

/// Which role a threadblock has, and its constants.
std::string dispatch(const EmitPlan& plan, const PrintedRoles& roles, int instances) {
    const std::size_t ranks = plan.ranks.size();
    std::vector<std::uint32_t> first, of;
    bool uniform = true;
    for (std::size_t r = 0; r < ranks; ++r) {
        first.push_back(static_cast<std::uint32_t>(plan.first[r]));
        uniform = uniform && plan.ranks[r].threadblocks == plan.ranks[0].threadblocks;
    }
    for (const auto& [role, constants] : roles.of) {
        of.push_back(static_cast<std::uint32_t>(role));
        of.push_back(static_cast<std::uint32_t>(constants));
    }
    std::string text =
        "\n// Role of each threadblock of each rank, and where its constants begin.\n" + table("kRoles", of);
    std::string begin = fmt::format("block.rank.position * {}", plan.ranks[0].threadblocks);
    if (!uniform) {
        text += table("kFirst", first);
        begin = "kFirst[block.rank.position]";
    }
    std::string number = "block.threadblock";
    if (instances > 1) number = fmt::format("block.threadblock % (block.rank.threadblocks / {})", instances);
    text += "\ntemplate <class E>\nBATON_FN void run(Block& block) {\n    enter(block);\n";
    text += fmt::format("    const u32* const role = kRoles + 2 * ({} + {});\n", begin, number);
    const std::string constants = roles.constants.empty() ? "nullptr" : "kConstants + role[1]";
    text += "    switch (role[0]) {\n";
    for (int role = 0; role < roles.count; ++role) {
        text += fmt::format("        case {0}: role{0}<E>(block, {1}); break;\n", role, constants);
    }
    return text + "    }\n    leave(block, kAdvance);\n}\n";
}

std::string classes_of(const ir::Collective& collective) {
    if (collective.weights.empty()) {
        return "BATON_FN Range tile_of(const Partition& chunks, u32 k, u32 t) { return chunks.tile(k, t); }\n"
               "BATON_FN u64 begin_of(const Partition& chunks, u32 k) { return chunks.tile(k, "
               "chunks.first_tile).begin; }\n";
    }
    std::string text = "// Sums of the weights before each class.\nBATON_TABLE u64 kWeights[] = {0,";
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < collective.weights.size(); ++k)
        text += fmt::format("{}{},", k % 16 == 15 ? "\n    " : " ", sum += collective.weights[k]);
    return text +
           "};\n"
           "BATON_FN Range tile_of(const Partition& chunks, u32 k, u32 t) { return chunks.tile(kWeights[k], "
           "kWeights[k + 1], t); }\n"
           "BATON_FN u64 begin_of(const Partition& chunks, u32 k) { return chunks.tile(kWeights[k], "
           "kWeights[k + 1], chunks.first_tile).begin; }\n";
}

std::string print_header(const Manifest& m) {
    std::string text = fmt::format("/* Kernels of \"{}\" ({}); manifest.json says how to launch them. */\n",
                                   one_line(m.name), one_line(ir::describe(m.collective)));
    text += std::string(abi_header());
    text +=
        "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n/* In the host object; kernels of the same names, "
        "with one argument (baton_arguments by value), in the cubins. */\n";
    for (const ManifestEntry& entry : m.entries)
        text += fmt::format("void {}(const baton_arguments*, const baton_host_thread*);\n", entry.name);
    return text + "#ifdef __cplusplus\n}\n#endif\n";
}

void check(const ir::Program& program, const EmitOptions& options) {
    if (options.threads < 32 || options.threads > 1024 || options.threads % 32 != 0) {
        throw input_error(fmt::format("{} threads per threadblock", options.threads), "threads",
                          "use a multiple of 32 up to 1024");
    }
    if (options.instances < 1 || options.instances > 1024)
        throw input_error(fmt::format("{} instances", options.instances), "instances", "use 1 to 1024");
    if (program.ranks.empty()) throw input_error("a program without ranks", program.name);
    if (program.clobbers_input)
        throw input_error("a program that writes its input cannot be emitted", program.name);
}

}  // namespace

Module emit(const ir::Program& program, const EmitOptions& options, const ir::ProgramReport* report) {
    check(program, options);
    const std::optional<ir::Program> prepared = prepared_program(program);
    const EmitPlan plan = analyze(prepared ? *prepared : program);
    PrintedRoles roles = print_roles(plan, options.instances, std::max(options.straight, 0));
    Module module;
    Manifest& m = module.manifest;
    m.name = program.name;
    m.collective = program.collective;
    m.wide = program.wide;
    m.in_place = program.in_place;
    if (report != nullptr) m.order = report->order, m.assurance = report->assurance;
    m.threads = options.threads;
    m.instances = options.instances;
    m.advance = plan.advance;
    m.topology_hash = program.topology_hash;
    m.connections = plan.connections;
    m.tokens = plan.tokens;
    m.ranks = plan.ranks;
    repeat_instances(m, options.instances);
    m.entries = choose_entries(program, options);

    std::string body = fmt::format("constexpr u32 kAdvance = {};  // tokens per tile\n", plan.advance);
    body += classes_of(program.collective);
    if (!roles.constants.empty())
        body +=
            "\n// What differs among the threadblocks of a role.\n" + table("kConstants", roles.constants);
    if (!roles.rows.empty()) body += "\n// Instructions that follow no rule.\n" + table("kRows", roles.rows);
    if (!roles.pieces.empty())
        body += "\n// Chunks that follow no rule: class, then shard or scratch place of each operand.\n" +
                table("kPieces", roles.pieces);
    body += "\n" + roles.functions;
    body.pop_back();
    body += dispatch(plan, roles, options.instances);
    // Modules that differ in anything may be linked together, so everything is in the name.
    std::string all = fmt::format("{} {}", options.threads, body);
    for (const ManifestEntry& entry : m.entries) all += " " + entry.name;
    const std::string name = fmt::format("{}_{}", identifier(program.name), content_hash(all).substr(0, 8));
    std::string text =
        fmt::format("\n// {}: {}.\n", one_line(program.name), one_line(ir::describe(program.collective)));
    text += fmt::format("namespace {} {{\nusing namespace baton_kernel;\n\n{}\n}}  // namespace {}\n\n", name,
                        body, name);
    for (ManifestEntry& entry : m.entries) {
        entry.name = fmt::format("baton_{}_{}", name, entry.name);
        text += fmt::format("BATON_KERNEL({}, {}) {{\n    BATON_BLOCK(block);\n    {}::run<{}>(block);\n}}\n",
                            entry.name, options.threads, name, entry_type(entry));
    }
    module.source = prelude_source() + text;
    m.hash = content_hash(module.source);
    module.header = print_header(m);
    return module;
}

}  // namespace baton::codegen
