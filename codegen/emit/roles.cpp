#include <baton/codegen/emit/roles.hpp>

#include <baton/base/error.hpp>
#include <baton/codegen/emit/instruction.hpp>
#include <baton/codegen/passes/reroll.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

namespace baton::codegen {
namespace {

constexpr std::size_t kMostTableWords = (std::size_t{64} << 20) / sizeof(std::uint32_t);
/// Instructions of straight-line code in one module, all roles together; above, everything that can be rolled
/// is.
constexpr std::int64_t kMostStraight = 48;

/// Consecutive instructions. straight: each once. loop: `times` copies of a body. walk: each row of a table
/// names one of a few forms.
enum class Shape { straight, loop, walk };

struct Piece {
    Shape shape = Shape::straight;
    int first = 0, body = 0, times = 1;
};

struct Instruction {
    int form = 0;
    std::vector<Number> numbers;
};

class RolePrinter {
public:
    RolePrinter(const EmitPlan& plan, int instances, int straight)
        : plan_(plan), instances_(instances), straight_(straight), printer_(plan, instances) {}

    PrintedRoles run() {
        for (const EmitThreadblock& threadblock : plan_.threadblocks) print_instructions(threadblock);
        cut();
        if (straight_code() > kMostStraight) {
            straight_ = 0;
            cut();
        }
        std::map<std::string, std::vector<int>> members;
        std::vector<std::string> order;
        for (std::size_t i = 0; i < plan_.threadblocks.size(); ++i) {
            const std::string key = role_key(i);
            auto& list = members[key];
            if (list.empty()) order.push_back(key);
            list.push_back(static_cast<int>(i));
        }
        out_.of.resize(plan_.threadblocks.size());
        for (const std::string& key : order) print_role(members[key]);
        out_.pieces = printer_.pieces();
        if (out_.constants.size() + out_.rows.size() + out_.pieces.size() > kMostTableWords) {
            throw input_error("the tables of the module exceed 64 MiB", plan_.program->name,
                              "lower to fewer instructions");
        }
        return std::move(out_);
    }

private:
    const EmitThreadblock& threadblock(int i) const { return plan_.threadblocks[i]; }

    void print_instructions(const EmitThreadblock& threadblock) {
        auto& list = instructions_.emplace_back();
        list.reserve(threadblock.instructions.size());
        for (const EmitInstruction& instruction : threadblock.instructions) {
            PrintedInstruction printed = printer_.print(threadblock, instruction);
            const auto [it, fresh] =
                numbers_of_forms_.try_emplace(std::move(printed.text), static_cast<int>(forms_.size()));
            if (fresh) forms_.push_back(&it->first);
            list.push_back({it->second, std::move(printed.numbers)});
        }
    }

    /// How each threadblock is written down.
    void cut() {
        pieces_.clear();
        for (std::size_t i = 0; i < instructions_.size(); ++i) pieces_.push_back(cut(static_cast<int>(i)));
    }

    std::vector<Piece> cut(int i) const {
        const int count = static_cast<int>(instructions_[i].size());
        if (count <= straight_) return {{Shape::straight, 0, count, 1}};
        std::vector<Piece> pieces;
        int at = 0, code = 0;
        const auto straight_until = [&](int end) {
            if (at < end) pieces.push_back({Shape::straight, at, end - at, 1});
            code += end - at;
            at = end;
        };
        for (const ir::Repeat& repeat : threadblock(i).repeats) {
            if (!same_forms(i, repeat)) continue;
            straight_until(repeat.first);
            pieces.push_back({Shape::loop, repeat.first, repeat.body, repeat.times});
            code += repeat.body;
            at = repeat.first + repeat.body * repeat.times;
        }
        straight_until(count);
        if (code > 2 * std::max(straight_, 10)) return {{Shape::walk, 0, 1, count}};
        return pieces;
    }

    bool same_forms(int i, const ir::Repeat& repeat) const {
        const auto& list = instructions_[i];
        if (repeat.first < 0 || repeat.body < 1 || repeat.times < 2) return false;
        const std::int64_t end = repeat.first + std::int64_t{repeat.body} * repeat.times;
        if (end > static_cast<std::int64_t>(list.size())) return false;
        for (std::int64_t k = repeat.first + repeat.body; k < end; ++k) {
            if (list[k].form != list[k - repeat.body].form || ends(list[k]) != ends(list[k - repeat.body]))
                return false;
        }
        return true;
    }

