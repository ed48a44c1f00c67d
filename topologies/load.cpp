#include <baton/topologies/load.hpp>

#include <baton/base/embedded.hpp>
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/topologies/read.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace baton {

std::span<const EmbeddedFile> preset_files();

}  // namespace baton

namespace baton::topologies {
namespace {

using Json = nlohmann::ordered_json;

struct GeneratorHelp {
    const char *name, *positional, *summary, *parameters;
};

constexpr GeneratorHelp kGeneratorHelp[] = {
    {"ring", "n", "ranks in a ring", "ring:8,bandwidth=50GB/s,latency=500ns,kind=nvlink,count=1,oneway=true"},
    {"mesh", "shape", "grid without wrap-around", "mesh:4x4 and link properties as for ring"},
    {"torus", "shape", "grid with wrap-around",
     "torus:4x4x4, forward=true for chips that route, and link properties as for ring"},
    {"hypercube", "dimensions", "2^d ranks, linked where one bit differs",
     "hypercube:4 and link properties as for ring"},
    {"fully_connected", "n", "a link between every two ranks",
     "fully_connected:8 and link properties as for ring"},
    {"fat_tree", "k", "switched tree: three levels of k-port switches, or leaves and spines",
     "fat_tree:4 or fat_tree:ranks=64,leaf_ports=16,spines=2,oversubscription=2, link properties, "
     "switch_latency"},
    {"rail_optimized", "hosts", "hosts on one switch each, GPU i of all hosts on rail i",
     "rail_optimized:4,gpus=8,rails=8,spines=1,hosts_per_leaf=32,oversubscription=1,host_bandwidth=450GB/s, "
     "link properties"},
    {"dragonfly", "groups", "groups of fully connected routers, every two groups linked",
     "dragonfly:9,routers=4,terminals=2,global=1, link properties, switch_latency"},
};

struct Technology {
    const char *name, *kind, *bandwidth;
};

constexpr Technology kTechnologies[] = {
    {"edr", "infiniband", "100Gb/s"},        {"hdr", "infiniband", "200Gb/s"},
    {"ndr", "infiniband", "400Gb/s"},        {"xdr", "infiniband", "800Gb/s"},
    {"infiniband", "infiniband", "400Gb/s"}, {"roce_v1", "roce_v1", "100Gb/s"},
    {"roce_v2", "roce_v2", "400Gb/s"},       {"ethernet", "ethernet", "100Gb/s"},
};

const char* kFabricRemedy =
    "write TECHNOLOGY-SHAPE: edr, hdr, ndr, xdr, roce_v1, roce_v2 or ethernet; rail, rail_only, tree or "
    "dragonfly";

std::string preset_name(std::string_view file) {
    file.remove_prefix(std::string_view("presets/").size());
    file.remove_suffix(std::string_view(".json").size());
    return std::string(file);
}

// The preset that a name means; "dgx1-25" finds "paper/dgx1-25" too.
const EmbeddedFile* find_preset(std::string_view name) {
    for (const std::string& tried : {std::string(name), "paper/" + std::string(name)}) {
        for (const EmbeddedFile& file : preset_files()) {
            if (preset_name(file.name) == tried) return &file;
        }
    }
    return nullptr;
}

const GeneratorHelp* find_generator(std::string_view name) {
    for (const GeneratorHelp& generator : kGeneratorHelp) {
        if (name == generator.name) return &generator;
    }
    return nullptr;
}

// A parameter's value as JSON: whole numbers, true and false as such, the rest as text.
Json parameter_value(const std::string& text) {
    if (text == "true" || text == "false") return text == "true";
    std::int64_t integer = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), integer);
    if (status == std::errc() && end == text.data() + text.size()) return integer;
    double number = 0;
    const auto [stop, fine] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (fine == std::errc() && stop == text.data() + text.size()) return number;
    return text;
}

struct Spec {
    std::string text, name;
    std::vector<std::pair<std::string, std::string>>
        parameters;  // in order; a positional one has an empty key
};

