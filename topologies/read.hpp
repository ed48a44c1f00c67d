// Reading topology documents, piece by piece. Internal to the layer; load.hpp is the public face.
#pragma once

#include <baton/base/json_reader.hpp>
#include <baton/topologies/topology.hpp>

#include <initializer_list>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace baton::topologies {

/// What all documents of one reading share: files that were read, and limits so that no input runs for hours
/// or exhausts memory.
class ReadState {
public:
    /// Counts work (patterns times links, ...); an input error at `place` above some seconds' worth.
    void spend_work(const JsonReader& place, std::int64_t steps);
    /// Counts text that is copied to nodes and links; an input error at `place` above 256 MiB.
    void spend_text(const JsonReader& place, std::int64_t bytes);

    std::map<std::string, std::shared_ptr<const Topology>>
        used;  ///< hosts by the file or preset they come from

private:
    std::int64_t work_ = 0, text_ = 0;
};

/// Where a document stands: relative "use" paths start at `folder`, and files may use each other `depth`
/// deep.
struct ReadContext {
    std::string folder = ".";
    int depth = 0;
    bool as_host = false;  ///< ranks without a number go by device, then bus id (see docs/topology.md)
    std::shared_ptr<ReadState> state = std::make_shared<ReadState>();
};
inline constexpr int kMaxUseDepth = 8;

/// A whole document, finished.
Topology read_document(const JsonReader& root, const ReadContext& context);

/// A list of nodes ("gpu{0..7}" makes eight). Ids and ranks that come twice are errors at their place.
void read_nodes(const JsonReader& list, const std::string& default_host, const ReadContext& context,
                Topology& topology);
/// A list of links: all pairs of `from` and `to` of an entry, both directions unless `oneway`. Node ids must
/// be indexed (`finish`).
void read_links(const JsonReader& list, const ReadContext& context, Topology& topology);
/// Properties of a link without its ends: bandwidth, count, latency, kind, mtu, goodput, loss, source,
/// assumed. `defaults` holds what is not said; its bandwidth 0 makes bandwidth (or goodput) required.
Link read_link_properties(const JsonReader& entry, Link defaults);
inline constexpr std::string_view kLinkProperties[] = {"bandwidth", "count", "latency", "kind",   "mtu",
                                                       "goodput",   "loss",  "source",  "assumed"};
/// The keys an object may have, beyond link properties.
void only_link_keys(const JsonReader& entry, std::initializer_list<std::string_view> more);

/// Room for so many more nodes and links, or an input error at `place`. Called before anything is made.
void require_room(const JsonReader& place, const Topology& topology, std::int64_t nodes, std::int64_t links);

/// "gpu{0..7}" spelled out; a text without braces is itself.
std::vector<std::string> expand_braces(const JsonReader& place, const std::string& text);

/// "overrides" of a document, applied to a finished topology.
void read_overrides(const JsonReader& overrides, const ReadContext& context, Topology& topology);
/// The checks of `finish` on one element, for errors at its place in a file.
void check_node(const Node& node, const std::string& where);
void check_link(const Link& link, const std::string& where);
/// Links that a pattern names: "ID", "a>b", "a<>b", with '*' as glob. Empty when nothing matches.
std::vector<int> matching_links(const Topology& topology, std::string_view pattern);
bool glob_match(std::string_view pattern, std::string_view text);

/// A place where a fabric is attached: a NIC, or a rank of a host without NICs.
struct Port {
    int node = -1;
    int host = 0;   ///< number of its host
    int index = 0;  ///< number within its host
    Rate most{};    ///< the port's own rate (attribute port_rate); 0 = not stated
};

/// Adds switches of a fabric and links it to the ports.
void generate_fabric(const JsonReader& entry, const std::vector<Port>& ports, Topology& topology);
/// A topology that a generator makes by itself ("generate" at the top of a document).
void generate(const JsonReader& entry, Topology& topology);
/// Adds hosts and their fabric ("hosts", "fabric", "attach").
void compose(const JsonReader& root, const ReadContext& context, Topology& topology);

/// A fabric of hosts by its short name and properties ("ndr-rail,oversubscription=2") as the "fabric" entry
/// of a document.
nlohmann::ordered_json fabric_entry(const std::string& text, const std::string& where);
/// Text of a preset; an input error lists near names.
std::string_view preset_text(std::string_view name, const std::string& where);
/// Names of all generators.
std::vector<std::string> generator_names();
/// ": did you mean 'x'?", or " (known: ...)" with at most `most` names; nothing when `most` is 0.
std::string near_names(std::string_view name, const std::vector<std::string>& names, std::size_t most = 24);

}  // namespace baton::topologies