    /// Which ends an instruction names, as text.
    static std::string ends(const Instruction& instruction) {
        std::string text;
        for (const Number& number : instruction.numbers) {
            if (number.end) text += fmt::format(".{}", number.value);
        }
        return text;
    }

    std::int64_t straight_code() const {
        std::set<std::string> seen;
        std::int64_t code = 0;
        for (std::size_t i = 0; i < pieces_.size(); ++i) {
            if (!seen.insert(role_key(i)).second) continue;
            for (const Piece& piece : pieces_[i]) code += piece.shape == Shape::walk ? 0 : piece.body;
        }
        return code;
    }

    /// Threadblocks with equal keys share their code.
    std::string role_key(std::size_t i) const {
        const EmitThreadblock& tb = plan_.threadblocks[i];
        std::string key;
        for (const ir::Mode mode : tb.send_modes) key += fmt::format("s{} ", static_cast<int>(mode));
        for (const ir::Mode mode : tb.receive_modes) key += fmt::format("r{} ", static_cast<int>(mode));
        for (const Piece& piece : pieces_[i]) {
            key += fmt::format("| {} ", static_cast<int>(piece.shape));
            if (piece.shape == Shape::walk) continue;
            for (int k = 0; k < piece.body; ++k)
                key += fmt::format("{}{} ", instructions_[i][piece.first + k].form,
                                   ends(instructions_[i][piece.first + k]));
        }
        return key;
    }

    // ---- One role ----

    /// A value given for each member: a literal where all agree, else a column of the constants.
    std::string value(const std::vector<std::int64_t>& of_members) {
        for (const std::int64_t each : of_members) {
            if (each < -std::int64_t{0x80000000ll} || each > std::int64_t{0xffffffffll}) {
                throw input_error(fmt::format("the number {} does not fit the tables", each),
                                  plan_.program->name);
            }
        }
        if (std::all_of(of_members.begin(), of_members.end(),
                        [&](std::int64_t v) { return v == of_members[0]; })) {
            return of_members[0] < 0 ? fmt::format("{}u", static_cast<std::uint32_t>(of_members[0]))
                                     : fmt::format("{}", of_members[0]);
        }
        const auto [it, fresh] = columns_.try_emplace(of_members, static_cast<int>(columns_.size()));
        return fmt::format("c[{}]", it->second);
    }

    std::string fill(const std::string& form, const std::vector<std::string>& numbers,
                     const std::string& indent) const {
        std::string text = indent;
        for (std::size_t i = 0; i < form.size(); ++i) {
            if (form[i] == '$') {
                std::size_t end = form.find('$', i + 1);
                text += numbers[std::stoul(form.substr(i + 1, end - i - 1))];
                i = end;
            } else {
                text += form[i];
                if (form[i] == '\n' && i + 1 < form.size()) text += indent;
            }
        }
        return text;
    }

    void print_role(const std::vector<int>& members) {
        columns_.clear();
        const EmitThreadblock& sample = threadblock(members[0]);
        std::string body;
        for (std::size_t p = 0; p < pieces_[members[0]].size(); ++p) {
            switch (pieces_[members[0]][p].shape) {
                case Shape::straight: body += straight(members, p); break;
                case Shape::loop: body += loop(members, p); break;
                case Shape::walk: body += walk(members, p); break;
            }
        }
        std::string text = describe(members);
        text += "template <class E>\n";
        const std::string before = opening(members), after = closing(sample);
        const bool ordinal = body.find("token(block, n") != std::string::npos;
        const bool idle = sample.instructions.empty() && sample.sends.empty() && sample.receives.empty();
        text += fmt::format("BATON_OUTLINE void role{}(Block&{}, const u32*{}) {{\n", out_.count,
                            idle ? "" : " block", columns_.empty() ? "" : " c");
        text += before;
        if (body.find("chunks") != std::string::npos) text += chunks();
        if (!sample.instructions.empty()) {
            if (instances_ > 1) {
                text += fmt::format(
                    "    for (u32 t = block.arguments.first_tile + instance{}; t < "
                    "block.arguments.last_tile; t += {}{}) {{\n",
                    ordinal ? ", n = 0" : "", instances_, ordinal ? ", ++n" : "");
            } else {
                text +=
                    "    for (u32 t = block.arguments.first_tile; t < block.arguments.last_tile; ++t) {\n";
                if (ordinal) text += "        const u32 n = t - block.arguments.first_tile;\n";
            }
            text += body + "    }\n";
        }
        text += after + "}\n\n";
        out_.functions += text;
        store_constants(members);
        ++out_.count;
    }

