// Hierarchical: phases inside hosts and, on every rail (the ranks of equal place on their hosts), between
// hosts. Each phase is a flat pattern on its few ranks, so that all links of a host to the outside carry
// equal shares.
#include <baton/synth/patterns/family.hpp>

#include <baton/base/error.hpp>
#include <baton/synth/embed.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <numeric>

namespace baton::synth::patterns {
namespace {

using enum ir::Buffer;
using Kind = ir::CollectiveKind;
using Index = std::int64_t;

constexpr Index kEndless = Index{1} << 31;

/// Positions of a group by [host][place on the host].
std::vector<std::vector<int>> positions_by_host(const PatternOptions& options, int group) {
    const auto& c = options.collective;
    const std::vector<int> order = positions_in_order(c, group, options.rank_order);
    std::vector<int> names;
    std::vector<std::vector<int>> hosts;
    for (const int position : order) {
        const int name =
            options.hosts.empty() ? 0 : options.hosts[static_cast<std::size_t>(c.rank_at(group, position))];
        auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
        if (at == names.size()) {
            names.push_back(name);
            hosts.emplace_back();
        }
        hosts[at].push_back(position);
    }
    return hosts;
}

/// The pattern asked for, or the first of the defaults that serves the kind.
std::string choose(const std::string& wanted, const std::vector<std::string>& defaults, Kind kind) {
    if (!wanted.empty() && serves(wanted, kind)) return wanted;
    for (const auto& name : defaults)
        if (serves(name, kind)) return name;
    throw internal_error(fmt::format("no pattern for a phase of {}", to_string(kind)));
}

/// Writes the phases of one group.
class Writer {
public:
    Writer(const PatternOptions& options, const ir::Collective& whole, int group,
           std::vector<ir::Step>& steps)
        : options_(options),
          whole_(whole),
          group_(group),
          steps_(steps),
          at_(positions_by_host(options, group)),
          hosts_(static_cast<int>(at_.size())),
          locals_(static_cast<int>(at_[0].size())),
          C_(whole.chunks) {
        for (int h = 0; h < hosts_; ++h)
            for (int l = 0; l < locals_; ++l)
                if (at(h, l) == whole.root) {
                    root_host_ = h;
                    root_local_ = l;
                }
    }

    void write() {
        switch (whole_.kind) {
            case Kind::all_reduce: return all_reduce();
            case Kind::all_gather: return all_gather();
            case Kind::reduce_scatter: return reduce_scatter();
            case Kind::broadcast: return broadcast();
            case Kind::reduce: return reduce();
            case Kind::gather: return gather();
            case Kind::scatter: return scatter();
            case Kind::all_to_all: return all_to_all();
            default: throw internal_error("hierarchical does not serve this kind");
        }
    }

private:
    /// Where a place of a phase stands at host h, place l.
    using Map = std::function<Placed(int h, int l, ir::Buffer buffer, Index index)>;

    int at(int h, int l) const { return at_[static_cast<std::size_t>(h)][static_cast<std::size_t>(l)]; }
    /// Index in a buffer of shards of chunk k of the shard of (h, l).
    Placed shard(ir::Buffer buffer, Index h, Index l, Index k) const {
        return {buffer, at(static_cast<int>(h), static_cast<int>(l)) * C_ + k, C_ - k};
    }

    /// One phase inside host h, or on rail l: a collective of `kind` with `chunks` and, if rooted, root
    /// `root`.
    void phase(bool inside, int which, Kind kind, Index chunks, int root, const Map& map, int skip_to = -1) {
        ir::Collective c;
        c.kind = kind;
        c.ranks = inside ? locals_ : hosts_;
        c.chunks = chunks;
        c.root = root;
        const auto name = inside ? choose(options_.inside, {"all_pairs", "direct"}, kind)
                                 : choose(options_.between, {"ring"}, kind);
        std::vector<int> ranks;
        for (int i = 0; i < c.ranks; ++i)
            ranks.push_back(whole_.rank_at(group_, inside ? at(which, i) : at(i, which)));
        EmbedOptions embedding;
        embedding.skip_to = skip_to;
        const ir::Algorithm flat = with_chunks(name, c);
        embed(
            flat, ranks,
            [&](int rank, ir::Buffer buffer, Index index) -> Placed {
                if (buffer == scratch) return {scratch, scratch_ + index, kEndless};
                return inside ? map(which, rank, buffer, index) : map(rank, which, buffer, index);
            },
            steps_, embedding);
        // Instances of a phase share scratch places, being on other ranks; the next phase takes fresh ones.
        const auto places = flat.scratch_places();
        used_ = std::max(used_, scratch_ + *std::max_element(places.begin(), places.end()));
    }
    void inside_all(Kind kind, Index chunks, const Map& map) {
        for (int h = 0; h < hosts_; ++h) phase(true, h, kind, chunks, 0, map);
        scratch_ = used_;
    }
    void between_all(Kind kind, Index chunks, int root, const Map& map) {
        for (int l = 0; l < locals_; ++l) phase(false, l, kind, chunks, root, map);
        scratch_ = used_;
    }

