// Broken documents: each is refused with one sentence that names file, place and what was expected.
#include <baton/base/error.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace baton;
using namespace baton::topologies;

namespace {

struct Broken {
    const char* document;
    const char* message;
};

std::string message_of(const std::string& document) {
    try {
        parse_topology(document, "t.json");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "accepted";
}

void check_all(std::initializer_list<Broken> documents) {
    for (const Broken& broken : documents) {
        CAPTURE(broken.document);
        CHECK(message_of(broken.document) == broken.message);
    }
}

// Two GPUs and one link with the given properties.
std::string pair_with(const std::string& properties) {
    return R"({"baton": "topology/1", "nodes": [{"id": "gpu{0..1}", "type": "gpu"}],
               "links": [{"from": "gpu0", "to": "gpu1", )" +
           properties + "}]}";
}

}  // namespace

TEST_CASE("documents that are no topology are refused by what they are") {
    check_all({
        {R"([1, 2])", "t.json#: expected a topology document (an object)"},
        {R"({"nodes": []})", "t.json#: the key 'baton' is missing"},
        {R"({"baton": "topology/2", "nodes": []})",
         R"(t.json#/baton: expected "topology/1", found "topology/2")"},
        {R"({"baton": "topology/1", "links": []})", "t.json#: the key 'nodes' is missing"},
        {R"({"baton": "topology/1", "nodes": [], "lnks": []})",
         "t.json#/lnks: unknown key; did you mean 'links'?"},
        {R"({"baton": "topology/1", "nodes": "gpu0"})", "t.json#/nodes: expected an array, found a string"},
        {R"({"baton": "topology/1", "nodes": [["gpu0"]]})",
         "t.json#/nodes/0: expected an object, found an array"},
        {R"({"baton": "topology/1", "nodes": [], "nodes": []})",
         "t.json: not valid JSON: the key 'nodes' comes twice in one object"},
        {"{\"baton\": \"topology/1\",\n \"nodes\": [{\"id\": \"a\", \"type\": \"gpu\"},]}",
         "t.json: line 2, column 39: not valid JSON: syntax error while parsing value - unexpected ']'; "
         "expected '[', '{', or a "
         "literal; remove the comma before it, if there is one"},
    });
}

TEST_CASE("nodes that make no sense are named with their place") {
    check_all({
        {R"({"baton": "topology/1", "nodes": [{"id": "gpu0", "type": "GPU"}]})",
         "t.json#/nodes/0/type: unknown node type 'GPU'; use one of gpu, cpu, nic, switch, pcie"},
        {R"({"baton": "topology/1", "nodes": [{"id": "gpu0", "type": "gpu"}, {"id": "gpu0", "type": "gpu"}]})",
         "t.json#/nodes/1/id: two nodes have the id 'gpu0'; ids are unique"},
        {R"({"baton": "topology/1", "nodes": [{"id": "gpu 0", "type": "gpu"}]})",
         "t.json#/nodes/0/id: the id 'gpu 0' of a node holds a character that it must not; leave out blanks "
         "and *<>,"},
        {R"({"baton": "topology/1", "nodes": [{"id": "gpu{7..0}", "type": "gpu"}]})",
         "t.json#/nodes/0/id: 'gpu{7..0}' is not a range of ids; write for example gpu{0..7}"},
        {R"({"baton": "topology/1", "nodes": [{"id": "gpu0", "type": "gpu", "rank": 1}]})",
         "t.json#/nodes/0/rank: rank 1 is too high: the number of ranks is 1; ranks are 0 to the number of "
         "ranks minus 1, each "
         "once"},
        {R"({"baton": "topology/1", "nodes": [{"id": "a", "type": "gpu", "rank": 0}, {"id": "b", "type": "cpu", "rank": 0}]})",
         "t.json#/nodes/1/rank: nodes 'a' and 'b' both have rank 0"},
        {R"({"baton": "topology/1", "nodes": [{"id": "gpu{0..1}", "type": "gpu", "rank": 0}]})",
         "t.json#/nodes/0/rank: several nodes cannot share a rank; leave it out, or list the nodes one by "
         "one"},
        {R"({"baton": "topology/1", "nodes": [{"id": "gpu0", "type": "gpu", "multicast": true}]})",
         "t.json#/nodes/0: multicast and reduce are properties of switches and NICs"},
        {R"({"baton": "topology/1", "nodes": [{"id": "gpu0", "type": "gpu", "attributes": {"numa": [1]}}]})",
         "t.json#/nodes/0/attributes/numa: an attribute is a string, a number or a boolean"},
        {R"({"baton": "topology/1", "nodes": [{"id": "s", "type": "switch", "latency": "2s"}]})",
         "t.json#/nodes/0/id: node 's': latency must be within 0 and 1 s"},
    });
}

TEST_CASE("links that make no sense are named with their place") {
    const auto check = [](const char* properties, const char* message) {
        CAPTURE(properties);
        CHECK(message_of(pair_with(properties)) == message);
    };
    check(R"("bandwidth": "400 gbps")",
          "t.json#/links/0/bandwidth: '400 gbps' is not a rate: unknown unit 'gbps'; write a number with one "
          "of B/s kB/s MB/s GB/s "
          "TB/s KiB/s MiB/s GiB/s b/s kb/s Mb/s Gb/s Tb/s, for example 400Gb/s or 50GB/s");
    check(R"("bandwidth": "50GB/s", "latency": "7 parsecs")",
          "t.json#/links/0/latency: '7 parsecs' is not a time: unknown unit 'parsecs'; write a number with "
          "one of s ms us ns ps, for "
          "example 700ns");
    check(R"("bandwidth": "50GB/s", "latency": -1)", "t.json#/links/0/latency: -1 is negative");
    check(R"("latency": "1us")", "t.json#/links/0: the key 'bandwidth' is missing");
    check(R"("bandwidth": 0)", "t.json#/links/0/bandwidth: bandwidth must be positive");
    check(R"("bandwidth": "50GB/s", "goodput": "60GB/s")",
          "t.json#/links/0/goodput: goodput 60GB/s is above bandwidth 50GB/s");
    check(R"("bandwidth": "1GB/s", "kind": "nvlnk")",
          "t.json#/links/0/kind: unknown link kind 'nvlnk'; use one of nvlink, xgmi, c2c, pcie, infiniband, "
          "roce_v1, roce_v2, "
          "ethernet, upi, custom");
    check(R"("bandwidth": "1GB/s", "count": 0)",
          "t.json#/links/0/count: 0 is out of range; use 1 to 1048576");
    check(R"("bandwidth": "1GB/s", "loss": 1.5)",
          "t.json#/links/0/loss: a loss of 1.5 is not within [0, 1); loss is the probability that a packet "
          "is lost");
    check(R"("bandwidth": "1TB/s", "count": 1048576)",
          "t.json#/links/0: all units together are above 1e18 B/s");
    check(R"("bandwith": "1GB/s")", "t.json#/links/0/bandwith: unknown key: did you mean 'bandwidth'?");
    check_all({
        {R"({"baton": "topology/1", "nodes": [{"id": "gpu{0..1}", "type": "gpu"}],
             "links": [{"from": "gpu0", "to": "gpu2", "bandwidth": "1GB/s"}]})",
         "t.json#/links/0/to: there is no node 'gpu2': did you mean 'gpu0'?"},
        {R"({"baton": "topology/1", "nodes": [{"id": "gpu0", "type": "gpu"}],
             "links": [{"from": "gpu0", "to": "gpu0", "bandwidth": "1GB/s"}]})",
         "t.json#/links/0: a link leads from 'gpu0' to itself"},
        {R"({"baton": "topology/1", "nodes": [{"id": "gpu{0..1}", "type": "gpu"}],
             "links": [{"from": "gpu*", "to": "sw*", "bandwidth": "1GB/s"}]})",
         "t.json#/links/0/to: no node matches 'sw*'"},
        {R"({"baton": "topology/1", "nodes": [{"id": "gpu{0..1}", "type": "gpu"}], "links": [
             {"from": "gpu0", "to": "gpu1", "id": "x", "bandwidth": "1GB/s", "oneway": true},
             {"from": "gpu1", "to": "gpu0", "id": "x", "bandwidth": "1GB/s", "oneway": true}]})",
         "t.json#/links/1/id: two links have the id 'x'; ids are unique"},
        {R"({"baton": "topology/1", "nodes": [{"id": "gpu{0..1}", "type": "gpu"}],
             "links": [{"from": "gpu0", "to": "gpu1", "bandwidth": "1GB/s"}],
             "limits": [{"links": ["gpu0>gpu9"], "bandwidth": "1GB/s"}]})",
         "t.json#/limits/0/links/0: no link matches 'gpu0>gpu9'; write a link id such as a>b, a<>b or with "
         "*"},
    });
}

