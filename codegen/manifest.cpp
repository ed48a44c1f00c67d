#include <baton/codegen/manifest.hpp>

#include <baton/base/files.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace baton::codegen {

const ManifestEntry* Manifest::find_entry(ir::DataType type, ir::ReduceOp op, ir::NanMode nan) const {
    for (const ManifestEntry& entry : entries) {
        if (!entry.op) {
            if (entry.element_size() == ir::size_of(type)) return &entry;
        } else if (entry.type == type && *entry.op == op && entry.nan == nan) {
            return &entry;
        }
    }
    return nullptr;
}

namespace {

struct Units {
    std::int64_t per_weight = 0, rest = 0;  // U = per_weight * W + rest
    std::int64_t weight = 1;                // W
    Units(const ir::Collective& collective, const ManifestEntry& entry, std::int64_t count) {
        if (!collective.weights.empty()) {
            weight = 0;
            for (const std::int64_t w : collective.weights) weight += w;
        } else {
            weight = collective.chunks;
        }
        const std::int64_t unit = ir::elements_per_16_bytes(entry.type);
        const std::int64_t units = count / unit + (count % unit != 0);
        per_weight = units / weight;
        rest = units % weight;
    }
    /// Most units of a class of weight w.
    std::int64_t of(std::int64_t w) const { return per_weight * w + std::min(w, rest); }
};

/// Bytes in the wire type of one 16-byte unit of data.
std::int64_t unit_bytes(const ManifestEntry& entry) { return 16 / entry.element_size() * entry.wire_size(); }

/// Sizes beyond 63 bits are an input error: no machine has them, but a file may say so.
std::int64_t product(std::int64_t a, std::int64_t b, const Manifest& manifest) {
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(a, b, &bytes))
        throw input_error("the call needs more bytes than 63 bits count", manifest.name,
                          "use a smaller count");
    return bytes;
}

}  // namespace

std::int64_t Manifest::scratch_stride(const ManifestEntry& entry, std::int64_t count) const {
    const std::int64_t heaviest =
        collective.weights.empty() ? 1
                                   : *std::max_element(collective.weights.begin(), collective.weights.end());
    return product(Units(collective, entry, count).of(heaviest), unit_bytes(entry), *this);
}

std::int64_t Manifest::workspace_bytes(int rank, const ManifestEntry& entry, std::int64_t count) const {
    return product(ranks[rank].scratch_places, scratch_stride(entry, count), *this);
}

std::int64_t Manifest::message_bytes(int connection, const ManifestEntry& entry, std::int64_t count,
                                     std::int64_t tiles) const {
    if (connections[connection].mode != ir::Mode::staged) return 0;
    const Units units(collective, entry, count);
    std::int64_t most = 0;
    for (const MessageShape& shape : connections[connection].messages) {
        const std::int64_t tile = (units.of(shape.weight) + tiles - 1) / tiles;
        most = std::max(most, product(shape.pieces, product(tile, unit_bytes(entry), *this), *this));
    }
    return most;
}

std::int64_t Manifest::fitting_tiles(const ManifestEntry& entry, std::int64_t count, std::int64_t slot_bytes,
                                     std::int64_t wanted) const {
    const Units units(collective, entry, count);
    std::int64_t tiles = std::max<std::int64_t>(wanted, 1);
    for (const ManifestConnection& connection : connections) {
        if (connection.mode != ir::Mode::staged) continue;
        for (const MessageShape& shape : connection.messages) {
            const std::int64_t most = units.of(shape.weight);
            if (most == 0) continue;
            const std::int64_t fit =
                slot_bytes / unit_bytes(entry) / shape.pieces;  // units of a piece that fit
            if (fit == 0) {
                throw input_error(
                    fmt::format("a message of {} chunks does not fit a slot of {} bytes", shape.pieces,
                                slot_bytes),
                    name, fmt::format("use slots of at least {} bytes", shape.pieces * unit_bytes(entry)));
            }
            tiles = std::max(tiles, (most + fit - 1) / fit);
        }
    }
    return tiles;
}