    // Chunks of whole-buffer kinds: `part()` for each place on a host.
    Index part() const { return C_ / locals_; }

    void all_reduce() {
        inside_all(Kind::reduce_scatter, part(), [&](int, int l, ir::Buffer buffer, Index i) -> Placed {
            return buffer == input ? Placed{input, i, kEndless} : Placed{output, l * part() + i, kEndless};
        });
        between_all(Kind::all_reduce, part(), 0, [&](int, int l, ir::Buffer, Index i) -> Placed {
            return {output, l * part() + i, kEndless};
        });
        inside_all(Kind::all_gather, part(), [&](int, int l, ir::Buffer buffer, Index i) -> Placed {
            return {output, buffer == input ? l * part() + i : i, kEndless};
        });
    }

    void all_gather() {
        between_all(Kind::all_gather, C_, 0, [&](int, int l, ir::Buffer buffer, Index i) -> Placed {
            return buffer == input ? Placed{input, i, kEndless} : shard(output, i / C_, l, i % C_);
        });
        const Index each = hosts_ * C_;  // shards of a rail
        inside_all(Kind::all_gather, each, [&](int, int l, ir::Buffer buffer, Index i) -> Placed {
            return shard(output, i % each / C_, buffer == input ? l : i / each, i % C_);
        });
    }

    void reduce_scatter() {
        const Index each = hosts_ * C_;
        scratch_ = each;
        inside_all(Kind::reduce_scatter, each, [&](int, int, ir::Buffer buffer, Index i) -> Placed {
            return buffer == input ? shard(input, i % each / C_, i / each, i % C_)
                                   : Placed{scratch, i, kEndless};
        });
        between_all(Kind::reduce_scatter, C_, 0, [&](int, int, ir::Buffer buffer, Index i) -> Placed {
            return {buffer == input ? scratch : output, i, kEndless};
        });
    }

    void broadcast() {
        ir::Step whole;  // the root keeps all; the last phase sends it nothing
        whole.op = ir::StepOp::copy;
        whole.src_rank = whole.dst_rank = whole_.rank_at(group_, whole_.root);
        whole.chunks = static_cast<std::int32_t>(C_);
        steps_.push_back(whole);
        phase(true, root_host_, Kind::scatter, part(), root_local_,
              [&](int, int l, ir::Buffer buffer, Index i) -> Placed {
                  if (buffer == input)
                      return {l == root_local_ && i / part() == l ? output : input, i, part() - i % part()};
                  return {output, l * part() + i, kEndless};
              });
        between_all(Kind::broadcast, part(), root_host_, [&](int, int l, ir::Buffer, Index i) -> Placed {
            return {output, l * part() + i, kEndless};
        });
        for (int h = 0; h < hosts_; ++h)
            phase(
                true, h, Kind::all_gather, part(), 0,
                [&](int, int l, ir::Buffer buffer, Index i) -> Placed {
                    return {output, buffer == input ? l * part() + i : i, kEndless};
                },
                h == root_host_ ? root_local_ : -1);
    }

    void reduce() {
        scratch_ = part();
        inside_all(Kind::reduce_scatter, part(), [&](int, int, ir::Buffer buffer, Index i) -> Placed {
            return {buffer == input ? input : scratch, i, kEndless};
        });
        between_all(Kind::reduce, part(), root_host_, [&](int, int, ir::Buffer, Index i) -> Placed {
            return {scratch, i, kEndless};
        });
        phase(true, root_host_, Kind::gather, part(), root_local_,
              [&](int, int, ir::Buffer buffer, Index i) -> Placed {
                  return {buffer == input ? scratch : output, i, kEndless};
              });
    }

    void gather() {
        const Index each = hosts_ * C_;
        scratch_ = each;
        // What place l of the root's host holds of its rail: at the root in the output at once.
        const auto held = [&](int l, Index i) -> Placed {
            return l == root_local_ ? shard(output, i / C_, l, i % C_) : Placed{scratch, i, kEndless};
        };
        between_all(Kind::gather, C_, root_host_, [&](int, int l, ir::Buffer buffer, Index i) -> Placed {
            return buffer == input ? Placed{input, i, kEndless} : held(l, i);
        });
        phase(true, root_host_, Kind::gather, each, root_local_,
              [&](int, int l, ir::Buffer buffer, Index i) -> Placed {
                  return buffer == input ? held(l, i) : shard(output, i % each / C_, i / each, i % C_);
              });
    }

