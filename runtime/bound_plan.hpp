// A module bound to a communicator: the tables that its kernels read.
#pragma once

#include <baton/runtime/shared_state.hpp>

#include <memory>
#include <vector>

namespace baton::runtime {

/// Tables of all ranks for one module, grouped by the place of the ranks. Lives in the memory of a
/// SharedState.
class BoundPlan {
public:
    /// The ranks that one launch starts.
    struct Group {
        int place = 0;
        std::vector<int> ranks;  ///< with threadblocks; arguments.calls in this order
        int blocks = 0;
        baton_arguments arguments{};    ///< `blocks` and calls[].rank are filled in
        std::vector<const void*> code;  ///< [entry], null before its first use
        int pending = 0;         ///< ranks that have called and wait for the others (one launch for several)
        void* stream = nullptr;  ///< of the pending ranks
    };

    /// Throws an input error when a place has more than BATON_MAX_LOCAL_RANKS ranks. `slots` and
    /// `slot_bytes`: least of every staged connection.
    BoundPlan(Backend& backend, SharedState& state, std::shared_ptr<const Module> module, int slots,
              std::int64_t slot_bytes);

    const Module& module() const { return *module_; }
    const codegen::Manifest& manifest() const { return module_->manifest(); }
    std::int64_t slot_bytes() const { return slot_bytes_; }
    std::vector<Group>& groups() { return groups_; }
    /// The group and the index in it of a rank; {nullptr, 0} for a rank without threadblocks.
    std::pair<Group*, int> group_of(int rank);
    /// Code of an entry for a group, prepared at its first use.
    const void* code(Backend& backend, Group& group, const codegen::ManifestEntry& entry);
    /// Error records of a rank, in host memory.
    std::vector<baton_error> errors(Backend& backend, int rank) const;

private:
    baton_rank* bind_rank(Backend& backend, SharedState& state, int rank, int slots);

    std::shared_ptr<const Module> module_;
    std::int64_t slot_bytes_ = 0;
    std::vector<Group> groups_;
    std::vector<std::pair<int, int>> place_in_group_;  // [rank]: group or -1, index
    std::vector<const baton_error*> errors_;           // [rank]
};

}  // namespace baton::runtime