namespace {

using Json = nlohmann::ordered_json;

Json manifest_collective(const ir::Collective& c) {
    Json json = {{"kind", to_string(c.kind)}, {"ranks", c.ranks}, {"chunks", c.chunks}};
    if (ir::has_root(c.kind)) json["root"] = c.root;
    if (c.peer >= 0) json["peer"] = c.peer;
    if (!c.weights.empty()) json["weights"] = c.weights;
    if (!c.groups.empty()) json["groups"] = c.groups;
    if (c.custom) {
        Json inputs = Json::array(), outputs = Json::array();
        for (const auto& rank : c.custom->inputs) {
            Json list = Json::array();
            for (const ir::InputPlace& place : rank) list.push_back({place.shard, place.chunk_class});
            inputs.push_back(std::move(list));
        }
        for (const auto& rank : c.custom->outputs) {
            Json list = Json::array();
            for (const ir::OutputPlace& place : rank) {
                Json from = Json::array();
                for (const ir::Contribution& contribution : place.contributions)
                    from.push_back({contribution.rank, contribution.shard});
                list.push_back({{"class", place.chunk_class}, {"contributions", std::move(from)}});
            }
            outputs.push_back(std::move(list));
        }
        json["inputs"] = std::move(inputs);
        json["outputs"] = std::move(outputs);
    }
    return json;
}

Json connection_json(const ManifestConnection& connection) {
    Json messages = Json::array();
    for (const MessageShape& shape : connection.messages) messages.push_back({shape.pieces, shape.weight});
    return {{"src", connection.src},
            {"dst", connection.dst},
            {"channel", connection.channel},
            {"mode", to_string(connection.mode)},
            {"protocol", to_string(connection.protocol)},
            {"slots", connection.slots},
            {"messages", std::move(messages)}};
}

Json rank_json(const ManifestRank& rank) {
    Json connections = Json::array();
    for (const auto& [number, sends] : rank.connections) connections.push_back({number, sends});
    Json remote = Json::array();
    if (rank.remote_input) remote.push_back("input");
    if (rank.remote_output) remote.push_back("output");
    if (rank.remote_scratch) remote.push_back("scratch");
    return {{"threadblocks", rank.threadblocks},
            {"scratch_places", rank.scratch_places},
            {"connections", std::move(connections)},
            {"tokens", rank.tokens},
            {"peers", rank.peers},
            {"remote", std::move(remote)}};
}

}  // namespace

std::string to_json(const Manifest& m) {
    Json json = {{"baton", "manifest/1"}, {"abi", m.abi_version}, {"name", m.name}, {"hash", m.hash}};
    json["collective"] = manifest_collective(m.collective);
    json["properties"] = {
        {"wide", m.wide}, {"order", to_string(m.order)}, {"assurance", to_string(m.assurance)}};
    if (m.in_place) json["properties"]["in_place"] = *m.in_place;
    json["threads"] = m.threads;
    json["instances"] = m.instances;
    json["advance"] = m.advance;
    json["files"] = {{"source", m.source_file}, {"header", m.header_file}, {"program", m.program_file}};
    if (!m.topology_hash.empty()) json["topology_hash"] = m.topology_hash;
    json["entries"] = Json::array();
    for (const ManifestEntry& entry : m.entries) {
        Json item = {{"name", entry.name}};
        if (entry.op) {
            item["type"] = to_string(entry.type);
            item["op"] = to_string(*entry.op);
            item["nan"] = to_string(entry.nan);
            item["wire"] = to_string(entry.wire);
        } else {
            item["element_size"] = entry.element_size();
        }
        json["entries"].push_back(std::move(item));
    }
    json["connections"] = Json::array();
    for (const ManifestConnection& connection : m.connections)
        json["connections"].push_back(connection_json(connection));
    json["tokens"] = Json::array();
    for (const ManifestToken& token : m.tokens)
        json["tokens"].push_back({token.rank, token.threadblock, token.waiter});
    json["ranks"] = Json::array();
    for (const ManifestRank& rank : m.ranks) json["ranks"].push_back(rank_json(rank));
    json["binaries"] = Json::array();
    for (const ManifestBinary& binary : m.binaries)
        json["binaries"].push_back({{"target", binary.target}, {"file", binary.file}});
    return json.dump(1) + "\n";
}

