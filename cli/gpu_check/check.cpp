#include <baton/base/error.hpp>
#include <baton/cli/bandwidth.hpp>
#include <baton/cli/gpu_check/check.hpp>
#include <baton/runtime/communicator.hpp>
#include <baton/runtime/cpu_backend.hpp>
#include <baton/runtime/cuda_backend.hpp>
#include <baton/runtime/trial.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

namespace baton::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostFailures = 5;        // a GPU that failed a kernel seldom recovers
constexpr double kTimedSeconds = 0.02;  // of each of the three batches
constexpr int kMostCalls = 100;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The communicators of the check, one per number of ranks, all on one device.
class Device {
public:
    explicit Device(const GpuCheckOptions& options) : options_(options) {}
    runtime::Communicator& communicator(int ranks) {
        auto& mine = communicators_[ranks];
        if (mine == nullptr) {
            runtime::CommunicatorOptions options;
            options.ranks = ranks;
            options.timeout = std::chrono::seconds(10);
            mine = std::make_unique<runtime::Communicator>(backend(ranks), options);
        }
        return *mine;
    }
    /// After a failure: everything anew.
    void reset() { communicators_.clear(); }

private:
    std::shared_ptr<runtime::Backend> backend(int ranks) const {
        if (!options_.cuda) return runtime::cpu_backend();
        runtime::CudaOptions options;
        options.devices.assign(static_cast<std::size_t>(ranks), options_.device);
        return runtime::cuda_backend(options);
    }
    const GpuCheckOptions& options_;
    std::map<int, std::unique_ptr<runtime::Communicator>> communicators_;
};

/// Elements of a call of about `size` bytes.
std::int64_t count_of(const ir::Collective& collective, std::int64_t size, ir::DataType type) {
    std::int64_t count = size / ir::size_of(type);
    if (ir::has_shards(collective.kind)) count /= collective.ranks;
    return std::max<std::int64_t>(count, 1);
}

/// Calls of awkward shapes: one element, an odd count behind an odd address, in place. "" when all are right.
std::string check_shapes(runtime::Communicator& communicator, const runtime::Plan& plan,
                         runtime::CallArguments arguments) {
    const ir::Collective& collective = plan.module->manifest().collective;
    const bool in_place_form = collective.kind != ir::CollectiveKind::send_recv;
    for (const std::int64_t count : {1, 1003, 40'009}) {
        for (const bool in_place : {false, true}) {
            if (in_place && !in_place_form) continue;
            arguments.count = count;
            runtime::TrialOptions options;
            options.in_place = in_place;
            options.shift = count == 1003 ? 1 : 0;
            options.seed = static_cast<std::uint64_t>(count);
            options.backend = &communicator.backend();
            runtime::Trial trial(collective, arguments, options);
            communicator.run(plan, arguments, trial.buffers());
            if (const auto wrong = trial.wrong())
                return fmt::format("{} elements{}: {}", count, in_place ? " in place" : "", *wrong);
        }
    }
    return {};
}

/// Seconds of one call: the median of three batches.
double time_calls(runtime::Communicator& communicator, const runtime::Plan& plan, runtime::Trial& trial) {
    const auto batch = [&](int calls) {
        const auto start = Clock::now();
        communicator.run(plan, trial.arguments(), trial.buffers(), calls);
        return seconds_since(start) / calls;
    };
    const double one = std::max(batch(1), 1e-7);
    const int calls = static_cast<int>(std::clamp(kTimedSeconds / one, 1.0, double{kMostCalls}));
    double times[3] = {batch(calls), batch(calls), batch(calls)};
    std::sort(times, times + 3);
    return times[1];
}

void check_size(runtime::Communicator& communicator, const runtime::Plan& plan,
                const runtime::CallArguments& arguments, GpuCheckRow& row) {
    runtime::TrialOptions options;
    options.backend = &communicator.backend();
    runtime::Trial trial(plan.module->manifest().collective, arguments, options);
    communicator.run(plan, arguments, trial.buffers());
    row.wrong = trial.wrong().value_or("");
    if (!row.wrong.empty()) return;
    trial.reset();
    row.seconds = time_calls(communicator, plan, trial);
    if (const auto wrong = trial.wrong()) row.wrong = "after repeated calls: " + *wrong;
}

/// The module of a case, held against what the list says of it.
runtime::Plan plan_of(const std::string& folder, const GpuCase& each) {
    runtime::Plan plan;
    const std::string path = folder + "/" + each.module;
    plan.module = runtime::Module::load(path);
    const ir::Collective& collective = plan.module->manifest().collective;
    if (collective.kind != each.kind || collective.ranks != each.ranks) {
        throw input_error(
            fmt::format("the module is for {} of {} ranks, the list says {} of {}",
                        to_string(collective.kind), collective.ranks, to_string(each.kind), each.ranks),
            path, "pack again");
    }
    return plan;
}

}  // namespace

GpuCheckResult gpu_check(const GpuCheckOptions& options, const std::function<void(const GpuCheckRow&)>& see) {
    const auto start = Clock::now();
    std::vector<GpuCase> cases = load_gpu_cases(options.folder);
    std::erase_if(cases,
                  [&](const GpuCase& each) { return each.module.find(options.filter) == std::string::npos; });
    if (cases.empty())
        throw input_error(fmt::format("no case has \"{}\" in its name", options.filter), "--filter");
    GpuCheckResult result;
    result.cases = cases.size();
    Device device(options);
    int failures = 0;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        if (failures >= kMostFailures || Clock::now() - start > options.limit) {
            result.not_run = cases.size() - i;
            break;
        }
        const GpuCase& each = cases[i];
        const runtime::Plan plan = plan_of(options.folder, each);
        const ir::Collective& collective = plan.module->manifest().collective;
        runtime::CallArguments arguments{0, each.type, each.op, ir::NanMode::propagate};
        GpuCheckRow row{each, 0, 0, bus_factor(collective), {}};
        bool shapes_checked = false;
        for (const std::int64_t size : options.sizes) {
            row.seconds = 0;
            arguments.count = count_of(collective, size, each.type);
            row.size = size_of_call(collective, arguments);
            try {
                runtime::Communicator& communicator = device.communicator(each.ranks);
                row.wrong = shapes_checked ? "" : check_shapes(communicator, plan, arguments);
                shapes_checked = true;
                if (row.wrong.empty()) check_size(communicator, plan, arguments, row);
            } catch (const Error& error) {
                // The first thing that is tried tells whether anything can run here.
                if (error.kind() == ErrorKind::missing_part && result.rows.empty()) throw;
                row.wrong = fmt::format("failed: {}", error.what());
                ++failures;
                device.reset();
            }
            result.wrong += row.wrong.empty() ? 0 : 1;
            result.rows.push_back(row);
            see(row);
            if (failures >= kMostFailures) break;
        }
    }
    result.seconds = seconds_since(start);
    return result;
}

}  // namespace baton::cli