TEST_CASE("generators, hosts, fabrics and overrides that make no sense are named with their place") {
    check_all({
        {R"({"baton": "topology/1", "generate": "tours", "shape": "4x4"})",
         "t.json#/generate: unknown generator 'tours': did you mean 'torus'?"},
        {R"({"baton": "topology/1", "generate": "torus"})", "t.json#: the key 'shape' is missing"},
        {R"({"baton": "topology/1", "generate": "torus", "shape": "4y4"})",
         "t.json#/shape: '4y4' is not a shape; write for example 4x4 or [4, 4, 4]"},
        {R"({"baton": "topology/1", "generate": "torus", "shape": "4x4", "nodes": []})",
         "t.json#/nodes: a file holds 'generate' or 'nodes', not both"},
        {R"({"baton": "topology/1", "generate": "fat_tree", "k": 5})", "t.json#/k: k must be even"},
        {R"({"baton": "topology/1", "hosts": [{"use": "preset:dgx_h200", "repeat": 2}]})",
         "t.json#/hosts/0/use: there is no preset 'dgx_h200': did you mean 'dgx_h100'?"},
        {R"({"baton": "topology/1", "hosts": [{"use": "none.json"}]})",
         "t.json#/hosts/0/use: there is no file './none.json'; relative paths start at the folder of the "
         "file that uses them; "
         "presets are named preset:NAME"},
        {R"({"baton": "topology/1", "hosts": []})", "t.json#/hosts: the list of hosts is empty"},
        {R"({"baton": "topology/1", "hosts": [{"use": "preset:dgx_h100", "repeat": 2}], "fabric": {"generate": "fat_tree"},
             "attach": "rail"})",
         "t.json#/attach: a fat_tree fabric is attached by \"ports\", not \"rail\"; \"rail\": port i of each "
         "host to rail i; "
         "\"ports\": all ports in host order; or a list of links"},
        {R"({"baton": "topology/1", "hosts": [{"use": "preset:dgx_h100"}], "fabric": {"generate": "fat_tree", "leafports": 4}})",
         "t.json#/fabric/leafports: unknown key: did you mean 'leaf_ports'?"},
        {R"({"baton": "topology/1", "nodes": [], "fabric": {"generate": "fat_tree"}})",
         "t.json#/fabric: 'fabric' needs 'hosts'"},
        {R"({"baton": "topology/1", "generate": "ring", "n": 4, "overrides": {"fail": "gpu0>gpu2"}})",
         "t.json#/overrides/fail: no node or link matches 'gpu0>gpu2': did you mean 'gpu0>gpu1'?; write a "
         "node id, a link id (a>b), "
         "a<>b for both directions, or a pattern with *"},
        {R"({"baton": "topology/1", "generate": "ring", "n": 4, "overrides": {"fail": ["gpu0>gpu1*3"]}})",
         "t.json#/overrides/fail/0: 'gpu0>gpu1*3' asks for 3 units, but 'gpu0>gpu1' has 1"},
        {R"({"baton": "topology/1", "generate": "ring", "n": 4, "overrides": {"degrade": {"gpu0>gpu1": 1.5}}})",
         "t.json#/overrides/degrade/gpu0>gpu1: the factor 1.5 is not within (0, 1]; use fail to take a link "
         "away"},
        {R"({"baton": "topology/1", "generate": "ring", "n": 4, "machine": {"step_latency": {"nvlink/fast": "1us"}}})",
         "t.json#/machine/step_latency/nvlink~1fast: 'nvlink/fast' is not KIND/PROTOCOL; write for example "
         "nvlink/simple; protocols "
         "are simple, ll, ll128"},
    });
}
