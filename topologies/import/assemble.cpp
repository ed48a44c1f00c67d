#include <baton/topologies/import/assemble.hpp>

#include <baton/base/error.hpp>
#include <baton/topologies/load.hpp>
#include <baton/topologies/read.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace baton::topologies {

Topology assemble_hosts(const std::vector<Topology>& hosts, int repeat, const std::string& fabric) {
    if (hosts.empty()) throw input_error("there is no host to assemble");
    if (repeat < 1) throw input_error(fmt::format("{} is not a number of hosts", repeat), "--hosts");
    const bool several = hosts.size() > 1 || repeat > 1;
    if (!several && fabric.empty()) return hosts.front();
    if (fabric.empty())
        throw input_error(
            fmt::format("nothing joins the {} hosts", hosts.size() * static_cast<std::size_t>(repeat)),
            "--hosts", "name a fabric, for example --fabric ndr-rail");
    using Json = nlohmann::ordered_json;
    Json list = Json::array();
    for (int copy = 0; copy < (hosts.size() == 1 ? 1 : repeat); ++copy) {
        for (const Topology& host : hosts) list.push_back({{"use", Json::parse(to_json(host))}});
    }
    if (hosts.size() == 1) list[0]["repeat"] = repeat;
    const Json document = {{"baton", "topology/1"},
                           {"name", fmt::format("{} x{}, {}", hosts.front().name,
                                                hosts.size() * static_cast<std::size_t>(repeat), fabric)},
                           {"hosts", list},
                           {"fabric", fabric_entry(fabric, "--fabric")}};
    return parse_topology(document.dump(), "--fabric " + fabric);
}

}  // namespace baton::topologies
