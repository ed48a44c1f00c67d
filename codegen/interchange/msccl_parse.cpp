// MSCCL's XML: text to data.
#include <baton/base/error.hpp>
#include <baton/base/xml_reader.hpp>
#include <baton/codegen/interchange/msccl_file.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <set>

namespace baton::codegen::msccl {
namespace {

constexpr std::array<std::string_view, 9> kTypeNames{"s",    "r",   "rcs", "rrs", "rrc",
                                                     "rrcs", "cpy", "re",  "nop"};
constexpr std::int64_t kMostNumber = INT32_MAX;

class Parser {
public:
    explicit Parser(Remarks& remarks) : remarks_(remarks) {}

    File parse(const XmlReader& root) {
        if (root.name() != "algo") throw root.error("expected <algo>, an algorithm of MSCCL");
        file_.name = root.find("name").value_or("");
        file_.protocol = text(root, "proto", "Simple");
        if (slots_of(file_.protocol) == 0)
            throw root.error(
                fmt::format("proto=\"{}\" is none of Simple, LL, LL128", file_.protocol.substr(0, 40)),
                "the executors compare letter by letter");
        file_.collective = root.at("coll");
        file_.root = root.find_integer("root", 0, (1 << 20) - 1);
        file_.in_place = root.find_integer("inplace", 0, 1);
        file_.out_of_place = root.find_integer("outofplace", 0, 1);
        file_.min_bytes = root.find_integer("minBytes", 0);
        file_.max_bytes = root.find_integer("maxBytes", 0);
        keep(root, "algo",
             {"name", "proto", "coll", "inplace", "outofplace", "minBytes", "maxBytes", "ngpus",
              "nchunksperloop", "nchannels", "root"});
        gpus(root);
        std::int64_t most_chunks = 1, most_channel = 0;
        for (const Gpu& gpu : file_.gpus) {
            most_chunks = std::max({most_chunks, gpu.input_chunks, gpu.output_chunks});
            for (const Threadblock& block : gpu.threadblocks)
                most_channel = std::max(most_channel, block.channel);
        }
        file_.chunks = number(root, "nchunksperloop", most_chunks, 1, kMostNumber);
        file_.channels = number(root, "nchannels", most_channel + 1, 1, kMostNumber);
        if (most_channel >= file_.channels)
            remarks_.warnings.push_back(
                fmt::format("a threadblock is on channel {}, but nchannels is {}: the executors refuse that",
                            most_channel, file_.channels));
        for (const auto& [what, count] : missing_)
            remarks_.assumptions.push_back(
                fmt::format("no {} in {} place{}", what, count, count == 1 ? "" : "s"));
        if (kept_ > 0)
            remarks_.warnings.push_back(
                fmt::format("{} attribute{} or element{} without a counterpart, kept aside: {}", kept_,
                            kept_ == 1 ? "" : "s", kept_ == 1 ? "" : "s", kept_names()));
        return std::move(file_);
    }

private:
    /// An attribute, or its default and a remark.
    std::string text(const XmlReader& element, const char* attribute, const char* standard) {
        if (auto found = element.find(attribute)) return *found;
        ++missing_[fmt::format("<{}> {} (taken as {})", element.name(), attribute, standard)];
        return standard;
    }
    std::int64_t number(const XmlReader& element, const char* attribute, std::int64_t standard,
                        std::int64_t low, std::int64_t high) {
        if (const auto found = element.find_integer(attribute, low, high)) return *found;
        ++missing_[fmt::format("<{}> {} (taken as {})", element.name(), attribute, standard)];
        return standard;
    }

    /// Attributes that no field stands for.
    void keep(const XmlReader& element, const std::string& place,
              std::initializer_list<std::string_view> known) {
        for (const auto& [key, value] : element.attributes()) {
            if (std::find(known.begin(), known.end(), key) != known.end()) continue;
            keep_one(place + "@" + key, value, key);
        }
    }
    void keep_one(const std::string& place, const std::string& value, const std::string& name) {
        file_.foreign[place] = value;
        ++kept_;
        names_.insert(name.substr(0, 40));
    }
    void keep_element(const XmlReader& element, const std::string& place, int index) {
        std::string value;
        for (const auto& [key, each] : element.attributes())
            value += fmt::format("{}{}=\"{}\"", value.empty() ? "" : " ", key, each);
        if (!element.children().empty())
            throw element.error("an element of no known kind, with elements in it");
        keep_one(fmt::format("{}/{}/{}", place, element.name(), index), value, "<" + element.name() + ">");
    }
    std::string kept_names() const {
        std::string all;
        std::size_t listed = 0;
        for (const std::string& name : names_) {
            if (++listed > 8) return all + ", ...";
            all += (all.empty() ? "" : ", ") + name;
        }
        return all;
    }

