#include <baton/base/error.hpp>
#include <baton/cli/collective_options.hpp>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <charconv>
#include <set>

namespace baton::cli {
namespace {

// "0-3,8": ranks in the order in which they stand there.
std::vector<int> parse_group(const std::string& text, int ranks) {
    std::vector<int> group;
    const auto bad = [&](const std::string& why) {
        return input_error(fmt::format("'{}': {}", text.substr(0, 80), why), "--group",
                           "ranks and ranges, for example 0-3,8");
    };
    const char* at = text.data();
    const char* const end = text.data() + text.size();
    const auto number = [&] {
        int value = -1;
        const auto [after, status] = std::from_chars(at, end, value);
        if (status != std::errc() || value < 0) throw bad("not a list of ranks");
        if (value >= ranks) throw bad(fmt::format("there are ranks 0 to {}", ranks - 1));
        at = after;
        return value;
    };
    while (true) {
        const int first = number();
        int last = first;
        if (at != end && *at == '-') {
            ++at;
            last = number();
        }
        if (last < first) throw bad("a range runs upward");
        for (int rank = first; rank <= last; ++rank) group.push_back(rank);
        if (static_cast<int>(group.size()) > ranks) throw bad("a rank stands there twice");
        if (at == end) {
            if (std::set<int>(group.begin(), group.end()).size() < group.size())
                throw bad("a rank stands there twice");
            return group;
        }
        if (*at++ != ',') throw bad("not a list of ranks");
    }
}

}  // namespace

void CollectiveOptions::declare(CLI::App& app) {
    std::string kinds;
    for (const ir::CollectiveKind k : ir::standard_kinds())
        kinds += (kinds.empty() ? "" : " ") + std::string(ir::to_string(k));
    kind_given_ = app.add_option("--collective", kind, "what to do: " + kinds)->capture_default_str();
    root_given_ =
        app.add_option("--root", root, "root of broadcast, scatter, gather and reduce; sender of send_recv")
            ->capture_default_str();
    peer_given_ = app.add_option("--peer", peer, "receiver of send_recv (default: the rank after the root)");
    groups_given_ =
        app.add_option(
               "--group", groups,
               "ranks that run the collective, for example 0-3,8; may be repeated for groups that run at "
               "once; the other ranks relay; --root and --peer then count within a group")
            ->allow_extra_args(false);
    app.add_option("--sizes", sizes, "sizes as nccl-tests counts them: A..B doubles, A..B*4, or A,B,C")
        ->capture_default_str();
}

ir::Collective CollectiveOptions::collective(int ranks) const {
    if (ranks < 1)
        throw input_error("the topology has no ranks", {}, "give nodes a rank, or choose another topology");
    ir::Collective made;
    made.kind = ir::parse_collective_kind(kind, "--collective");
    made.ranks = ranks;
    int members = ranks;
    for (const std::string& text : groups) {
        made.groups.push_back(parse_group(text, ranks));
        members = std::min(members, static_cast<int>(made.groups.back().size()));
    }
    if (root < 0 || root >= members)
        throw input_error(
            groups.empty()
                ? fmt::format("root {} is no rank; there are ranks 0 to {}", root, ranks - 1)
                : fmt::format("root {} is not in every group; positions are 0 to {}", root, members - 1),
            "--root");
    made.root = root;
    if (peer < -1 || peer >= members)
        throw input_error(fmt::format("peer {} is no rank; there are ranks 0 to {}", peer, members - 1),
                          "--peer");
    made.peer = peer;
    check_given(made);
    made.check();
    return made;
}

// What a kind does not have is no option for it.
void CollectiveOptions::check_given(const ir::Collective& made) const {
    if (root_given_->count() > 0 && !ir::has_root(made.kind))
        throw input_error(fmt::format("{} has no root", ir::to_string(made.kind)), "--root",
                          "leave it out, or name another --collective");
    if (peer_given_->count() > 0 && made.kind != ir::CollectiveKind::send_recv)
        throw input_error(fmt::format("{} has no receiver", ir::to_string(made.kind)), "--peer",
                          "leave it out, or take --collective send_recv");
}

void CollectiveOptions::check_agrees(const ir::Collective& schedule, const std::string& where) const {
    const auto own = [&](const std::string& what) {
        return input_error(fmt::format("the schedule is {}, not {}", ir::describe(schedule), what), where);
    };
    if (kind_given_->count() > 0 && ir::to_string(schedule.kind) != kind) throw own(kind);
    check_given(schedule);
    if (root_given_->count() > 0 && schedule.root != root) throw own(fmt::format("of root {}", root));
    if (peer_given_->count() > 0 && schedule.receiver() != peer)
        throw own(fmt::format("for the receiver {}", peer));
    if (groups_given_->count() > 0 && schedule.groups != collective(schedule.ranks).groups)
        throw own("for these groups");
}

std::string CollectiveOptions::as_typed() const {
    std::string text;
    if (kind != "all_reduce") text += " --collective " + kind;
    if (root != 0) text += fmt::format(" --root {}", root);
    if (peer >= 0) text += fmt::format(" --peer {}", peer);
    for (const std::string& group : groups) text += " --group " + group;
    return text;
}

std::string title(const ir::Collective& collective) {
    std::string text = fmt::format("{} of {} ranks", ir::to_string(collective.kind), collective.ranks);
    if (collective.group_count() > 1)
        text += fmt::format(" in {} groups", collective.group_count());
    else if (!collective.groups.empty())
        text = fmt::format("{} of {} of {} ranks", ir::to_string(collective.kind), collective.group_size(),
                           collective.ranks);
    if (ir::has_root(collective.kind)) text += fmt::format(", root {}", collective.root);
    if (collective.kind == ir::CollectiveKind::send_recv)
        text += fmt::format(", receiver {}", collective.receiver());
    return text;
}

}  // namespace baton::cli
