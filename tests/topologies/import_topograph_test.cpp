// Models of topograph, and SLURM's topology.conf and topology.yaml.
#include <baton/base/error.hpp>
#include <baton/topologies/import/importer.hpp>

#include "../support/imported.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace baton::topologies;
using baton::test::link_between;
using baton::test::says;

namespace {

Imported read_model(const std::string& text, const ImportOptions& options = {}) {
    const ImportSource source{text, "m"};
    CHECK(std::string(recognize(source).name) == "topograph");
    return importer("topograph").read(source, options);
}

std::string model_failure(const std::string& text) {
    try {
        importer("topograph").read({text, "m"}, {});
    } catch (const baton::Error& error) {
        CHECK(error.kind() == baton::ErrorKind::input);
        return error.what();
    }
    return "it was read";
}

const std::string kModel =
    "switches:\n  core:\n    metadata: {region: west}\n    switches: [spine]\n  spine:\n"
    "    switches: [leaf1, leaf2]\n  leaf1:\n    nodes: [\"n[1-2]\"]\n  leaf2:\n    nodes: [n3]\n"
    "capacity_blocks:\n  cb1:\n    nodes: [\"n[1-2]\"]\n    attributes: {nvlink: nvl1}\n  cb2:\n    nodes: "
    "[n3]\n"
    "    attributes: {nvlink: nvl2}\n";

}  // namespace

