// What a file of MSCCL says beyond a Program, noted when it is read and put back when it is written.
#include <baton/base/index.hpp>
#include <baton/codegen/interchange/msccl_file.hpp>

#include <fmt/format.h>
#include <charconv>
#include <functional>
#include <optional>

namespace baton::codegen::msccl {
namespace {

std::optional<std::int64_t> number(const std::string& text) {
    std::int64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size() || value < -1) return std::nullopt;
    return value;
}

/// One attribute of an element: its text, and how to set it (false: not a value it can have).
struct Field {
    const char* name;
    std::string text;
    std::function<bool(const std::string&)> set;
};

Field number_field(const char* name, std::int64_t& value) {
    return {name, std::to_string(value), [&value](const std::string& text) {
                const auto read = number(text);
                if (read) value = *read;
                return read.has_value();
            }};
}
Field number_field(const char* name, std::optional<std::int64_t>& value) {
    return {name, std::to_string(value.value_or(0)), [&value](const std::string& text) {
                const auto read = number(text);
                if (read && *read >= 0) value = *read;
                return read && *read >= 0;
            }};
}
Field buffer_field(const char* name, char& value) {
    return {name, std::string(1, value), [&value](const std::string& text) {
                if (text != "i" && text != "o" && text != "s") return false;
                value = text[0];
                return true;
            }};
}
Field text_field(const char* name, std::string& value) {
    return {name, value, [&value](const std::string& text) {
                value = text;
                return true;
            }};
}

// Only fields that a program does not decide may be put back; the others are found again from it.
std::vector<Field> fields(File& file) {
    return {text_field("name", file.name), number_field("nchannels", file.channels),
            number_field("minBytes", file.min_bytes), number_field("maxBytes", file.max_bytes)};
}
std::vector<Field> fields(Gpu& gpu) {
    return {number_field("i_chunks", gpu.input_chunks), number_field("o_chunks", gpu.output_chunks)};
}
std::vector<Field> fields(Threadblock& block) {
    std::vector<Field> all{number_field("chan", block.channel)};
    if (block.send < 0) all.push_back(number_field("send", block.send));
    if (block.receive < 0) all.push_back(number_field("recv", block.receive));
    return all;
}
std::vector<Field> fields(Step& step) {
    std::vector<Field> all;
    if (!uses_source(step.type)) {
        all.push_back(buffer_field("srcbuf", step.src.buffer));
        all.push_back(number_field("srcoff", step.src.offset));
    }
    if (!uses_destination(step.type)) {
        all.push_back(buffer_field("dstbuf", step.dst.buffer));
        all.push_back(number_field("dstoff", step.dst.offset));
    }
    if (!step.published)
        all.push_back({"hasdep", "0", [&step](const std::string& text) {
                           step.published = text == "1";
                           return step.published || text == "0";
                       }});
    return all;
}

template <class Element>
void note(Element& original, Element& written, const std::string& place,
          std::map<std::string, std::string>& to) {
    std::map<std::string, std::string> before;
    // The fields of the written element say which may differ; texts come from the original.
    for (Field& field : fields(written)) before[field.name] = field.text;
    Element open = original;
    if constexpr (std::is_same_v<Element, Step>) {
        if (original.published && !written.published && before.contains("hasdep"))
            to[place + "@hasdep"] = "1";
        open.type = written.type;
    }
    if constexpr (std::is_same_v<Element, Threadblock>) {
        if (written.send < 0 && original.send >= 0) to[place + "@send"] = std::to_string(original.send);
        if (written.receive < 0 && original.receive >= 0)
            to[place + "@recv"] = std::to_string(original.receive);
    }
    for (const Field& field : fields(open)) {
        const auto known = before.find(field.name);
        if (known != before.end() && known->second != field.text) to[place + "@" + field.name] = field.text;
    }
}

template <class Element>
void restore(Element& element, const std::string& place, std::map<std::string, std::string>& from) {
    for (const Field& field : fields(element)) {
        const auto noted = from.find(place + "@" + field.name);
        if (noted == from.end()) continue;
        field.set(noted->second);
        from.erase(noted);
    }
}

template <class Visit>
void each_place(File& file, const Visit& visit) {
    for (std::size_t r = 0; r < file.gpus.size(); ++r) {
        const std::string gpu = fmt::format("gpu/{}", r);
        visit(file.gpus[r], gpu);
        for (std::size_t b = 0; b < file.gpus[r].threadblocks.size(); ++b) {
            const std::string block = fmt::format("{}/tb/{}", gpu, b);
            visit(file.gpus[r].threadblocks[b], block);
            for (std::size_t s = 0; s < file.gpus[r].threadblocks[b].steps.size(); ++s)
                visit(file.gpus[r].threadblocks[b].steps[s], fmt::format("{}/step/{}", block, s));
        }
    }
}

/// Attributes that the format has: none of them is printed from the side table.
bool is_own(std::string_view name) {
    for (const char* own :
         {"name",     "proto",          "coll",      "inplace", "outofplace", "minBytes", "maxBytes",
          "ngpus",    "nchunksperloop", "nchannels", "root",    "id",         "i_chunks", "o_chunks",
          "s_chunks", "send",           "recv",      "chan",    "s",          "type",     "srcbuf",
          "srcoff",   "dstbuf",         "dstoff",    "cnt",     "depid",      "deps",     "hasdep"})
        if (name == own) return true;
    return false;
}

}  // namespace

void note_differences(const File& original, const File& written, std::map<std::string, std::string>& to) {
    File before = original, after = written;
    note(before, after, "algo", to);
    for (std::size_t r = 0; r < std::min(before.gpus.size(), after.gpus.size()); ++r) {
        const std::string gpu = fmt::format("gpu/{}", r);
        note(before.gpus[r], after.gpus[r], gpu, to);
        auto &old_blocks = before.gpus[r].threadblocks, &new_blocks = after.gpus[r].threadblocks;
        for (std::size_t b = 0; b < std::min(old_blocks.size(), new_blocks.size()); ++b) {
            const std::string block = fmt::format("{}/tb/{}", gpu, b);
            note(old_blocks[b], new_blocks[b], block, to);
            if (old_blocks[b].steps.size() != new_blocks[b].steps.size()) continue;  // nops were redundant
            for (std::size_t s = 0; s < old_blocks[b].steps.size(); ++s)
                note(old_blocks[b].steps[s], new_blocks[b].steps[s], fmt::format("{}/step/{}", block, s), to);
        }
    }
}

void restore_differences(File& file) {
    restore(file, "algo", file.foreign);
    each_place(file, [&](auto& element, const std::string& place) { restore(element, place, file.foreign); });
    std::erase_if(file.foreign, [](const auto& each) {
        const auto sign = each.first.rfind('@');
        return sign != std::string::npos && is_own(std::string_view(each.first).substr(sign + 1));
    });
}

}  // namespace baton::codegen::msccl