    void store_constants(const std::vector<int>& members) {
        std::vector<const std::vector<std::int64_t>*> columns(columns_.size());
        for (const auto& [values, column] : columns_) columns[column] = &values;
        for (std::size_t m = 0; m < members.size(); ++m) {
            out_.of[members[m]] = {out_.count, static_cast<std::int64_t>(out_.constants.size())};
            for (const auto* values : columns)
                out_.constants.push_back(static_cast<std::uint32_t>((*values)[m]));
        }
    }

    std::string describe(const std::vector<int>& members) const {
        const std::size_t count = threadblock(members[0]).instructions.size();
        std::string list;
        const std::size_t shown = std::min<std::size_t>(members.size(), 8);
        for (std::size_t i = 0; i < shown; ++i) {
            list += fmt::format("{}{}.{}", i == 0 ? "" : ", ", threadblock(members[i]).rank,
                                threadblock(members[i]).number);
        }
        if (shown < members.size()) list += fmt::format(" and {} more", members.size() - shown);
        return fmt::format("// Rank.threadblock {}: {} instruction{}.\n", list, count, count == 1 ? "" : "s");
    }

    template <class Get>
    std::string value_of(const std::vector<int>& members, Get get) {
        std::vector<std::int64_t> values;
        for (const int member : members) values.push_back(get(threadblock(member)));
        return value(values);
    }

    std::string opening(const std::vector<int>& members) {
        const EmitThreadblock& sample = threadblock(members[0]);
        std::string text, remotes, waits;
        const std::size_t sends = sample.sends.size(), receives = sample.receives.size();
        std::string shift;
        if (instances_ > 1 && !sample.instructions.empty()) {
            const auto rank = [&](const EmitThreadblock& tb) -> const ManifestRank& {
                return plan_.ranks[tb.rank];
            };
            text += "    const u32 instance = block.threadblock / " +
                    value_of(members, [&](const auto& tb) { return rank(tb).threadblocks; }) + ";\n";
            if (sends + receives > 0) {
                text += "    const u32 first_connection = instance * " +
                        value_of(members,
                                 [&](const auto& tb) {
                                     return static_cast<std::int64_t>(rank(tb).connections.size());
                                 }) +
                        ";\n";
                shift = "first_connection + ";
            }
            bool tokens = false;
            for (const EmitInstruction& instruction : sample.instructions)
                tokens = tokens || !instruction.needs.empty() || !instruction.posts.empty();
            if (tokens) {
                text += "    const u32 first_token = instance * " +
                        value_of(members,
                                 [&](const auto& tb) {
                                     return static_cast<std::int64_t>(rank(tb).tokens.size());
                                 }) +
                        ";\n";
            }
        }
        std::string list, at;
        for (std::size_t i = 0; i < sends; ++i) {
            list += fmt::format("{}Sender(block, {}{})", i == 0 ? "" : ", ", shift,
                                value_of(members, [&](const auto& tb) { return std::int64_t{tb.sends[i]}; }));
            const bool put = sample.send_modes[i] == ir::Mode::put;
            at += fmt::format("{}{}", i == 0 ? "" : ", ",
                              put ? fmt::format("remote(block, s[{}].peer)", i) : "Remote()");
            if (put) waits += fmt::format("        wait_entry(block, s[{}].peer);\n", i);
        }
        if (sends > 0) text += "    Sender s[] = {" + list + "};\n";
        if (at.find("remote(") != std::string::npos) remotes += "    const Remote at_s[] = {" + at + "};\n";
        list.clear(), at.clear();
        for (std::size_t i = 0; i < receives; ++i) {
            list +=
                fmt::format("{}Receiver(block, {}{})", i == 0 ? "" : ", ", shift,
                            value_of(members, [&](const auto& tb) { return std::int64_t{tb.receives[i]}; }));
            const bool get = sample.receive_modes[i] == ir::Mode::get;
            at += fmt::format("{}{}", i == 0 ? "" : ", ",
                              get ? fmt::format("remote(block, r[{}].peer)", i) : "Remote()");
            waits += fmt::format("        wait_entry(block, r[{}].peer);\n", i);
        }
        if (receives > 0) text += "    Receiver r[] = {" + list + "};\n";
        if (at.find("remote(") != std::string::npos) remotes += "    const Remote at_r[] = {" + at + "};\n";
        if (!waits.empty()) text += "    if (block.leader()) {\n" + waits + "    }\n";
        // Also keeps the ends' state until all threads have read it, in calls that give the threadblock no
        // tile.
        if (sends + receives > 0) text += "    block.after_waits();\n";
        return text + remotes;
    }

