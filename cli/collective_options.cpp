#include <baton/base/error.hpp>
#include <baton/cli/collective_options.hpp>

#include <CLI/CLI.hpp>

#include <fmt/format.h>

namespace baton::cli {

void CollectiveOptions::declare(CLI::App& app) {
    std::string kinds;
    for (const ir::CollectiveKind k : ir::standard_kinds())
        kinds += (kinds.empty() ? "" : " ") + std::string(ir::to_string(k));
    app.add_option("--collective", kind, "what to do: " + kinds)->capture_default_str();
    app.add_option("--root", root, "root of broadcast, scatter, gather and reduce; sender of send_recv")
        ->capture_default_str();
    app.add_option("--peer", peer, "receiver of send_recv (default: the rank after the root)");
    app.add_option("--sizes", sizes, "sizes as nccl-tests counts them: A..B doubles, A..B*4, or A,B,C")
        ->capture_default_str();
}

ir::Collective CollectiveOptions::collective(int ranks) const {
    if (ranks < 1)
        throw input_error("the topology has no ranks", {}, "give nodes a rank, or choose another topology");
    ir::Collective made;
    made.kind = ir::parse_collective_kind(kind, "--collective");
    made.ranks = ranks;
    if (root < 0 || root >= ranks)
        throw input_error(fmt::format("root {} is no rank; there are ranks 0 to {}", root, ranks - 1),
                          "--root");
    made.root = root;
    if (peer < -1 || peer >= ranks)
        throw input_error(fmt::format("peer {} is no rank; there are ranks 0 to {}", peer, ranks - 1),
                          "--peer");
    made.peer = peer;
    made.check();
    return made;
}

std::string CollectiveOptions::as_typed() const {
    std::string text;
    if (kind != "all_reduce") text += " --collective " + kind;
    if (root != 0) text += fmt::format(" --root {}", root);
    if (peer >= 0) text += fmt::format(" --peer {}", peer);
    return text;
}

std::string title(const ir::Collective& collective) {
    std::string text = fmt::format("{} of {} ranks", ir::to_string(collective.kind), collective.ranks);
    if (ir::has_root(collective.kind)) text += fmt::format(", root {}", collective.root);
    if (collective.kind == ir::CollectiveKind::send_recv)
        text += fmt::format(", receiver {}", collective.receiver());
    return text;
}

}  // namespace baton::cli
