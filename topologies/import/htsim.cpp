// Fat trees of htsim: "Nodes", "Tiers", "Podsize", then for each tier its downlinks and radixes. Keys are in
// any case. A bundle is so many parallel links in the place of one.
#include <baton/base/index.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/import/machine_tree.hpp>
#include <baton/topologies/import/network_report.hpp>
#include <baton/topologies/import/pci_slots.hpp>
#include <baton/topologies/import/text_lines.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <map>

namespace baton::topologies {
namespace {

constexpr double kHtsimDefaultLatency = 1000;  // ns, what htsim's programs take for a hop

// A key of the file: its value and line.
struct HtsimValue {
    double value = 0;
    TextLine line;
};

struct HtsimFile {
    std::map<std::string, HtsimValue> header;
    std::array<std::map<std::string, HtsimValue>, 3> tiers;
    std::array<TextLine, 3> tier_lines;
    std::vector<std::string> left_out;
    std::int64_t nodes = 0, tier_count = 0;
};

bool is_header_key(const std::string& key) { return key == "nodes" || key == "tiers" || key == "podsize"; }
bool is_tier_key(const std::string& key) {
    return key == "downlink_speed_gbps" || key == "radix_up" || key == "radix_down" || key == "bundle" ||
           key == "oversubscribed" || key == "switch_latency_ns" || key == "downlink_latency_ns";
}

std::string lower_key(std::string_view word) {
    std::string key(word.substr(0, 60));
    for (char& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return key;
}

double htsim_number(const TextLine& line, const std::vector<std::string_view>& words) {
    if (words.size() < 2) throw line.error(fmt::format("'{}' has no value", shown(words[0])));
    const auto value = number_in(words[1]);
    if (!value || *value < 0 || *value > 1e12)
        throw line.error(fmt::format("'{}' is no value of {}", shown(words[1]), shown(words[0])));
    if (words.size() > 2 && words[2].front() != '#')
        throw line.error(fmt::format("'{}' after the value of {}", shown(words[2]), shown(words[0])));
    return *value;
}

std::int64_t whole_value(const HtsimValue& value, std::string_view key, std::int64_t low) {
    if (value.value < static_cast<double>(low) || value.value > static_cast<double>(kMaxNodes) ||
        value.value != static_cast<double>(static_cast<std::int64_t>(value.value)))
        throw value.line.error(fmt::format("{:g} is no value of {}", value.value, key));
    return static_cast<std::int64_t>(value.value);
}

HtsimFile read_htsim_lines(const ImportSource& source) {
    HtsimFile file;
    int tier = -1;
    for (const TextLine& line : text_lines(source)) {
        const std::vector<std::string_view> words = line.words();
        if (words.empty() || words[0].front() == '#') continue;
        const std::string key = lower_key(words[0]);
        const double value = htsim_number(line, words);
        if (key == "tier") {
            if (value != 0 && value != 1 && value != 2)
                throw line.error(fmt::format("there is no tier {:g}", value), "tiers are 0, 1 and 2");
            tier = static_cast<int>(value);
            if (file.tier_lines[at(tier)].number != 0)
                throw line.error(fmt::format("tier {} comes twice", tier));
            file.tier_lines[at(tier)] = line;
        } else if (is_header_key(key) || is_tier_key(key)) {
            if (is_tier_key(key) && tier < 0)
                throw line.error(fmt::format("'{}' stands before the first tier", shown(words[0])));
            auto& values = is_header_key(key) ? file.header : file.tiers[at(tier)];
            if (!values.try_emplace(key, HtsimValue{value, line}).second)
                throw line.error(fmt::format("'{}' comes twice", shown(words[0])));
        } else {
            file.left_out.push_back(fmt::format("{} (line {})", shown(words[0]), line.number));
        }
    }
    const auto header = [&](const char* key) -> const HtsimValue& {
        const auto found = file.header.find(key);
        if (found == file.header.end()) throw input_error(fmt::format("'{}' is missing", key), source.name);
        return found->second;
    };
    file.nodes = whole_value(header("nodes"), "Nodes", 1);
    file.tier_count = whole_value(header("tiers"), "Tiers", 1);
    if (file.tier_count < 2 || file.tier_count > 3)
        throw header("tiers").line.error(fmt::format("{} tiers", file.tier_count), "htsim has two or three");
    for (std::int64_t t = 0; t < 3; ++t) {
        if ((file.tier_lines[at(t)].number != 0) == (t < file.tier_count)) continue;
        if (t < file.tier_count) throw input_error(fmt::format("tier {} is missing", t), source.name);
        throw file.tier_lines[at(t)].error(fmt::format("tier {} of {} tiers", t, file.tier_count));
    }
    return file;
}

struct HtsimTier {
    std::int64_t up = 0, down = 0, bundle = 1;
    Link link;  // its downlinks, both directions
    Time switch_latency;
    const TextLine* line = nullptr;
};

HtsimTier htsim_tier(const HtsimFile& file, std::int64_t t, Imported& result) {
    const auto& values = file.tiers[at(t)];
    HtsimTier tier;
    tier.line = &file.tier_lines[at(t)];
    const auto find = [&](const char* key) {
        const auto found = values.find(key);
        return found == values.end() ? nullptr : &found->second;
    };
    const auto need = [&](const char* key) -> const HtsimValue& {
        if (const HtsimValue* value = find(key)) return *value;
        throw tier.line->error(fmt::format("'{}' of tier {} is missing", key, t));
    };
    tier.down = whole_value(need("radix_down"), "Radix_Down", 1);
    if (t + 1 < file.tier_count) tier.up = whole_value(need("radix_up"), "Radix_Up", 1);
    if (find("radix_up") && t + 1 == file.tier_count)
        result.warnings.push_back(
            fmt::format("{}: Radix_Up of the highest tier is left out", find("radix_up")->line.where()));
    if (const HtsimValue* bundle = find("bundle")) tier.bundle = whole_value(*bundle, "Bundle", 1);
    const HtsimValue& speed = need("downlink_speed_gbps");
    const auto rate = rate_of(speed.value * 1e9 / 8);
    if (!rate) throw speed.line.error(fmt::format("{:g} is no speed in Gb/s", speed.value));
    const HtsimValue* latency = find("downlink_latency_ns");
    if (!latency)
        result.assumptions.push_back(fmt::format(
            "tier {} has no Downlink_Latency_ns: {:g} ns, htsim's default", t, kHtsimDefaultLatency));
    const auto link_time = latency_of((latency ? latency->value : kHtsimDefaultLatency) * 1e-9);
    if (!link_time) throw latency->line.error(fmt::format("{:g} ns is no latency of a link", latency->value));
    if (const HtsimValue* pass = find("switch_latency_ns")) {
        const auto time = latency_of(pass->value * 1e-9);
        if (!time) throw pass->line.error(fmt::format("{:g} ns is no latency of a switch", pass->value));
        tier.switch_latency = *time;
    }
    tier.link.bandwidth = *rate;
    tier.link.latency = *link_time;
    tier.link.count = static_cast<int>(tier.bundle);
    tier.link.kind = LinkKind::roce_v2;
    return tier;
}

// How many switches a tier has for `ports` links from below; an error names the tier that does not fit.
std::int64_t switches_for(std::int64_t ports, const HtsimTier& tier, std::int64_t number) {
    if (ports % tier.down != 0)
        throw tier.line->error(
            fmt::format("{} links from below do not fill switches of Radix_Down {} in tier {}", ports,
                        tier.down, number));
    return ports / tier.down;
}

void check_bundle(std::int64_t radix, const HtsimTier& tier, std::int64_t number) {
    if (radix % tier.bundle != 0)
        throw tier.line->error(
            fmt::format("a radix of {} is no multiple of Bundle {} of tier {}", radix, tier.bundle, number));
}

void check_oversubscription(const HtsimFile& file, const std::vector<HtsimTier>& tiers, Imported& result) {
    for (std::size_t t = 0; t + 1 < tiers.size(); ++t) {
        const auto said = file.tiers[t].find("oversubscribed");
        if (said == file.tiers[t].end()) continue;
        const double is = static_cast<double>(tiers[t].down) * tiers[t].link.bandwidth.value() /
                          (static_cast<double>(tiers[t].up) * tiers[t + 1].link.bandwidth.value());
        if (std::abs(is - said->second.value) > 1e-6)
            result.warnings.push_back(
                fmt::format("{}: Oversubscribed {:g}, but the radixes and speeds give {:g}",
                            said->second.line.where(), said->second.value, is));
    }
}

}  // namespace

bool recognizes_htsim(std::string_view text) {
    const std::string name;
    bool nodes = false, tiers = false;
    for (const TextLine& line : text_lines({text.substr(0, 8192), name})) {
        const auto words = line.words();
        if (words.size() < 2) continue;
        nodes = nodes || lower_key(words[0]) == "nodes";
        tiers = tiers || lower_key(words[0]) == "tiers";
    }
    return nodes && tiers;
}

Imported read_htsim(const ImportSource& source, const ImportOptions& /*options*/) {
    const HtsimFile file = read_htsim_lines(source);
    Imported result;
    std::vector<HtsimTier> tiers;
    for (std::int64_t t = 0; t < file.tier_count; ++t) tiers.push_back(htsim_tier(file, t, result));
    // Two tiers are one pod: every switch of tier 0 reaches every one of tier 1.
    std::int64_t pod = file.nodes;
    if (const auto said = file.header.find("podsize"); said != file.header.end() && file.tier_count == 3) {
        pod = whole_value(said->second, "Podsize", 1);
        if (file.nodes % pod != 0)
            throw said->second.line.error(
                fmt::format("{} nodes are no multiple of Podsize {}", file.nodes, pod));
    } else if (file.tier_count == 3) {
        throw input_error("'Podsize' is missing", source.name);
    }
    const std::int64_t pods = file.nodes / pod;
    if (tiers[0].bundle != 1)
        throw tiers[0].line->error("htsim's hosts have one link: Bundle of tier 0 is 1");
    const std::int64_t tors = switches_for(pod, tiers[0], 0);
    const std::int64_t aggs = switches_for(tors * tiers[0].up, tiers[1], 1);
    check_bundle(tiers[0].up, tiers[1], 1);
    check_bundle(tiers[1].down, tiers[1], 1);
    if (aggs * tiers[1].bundle != tiers[0].up || tors * tiers[1].bundle != tiers[1].down)
        throw tiers[1].line->error(fmt::format(
            "a pod has {} of tier 0 with {} links up and {} of tier 1 with {} down: not each joins "
            "each by a bundle of {}",
            counted(at(tors), "switch", "switches"), tiers[0].up, counted(at(aggs), "switch", "switches"),
            tiers[1].down, tiers[1].bundle));
    std::int64_t cores = 0;
    if (file.tier_count == 3) {
        cores = switches_for(pods * aggs * tiers[1].up, tiers[2], 2);
        check_bundle(tiers[1].up, tiers[2], 2);
        if (cores != aggs * (tiers[1].up / tiers[2].bundle))
            throw tiers[2].line->error(fmt::format("{} of tier 2 where the links of one pod lead to {}",
                                                   counted(at(cores), "switch", "switches"),
                                                   aggs * (tiers[1].up / tiers[2].bundle)));
    }
    check_size(static_cast<double>(file.nodes + pods * (tors + aggs) + cores),
               2.0 * static_cast<double>(file.nodes) +
                   2.0 * static_cast<double>(pods) * static_cast<double>(tors) * static_cast<double>(aggs) +
                   2.0 * static_cast<double>(pods) * static_cast<double>(cores),
               source.name);

    Topology& topology = result.topology;
    const auto add_nodes = [&](const char* name, std::int64_t count, const HtsimTier* tier) {
        const int first = static_cast<int>(topology.nodes.size());
        for (std::int64_t i = 0; i < count; ++i) {
            Node node;
            node.id = fmt::format("{}{}", name, i);
            if (tier) node.type = NodeType::switch_node;
            if (tier) node.latency = tier->switch_latency;
            topology.add_node(std::move(node));
        }
        return first;
    };
    const int host0 = add_nodes("host", file.nodes, nullptr);
    const int tor0 = add_nodes("tor", pods * tors, &tiers[0]);
    const int agg0 = add_nodes("agg", pods * aggs, &tiers[1]);
    const int core0 = cores > 0 ? add_nodes("core", cores, &tiers[2]) : 0;
    const auto join = [&](std::int64_t from, std::int64_t to, const HtsimTier& tier) {
        Link link = tier.link;
        link.from = static_cast<int>(from);
        link.to = static_cast<int>(to);
        topology.add_link(std::move(link));
    };
    for (std::int64_t host = 0; host < file.nodes; ++host)
        join(host0 + host, tor0 + host / tiers[0].down, tiers[0]);
    for (std::int64_t tor = 0; tor < pods * tors; ++tor)
        for (std::int64_t a = 0; a < aggs; ++a) join(tor0 + tor, agg0 + tor / tors * aggs + a, tiers[1]);
    // Switch p of tier 1 of each pod reaches the switches p, p + aggs, ... of tier 2.
    for (std::int64_t agg = 0; cores > 0 && agg < pods * aggs; ++agg)
        for (std::int64_t l = 0; l < tiers[1].up / tiers[2].bundle; ++l)
            join(agg0 + agg, core0 + agg % aggs + l * aggs, tiers[2]);
    result.found.push_back(
        fmt::format("{} tiers: {} of {} hosts", file.tier_count, counted(at(pods), "pod"), pod));
    check_oversubscription(file, tiers, result);
    finish_network(source, result);
    result.assumptions.push_back(
        "links are RoCE v2: headers of a 4096 byte packet are taken off the rate (htsim's transport is "
        "chosen at "
        "its start)");
    warn_left_out(file.left_out, "keys without a counterpart", result);
    return result;
}

}  // namespace baton::topologies
