// MSCCL++'s execution plan: JSON to data.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/json_reader.hpp>
#include <baton/codegen/interchange/complete.hpp>
#include <baton/codegen/interchange/mscclpp_file.hpp>
#include <baton/ir/collective_json.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>

namespace baton::codegen::mscclpp {
namespace {

constexpr std::int64_t kMostRanks = 1 << 16, kMostThreadblocks = 1 << 16, kMostOps = 1 << 24;
constexpr std::int64_t kMostShares = 1 << 12;

struct OpName {
    std::string_view name;
    OpType type;
};
constexpr std::array<OpName, 30> kOps{{{"nop", OpType::nop},
                                       {"barrier", OpType::barrier},
                                       {"copy", OpType::copy},
                                       {"put", OpType::put},
                                       {"pws", OpType::pws},
                                       {"pwsf", OpType::pwsf},
                                       {"get", OpType::get},
                                       {"signal", OpType::signal},
                                       {"wait", OpType::wait},
                                       {"rlxsignal", OpType::rlxsignal},
                                       {"rlxwait", OpType::rlxwait},
                                       {"flush", OpType::flush},
                                       {"re", OpType::re},
                                       {"res", OpType::res},
                                       {"rre", OpType::rre},
                                       {"rres", OpType::rres},
                                       {"ppkt", OpType::ppkt},
                                       {"rppkt", OpType::rppkt},
                                       {"cpkt", OpType::cpkt},
                                       {"upkt", OpType::upkt},
                                       {"repkt", OpType::repkt},
                                       {"recpkt", OpType::recpkt},
                                       {"respkt", OpType::respkt},
                                       {"recspkt", OpType::recspkt},
                                       {"gstore", OpType::gstore},
                                       {"gstorepkt", OpType::gstorepkt},
                                       {"glres", OpType::glres},
                                       {"sem_acquire", OpType::sem_acquire},
                                       {"sem_release", OpType::sem_release},
                                       {"pipeline", OpType::pipeline}}};

ChannelType channel_type(const JsonReader& value) {
    const std::string name = value.string();
    for (const ChannelType type :
         {ChannelType::none, ChannelType::memory, ChannelType::port, ChannelType::switches})
        if (name == to_string(type)) return type;
    throw value.error(fmt::format("channel type \"{}\" is not known", name.substr(0, 40)),
                      "known: none, memory, port, switch");
}

char buffer(const JsonReader& value) {
    const std::string name = value.string();
    if (name != "i" && name != "o" && name != "s")
        throw value.error(fmt::format("buffer \"{}\" is not known", name.substr(0, 40)), "known: i, o, s");
    return name[0];
}

std::string json_of(const JsonReader& value) {
    return value.raw().dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::vector<std::int64_t> numbers(const JsonReader& list, std::int64_t below, const char* what) {
    std::vector<std::int64_t> all;
    for (const JsonReader& each : list.elements()) {
        all.push_back(each.integer(0, INT32_MAX));
        if (all.back() >= below)
            throw each.error(fmt::format("{} {} does not exist: there are {}", what, all.back(), below));
    }
    return all;
}

/// A buffer of another rank that a threadblock may name.
struct RemoteBuffer {
    int rank = 0;
    char buffer = 'i';
};

class Parser {
public:
    Parser(const JsonReader& root, Remarks& remarks) : root_(root), remarks_(remarks) {}

    File parse() {
        file_.name = root_.at("name").string();
        if (const auto gpus = root_.find("gpus"); gpus && gpus->size() > 0 && gpus->at(0).find("inputChunks"))
            throw gpus->at(0).error(
                "a plan of an early version of MSCCL++ (inputChunks, i_buff): these are not read",
                "generate it again with MSCCL++ 0.7 or later");
        file_.collective = root_.at("collective").string();
        const JsonReader protocol = root_.at("protocol");
        file_.protocol = protocol.string();
        if (file_.protocol != "Simple" && file_.protocol != "LL")
            throw protocol.error(fmt::format("protocol \"{}\" is not known", file_.protocol.substr(0, 40)),
                                 "known: Simple, LL");
        file_.in_place = root_.at("inplace").boolean();
        const JsonReader gpus = root_.at("gpus");
        if (gpus.size() < 1 || static_cast<std::int64_t>(gpus.size()) > kMostRanks)
            throw gpus.error(fmt::format("{} ranks; 1 to {} are read", gpus.size(), kMostRanks));
        ranks_ = static_cast<int>(gpus.size());
        keep(root_, "", {"name", "collective", "protocol", "inplace", "gpus", "baton"}, true);
        for (const JsonReader& each : gpus.elements()) gpu(each, file_.gpus.emplace_back());
        if (const auto own = root_.find("baton")) own_words(*own);
        if (!kept_.empty()) {
            std::string names;
            for (const std::string& key : kept_) names += (names.empty() ? "" : ", ") + key;
            remarks_.warnings.push_back("without a counterpart, kept aside: " + names);
        }
        return std::move(file_);
    }

private:
    /// What write_mscclpp_json adds for Baton.
    void own_words(const JsonReader& in) {
        in.only_keys({"collective", "in_place", "foreign"});
        if (const auto collective = in.find("collective")) {
            file_.exact = ir::read_collective(*collective);
            if (file_.exact->ranks != ranks_)
                throw collective->error(
                    fmt::format("the collective has {} ranks, and there are {}", file_.exact->ranks, ranks_));
        }
        if (const auto placement = in.find("in_place")) {
            if (!placement->is_null()) throw placement->error("expected null: both placements");
            file_.both_placements = true;
        }
        if (const auto foreign = in.find("foreign"))
            for (const auto& [key, value] : foreign->members()) file_.foreign[key] = value.string();
    }

    /// Keeps what is not among the known keys.
    void keep(const JsonReader& object, const std::string& place,
              std::initializer_list<std::string_view> known, bool quiet = false) {
        for (const auto& [key, value] : object.members()) {
            if (std::find(known.begin(), known.end(), key) != known.end()) continue;
            file_.foreign[place + "@" + key] = json_of(value);
            if (!quiet && kept_.size() < 20) kept_.insert(key.substr(0, 40));
        }
    }

    int rank(const JsonReader& value) const {
        const std::int64_t r = value.integer(0, INT32_MAX);
        if (r >= ranks_) throw value.error(fmt::format("rank {} does not exist: there are {}", r, ranks_));
        return static_cast<int>(r);
    }
    int peer(const JsonReader& value) const {
        const int r = rank(value);
        if (at(r) + 1 == file_.gpus.size()) throw value.error(fmt::format("rank {} names itself", r));
        return r;
    }

    void gpu(const JsonReader& in, Gpu& out) {
        const std::size_t number = file_.gpus.size() - 1;
        if (const JsonReader id = in.at("id"); id.integer() != static_cast<std::int64_t>(number))
            throw id.error(fmt::format("the id of the entry must be its place in the list, {}", number));
        out.input_chunks = in.at("input_chunks").integer(0, kMostImportedPlaces);
        out.output_chunks = in.at("output_chunks").integer(0, kMostImportedPlaces);
        out.scratch_chunks = in.at("scratch_chunks").integer(0, kMostImportedPlaces);
        if (const auto channels = in.find("channels"))
            for (const JsonReader& each : channels->elements()) channel(each, out);
        remote_buffers_.clear();
        if (const auto buffers = in.find("remote_buffers"))
            for (const JsonReader& each : buffers->elements()) {
                remote_buffers_.push_back({peer(each.at("rank")), buffer(each.at("type"))});
                if (const auto types = each.find("access_channel_types"))
                    for (const JsonReader& type : types->elements()) channel_type(type);
            }
        if (const auto semaphores = in.find("semaphores"))
            for (const JsonReader& each : semaphores->elements())
                out.semaphores.push_back(each.at("init_value").integer(0, INT32_MAX));
        const std::string place = fmt::format("/gpus/{}", number);
        keep(in, place,
             {"id", "input_chunks", "output_chunks", "scratch_chunks", "threadblocks", "channels",
              "remote_buffers", "semaphores"});
        const JsonReader blocks = in.at("threadblocks");
        if (static_cast<std::int64_t>(blocks.size()) > kMostThreadblocks)
            throw blocks.error(fmt::format("more than {} threadblocks", kMostThreadblocks));
        for (const JsonReader& each : blocks.elements()) threadblock(each, out, place);
    }

    void channel(const JsonReader& in, Gpu& out) {
        const ChannelType type = channel_type(in.at("channel_type"));
        if (type == ChannelType::none) throw in.error("a channel of type \"none\"");
        if (type != ChannelType::switches) {
            auto& peers = type == ChannelType::port ? out.port_peers : out.memory_peers;
            for (const JsonReader& each : in.at("connected_to").elements()) peers.push_back(peer(each));
            return;
        }
        SwitchGroup group;
        group.buffer = buffer(in.at("buffer_type"));
        for (const JsonReader& each : in.at("rank_groups").elements()) {
            group.ranks.clear();
            for (const JsonReader& member : each.at("ranks").elements()) group.ranks.push_back(rank(member));
            std::sort(group.ranks.begin(), group.ranks.end());
            if (group.ranks.empty() ||
                std::adjacent_find(group.ranks.begin(), group.ranks.end()) != group.ranks.end())
                throw each.error("a group needs ranks, each of them once");
            out.switch_groups.push_back(group);
        }
    }

    void threadblock(const JsonReader& in, Gpu& gpu, const std::string& gpu_place) {
        Threadblock& out = gpu.threadblocks.emplace_back();
        const std::size_t number = gpu.threadblocks.size() - 1;
        if (const JsonReader id = in.at("id"); id.integer() != static_cast<std::int64_t>(number))
            throw id.error(
                fmt::format("the id of the threadblock must be its place in the list, {}", number));
        for (auto& each : own_channels_) each.clear();
        for (auto& each : own_buffers_) each.clear();
        if (const auto channels = in.find("channels"))
            for (const JsonReader& each : channels->elements()) {
                const ChannelType type = channel_type(each.at("channel_type"));
                const std::size_t below = type == ChannelType::switches ? gpu.switch_groups.size()
                                          : type == ChannelType::none   ? 0
                                                                        : gpu.peers(type).size();
                for (const std::int64_t id :
                     numbers(each.at("channel_ids"), static_cast<std::int64_t>(below), "channel"))
                    own_channels_[at(static_cast<int>(type))].push_back(id);
            }
        if (const auto refs = in.find("remote_buffer_refs"))
            for (const JsonReader& each : refs->elements()) {
                const ChannelType type = channel_type(each.at("access_channel_type"));
                for (const std::int64_t id :
                     numbers(each.at("remote_buffer_ids"), static_cast<std::int64_t>(remote_buffers_.size()),
                             "remote buffer"))
                    own_buffers_[at(static_cast<int>(type))].push_back(remote_buffers_[at(id)]);
            }
        const std::string place = fmt::format("{}/threadblocks/{}", gpu_place, number);
        keep(in, place, {"id", "ops", "channels", "remote_buffer_refs"});
        std::int32_t position = 0;
        for (const JsonReader& each : in.at("ops").elements()) {
            op(each, gpu, out, position, -1, fmt::format("{}/ops/{}", place, position));
            ++position;
        }
    }

    void op(const JsonReader& in, const Gpu& gpu, Threadblock& block, std::int32_t position,
            std::int32_t inner, const std::string& place) {
        if (++ops_ > kMostOps) throw in.error(fmt::format("more than {} operations", kMostOps));
        Op out;
        out.position = position, out.inner = inner;
        const std::string name = in.at("name").string();
        const auto known =
            std::find_if(kOps.begin(), kOps.end(), [&](const OpName& each) { return each.name == name; });
        if (known == kOps.end())
            throw in.error(fmt::format("operation \"{}\" has no counterpart", name.substr(0, 40)),
                           name == "glre" ? "the executor does not take it either: fuse it with its gstore"
                                          : "see docs/interop.md for those that are read");
        out.type = known->type;
        if (const auto type = in.find("channel_type")) out.channel_type = channel_type(*type);
        const auto& own = own_channels_[at(static_cast<int>(out.channel_type))];
        if (const auto ids = in.find("channel_ids"))
            for (const std::int64_t id : numbers(*ids, static_cast<std::int64_t>(own.size()),
                                                 "channel (of the threadblock, of that type)"))
                out.channels.push_back(own[at(id)]);
        if (const auto share = in.find("tbg_info")) {
            out.shares = share->at("tbg_size").integer(1, kMostShares);
            out.share = share->at("tb_id").integer(0, out.shares - 1);
        }
        if (const auto runs = in.find("src_buff"))
            for (const JsonReader& each : runs->elements()) out.src.push_back(chunks(each, gpu, out));
        if (const auto runs = in.find("dst_buff"))
            for (const JsonReader& each : runs->elements()) out.dst.push_back(chunks(each, gpu, out));
        if (const auto id = in.find("barrier_id")) out.barrier = id->integer(0, INT32_MAX);
        if (const auto count = in.find("num_threadblocks"))
            out.threadblocks = count->integer(1, kMostThreadblocks);
        if (const auto ids = in.find("semaphore_ids"))
            out.semaphores = numbers(*ids, static_cast<std::int64_t>(gpu.semaphores.size()), "semaphore");
        keep(in, place,
             {"name", "channel_type", "channel_ids", "tbg_info", "src_buff", "dst_buff", "barrier_id",
              "num_threadblocks", "semaphore_ids", "ops", "reduce_op", "iter_context"});
        if (const auto operation = in.find("reduce_op"); operation && operation->string() != "sum")
            remarks_.warnings.push_back(fmt::format(
                "{}: reduce_op \"{}\": the executor adds whatever stands there, Baton takes the call's "
                "operator",
                place, operation->string().substr(0, 40)));
        check(in, out);
        block.ops.push_back(out);
        if (out.type != OpType::pipeline) return;
        if (inner >= 0) throw in.error("a pipeline inside a pipeline");
        file_.foreign[place + "@iter_context"] = json_of(in.at("iter_context"));
        std::int32_t next = 0;
        for (const JsonReader& each : in.at("ops").elements()) {
            op(each, gpu, block, position, next, fmt::format("{}/ops/{}", place, next));
            ++next;
        }
    }

    Chunks chunks(const JsonReader& in, const Gpu& gpu, const Op& op) const {
        Chunks out;
        out.index = in.at("index").integer(0, kMostImportedPlaces);
        out.size = in.at("size").integer(1, kMostImportedPlaces);
        if (const auto type = in.find("type")) {
            out.buffer = buffer(*type);
            return out;
        }
        if (const auto id = in.find("switch_channel_id")) {
            const auto& own = own_channels_[at(static_cast<int>(ChannelType::switches))];
            const std::int64_t number = id->integer(0, INT32_MAX);
            if (at(number) >= own.size())
                throw id->error(fmt::format("the threadblock has {} switch channels", own.size()));
            out.space = Space::switches;
            out.target = own[at(number)];
            out.buffer = gpu.switch_groups[at(out.target)].buffer;
            return out;
        }
        const JsonReader id = in.at("buffer_id");
        const auto& own = own_buffers_[at(static_cast<int>(op.channel_type))];
        const std::int64_t number = id.integer(0, INT32_MAX);
        if (at(number) >= own.size())
            throw id.error(fmt::format("the threadblock has {} remote buffers on {} channels", own.size(),
                                       to_string(op.channel_type)));
        out.space = Space::remote;
        out.target = own[at(number)].rank;
        out.buffer = own[at(number)].buffer;
        return out;
    }

    // ---- what an operation of each type must have

    static void check(const JsonReader& in, const Op& op);

    const JsonReader& root_;
    Remarks& remarks_;
    File file_;
    int ranks_ = 0;
    std::int64_t ops_ = 0;
    std::vector<RemoteBuffer> remote_buffers_;
    std::array<std::vector<std::int64_t>, 4> own_channels_;  ///< of the threadblock, by type
    std::array<std::vector<RemoteBuffer>, 4> own_buffers_;
    std::set<std::string> kept_;
};

/// Shape of operands: spaces of the first and of the following sources and destinations, and how many.
struct Shape {
    OpType type;
    std::string_view src, dst;  ///< one letter each of o(wn) r(emote) w(switch); the last repeats after '*'
};
constexpr std::array<Shape, 20> kShapes{
    {{OpType::copy, "o", "o"},      {OpType::put, "o*", "r*"},       {OpType::pws, "o*", "r*"},
     {OpType::pwsf, "o*", "r*"},    {OpType::get, "r*", "o*"},       {OpType::re, "o*", "o"},
     {OpType::res, "o*", "or*"},    {OpType::rre, "or*", "o"},       {OpType::rres, "or*", "or*"},
     {OpType::ppkt, "o*", "r*"},    {OpType::rppkt, "o", "r*"},      {OpType::cpkt, "o", "o"},
     {OpType::upkt, "o", "o"},      {OpType::repkt, "o*", "o"},      {OpType::recpkt, "o*", "oo"},
     {OpType::respkt, "o*", "or*"}, {OpType::recspkt, "o*", "oor*"}, {OpType::gstore, "o", "w"},
     {OpType::gstorepkt, "o", "w"}, {OpType::glres, "w", "w"}}};

bool fits(const std::vector<Chunks>& runs, std::string_view shape) {
    const bool repeats = shape.ends_with('*');
    if (repeats) shape.remove_suffix(1);
    if (runs.size() < shape.size() || (!repeats && runs.size() != shape.size())) return false;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const char space = shape[std::min(i, shape.size() - 1)];
        const Space wanted = space == 'o' ? Space::own : space == 'r' ? Space::remote : Space::switches;
        if (runs[i].space != wanted) return false;
    }
    return true;
}

void Parser::check(const JsonReader& in, const Op& op) {
    const auto complain = [&](const std::string& what) {
        throw in.error(fmt::format("operation {} {}", to_string(op.type), what));
    };
    switch (op.type) {
        case OpType::nop:
        case OpType::pipeline: return;
        case OpType::barrier:
            if (op.barrier < 0 || op.threadblocks < 1) complain("needs barrier_id and num_threadblocks");
            return;
        case OpType::sem_acquire:
        case OpType::sem_release:
            if (op.semaphores.empty()) complain("needs semaphore_ids");
            return;
        case OpType::signal:
        case OpType::wait:
        case OpType::rlxsignal:
        case OpType::rlxwait:
        case OpType::flush:
            if (op.channels.empty() ||
                (op.channel_type != ChannelType::memory && op.channel_type != ChannelType::port))
                complain("needs channel_ids on memory or port channels");
            return;
        default: break;
    }
    for (const Shape& shape : kShapes)
        if (shape.type == op.type && (!fits(op.src, shape.src) || !fits(op.dst, shape.dst)))
            complain("has other operands than the executor expects of it");
    const bool pairs = op.type == OpType::put || op.type == OpType::pws || op.type == OpType::pwsf ||
                       op.type == OpType::get || op.type == OpType::ppkt;
    if (pairs && op.src.size() != op.dst.size()) complain("needs as many destinations as sources");
    if ((op.type == OpType::pws || op.type == OpType::pwsf) &&
        (op.channels.size() != op.dst.size() || op.channel_type != ChannelType::port))
        complain("needs one port channel for each destination");
    for (std::size_t i = 0; i < op.src.size() + op.dst.size(); ++i) {
        const Chunks& run = i < op.src.size() ? op.src[i] : op.dst[i - op.src.size()];
        const Chunks& model = pairs ? op.src[i < op.src.size() ? i : i - op.src.size()] : op.src[0];
        if (run.size != model.size) complain("has runs of different lengths");
    }
}

}  // namespace

std::string_view to_string(OpType type) {
    for (const OpName& each : kOps)
        if (each.type == type) return each.name;
    return "?";
}

std::string_view to_string(ChannelType type) {
    switch (type) {
        case ChannelType::memory: return "memory";
        case ChannelType::port: return "port";
        case ChannelType::switches: return "switch";
        default: return "none";
    }
}

std::string pointer(std::size_t gpu, std::size_t threadblock, const Op& op) {
    std::string text = fmt::format("/gpus/{}/threadblocks/{}/ops/{}", gpu, threadblock, op.position);
    if (op.inner >= 0) text += fmt::format("/ops/{}", op.inner);
    return text;
}

File parse(std::string_view text, const std::string& name, Remarks& remarks) {
    const JsonDocument document = JsonDocument::parse(text, name);
    const JsonReader root = document.root();
    return Parser(root, remarks).parse();
}

}  // namespace baton::codegen::mscclpp
