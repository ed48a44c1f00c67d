#include <baton/topologies/import/nvlink_status.hpp>

#include <baton/base/index.hpp>
#include <baton/topologies/import/text_lines.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <set>

namespace baton::topologies {
namespace {

constexpr int kMostGpus = 4096, kMostLinks = 1024;

// "WORD N:" somewhere in a line: the number, and what follows.
std::optional<std::pair<int, std::string_view>> numbered(std::string_view line, std::string_view word) {
    const std::size_t start = line.find(word);
    if (start == std::string_view::npos) return std::nullopt;
    std::string_view rest = line.substr(start + word.size());
    int number = 0;
    const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (status != std::errc() || number < 0 || rest.empty() || rest.front() != ':') return std::nullopt;
    rest.remove_prefix(1);
    return std::pair(number, rest);
}

std::string product_name(std::string_view text) {
    text = text.substr(0, text.find("(UUID"));
    text = text.substr(std::min(text.find_first_not_of(' '), text.size()));
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    std::string name;
    for (const char c : text.substr(0, 80)) name += c >= ' ' && c < 0x7f ? c : '?';
    return name;
}

}  // namespace

std::vector<NvlinkStatus> read_nvlink_status(const ImportSource& source) {
    const std::string plain = without_escapes(source.text);
    std::vector<NvlinkStatus> gpus;
    std::set<int> devices;
    const ImportSource readable{plain, source.name};
    for (const TextLine& line : text_lines(readable)) {
        if (const auto gpu = numbered(line.text, "GPU ")) {
            if (!devices.insert(gpu->first).second)
                throw line.error(fmt::format("GPU {} comes twice", gpu->first), "give the text of one host");
            if (gpus.size() >= at(kMostGpus)) throw line.error("more GPUs than any host has");
            gpus.push_back({gpu->first, product_name(gpu->second), 0, 0, {}});
            continue;
        }
        const auto link = numbered(line.text, "Link ");
        if (!link || gpus.empty()) continue;
        NvlinkStatus& status = gpus.back();
        if (status.active + status.inactive >= kMostLinks) throw line.error("more NVLinks than any GPU has");
        if (link->second.find("nactive") != std::string_view::npos ||
            link->second.find("N/A") != std::string_view::npos) {
            ++status.inactive;
            continue;
        }
        const std::vector<std::string_view> words = TextLine{line.number, link->second, line.file}.words();
        if (words.empty()) throw line.error("the link has no rate");
        const std::string text =
            words.size() > 1 ? fmt::format("{}{}", words[0], words[1]) : std::string(words[0]);
        const Rate rate = parse_rate(text, line.where());
        if (rate.bytes_per_second < 1'000'000 || rate.bytes_per_second > 1'000'000'000'000)
            throw line.error(fmt::format("'{}' is no rate of an NVLink", text.substr(0, 40)));
        status.rate = status.active == 0 ? rate : std::min(status.rate, rate);
        ++status.active;
    }
    if (gpus.empty())
        throw input_error("there is no line 'GPU 0: ...' in it", source.name,
                          "give the text of `nvidia-smi nvlink -s`");
    return gpus;
}

}  // namespace baton::topologies