namespace {

constexpr int kMost = 1 << 24;

ir::Mode parse_mode(const JsonReader& reader) {
    for (const ir::Mode mode : {ir::Mode::staged, ir::Mode::put, ir::Mode::get}) {
        if (reader.string() == to_string(mode)) return mode;
    }
    throw reader.error("unknown mode " + reader.text(), "use staged, put or get");
}

ir::Protocol parse_protocol(const JsonReader& reader) {
    for (const ir::Protocol protocol : {ir::Protocol::simple, ir::Protocol::ll, ir::Protocol::ll128}) {
        if (reader.string() == to_string(protocol)) return protocol;
    }
    throw reader.error("unknown protocol " + reader.text(), "use simple, ll or ll128");
}

/// An element type of a given size, for copying entries.
ir::DataType type_of_size(std::int64_t size) {
    for (const ir::DataType type :
         {ir::DataType::u8, ir::DataType::f16, ir::DataType::u32, ir::DataType::u64, ir::DataType::f64_i32}) {
        if (ir::size_of(type) == size) return type;
    }
    return ir::DataType::u8;
}

ir::Collective read_collective(const JsonReader& reader) {
    ir::Collective c;
    reader.only_keys({"kind", "ranks", "chunks", "root", "peer", "weights", "groups", "inputs", "outputs"});
    c.kind = ir::parse_collective_kind(reader.at("kind").string(), reader.at("kind").where());
    c.ranks = static_cast<int>(reader.at("ranks").integer(1, 1 << 20));
    c.chunks = reader.at("chunks").integer(1, std::int64_t{1} << 31);
    if (const auto root = reader.find("root")) c.root = static_cast<int>(root->integer(0, 1 << 20));
    if (const auto peer = reader.find("peer")) c.peer = static_cast<int>(peer->integer(0, 1 << 20));
    if (const auto weights = reader.find("weights")) {
        for (const JsonReader& weight : weights->elements())
            c.weights.push_back(weight.integer(1, std::int64_t{1} << 31));
    }
    if (const auto groups = reader.find("groups")) {
        for (const JsonReader& group : groups->elements()) {
            c.groups.emplace_back();
            for (const JsonReader& rank : group.elements())
                c.groups.back().push_back(static_cast<int>(rank.integer(0, 1 << 20)));
        }
    }
    if (const auto inputs = reader.find("inputs")) {
        auto custom = std::make_shared<ir::CustomPlaces>();
        for (const JsonReader& rank : inputs->elements()) {
            custom->inputs.emplace_back();
            for (const JsonReader& place : rank.elements())
                custom->inputs.back().push_back({place.at(0).integer(), place.at(1).integer()});
        }
        for (const JsonReader& rank : reader.at("outputs").elements()) {
            custom->outputs.emplace_back();
            for (const JsonReader& place : rank.elements()) {
                ir::OutputPlace output{place.at("class").integer(), {}};
                for (const JsonReader& from : place.at("contributions").elements()) {
                    output.contributions.push_back(
                        {static_cast<int>(from.at(0).integer(0, 1 << 20)), from.at(1).integer()});
                }
                custom->outputs.back().push_back(std::move(output));
            }
        }
        c.custom = std::move(custom);
    }
    c.check(reader.where());
    return c;
}

ManifestEntry read_entry(const JsonReader& reader) {
    ManifestEntry entry;
    entry.name = reader.at("name").string();
    if (const auto size = reader.find("element_size")) {
        entry.type = type_of_size(size->integer(1, 16));
        if (ir::size_of(entry.type) != size->integer())
            throw size->error("no element type has this size", "use 1, 2, 4, 8 or 16");
        entry.wire = entry.type;
        return entry;
    }
    entry.type = ir::parse_data_type(reader.at("type").string(), reader.at("type").where());
    entry.op = ir::parse_reduce_op(reader.at("op").string(), reader.at("op").where());
    entry.nan = ir::parse_nan_mode(reader.at("nan").string(), reader.at("nan").where());
    entry.wire = ir::parse_data_type(reader.at("wire").string(), reader.at("wire").where());
    return entry;
}

ManifestConnection read_connection(const JsonReader& reader, const ir::Collective& collective) {
    const int ranks = collective.ranks;
    std::int64_t heaviest = 1;
    for (const std::int64_t weight : collective.weights) heaviest = std::max(heaviest, weight);
    ManifestConnection connection;
    connection.src = static_cast<int>(reader.at("src").integer(0, ranks - 1));
    connection.dst = static_cast<int>(reader.at("dst").integer(0, ranks - 1));
    connection.channel = static_cast<int>(reader.at("channel").integer(0, kMost));
    connection.mode = parse_mode(reader.at("mode"));
    connection.protocol = parse_protocol(reader.at("protocol"));
    connection.slots =
        static_cast<int>(reader.at("slots").integer(connection.mode == ir::Mode::staged ? 1 : 0, 1 << 20));
    for (const JsonReader& shape : reader.at("messages").elements()) {
        connection.messages.push_back(
            {shape.at(0).integer(1, std::int64_t{1} << 31), shape.at(1).integer(1, heaviest)});
    }
    return connection;
}

ManifestRank read_rank(const JsonReader& reader, const Manifest& m) {
    ManifestRank rank;
    rank.threadblocks = static_cast<int>(reader.at("threadblocks").integer(0, kMost));
    rank.scratch_places = reader.at("scratch_places").integer(0, std::int64_t{1} << 31);
    for (const JsonReader& end : reader.at("connections").elements()) {
        rank.connections.emplace_back(
            static_cast<int>(end.at(0).integer(0, static_cast<std::int64_t>(m.connections.size()) - 1)),
            end.at(1).boolean());
    }
    for (const JsonReader& token : reader.at("tokens").elements()) {
        rank.tokens.push_back(
            static_cast<int>(token.integer(0, static_cast<std::int64_t>(m.tokens.size()) - 1)));
    }
    for (const JsonReader& peer : reader.at("peers").elements()) {
        rank.peers.push_back(static_cast<int>(peer.integer(0, m.collective.ranks - 1)));
    }
    for (const JsonReader& buffer : reader.at("remote").elements()) {
        const std::string name = buffer.string();
        if (name == "input")
            rank.remote_input = true;
        else if (name == "output")
            rank.remote_output = true;
        else if (name == "scratch")
            rank.remote_scratch = true;
        else
            throw buffer.error("unknown buffer " + buffer.text(), "use input, output or scratch");
    }
    return rank;
}

template <class Enum>
Enum parse_named(const JsonReader& reader, std::initializer_list<Enum> values) {
    for (const Enum value : values) {
        if (reader.string() == to_string(value)) return value;
    }
    throw reader.error("unknown value " + reader.text());
}

}  // namespace