Spec parse_spec(const std::string& text) {
    Spec spec{text, text.substr(0, text.find(':')), {}};
    std::string rest = text;
    if (rest.rfind("preset:", 0) == 0) {
        rest = rest.substr(7);
        spec.name = rest.substr(0, rest.find(':'));
    }
    const std::size_t colon = rest.find(':');
    if (colon == std::string::npos) return spec;
    rest = rest.substr(colon + 1);
    for (std::size_t begin = 0; begin <= rest.size();) {
        const std::size_t end = std::min(rest.find(',', begin), rest.size());
        const std::string part = rest.substr(begin, end - begin);
        const std::size_t equal = part.find('=');
        if (part.empty() || equal == 0 || equal + 1 == part.size()) {
            throw input_error(fmt::format("'{}' is not a parameter", part.substr(0, 40)), text.substr(0, 120),
                              "write NAME:key=value,key=value");
        }
        std::string key = equal == std::string::npos ? "" : part.substr(0, equal);
        for (const auto& [other, value] : spec.parameters) {
            if (other == key)
                throw input_error(fmt::format("the parameter '{}' comes twice", key.empty() ? part : key),
                                  text.substr(0, 120));
        }
        spec.parameters.emplace_back(std::move(key),
                                     equal == std::string::npos ? part : part.substr(equal + 1));
        begin = end + 1;
    }
    return spec;
}

Json fabric_by_name(const std::string& name, const std::string& where) {
    const std::size_t dash = name.rfind('-');
    const std::string technology = name.substr(0, dash),
                      shape = dash == std::string::npos ? "" : name.substr(dash + 1);
    for (const Technology& known : kTechnologies) {
        if (technology != known.name) continue;
        Json fabric = {
            {"generate", ""},
            {"kind", known.kind},
            {"bandwidth", known.bandwidth},
            {"latency", {{"value", "500ns"}, {"source", "default of a network link"}, {"assumed", true}}}};
        if (shape == "rail" || shape == "rail_only") {
            fabric["generate"] = "rail_optimized";
            if (shape == "rail_only") fabric["spines"] = 0;
        } else if (shape == "tree" || shape == "fat_tree") {
            fabric["generate"] = "fat_tree";
        } else if (shape == "dragonfly") {
            fabric["generate"] = "dragonfly";
        } else {
            break;
        }
        return fabric;
    }
    throw input_error(fmt::format("unknown fabric '{}'", name.substr(0, 60)), where, kFabricRemedy);
}

Topology from_json(const Json& document, const Spec& spec) {
    Topology topology = parse_topology(document.dump(-1, ' ', false, Json::error_handler_t::replace),
                                       spec.text.substr(0, 200));
    topology.name = spec.text;
    return topology;
}

Topology load_generator(const GeneratorHelp& generator, const Spec& spec) {
    Json document = {{"baton", "topology/1"}, {"name", spec.text}, {"generate", generator.name}};
    for (const auto& [key, value] : spec.parameters) {
        document[key.empty() ? generator.positional : key] =
            key.empty() || key == "shape"
                ? (std::string(generator.positional) == "shape" ? Json(value) : parameter_value(value))
                : parameter_value(value);
    }
    return from_json(document, spec);
}

// Presets of hosts: hosts (or boxes), fabric, and any property of the fabric.
Topology load_hosts(const Json& preset, const Spec& spec) {
    std::int64_t hosts = 1;
    const Json about = preset.value("preset", Json::object());
    Json fabric = about.value("fabric", Json());
    if (about.contains("hosts")) hosts = about["hosts"].get<std::int64_t>();
    bool with_fabric = false;
    std::vector<std::pair<std::string, std::string>> properties;
    for (const auto& [key, value] : spec.parameters) {
        if (key == "hosts" || key == "boxes" || key.empty()) {
            const Json number = parameter_value(value);
            if (!number.is_number_integer() || number.get<std::int64_t>() < 1 ||
                number.get<std::int64_t>() > kMaxNodes) {
                throw input_error(fmt::format("'{}' is not a number of hosts", value.substr(0, 40)),
                                  spec.text.substr(0, 120), fmt::format("use 1 to {}", kMaxNodes));
            }
            hosts = number.get<std::int64_t>();
        } else if (key == "fabric") {
            fabric = fabric_by_name(value, spec.text.substr(0, 120));
            with_fabric = true;
        } else {
            properties.emplace_back(key, value);
        }
    }
    if (hosts == 1 && !with_fabric && properties.empty()) return from_json(preset, spec);
    if (hosts > 1 || with_fabric || !properties.empty()) {
        if (fabric.is_null())
            throw input_error(fmt::format("{} has no fabric of its own", spec.name), spec.text.substr(0, 120),
                              "name one, for example fabric=ndr-rail");
    }
    if (fabric.is_string()) fabric = fabric_by_name(fabric.get<std::string>(), spec.text.substr(0, 120));
    for (const auto& [key, value] : properties) fabric[key] = parameter_value(value);
    const Json document = {{"baton", "topology/1"},
                           {"name", spec.text},
                           {"hosts", Json::array({Json{{"use", "preset:" + spec.name}, {"repeat", hosts}}})},
                           {"fabric", fabric}};
    return from_json(document, spec);
}

