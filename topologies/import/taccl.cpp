// Topology files of TACCL: one node with its profile. The files have no units: alpha is us, beta and inverse
// bandwidth are us per MB of 2^20 bytes. The lists of one or two betas stand for TACCL's own machines (a
// switch between all GPUs; the cube mesh of NDv2 and DGX-1); matrices are [destination][source].
#include <baton/base/index.hpp>
#include <baton/base/json_reader.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/import/machine_tree.hpp>
#include <baton/topologies/import/network_report.hpp>
#include <baton/topologies/import/pci_slots.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>

namespace baton::topologies {
namespace {

// Links of the cube mesh: 1 takes the first beta of the list (two NVLinks), 2 the second.
constexpr int kCubeMesh[8][8] = {
    {0, 1, 2, 2, 1, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {2, 2, 0, 1, 0, 0, 1, 0}, {2, 1, 1, 0, 0, 0, 0, 2},
    {1, 0, 0, 0, 0, 1, 2, 2}, {0, 2, 0, 0, 1, 0, 2, 1}, {0, 0, 1, 0, 2, 2, 0, 1}, {0, 0, 0, 2, 2, 1, 1, 0},
};
constexpr double kTacclMegabyte = 1048576;

Rate rate_of_beta(const JsonReader& value) {
    const double beta = value.number();
    const auto rate = beta > 0 ? rate_of(kTacclMegabyte / (beta * 1e-6)) : std::nullopt;
    if (!rate) throw value.error(fmt::format("{:g} is no time in us per MB", beta), "give a positive number");
    return *rate;
}

Time taccl_alpha(const JsonReader& value) {
    const auto latency = latency_of(value.number() * 1e-6);
    if (!latency) throw value.error(fmt::format("{:g} is no latency in us", value.number()));
    return *latency;
}

struct TacclFile {
    JsonReader root;
    std::int64_t gpus = 0;
    Time alpha{};
};

void add_switch(const TacclFile& file, const JsonReader& betas, Imported& result) {
    Node node;
    node.id = "switch";
    node.type = NodeType::switch_node;
    node.host = "node";
    const int center = result.topology.add_node(std::move(node));
    Link link;
    link.kind = LinkKind::nvlink;
    link.bandwidth = rate_of_beta(betas.at(std::size_t{0}));
    // A transfer takes alpha once, over both links.
    link.latency = {(file.alpha.picoseconds + 1) / 2};
    link.to = center;
    for (std::int64_t gpu = 0; gpu < file.gpus; ++gpu) {
        link.from = static_cast<int>(gpu);
        result.topology.add_link(link);
    }
    result.assumptions.push_back(
        "one beta: all GPUs on a switch (TACCL's DGX2 and HubAndSpoke); alpha is halved over the two links");
}

void add_cube_mesh(const TacclFile& file, const JsonReader& betas, Imported& result) {
    if (file.gpus != 8)
        throw betas.error(fmt::format("two betas are TACCL's NDv2, which has 8 GPUs, not {}", file.gpus),
                          "give one beta, or matrices");
    for (std::size_t a = 0; a < 8; ++a) {
        for (std::size_t b = a + 1; b < 8; ++b) {
            if (kCubeMesh[a][b] == 0) continue;
            Link link;
            link.kind = LinkKind::nvlink;
            link.from = static_cast<int>(a);
            link.to = static_cast<int>(b);
            link.bandwidth = rate_of_beta(betas.at(at(kCubeMesh[a][b] - 1)));
            link.latency = file.alpha;
            result.topology.add_link(link);
        }
    }
    result.assumptions.push_back("two betas: the cube mesh of TACCL's NDv2, whose links are not in the file");
}

// A matrix of numbers, [destination][source].
std::vector<std::vector<JsonReader>> taccl_matrix(const JsonReader& matrix, std::int64_t gpus) {
    std::vector<std::vector<JsonReader>> rows;
    if (static_cast<std::int64_t>(matrix.size()) != gpus)
        throw matrix.error(fmt::format("{} for {}", counted(matrix.size(), "row"), counted(at(gpus), "GPU")));
    for (const JsonReader& row : matrix.elements()) {
        rows.push_back(row.elements());
        if (static_cast<std::int64_t>(rows.back().size()) != gpus)
            throw row.error(
                fmt::format("{} for {}", counted(rows.back().size(), "value"), counted(at(gpus), "GPU")));
    }
    return rows;
}

void add_matrix(const TacclFile& file, Imported& result) {
    const auto links = taccl_matrix(file.root.at("links"), file.gpus);
    const auto betas =
        taccl_matrix(file.root.find("betas") ? file.root.at("betas") : file.root.at("invbws"), file.gpus);
    for (std::int64_t to = 0; to < file.gpus; ++to) {
        for (std::int64_t from = 0; from < file.gpus; ++from) {
            const std::int64_t count = links[at(to)][at(from)].integer(0, 1024);
            if (count == 0) continue;
            if (from == to)
                throw links[at(to)][at(from)].error(fmt::format("GPU {} is linked to itself", to));
            Link link;
            link.kind = LinkKind::nvlink;
            link.count = static_cast<int>(count);
            link.from = static_cast<int>(from);
            link.to = static_cast<int>(to);
            link.bandwidth = rate_of_beta(betas[at(to)][at(from)]);
            link.latency = file.alpha;
            result.topology.add_link(link, true);
        }
    }
    result.assumptions.push_back("matrices are [destination][source], as TACCL reads them");
}

// What leads out of the node: so many NICs at the remote figures.
void add_nics(const TacclFile& file, Imported& result) {
    const auto count = file.root.find("nics_per_node");
    if (!count || count->integer(-1, 65536) <= 0) {
        result.warnings.push_back("the file has no NICs: it describes one node only");
        return;
    }
    const std::int64_t nics = count->integer();
    Link link;
    link.kind = LinkKind::pcie;
    const JsonReader beta =
        file.root.find("remote_beta") ? file.root.at("remote_beta") : file.root.at("remote_invbw");
    link.bandwidth = rate_of_beta(beta);
    const Time alpha = taccl_alpha(file.root.at("remote_alpha"));
    link.latency = {(alpha.picoseconds + 1) / 2};
    const int first_nic = static_cast<int>(result.topology.nodes.size());
    for (std::int64_t nic = 0; nic < nics; ++nic) {
        Node port;
        port.id = fmt::format("nic{}", nic);
        port.type = NodeType::nic;
        port.host = "node";
        result.topology.add_node(std::move(port));
    }
    // GPUs of one NIC share its rate. There is no bridge between them, which would be a path inside the node.
    std::vector<std::pair<Limit, Limit>> shared(at(nics));
    for (std::int64_t gpu = 0; gpu < file.gpus; ++gpu) {
        const std::int64_t nic = gpu * nics / file.gpus;
        link.from = static_cast<int>(gpu);
        link.to = first_nic + static_cast<int>(nic);
        shared[at(nic)].first.links.push_back(static_cast<int>(result.topology.links.size()));
        shared[at(nic)].second.links.push_back(static_cast<int>(result.topology.links.size()) + 1);
        result.topology.add_link(link);
    }
    for (std::int64_t nic = 0; nic < nics; ++nic) {
        auto& [out, in] = shared[at(nic)];
        if (out.links.size() < 2) continue;
        out.id = fmt::format("nic{}.out", nic);
        in.id = fmt::format("nic{}.in", nic);
        out.bandwidth = in.bandwidth = link.bandwidth;
        result.topology.limits.push_back(std::move(out));
        result.topology.limits.push_back(std::move(in));
    }
    result.found.push_back(fmt::format("{} at {} and {} between nodes (remote_beta {:g} us/MB, remote_alpha)",
                                       counted(at(nics), "NIC"), to_string(link.bandwidth), to_string(alpha),
                                       beta.number()));
    result.assumptions.push_back(
        "which GPU uses which NIC is in TACCL's sketch, not here: GPUs in order share the NICs in equal "
        "parts; "
        "remote_alpha is halved over the links from GPU to NIC and from NIC to GPU");
    if (nics > file.gpus)
        result.warnings.push_back(fmt::format("{} for {}: {} no GPU here and no link",
                                              counted(at(nics), "NIC"), counted(at(file.gpus), "GPU"),
                                              counted(at(nics - file.gpus), "NIC has", "NICs have")));
    result.assumptions.push_back("nodes are joined by --hosts N --fabric SPEC");
}

// Inverse bandwidths stand beside betas; where they differ TACCL routes by them and times by the betas.
void note_inverse_bandwidths(const JsonReader& root, Imported& result) {
    const auto differ = [&](const char* beta, const char* inverse) {
        const auto a = root.find(beta), b = root.find(inverse);
        if (!a || !b || a->text(4096) == b->text(4096)) return;
        result.warnings.push_back(fmt::format("{} {} and {} {} differ: rates follow {}", beta,
                                              shown(a->text()), inverse, shown(b->text()), beta));
    };
    differ("node_betas_list", "node_invbws_list");
    differ("betas", "invbws");
    differ("remote_beta", "remote_invbw");
}

}  // namespace

bool recognizes_taccl(std::string_view text) {
    const auto has = [&](std::string_view key) { return text.find(key) != std::string_view::npos; };
    return has("\"gpus_per_node\"") && has("\"alpha\"") && (has("invbws") || has("betas"));
}

Imported read_taccl(const ImportSource& source, const ImportOptions& /*options*/) {
    const JsonDocument document = JsonDocument::parse(source.text, source.name);
    TacclFile file{document.root(), 0, {}};
    file.gpus = file.root.at("gpus_per_node").integer(1, 65536);
    file.alpha = taccl_alpha(file.root.at("alpha"));
    Imported result;
    if (const auto name = file.root.find("name")) result.topology.name = shown(name->string());
    for (std::int64_t gpu = 0; gpu < file.gpus; ++gpu) {
        Node node;
        node.id = fmt::format("gpu{}", gpu);
        node.host = "node";
        result.topology.add_node(std::move(node));
    }
    if (file.root.find("links")) {
        add_matrix(file, result);
    } else {
        const JsonReader betas = file.root.find("node_betas_list") ? file.root.at("node_betas_list")
                                                                   : file.root.at("node_invbws_list");
        if (betas.size() == 1)
            add_switch(file, betas, result);
        else if (betas.size() == 2)
            add_cube_mesh(file, betas, result);
        else
            throw betas.error(
                fmt::format("{}; TACCL's machines have one or two", counted(betas.size(), "beta")),
                "give matrices 'links', 'betas' and 'invbws'");
    }
    add_nics(file, result);
    finish_network(source, result);
    result.assumptions.push_back(
        "units as TACCL has them: alpha in us, beta in us per MB of 2^20 bytes; links are NVLinks");
    note_inverse_bandwidths(file.root, result);
    std::vector<std::string> left_out;
    for (const auto& [key, value] : file.root.members()) {
        constexpr std::array kKnown = {"name",         "gpus_per_node", "nics_per_node",   "alpha",
                                       "links",        "betas",         "node_betas_list", "node_invbws_list",
                                       "remote_invbw", "invbws",        "remote_alpha",    "remote_beta"};
        if (std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end()) left_out.push_back(shown(key));
    }
    warn_left_out(left_out, "keys without a counterpart", result);
    return result;
}

}  // namespace baton::topologies