    static std::string closing(const EmitThreadblock& sample) {
        std::string text;
        for (std::size_t i = 0; i < sample.sends.size(); ++i) {
            if (sample.send_modes[i] == ir::Mode::get) text += fmt::format("    s[{}].drain(block);\n", i);
            text += fmt::format("    s[{}].close(block);\n", i);
        }
        for (std::size_t i = 0; i < sample.receives.size(); ++i)
            text += fmt::format("    r[{}].close(block);\n", i);
        return text;
    }

    std::string chunks() const {
        const ir::Collective& collective = plan_.program->collective;
        std::int64_t weights = collective.weights.empty() ? collective.chunks : 0;
        for (const std::int64_t weight : collective.weights) weights += weight;
        return fmt::format("    const Partition chunks(block.arguments, E::unit, {});\n", weights);
    }

    // ---- Pieces of a role ----

    std::string straight(const std::vector<int>& members, std::size_t p) {
        std::string text;
        const Piece& sample = pieces_[members[0]][p];
        for (int k = 0; k < sample.body; ++k) {
            const Instruction& first = instructions_[members[0]][sample.first + k];
            std::vector<std::string> numbers;
            for (std::size_t j = 0; j < first.numbers.size(); ++j) {
                std::vector<std::int64_t> values;
                for (const int member : members)
                    values.push_back(instructions_[member][pieces_[member][p].first + k].numbers[j].value);
                numbers.push_back(value(values));
            }
            text += fill(*forms_[first.form], numbers, "        ");
        }
        return text;
    }