Topology load_preset(const EmbeddedFile& file, const Spec& spec) {
    // Presets are part of the program, so this never fails on input; comments are allowed in them.
    Json preset = Json::parse(file.content, nullptr, true, true);
    if (!preset.contains("generate")) return load_hosts(preset, spec);
    for (const auto& [key, value] : spec.parameters) {
        const std::string name = key.empty() ? "shape" : key;
        preset[name] = name == "shape" ? Json(value) : parameter_value(value);
    }
    return from_json(preset, spec);
}

std::vector<std::string> all_names() {
    std::vector<std::string> names;
    for (const Nameable& nameable : nameables()) names.push_back(nameable.name);
    return names;
}

}  // namespace

Json fabric_entry(const std::string& text, const std::string& where) {
    // Its name stands where a specification has the first positional parameter.
    const Spec spec = parse_spec("fabric:" + text);
    if (spec.parameters.empty() || !spec.parameters.front().first.empty())
        throw input_error(fmt::format("'{}' names no fabric", text.substr(0, 60)), where, kFabricRemedy);
    Json fabric = fabric_by_name(spec.parameters.front().second, where);
    for (std::size_t i = 1; i < spec.parameters.size(); ++i)
        fabric[spec.parameters[i].first] = parameter_value(spec.parameters[i].second);
    return fabric;
}

std::string_view preset_text(std::string_view name, const std::string& where) {
    if (const EmbeddedFile* file = find_preset(name)) return file->content;
    std::vector<std::string> names;
    for (const EmbeddedFile& file : preset_files()) names.push_back(preset_name(file.name));
    throw input_error(fmt::format("there is no preset '{}'{}", name.substr(0, 60), near_names(name, names)),
                      where);
}

std::vector<Nameable> nameables() {
    std::vector<Nameable> all;
    for (const EmbeddedFile& file : preset_files()) {
        const Json preset = Json::parse(file.content, nullptr, true, true);
        const Json about = preset.value("preset", Json::object());
        Nameable named{preset_name(file.name), about.value("summary", std::string()), "", false};
        if (preset.contains("generate")) {
            named.parameters =
                fmt::format("shape={}, bandwidth, latency", preset.value("shape", std::string()));
        } else {
            const Json fabric = about.value("fabric", Json());
            named.parameters = fmt::format("hosts={}", about.value("hosts", 1));
            if (fabric.is_string())
                named.parameters +=
                    ", fabric=" + fabric.get<std::string>() + ", oversubscription, bandwidth, ...";
            if (fabric.is_null()) named.parameters = "none";
        }
        all.push_back(std::move(named));
    }
    for (const GeneratorHelp& generator : kGeneratorHelp)
        all.push_back({generator.name, generator.summary, generator.parameters, true});
    return all;
}

Topology load(const std::string& spec) {
    std::error_code ignored;
    if (spec == "-" || std::filesystem::is_regular_file(spec, ignored)) {
        const std::filesystem::path folder = std::filesystem::path(spec).parent_path();
        return parse_topology(read_file(spec), spec == "-" ? "standard input" : spec,
                              folder.empty() ? "." : folder.string());
    }
    const Spec parsed = parse_spec(spec);
    if (const GeneratorHelp* generator = find_generator(parsed.name))
        return load_generator(*generator, parsed);
    if (const EmbeddedFile* file = find_preset(parsed.name)) return load_preset(*file, parsed);
    if (std::filesystem::is_directory(spec, ignored))
        throw input_error("is a folder, not a file", spec.substr(0, 200));
    const bool looks_like_file =
        spec.find(".json") != std::string::npos || spec.find(".cbor") != std::string::npos;
    if (looks_like_file) throw input_error("there is no such file", spec.substr(0, 200));
    throw input_error(fmt::format("'{}' is neither a file, a preset nor a generator{}", spec.substr(0, 60),
                                  near_names(parsed.name, all_names(), 0)),
                      {}, "baton topo list shows what there is");
}

}  // namespace baton::topologies
