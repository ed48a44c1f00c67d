// MSCCL's XML: data to text.
#include <baton/codegen/interchange/msccl_file.hpp>

#include <fmt/format.h>

namespace baton::codegen::msccl {
namespace {

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            case '\n': out += "&#10;"; break;
            case '\r': out += "&#13;"; break;
            case '\t': out += "&#9;"; break;
            default: out += c;
        }
    }
    return out;
}

/// What stands aside, by place: attributes after '@', elements after the last '/'.
class Foreign {
public:
    explicit Foreign(const File& file) : all_(file.foreign) {}
    std::string attributes(const std::string& place) const {
        std::string text;
        const std::string start = place + "@";
        for (auto each = all_.lower_bound(start); each != all_.end() && each->first.starts_with(start);
             ++each)
            text += fmt::format(" {}=\"{}\"", each->first.substr(start.size()), escaped(each->second));
        return text;
    }
    /// Elements directly below a place, in their order: "PLACE/copy/0".
    std::string elements(const std::string& place, const std::string& indent, std::string_view own) const {
        std::map<int, std::string> lines;
        const std::string start = place + "/";
        for (auto each = all_.lower_bound(start); each != all_.end() && each->first.starts_with(start);
             ++each) {
            const std::string rest = each->first.substr(start.size());
            const auto slash = rest.find('/');
            if (slash == std::string::npos || rest.find_first_of("/@", slash + 1) != std::string::npos)
                continue;
            if (rest.substr(0, slash) == own) continue;
            const std::string index = rest.substr(slash + 1);
            if (index.empty() || index.size() > 8 ||
                index.find_first_not_of("0123456789") != std::string::npos)
                continue;
            lines[std::stoi(index)] = fmt::format("{}<{}{}{}/>\n", indent, rest.substr(0, slash),
                                                  each->second.empty() ? "" : " ", each->second);
        }
        std::string text;
        for (const auto& [index, line] : lines) text += line;
        return text;
    }

private:
    const std::map<std::string, std::string>& all_;
};

std::string dependency(const Step& step) {
    if (step.dependencies.empty()) return "depid=\"-1\" deps=\"-1\"";
    std::string blocks, steps;
    for (const Dependency& each : step.dependencies) {
        blocks += fmt::format("{}{}", blocks.empty() ? "" : ",", each.threadblock);
        steps += fmt::format("{}{}", steps.empty() ? "" : ",", each.step);
    }
    return fmt::format("depid=\"{}\" deps=\"{}\"", blocks, steps);
}

}  // namespace

std::string print(const File& file) {
    const Foreign foreign(file);
    std::string text = fmt::format(
        "<algo name=\"{}\" proto=\"{}\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" coll=\"{}\" "
        "inplace=\"{}\" "
        "outofplace=\"{}\" minBytes=\"{}\" maxBytes=\"{}\"{}>\n",
        escaped(file.name), file.protocol, file.channels, file.chunks, file.gpus.size(),
        escaped(file.collective), file.in_place.value_or(0), file.out_of_place.value_or(1),
        file.min_bytes.value_or(0), file.max_bytes.value_or(0),
        (file.root ? fmt::format(" root=\"{}\"", *file.root) : "") + foreign.attributes("algo"));
    text += foreign.elements("algo", "  ", "gpu");
    for (std::size_t r = 0; r < file.gpus.size(); ++r) {
        const Gpu& gpu = file.gpus[r];
        const std::string at_gpu = fmt::format("gpu/{}", r);
        text +=
            fmt::format("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\"{}>\n", r,
                        gpu.input_chunks, gpu.output_chunks, gpu.scratch_chunks, foreign.attributes(at_gpu));
        text += foreign.elements(at_gpu, "    ", "tb");
        for (std::size_t b = 0; b < gpu.threadblocks.size(); ++b) {
            const Threadblock& block = gpu.threadblocks[b];
            const std::string at_block = fmt::format("{}/tb/{}", at_gpu, b);
            text += fmt::format("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\"{}>\n", b, block.send,
                                block.receive, block.channel, foreign.attributes(at_block));
            text += foreign.elements(at_block, "      ", "step");
            for (std::size_t s = 0; s < block.steps.size(); ++s) {
                const Step& step = block.steps[s];
                text += fmt::format(
                    "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" "
                    "dstoff=\"{}\" cnt=\"{}\" "
                    "{} hasdep=\"{}\"{}/>\n",
                    s, to_string(step.type), step.src.buffer, step.src.offset, step.dst.buffer,
                    step.dst.offset, step.count, dependency(step), step.published ? 1 : 0,
                    foreign.attributes(fmt::format("{}/step/{}", at_block, s)));
            }
            text += "    </tb>\n";
        }
        text += "  </gpu>\n";
    }
    return text + "</algo>\n";
}

}  // namespace baton::codegen::msccl