    void gpus(const XmlReader& root) {
        const auto elements = root.children("gpu");
        const auto count = static_cast<std::int64_t>(elements.size());
        if (count == 0) throw root.error("an algorithm without <gpu>");
        ranks_ = number(root, "ngpus", count, 1, 1 << 20);
        if (count != ranks_)
            throw root.error(fmt::format("ngpus=\"{}\", but there are {} <gpu>", ranks_, count));
        file_.gpus.resize(elements.size());
        std::vector<bool> seen(elements.size());
        for (std::size_t n = 0; n < elements.size(); ++n) {
            const auto id = static_cast<std::size_t>(
                number(elements[n], "id", static_cast<std::int64_t>(n), 0, ranks_ - 1));
            if (seen[id]) throw elements[n].error(fmt::format("gpu {} comes twice", id));
            seen[id] = true;
            gpu(elements[n], static_cast<std::int64_t>(id));
        }
        int extra = 0;
        for (const XmlReader& child : root.children())
            if (child.name() != "gpu") keep_element(child, "algo", extra++);
    }

    void gpu(const XmlReader& element, std::int64_t rank) {
        Gpu& gpu = file_.gpus[static_cast<std::size_t>(rank)];
        const std::string place = fmt::format("gpu/{}", rank);
        gpu.input_chunks = number(element, "i_chunks", 0, 0, kMostNumber);
        gpu.output_chunks = number(element, "o_chunks", 0, 0, kMostNumber);
        gpu.scratch_chunks = number(element, "s_chunks", 0, 0, kMostNumber);
        keep(element, place, {"id", "i_chunks", "o_chunks", "s_chunks"});
        const auto blocks = element.children("tb");
        gpu.threadblocks.resize(blocks.size());
        std::vector<bool> seen(blocks.size());
        for (std::size_t n = 0; n < blocks.size(); ++n) {
            const std::int64_t id = number(blocks[n], "id", static_cast<std::int64_t>(n), 0, kMostNumber);
            if (id >= static_cast<std::int64_t>(blocks.size()))
                throw blocks[n].error(fmt::format("threadblock {} of {}: ids have a gap", id, blocks.size()),
                                      "the executors want 0, 1, 2, ...");
            if (seen[static_cast<std::size_t>(id)])
                throw blocks[n].error(fmt::format("threadblock {} comes twice", id));
            seen[static_cast<std::size_t>(id)] = true;
            threadblock(blocks[n], rank, gpu.threadblocks[static_cast<std::size_t>(id)],
                        fmt::format("{}/tb/{}", place, id));
        }
        int extra = 0;
        for (const XmlReader& child : element.children())
            if (child.name() != "tb") keep_element(child, place, extra++);
    }

    void threadblock(const XmlReader& element, std::int64_t rank, Threadblock& block,
                     const std::string& place) {
        block.send = number(element, "send", -1, -1, ranks_ - 1);
        block.receive = number(element, "recv", -1, -1, ranks_ - 1);
        block.channel = number(element, "chan", 0, 0, INT16_MAX);
        if (block.send == rank || block.receive == rank)
            throw element.error(fmt::format("a threadblock of gpu {} has itself as its peer", rank));
        keep(element, place, {"id", "send", "recv", "chan"});
        const auto steps = element.children("step");
        block.steps.reserve(steps.size());
        for (std::size_t n = 0; n < steps.size(); ++n) {
            const auto number_in_file = number(steps[n], "s", static_cast<std::int64_t>(n), 0, kMostNumber);
            if (number_in_file != static_cast<std::int64_t>(n))
                throw steps[n].error(fmt::format("step {} stands where step {} belongs", number_in_file, n),
                                     "steps are numbered 0, 1, 2, ..., nops included");
            block.steps.push_back(step(steps[n], block));
            keep(steps[n], fmt::format("{}/step/{}", place, n),
                 {"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"});
        }
        int extra = 0;
        for (const XmlReader& child : element.children())
            if (child.name() != "step") keep_element(child, place, extra++);
    }