Manifest read_manifest(const JsonReader& reader) {
    Manifest m;
    if (reader.at("baton").string() != "manifest/1")
        throw reader.at("baton").error("expected \"manifest/1\"");
    m.abi_version = static_cast<int>(reader.at("abi").integer(0, kMost));
    m.name = reader.at("name").string();
    m.hash = reader.at("hash").string();
    m.collective = read_collective(reader.at("collective"));
    const JsonReader properties = reader.at("properties");
    m.wide = properties.at("wide").boolean();
    if (const auto in_place = properties.find("in_place")) m.in_place = in_place->boolean();
    m.order = parse_named(properties.at("order"), {ir::Order::any, ir::Order::fixed,
                                                   ir::Order::replicas_equal, ir::Order::rank_order});
    m.assurance = parse_named(
        properties.at("assurance"),
        {ir::Assurance::proved, ir::Assurance::hashed, ir::Assurance::sampled, ir::Assurance::not_proven});
    m.threads = static_cast<int>(reader.at("threads").integer(1, 1024));
    m.instances = static_cast<int>(reader.at("instances").integer(1, 1024));
    m.advance = reader.at("advance").integer(0, std::int64_t{1} << 31);
    const JsonReader files = reader.at("files");
    m.source_file = files.at("source").string();
    m.header_file = files.at("header").string();
    m.program_file = files.at("program").string();
    if (const auto hash = reader.find("topology_hash")) m.topology_hash = hash->string();
    for (const JsonReader& entry : reader.at("entries").elements()) m.entries.push_back(read_entry(entry));
    for (const JsonReader& item : reader.at("connections").elements())
        m.connections.push_back(read_connection(item, m.collective));
    for (const JsonReader& token : reader.at("tokens").elements()) {
        m.tokens.push_back({static_cast<int>(token.at(0).integer(0, m.collective.ranks - 1)),
                            static_cast<int>(token.at(1).integer(0, kMost)),
                            static_cast<int>(token.at(2).integer(0, m.collective.ranks - 1))});
    }
    for (const JsonReader& rank : reader.at("ranks").elements()) m.ranks.push_back(read_rank(rank, m));
    if (m.ranks.size() != static_cast<std::size_t>(m.collective.ranks)) {
        throw reader.at("ranks").error(fmt::format("expected {} ranks", m.collective.ranks));
    }
    for (const JsonReader& binary : reader.at("binaries").elements()) {
        m.binaries.push_back({binary.at("target").string(), binary.at("file").string()});
    }
    return m;
}

Manifest load_manifest(const std::string& path) {
    std::error_code error;
    const std::string file = std::filesystem::is_directory(path, error) ? path + "/manifest.json" : path;
    const JsonDocument document = JsonDocument::load(file);
    return read_manifest(document.root());
}

}  // namespace baton::codegen
