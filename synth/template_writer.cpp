#include <baton/synth/template_writer.hpp>

#include <fmt/format.h>
#include <utility>

namespace baton::synth {
namespace {

bool is_name_or_number(const std::string& text) {
    for (const char c : text)
        if (!(c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
            return false;
    return true;
}

/// In parentheses unless it is one word.
std::string atom(const std::string& text) { return is_name_or_number(text) ? text : "(" + text + ")"; }

}  // namespace

std::string Blocks::at(const std::string& b) const {
    if (b == "0") return "0";
    switch (form_) {
        case Form::shards: return atom(b) + "*C";
        case Form::chunks: return b;
        case Form::parts: break;
    }
    return fmt::format("{}*C/{}", atom(b), atom(count_));
}

std::string Blocks::run(const std::string& b, const std::string& count) const {
    switch (form_) {
        case Form::shards: return count == "1" ? "C" : atom(count) + "*C";
        case Form::chunks: return count;
        case Form::parts: break;
    }
    if (b == "0" && count == count_) return "C";
    return fmt::format("({} + {})*C/{} - {}", atom(b), atom(count), atom(count_), b == "0" ? "0" : at(b));
}

void TemplateWriter::copy(const At& source, const At& destination, const std::string& chunks) {
    step(ir::StepOp::copy, source, destination, chunks);
}
void TemplateWriter::reduce(const At& source, const At& destination, const std::string& chunks) {
    step(ir::StepOp::reduce, source, destination, chunks);
}
void TemplateWriter::send(const At& source, const At& destination, const std::string& chunks) {
    step(ir::StepOp::send, source, destination, chunks);
}
void TemplateWriter::send_reduce(const At& source, const At& destination, const std::string& chunks) {
    step(ir::StepOp::send_reduce, source, destination, chunks);
}

void TemplateWriter::wrapped(ir::StepOp op, const std::string& source, ir::Buffer from,
                             const std::string& destination, ir::Buffer to, const Blocks& blocks,
                             const std::string& first, const std::string& count) {
    const std::string rest = fmt::format("{} - {}", blocks.count(), atom(first));  // blocks before the end
    step(op, {source, from, blocks.at(first)}, {destination, to, blocks.at(first)},
         blocks.run(first, fmt::format("min({}, {})", count, rest)));
    step(op, {source, from, "0"}, {destination, to, "0"},
         blocks.run("0", fmt::format("max(0, {} - ({}))", atom(count), rest)));
}

void TemplateWriter::let(const std::string& name, const std::string& value) {
    add(ir::Let{name, ir::Expression::parse(value)});
}

void TemplateWriter::loop(const std::string& variable, const std::string& from, const std::string& to,
                          const std::function<void()>& inside) {
    add(ir::Loop{variable, ir::Expression::parse(from), ir::Expression::parse(to), 1, 0, nested(inside)});
}
void TemplateWriter::loop_down(const std::string& variable, const std::string& from, const std::string& to,
                               const std::function<void()>& inside) {
    add(ir::Loop{variable, ir::Expression::parse(from), ir::Expression::parse(to), -1, 0, nested(inside)});
}
void TemplateWriter::loop_doubling(const std::string& variable, const std::string& from,
                                   const std::string& to, const std::function<void()>& inside) {
    add(ir::Loop{variable, ir::Expression::parse(from), ir::Expression::parse(to), 1, 2, nested(inside)});
}

void TemplateWriter::when(const std::string& condition, const std::function<void()>& inside) {
    add(ir::Branch{ir::Expression::parse(condition), nested(inside), nullptr});
}
void TemplateWriter::when(const std::string& condition, const std::function<void()>& inside,
                          const std::function<void()>& otherwise) {
    auto first = nested(inside);
    add(ir::Branch{ir::Expression::parse(condition), std::move(first), nested(otherwise)});
}

void TemplateWriter::par(const std::function<void()>& inside) { add(ir::Parallel{nested(inside)}); }

ir::Body TemplateWriter::take() { return std::exchange(bodies_.front(), {}); }

void TemplateWriter::step(ir::StepOp op, const At& source, const At& destination, const std::string& chunks) {
    ir::StepTemplate step;
    step.op = op;
    step.src_buffer = source.buffer;
    step.dst_buffer = destination.buffer;
    step.src_rank = ir::Expression::parse(source.rank);
    step.src_index = ir::Expression::parse(source.index);
    step.dst_rank = ir::Expression::parse(destination.rank);
    step.dst_index = ir::Expression::parse(destination.index);
    if (chunks != "1") step.chunks = ir::Expression::parse(chunks);
    add(std::move(step));
}

std::shared_ptr<const ir::Body> TemplateWriter::nested(const std::function<void()>& inside) {
    bodies_.emplace_back();
    inside();
    auto body = std::make_shared<const ir::Body>(std::move(bodies_.back()));
    bodies_.pop_back();
    return body;
}

void TemplateWriter::add(decltype(ir::Item::value) value) {
    auto& body = bodies_.back();
    const int line = static_cast<int>(body.size());
    body.push_back({std::move(value), line});
}

}  // namespace baton::synth