    Step step(const XmlReader& element, const Threadblock& block) {
        Step step;
        const std::string type = element.at("type");
        const auto found = std::find(kTypeNames.begin(), kTypeNames.end(), type);
        if (found == kTypeNames.end())
            throw element.error(fmt::format(
                "step type \"{}\" is none of s, r, rcs, rrs, rrc, rrcs, cpy, re, nop", type.substr(0, 40)));
        step.type = static_cast<StepType>(found - kTypeNames.begin());
        step.published = number(element, "hasdep", 0, 0, 1) != 0;
        step.dependencies = dependencies(element);
        step.src = place(element, "srcbuf", "srcoff", uses_source(step.type), step.src);
        step.dst = place(element, "dstbuf", "dstoff", uses_destination(step.type), step.dst);
        step.count = number(element, "cnt", step.type == StepType::nop ? 0 : 1, 0, kMostNumber);
        if (step.type == StepType::nop) return step;
        if (step.count < 1)
            throw element.error(fmt::format("a step of type {} moves no chunk (cnt=\"0\")", type));
        if (sends(step.type) && block.send < 0)
            throw element.error(fmt::format("a step of type {} in a threadblock that sends to nobody", type));
        if (receives(step.type) && block.receive < 0)
            throw element.error(
                fmt::format("a step of type {} in a threadblock that receives from nobody", type));
        return step;
    }

    static Place place(const XmlReader& element, const char* buffer, const char* offset, bool needed,
                       Place place) {
        const auto name = element.find(buffer);
        if (needed && !name) throw element.error(fmt::format("{} is missing", buffer));
        if (name) {
            if (*name != "i" && *name != "o" && *name != "s")
                throw element.error(fmt::format("{}=\"{}\" is none of i, o, s", buffer, name->substr(0, 40)));
            place.buffer = name->front();
        }
        if (needed) {
            static_cast<void>(element.at(offset));
            place.offset = element.integer(offset, 0, kMostNumber);
        } else if (const auto at = element.find_integer(offset, -1, kMostNumber)) {
            place.offset = *at;
        }
        return place;
    }

    /// depid and deps: -1, absent, one number each, or lists of the same length.
    static std::vector<Dependency> dependencies(const XmlReader& element) {
        const auto blocks = numbers(element, "depid"), steps = numbers(element, "deps");
        std::vector<Dependency> all;
        if (blocks.size() != steps.size())
            throw element.error(
                fmt::format("depid names {} threadblocks and deps {} steps", blocks.size(), steps.size()));
        for (std::size_t n = 0; n < blocks.size(); ++n) {
            if ((blocks[n] < 0) != (steps[n] < 0))
                throw element.error(fmt::format("depid=\"{}\" with deps=\"{}\"", blocks[n], steps[n]),
                                    "both are -1 where a step waits for nothing");
            if (blocks[n] >= 0) all.push_back({blocks[n], steps[n]});
        }
        return all;
    }
    static std::vector<std::int64_t> numbers(const XmlReader& element, const char* attribute) {
        std::vector<std::int64_t> all;
        const std::string text = element.find(attribute).value_or("");
        for (std::size_t at = 0; at < text.size();) {
            if (text[at] == ',' || text[at] == ' ' || text[at] == '\t') {
                ++at;
                continue;
            }
            std::int64_t value = 0;
            const char* const begin = text.data() + at;
            const auto [end, failed] = std::from_chars(begin, text.data() + text.size(), value);
            if (failed != std::errc() || value < -1 || value > kMostNumber)
                throw element.error(
                    fmt::format("{}=\"{}\" is no list of numbers", attribute, text.substr(0, 40)));
            all.push_back(value);
            at += static_cast<std::size_t>(end - begin);
        }
        return all;
    }

    Remarks& remarks_;
    File file_;
    std::int64_t ranks_ = 0, kept_ = 0;
    std::map<std::string, std::int64_t> missing_;
    std::set<std::string> names_;
};

}  // namespace

std::string_view to_string(StepType type) { return kTypeNames[static_cast<std::size_t>(type)]; }

int slots_of(std::string_view protocol) {
    if (protocol == "Simple") return 2;
    return protocol == "LL" || protocol == "LL128" ? 8 : 0;
}

File parse(std::string_view text, const std::string& name, Remarks& remarks) {
    const XmlDocument document = XmlDocument::parse(text, name);
    return Parser(remarks).parse(document.root());
}

}  // namespace baton::codegen::msccl