    /// The progression of one number through the copies of a loop body, as text; "" when there is none for
    /// all members.
    std::string progression(const std::vector<int>& members, std::size_t p, int k, std::size_t j) {
        std::vector<std::vector<std::int64_t>> sequences;
        std::vector<std::int64_t> moduli, bases, steps;
        bool plain = true;
        for (const int member : members) {
            const Piece& piece = pieces_[member][p];
            std::vector<std::int64_t> sequence;
            for (int i = 0; i < piece.times; ++i)
                sequence.push_back(instructions_[member][piece.first + i * piece.body + k].numbers[j].value);
            moduli.push_back(instructions_[member][piece.first + k].numbers[j].modulus);
            const auto found = affine(sequence, moduli.back());
            if (!found) return {};
            plain = plain && found->modulus == 0;
            bases.push_back(found->base);
            steps.push_back(found->step);
            sequences.push_back(std::move(sequence));
        }
        if (plain) {
            if (std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step == 0; }))
                return value(bases);
            if (std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step == 1; }))
                return fmt::format("{} + i", value(bases));
            return fmt::format("{} + i * {}", value(bases), value(steps));
        }
        for (std::size_t m = 0; m < members.size(); ++m) {
            const std::int64_t modulus = moduli[m];
            if (modulus <= 0) return {};
            for (const std::int64_t each : sequences[m]) {
                if (each < 0 || each >= modulus) return {};
            }
            steps[m] = (steps[m] % modulus + modulus) % modulus;
        }
        return fmt::format("wrapped({}, i, {}, {})", value(bases), value(steps), value(moduli));
    }

    std::string loop(const std::vector<int>& members, std::size_t p) {
        const Piece& sample = pieces_[members[0]][p];
        std::vector<std::int64_t> times;
        for (const int member : members) times.push_back(pieces_[member][p].times);
        std::string text = fmt::format("        for (u32 i = 0; i < {}; ++i) {{\n", value(times));
        // Numbers without a progression come from a row of the table for each copy.
        std::vector<std::pair<int, std::size_t>> irregular;
        std::vector<std::vector<std::string>> numbers(sample.body);
        for (int k = 0; k < sample.body; ++k) {
            const Instruction& first = instructions_[members[0]][sample.first + k];
            for (std::size_t j = 0; j < first.numbers.size(); ++j) {
                numbers[k].push_back(progression(members, p, k, j));
                if (!numbers[k].back().empty()) continue;
                numbers[k].back() = fmt::format("row[{}]", irregular.size());
                irregular.emplace_back(k, j);
            }
        }
        if (!irregular.empty()) {
            std::vector<std::int64_t> starts;
            for (const int member : members) {
                const Piece& piece = pieces_[member][p];
                starts.push_back(static_cast<std::int64_t>(out_.rows.size()));
                for (int i = 0; i < piece.times; ++i) {
                    for (const auto& [k, j] : irregular)
                        add_row(instructions_[member][piece.first + i * piece.body + k].numbers[j].value);
                }
            }
            text += fmt::format("            const u32* const row = kRows + {} + i * {};\n", value(starts),
                                irregular.size());
        }
        for (int k = 0; k < sample.body; ++k) {
            text +=
                fill(*forms_[instructions_[members[0]][sample.first + k].form], numbers[k], "            ");
        }
        return text + "        }\n";
    }

    void add_row(std::int64_t number) {
        if (number < 0 || number > std::int64_t{0xffffffffll}) {
            throw input_error(fmt::format("the number {} does not fit the tables", number),
                              plan_.program->name);
        }
        out_.rows.push_back(static_cast<std::uint32_t>(number));
        if (out_.rows.size() > kMostTableWords) {
            throw input_error("the tables of the module exceed 64 MiB", plan_.program->name,
                              "lower to fewer instructions");
        }
    }

    std::string walk(const std::vector<int>& members, std::size_t p) {
        std::map<int, int> cases;
        std::size_t width = 1;
        std::vector<std::int64_t> times, starts;
        for (const int member : members) {
            times.push_back(pieces_[member][p].times);
            for (const Instruction& instruction : instructions_[member]) {
                cases.try_emplace(instruction.form, static_cast<int>(cases.size()));
                width = std::max(width, instruction.numbers.size() + 1);
            }
        }
        for (const int member : members) {
            starts.push_back(static_cast<std::int64_t>(out_.rows.size()));
            for (const Instruction& instruction : instructions_[member]) {
                add_row(cases[instruction.form]);
                for (std::size_t j = 0; j + 1 < width; ++j)
                    add_row(j < instruction.numbers.size() ? instruction.numbers[j].value : 0);
            }
        }
        std::string text = fmt::format("        const u32* row = kRows + {};\n", value(starts));
        text += fmt::format("        for (u32 i = 0; i < {}; ++i, row += {}) {{\n", value(times), width);
        text += "            switch (row[0]) {\n";
        std::vector<int> forms(cases.size());
        for (const auto& [form, number] : cases) forms[number] = form;
        for (std::size_t number = 0; number < forms.size(); ++number) {
            std::vector<std::string> numbers;
            for (std::size_t j = 0; j + 1 < width; ++j) numbers.push_back(fmt::format("row[{}]", j + 1));
            text += fmt::format("            case {}:\n", number);
            text += fill(*forms_[forms[number]], numbers, "                ");
            text += "                break;\n";
        }
        return text + "            }\n        }\n";
    }

    const EmitPlan& plan_;
    int instances_, straight_;
    InstructionPrinter printer_;
    std::vector<std::vector<Instruction>> instructions_;  // [threadblock]
    std::map<std::string, int> numbers_of_forms_;
    std::vector<const std::string*> forms_;
    std::vector<std::vector<Piece>> pieces_;            // [threadblock]
    std::map<std::vector<std::int64_t>, int> columns_;  // of the role at hand
    PrintedRoles out_;
};

}  // namespace

PrintedRoles print_roles(const EmitPlan& plan, int instances, int straight) {
    return RolePrinter(plan, instances, straight).run();
}

}  // namespace baton::codegen
