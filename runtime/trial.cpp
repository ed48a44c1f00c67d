#include <baton/base/error.hpp>
#include <baton/runtime/reference.hpp>
#include <baton/runtime/trial.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <cstring>

namespace baton::runtime {

namespace {

constexpr std::int64_t kGuard = 64;
constexpr unsigned char kFill = 0xa5;

std::int64_t rounded(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

Trial::Trial(const ir::Collective& collective, const CallArguments& arguments, const TrialOptions& options)
    : arguments_(arguments), options_(options), ranks_(collective.ranks), buffers_(collective.ranks) {
    if (options_.backend != nullptr && options_.backend->host_memory()) options_.backend = nullptr;
    const bool copies = !ir::reduces(collective.kind) && collective.kind != ir::CollectiveKind::custom;
    if (!copies) ir::check_valid(arguments.op, arguments.type);
    bool shared = false;
    for (int r = 0; r < collective.ranks; ++r) {
        lay_out(collective, r);
        shared |= ranks_[r].shared;
    }
    if (options.in_place && !shared && collective.ranks > 0) {
        bool none = true;
        for (int r = 0; r < collective.ranks; ++r) none &= ranks_[r].input_at < 0 || ranks_[r].output_at < 0;
        if (!none) throw input_error(fmt::format("{} has no in-place form", to_string(collective.kind)));
    }
    check_memory();
    std::vector<RankBuffers> plain(collective.ranks);
    for (int r = 0; r < collective.ranks; ++r) {
        Rank& mine = ranks_[r];
        mine.input.resize(static_cast<std::size_t>(mine.input_bytes));
        mine.expected.resize(static_cast<std::size_t>(mine.output_bytes));
        if (copies)
            fill_bits(r, options.seed, mine.input.data(), mine.input_bytes);
        else
            fill_exact(arguments, collective.group_size(), r, options.seed, mine.input.data(),
                       mine.input_bytes / ir::size_of(arguments.type));
        plain[r] = {mine.input.data(), mine.expected.data()};
    }
    reference(collective, arguments, plain);
    for (int r = 0; r < collective.ranks; ++r) {
        Rank& mine = ranks_[r];
        mine.host.resize(static_cast<std::size_t>(mine.bytes) + 64);
        auto at = reinterpret_cast<std::uintptr_t>(mine.host.data());
        mine.base = mine.host.data() + (64 - at % 64) % 64;
        if (options_.backend != nullptr)
            mine.base =
                static_cast<unsigned char*>(mine.allocation = options_.backend->allocate(r, mine.bytes));
        if (mine.input_at >= 0) buffers_[r].input = mine.base + mine.input_at;
        if (mine.output_at >= 0) buffers_[r].output = mine.base + mine.output_at;
    }
    reset();
}

Trial::~Trial() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (ranks_[r].allocation != nullptr)
            options_.backend->release(static_cast<int>(r), ranks_[r].allocation);
    }
}

void Trial::lay_out(const ir::Collective& collective, int rank) {
    Rank& mine = ranks_[rank];
    const std::int64_t shift = options_.shift * ir::size_of(arguments_.type);
    mine.input_bytes = buffer_bytes(collective, rank, ir::Buffer::input, arguments_.count, arguments_.type);
    mine.output_bytes = buffer_bytes(collective, rank, ir::Buffer::output, arguments_.count, arguments_.type);
    const bool has_input = collective.places(rank, ir::Buffer::input) > 0,
               has_output = collective.places(rank, ir::Buffer::output) > 0;
    const auto offset =
        options_.in_place ? in_place_offset(collective, rank, arguments_.count) : std::nullopt;
    if (offset) {
        const std::int64_t bytes = *offset * ir::size_of(arguments_.type);
        mine.shared = true;
        mine.input_at = shift + std::max<std::int64_t>(bytes, 0);
        mine.output_at = shift + std::max<std::int64_t>(-bytes, 0);
        mine.bytes = std::max(mine.input_at + mine.input_bytes, mine.output_at + mine.output_bytes) + kGuard;
        return;
    }
    std::int64_t at = shift;
    if (has_input) mine.input_at = at, at = rounded(at + mine.input_bytes + kGuard) + shift;
    if (has_output) mine.output_at = at, at += mine.output_bytes + kGuard;
    mine.bytes = at + kGuard;
}

void Trial::check_memory() const {
    // Block, copy of the inputs and expected outputs.
    double bytes = 0;
    for (const Rank& rank : ranks_)
        bytes += 2.0 * static_cast<double>(rank.input_bytes) + 2.0 * static_cast<double>(rank.output_bytes);
    const double memory =
        static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    if (bytes > 0.8 * memory) {
        throw input_error(fmt::format("the buffers of all ranks and the expected results take {:.1f} GB, "
                                      "this machine has {:.1f} GB",
                                      bytes * 1e-9, memory * 1e-9),
                          {}, "use a smaller size or fewer ranks");
    }
}

void Trial::reset(int rank) {
    Rank& mine = ranks_[rank];
    unsigned char* block = options_.backend == nullptr ? mine.base : mine.host.data();
    std::memset(block, kFill, static_cast<std::size_t>(mine.bytes));
    if (mine.input_at >= 0) std::copy(mine.input.begin(), mine.input.end(), block + mine.input_at);
    if (options_.backend != nullptr) options_.backend->write(rank, mine.base, block, mine.bytes);
}

void Trial::reset() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) reset(static_cast<int>(r));
}

std::optional<std::string> Trial::wrong_at(int rank) {
    Rank& mine = ranks_[rank];
    unsigned char* block = mine.base;
    if (options_.backend != nullptr) {
        options_.backend->read(rank, mine.host.data(), mine.base, mine.bytes);
        block = mine.host.data();
    }
    const std::int64_t size = ir::size_of(arguments_.type);
    if (mine.output_at >= 0) {
        if (const auto difference = compare(arguments_.type, block + mine.output_at, mine.expected.data(),
                                            mine.output_bytes / size)) {
            return fmt::format("output of rank {}: {}", rank, difference->words);
        }
    }
    if (!mine.shared && mine.input_at >= 0 && !mine.input.empty() &&
        std::memcmp(block + mine.input_at, mine.input.data(), mine.input.size()) != 0) {
        return fmt::format("the input of rank {} was overwritten", rank);
    }
    const auto guarded = [&](std::int64_t from, std::int64_t to) {
        return std::all_of(block + from, block + to, [](unsigned char byte) { return byte == kFill; });
    };
    const std::int64_t input_end = mine.input_at < 0 ? -1 : mine.input_at + mine.input_bytes;
    const std::int64_t output_end = mine.output_at < 0 ? -1 : mine.output_at + mine.output_bytes;
    const std::int64_t end = std::max({input_end, output_end, std::int64_t{0}});
    bool intact = guarded(end, mine.bytes);
    if (!mine.shared && input_end >= 0 && output_end >= 0)
        intact = intact && guarded(input_end, mine.output_at);
    if (!intact) return fmt::format("memory behind a buffer of rank {} was overwritten", rank);
    return std::nullopt;
}

std::optional<std::string> Trial::wrong() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (auto words = wrong_at(static_cast<int>(r))) return words;
    }
    return std::nullopt;
}

}  // namespace baton::runtime
