// The check itself: every case on one device, results against the reference, times.
#pragma once

#include <baton/cli/gpu_check/cases.hpp>
#include <baton/runtime/backend.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace baton::cli {

struct GpuCheckOptions {
    std::string folder;               ///< of cases.json and the modules
    bool cuda = true;                 ///< else the cpu backend, which needs modules with a host object
    int device = 0;                   ///< all ranks are on this GPU
    std::vector<std::int64_t> sizes;  ///< bytes as nccl-tests counts them
    std::string filter;               ///< only cases whose module name contains it
    std::chrono::seconds limit{270};  ///< no case is begun later than this
};

/// One line of the table: a case at a size. Without `seconds` it was not timed.
struct GpuCheckRow {
    GpuCase what;
    std::int64_t size = 0;
    double seconds = 0;  ///< of one call, as the host sees it
    double bus = 1;      ///< factor from algbw to busbw
    std::string wrong;   ///< "" = right
};

struct GpuCheckResult {
    std::vector<GpuCheckRow> rows;
    int wrong = 0;  ///< rows whose result is wrong or whose call failed
    std::size_t cases = 0,
                not_run = 0;  ///< chosen; of them not begun within the limit, or after too many failures
    double seconds = 0;
};

/// Runs the cases; `row` sees each row as it comes. Every call is made out of place with checked results,
/// again behind the timed calls, and in place and at odd counts and unaligned buffers where the kind allows.
/// Throws a missing-part error when nothing can run here (no driver, no GPU, no code for it), input errors
/// for a damaged folder.
GpuCheckResult gpu_check(const GpuCheckOptions& options, const std::function<void(const GpuCheckRow&)>& row);

}  // namespace baton::cli