    void scatter() {
        const Index each = hosts_ * C_;
        scratch_ = each;
        const auto held = [&](int l, Index i) -> Placed {
            return l == root_local_ ? shard(input, i / C_, l, i % C_) : Placed{scratch, i, kEndless};
        };
        phase(true, root_host_, Kind::scatter, each, root_local_,
              [&](int, int l, ir::Buffer buffer, Index i) -> Placed {
                  return buffer == input ? shard(input, i % each / C_, i / each, i % C_) : held(l, i);
              });
        between_all(Kind::scatter, C_, root_host_, [&](int, int l, ir::Buffer buffer, Index i) -> Placed {
            return buffer == input ? held(l, i) : Placed{output, i, kEndless};
        });
    }

    void all_to_all() {
        const Index each = hosts_ * C_, row = locals_ * C_;
        scratch_ = hosts_ * row;
        inside_all(Kind::all_to_all, each, [&](int, int, ir::Buffer buffer, Index i) -> Placed {
            const Index l = i / each, h = i % each / C_, k = i % C_;
            return buffer == input ? shard(input, h, l, k) : Placed{scratch, h * row + l * C_ + k, C_ - k};
        });
        between_all(Kind::all_to_all, row, 0, [&](int, int, ir::Buffer buffer, Index i) -> Placed {
            return buffer == input ? Placed{scratch, i, kEndless}
                                   : shard(output, i / row, i % row / C_, i % C_);
        });
    }

    const PatternOptions& options_;
    const ir::Collective& whole_;
    int group_;
    std::vector<ir::Step>& steps_;
    std::vector<std::vector<int>> at_;
    int hosts_, locals_, root_host_ = 0, root_local_ = 0;
    Index C_, scratch_ = 0, used_ = 0;  // first scratch place not in use; end of what the phase at hand uses
};

std::string refuse(const PatternOptions& options) {
    const auto& c = options.collective;
    if (options.hosts.empty()) return "hierarchical needs the host of each rank";
    if (static_cast<int>(options.hosts.size()) != c.ranks)
        return fmt::format("hierarchical got the hosts of {} ranks; there are {}", options.hosts.size(),
                           c.ranks);
    for (const auto* name : {&options.inside, &options.between})
        if (*name == "hierarchical")
            return "hierarchical needs a flat pattern inside and between hosts";
        else if (!name->empty())
            static_cast<void>(serves(*name, c.kind));  // an unknown name is an error
    for (int g = 0; g < c.group_count(); ++g) {
        const auto hosts = positions_by_host(options, g);
        if (hosts.size() == 1) return "hierarchical needs two hosts or more; all ranks are on one";
        for (const auto& host : hosts)
            if (host.size() != hosts[0].size())
                return fmt::format("hierarchical needs as many ranks on every host; one has {}, another {}",
                                   hosts[0].size(), host.size());
        if (hosts[0].size() == 1)
            return "hierarchical needs two ranks or more on a host; every rank is on a host of its own";
    }
    return {};
}

/// Chunks: of whole-buffer kinds a part for each place on a host, in as many chunks as the pattern between
/// hosts takes.
Index chunks_of(const PatternOptions& options) {
    const Kind kind = options.collective.kind;
    if (ir::has_shards(kind)) return 1;
    Index chunks = 1;
    for (int g = 0; g < options.collective.group_count(); ++g) {
        const auto hosts = positions_by_host(options, g);
        const auto name = choose(options.between, {"ring"}, kind);
        chunks = std::lcm(chunks, static_cast<Index>(hosts[0].size()) *
                                      natural_chunks(name, kind, static_cast<int>(hosts.size())));
        if (chunks > Index{1} << 20)
            throw input_error("the groups have too many different shapes for one number of chunks", {},
                              "make the groups alike");
    }
    return chunks;
}

ir::Algorithm make(const PatternOptions& options) {
    ir::Collective whole = options.collective;
    whole.chunks = chunks_of(options);
    std::vector<ir::Step> steps;
    for (int g = 0; g < whole.group_count(); ++g) Writer(options, whole, g, steps).write();
    return explicit_algorithm(fmt::format("hierarchical {}", to_string(whole.kind)), whole, std::move(steps));
}

}  // namespace

Family hierarchical() {
    Family family;
    family.info = {"hierarchical", "phases inside hosts and, rail by rail, between hosts"};
    for (const Kind kind : ir::standard_kinds())
        if (kind != Kind::send_recv) family.entries.push_back({kind, "1"});
    family.make = make;
    family.refuse = refuse;
    return family;
}

}  // namespace baton::synth::patterns