TEST_CASE("topograph: a tree of switches above hosts, domains as NVLink switches, rates assumed") {
    const Imported got = read_model(kModel);
    const Topology& topology = got.topology;
    CHECK(topology.rank_count() == 3);
    CHECK(topology.nodes[0].host == "n1");
    CHECK(topology.nodes.size() == 3 + 4 + 1);
    CHECK(link_between(topology, "n1", "leaf1").bandwidth.bytes_per_second == 50'000'000'000);
    CHECK(link_between(topology, "leaf1", "spine").count == 2);
    CHECK(link_between(topology, "leaf2", "spine").count == 1);
    CHECK(link_between(topology, "spine", "core").count == 3);
    const Link& nvlink = link_between(topology, "n2", "nvlink/nvl1");
    CHECK(nvlink.kind == LinkKind::nvlink);
    CHECK(nvlink.count == 18);
    CHECK(nvlink.bandwidth.bytes_per_second == 50'000'000'000);
    CHECK(says(got.found, "2 domains of hosts that share NVLink"));
    CHECK(says(got.assumptions, "each host is one rank"));
    CHECK(says(got.assumptions, "rates are not in the file"));
    CHECK(says(got.assumptions, "sm_100"));
    CHECK(says(got.warnings, "1 domain has one host only"));
    CHECK(says(got.warnings, "switches: metadata"));
    // The architecture that the user names replaces the assumption.
    ImportOptions hopper;
    hopper.arch = "sm_90";
    CHECK(link_between(read_model(kModel, hopper).topology, "n1", "nvlink/nvl1").bandwidth.bytes_per_second ==
          25'000'000'000);
}

TEST_CASE("topograph: blocks that name their switch, lists of switches, and nodes that name their block") {
    const Imported blocks = read_model(
        "switches:\n  core:\n    switches: [leaf1, leaf2]\nblocks:\n- switch: leaf1\n  nodes: "
        "[\"n[08-10]\"]\n"
        "  labels:\n    network.topology.nvidia.com/accelerator: r1\n    topology.kubernetes.io/zone: z\n"
        "- switch: leaf2\n  nodes: [n11]\n  annotations:\n    accelerator.topology.test/domain: r2\n");
    CHECK(blocks.topology.rank_count() == 4);
    CHECK(blocks.topology.node_index("n08") >= 0);
    CHECK(blocks.topology.link_index("n09>nvlink/r1") >= 0);
    CHECK(says(blocks.warnings, "topology.kubernetes.io/zone (first in line 9)"));

    const Imported old = read_model(
        "switches:\n- name: core\n  switches: [leaf]\n- name: leaf\n  capacity_blocks: [cb]\n"
        "capacity_blocks:\n- name: cb\n  type: H100\n  nvlink: nv\n  nodes: [a, b]\n");
    CHECK(old.topology.rank_count() == 2);
    CHECK(old.topology.nodes[0].attributes.at("device") == "H100");
    CHECK(link_between(old.topology, "a", "nvlink/nv").bandwidth.bytes_per_second == 25'000'000'000);

    const Imported alone = read_model(
        "nodes:\n  a:\n    capacity_block: cb\n  b:\n    attributes: {nvlink: x}\ncapacity_blocks:\n  cb:\n"
        "    attributes: {nvlink: x}\n");
    CHECK(alone.topology.link_index("a>nvlink/x") >= 0);
    CHECK(alone.topology.link_index("b>fabric") >= 0);
    CHECK(says(alone.warnings, "one switch between all hosts is assumed"));
}

TEST_CASE("topograph: SLURM's topology.conf as a tree and as blocks") {
    const Imported tree = read_model(
        "# spine\nSwitchName=spine Switches=leaf[1-2] LinkSpeed=10\nswitchname=leaf1 Nodes=tux[0-1,4]\n"
        "SwitchName=leaf2 Nodes=tux[05-06],login # two more\n");
    CHECK(tree.topology.rank_count() == 6);
    CHECK(link_between(tree.topology, "leaf1", "spine").count == 3);
    CHECK(tree.topology.link_index("tux05>leaf2") >= 0);
    CHECK(says(tree.warnings, "LinkSpeed=10 (line 2)"));
    const Imported blocks =
        read_model("BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockName=b3\nBlockSizes=2,4\n");
    CHECK(blocks.topology.rank_count() == 4);
    CHECK(blocks.topology.link_index("n3>nvlink/b2") >= 0);
    CHECK(says(blocks.warnings, "1 block has no host"));
    CHECK(says(blocks.warnings, "BlockSizes=2,4 (line 4)"));
    CHECK(says(blocks.assumptions, "hosts of one block share NVLink"));
}

TEST_CASE("topograph: of SLURM's topology.yaml the default topology is taken") {
    const std::string text =
        "---\n- topology: blocks\n  block:\n    block_sizes: [2]\n    blocks:\n      - block: b1\n"
        "        nodes: n[1-2]\n- topology: tree\n  cluster_default: true\n  tree:\n    switches:\n"
        "      - switch: root\n        children: s[1-2]\n      - switch: s1\n        nodes: n[1-2]\n"
        "      - switch: s2\n        nodes: n[3-4]\n- topology: none\n  flat: true\n";
    const Imported got = read_model(text);
    CHECK(got.topology.name == "tree");
    CHECK(got.topology.rank_count() == 4);
    CHECK(says(got.warnings, "blocks (line 2), none (line 18)"));
    CHECK(model_failure("- topology: none\n  flat: true\n").find("no topology with a tree") !=
          std::string::npos);
}

TEST_CASE("topograph: hosts and switches under several switches keep all their cables") {
    const Imported got = read_model(
        "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[1-2]\nSwitchName=c Switches=a,b\nSwitchName=d "
        "Switches=a,b\n");
    CHECK(got.topology.out_links[0].size() == 2);
    CHECK(says(got.warnings, "2 hosts are under several switches"));
    CHECK(says(got.warnings, "2 switches are under several switches"));
}

TEST_CASE("topograph: what cannot be read is named with its line") {
    CHECK(
        model_failure("SwitchName=a Switches=b Nodes=n\nSwitchName=b Switches=a\n").find("is below itself") !=
        std::string::npos);
    CHECK(model_failure("SwitchName=a Switches=b\n") == "m:1: there is no switch 'b'");
    CHECK(model_failure("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n") == "m:2: 'a' comes twice");
    CHECK(
        model_failure("SwitchName=a Nodes=n[1-\n").find("m:1: 'n[1-' is no list of hosts: '[' without ']'") ==
        0);
    CHECK(model_failure("SwitchName=a Nodes=n[4-1]\n").find("the range 4-1 runs backwards") !=
          std::string::npos);
    CHECK(model_failure("SwitchName=a Nodes=n[0-99999999]\n").find("more than") != std::string::npos);
    CHECK(model_failure("SwitchName=a Nodes=x[0-999]y[0-999]z[0-999]\n").find("more than") !=
          std::string::npos);
    CHECK(model_failure("SwitchName=a\n") == "m:1: the switch 'a' has neither switches nor nodes");
    CHECK(model_failure("BlockName=a Nodes=n1\nBlockName=b Nodes=n1\n") ==
          "m:2: 'n1' is in the block 'a' already");
    CHECK(model_failure("SwitchName=a Nodes=a\n") == "m:1: 'a' is a host and a switch");
    CHECK(model_failure("switches:\n  a:\n    capacity_blocks: [x]\n") ==
          "m:3 switches.a: there is no capacity block 'x'");
    CHECK(model_failure("nodes:\n  a: {capacity_block: c, attributes: {nvlink: x}}\ncapacity_blocks:\n"
                        "  c: {attributes: {nvlink: y}}\n")
              .find("in the domains 'x' and 'y'") != std::string::npos);
    CHECK(model_failure("switches:\n") == "m: there is no host in it");
}
