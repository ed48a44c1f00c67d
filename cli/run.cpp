// baton run: executes a schedule on buffers of known content and compares the result with the reference.
#include <baton/base/error.hpp>
#include <baton/base/quantities.hpp>
#include <baton/cli/command.hpp>
#include <baton/cli/options.hpp>
#include <baton/cli/run_input.hpp>
#include <baton/runtime/communicator.hpp>
#include <baton/runtime/cpu_backend.hpp>
#include <baton/runtime/cuda_backend.hpp>
#include <baton/runtime/cuda_driver.hpp>
#include <baton/runtime/interpreter.hpp>
#include <baton/runtime/trial.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

namespace baton::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

/// What a run found.
struct RunResult {
    std::optional<std::string> wrong;
    double seconds = 0;  ///< of one call
    int timed_calls = 0;
    std::int64_t tiles = 1, scratch_bytes = 0, slot_bytes = 0;
    int segments = 1;
};

class RunCommand final : public Command {
public:
    std::string name() const override { return "run"; }
    std::string summary() const override {
        return "runs a schedule here and compares the result with the reference";
    }
    std::vector<std::string> examples() const override {
        return {"baton run examples/algorithms/ring_all_reduce.json --ranks 4 --size 1MiB",
                "baton run examples/algorithms/ring_all_gather.json --ranks 3 --backend interpreter --count "
                "1000 --type bf16"};
    }
    void declare(CLI::App& app) override {
        app.add_option("FILE", file_, "an algorithm, a program, a plan set, or a folder of generated code")
            ->required();
        app.add_option("--backend", backend_,
                       "interpreter, cpu (generated code on threads; default) or cuda");
        app.add_option("--ranks", ranks_, "number of ranks, instead of the file's");
        app.add_option("--root", root_, "root, instead of the file's");
        app.add_option("--param", params_, "NAME=INTEGER, instead of the file's; may be repeated")
            ->allow_extra_args(false);
        app.add_option("--size", size_,
                       "bytes of the larger of a rank's send and receive buffer (default 1MiB)");
        app.add_option("--count", count_, "elements of a shard, or of the buffer where there are no shards");
        app.add_option("--type", type_, "element type (default f32)");
        app.add_option("--op", op_, "operator of reducing collectives (default sum)");
        app.add_option("--nan", nan_, "what max and min do with NaN: propagate (default) or ignore");
        app.add_flag("--in-place", in_place_, "input and output share memory as the kind defines it");
        app.add_option("--mode", mode_, "transfer mode: automatic (default), staged, put or get");
        app.add_option("--slots", slots_, "depth of staged connections; 0 (default): the lowering's choice");
        app.add_option("--channels", channels_,
                       "lanes over which steps without a channel are spread (default 1)");
        app.add_option("--threadblocks", threadblocks_, "most threadblocks of a rank (default 32)");
        app.add_flag("--wide", wide_, "f16, bf16 and f8 travel and accumulate as f32");
        app.add_option(
            "--tiles", tiles_,
            "parts that every chunk is cut into; 0 (default): the plan's, raised until messages fit");
        app.add_option("--slot-bytes", slot_bytes_, "size of a slot of staged connections (default 128KiB)");
        app.add_option("--workspace", workspace_,
                       "most scratch of a rank; calls that need more run in segments (default 1GiB)");
        app.add_option("--iterations", iterations_, "timed calls behind the checked one (default 10)");
        app.add_option("--devices", devices_,
                       "cuda: device of each rank, such as 0,0,1,1 (default: the ranks in turn over all)");
        app.add_option("--seed", seed_, "of the values in the buffers (default 1)");
        app.add_option("--timeout", timeout_, "longest wait of a threadblock (default 30s)");
        app.add_flag("--explain", explain_, "say how the call is executed");
    }
    int run() override;

private:
    RunInputOptions input_options() const;
    std::shared_ptr<runtime::Backend> make_backend(int ranks) const;
    RunResult interpret(const RunInput& input) const;
    RunResult execute(const RunInput& input) const;
    void print(const RunInput& input, const RunResult& result) const;
    void print_json(const RunInput& input, const RunResult& result) const;
    std::vector<std::pair<std::string, std::string>> explanation(const RunInput& input,
                                                                 const RunResult& result) const;
    std::string next() const;

    std::string file_, backend_ = "cpu", size_, type_ = "f32", op_ = "sum", nan_ = "propagate",
                       mode_ = "automatic";
    std::string slot_bytes_ = "128KiB", workspace_ = "1GiB", devices_, timeout_ = "30s";
    std::optional<int> ranks_, root_;
    std::optional<std::int64_t> count_;
    std::vector<std::string> params_;
    bool in_place_ = false, wide_ = false, explain_ = false;
    int slots_ = 0, channels_ = 1, threadblocks_ = 32, iterations_ = 10;
    std::int64_t tiles_ = 0;
    std::uint64_t seed_ = 1;
};

RunInputOptions RunCommand::input_options() const {
    RunInputOptions options;
    options.emit = backend_ != "interpreter";
    options.load.params = parse_params(params_);
    options.load.ranks = ranks_;
    options.load.root = root_;
    options.lower.mode = codegen::parse_mode_preference(mode_, "--mode");
    options.lower.slots = slots_;
    options.lower.channels = channels_;
    options.lower.threadblocks = threadblocks_;
    options.lower.wide = wide_;
    options.arguments.type = ir::parse_data_type(type_, "--type");
    options.arguments.op = ir::parse_reduce_op(op_, "--op");
    options.arguments.nan = ir::parse_nan_mode(nan_, "--nan");
    options.in_place = in_place_;
    if (count_ && !size_.empty()) throw input_error("--count and --size exclude each other", "--count");
    if (count_ && *count_ < 0) throw input_error("a count must not be negative", "--count");
    if (count_)
        options.arguments.count = *count_;
    else
        options.size = parse_bytes(size_.empty() ? "1MiB" : size_, "--size").count;
    return options;
}

std::shared_ptr<runtime::Backend> RunCommand::make_backend(int ranks) const {
    if (backend_ == "cpu") return runtime::cpu_backend();
    runtime::CudaOptions options;
    if (devices_.empty()) {
        const int count = runtime::cuda::device_count();
        for (int r = 0; r < ranks; ++r) options.devices.push_back(r % count);
        return runtime::cuda_backend(options);
    }
    const char *at = devices_.data(), *const end = at + devices_.size();
    while (at <= end) {
        int device = 0;
        const auto [rest, failed] = std::from_chars(at, end, device);
        if (failed != std::errc() || (rest != end && *rest != ','))
            throw input_error(fmt::format("\"{}\" is no list of device numbers", devices_), "--devices",
                              "use 0,0,1,1");
        options.devices.push_back(device);
        at = rest + 1;
    }
    if (static_cast<int>(options.devices.size()) != ranks)
        throw input_error(fmt::format("{} devices for {} ranks", options.devices.size(), ranks), "--devices");
    return runtime::cuda_backend(options);
}

RunResult RunCommand::interpret(const RunInput& input) const {
    if (!input.program)
        throw input_error("the folder holds no program to interpret", file_, "use --backend cpu");
    runtime::Interpreter interpreter(*input.program);
    runtime::TrialOptions options;
    options.in_place = in_place_;
    options.seed = seed_;
    runtime::Trial trial(input.collective, input.arguments, options);
    RunResult result;
    result.tiles = std::max<std::int64_t>(1, tiles_ > 0 ? tiles_ : input.tiles);
    runtime::InterpretOptions interpret;
    interpret.tiles = result.tiles;
    const auto start = Clock::now();
    result.scratch_bytes = interpreter.run(input.arguments, trial.buffers(), interpret).scratch_bytes;
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    result.timed_calls = 1;
    result.wrong = trial.wrong();
    return result;
}

RunResult RunCommand::execute(const RunInput& input) const {
    const auto backend = make_backend(input.collective.ranks);
    runtime::CommunicatorOptions options;
    options.ranks = input.collective.ranks;
    options.slot_bytes = parse_bytes(slot_bytes_, "--slot-bytes").count;
    options.workspace = parse_bytes(workspace_, "--workspace").count;
    options.timeout = std::chrono::nanoseconds(parse_time(timeout_, "--timeout").picoseconds / 1000);
    if (slots_ > 0) options.slots = slots_;
    runtime::Communicator communicator(backend, options);
    runtime::TrialOptions trial_options;
    trial_options.in_place = in_place_;
    trial_options.seed = seed_;
    trial_options.backend = backend.get();
    runtime::Trial trial(input.collective, input.arguments, trial_options);
    runtime::Plan plan;
    plan.module = input.module;
    plan.tiles = tiles_ > 0 ? tiles_ : input.tiles;

    RunResult result;
    const runtime::CallReport report = communicator.run(plan, input.arguments, trial.buffers());
    result.tiles = report.tiles, result.segments = report.segments;
    result.scratch_bytes = report.scratch_bytes, result.slot_bytes = report.slot_bytes;
    result.wrong = trial.wrong();
    if (result.wrong || iterations_ == 0) return result;
    const auto start = Clock::now();
    communicator.run(plan, input.arguments, trial.buffers(), iterations_);
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count() / iterations_;
    result.timed_calls = iterations_;
    // In place, results of one call are the inputs of the next.
    if (!in_place_) result.wrong = trial.wrong();
    return result;
}

double gigabytes(std::int64_t size, double seconds) {
    return seconds > 0 ? static_cast<double>(size) / seconds * 1e-9 : 0;
}

std::vector<std::pair<std::string, std::string>> RunCommand::explanation(const RunInput& input,
                                                                         const RunResult& result) const {
    std::vector<std::pair<std::string, std::string>> rows;
    if (!input.plan.empty()) rows.emplace_back("plan", input.plan);
    rows.emplace_back("tiles", fmt::format("{}", result.tiles));
    if (input.module && backend_ != "interpreter") {
        const codegen::Manifest& m = input.module->manifest();
        int threadblocks = 0, staged = 0, put = 0, get = 0;
        for (const codegen::ManifestRank& rank : m.ranks)
            threadblocks = std::max(threadblocks, rank.threadblocks);
        for (const codegen::ManifestConnection& c : m.connections)
            ++(c.mode == ir::Mode::staged ? staged : c.mode == ir::Mode::put ? put : get);
        rows.emplace_back("threadblocks", fmt::format("at most {} a rank", threadblocks));
        rows.emplace_back("connections", fmt::format("{} staged, {} put, {} get", staged, put, get));
        if (staged > 0) rows.emplace_back("slots", to_string(Bytes{result.slot_bytes}));
        rows.emplace_back("segments", fmt::format("{}", result.segments));
        rows.emplace_back("order", std::string(ir::to_string(m.order)));
        const auto* entry = m.find_entry(input.arguments.type, input.arguments.op, input.arguments.nan);
        if (entry != nullptr) rows.emplace_back("entry", entry->name);
    }
    rows.emplace_back("scratch", to_string(Bytes{result.scratch_bytes}));
    return rows;
}

std::string RunCommand::next() const {
    if (backend_ == "interpreter")
        return fmt::format("baton run {}{} --backend cpu", shell_word(file_),
                           ranks_ ? fmt::format(" --ranks {}", *ranks_) : "");
    if (!explain_)
        return fmt::format("baton run {}{} --explain", shell_word(file_),
                           ranks_ ? fmt::format(" --ranks {}", *ranks_) : "");
    return fmt::format("baton codegen {}{} -o module", shell_word(file_),
                       ranks_ ? fmt::format(" --ranks {}", *ranks_) : "");
}

void RunCommand::print(const RunInput& input, const RunResult& result) const {
    const std::int64_t size = size_of_call(input.collective, input.arguments);
    std::printf("%s: %s\n", input.name.c_str(), ir::describe(input.collective).c_str());
    const bool reduces = ir::reduces(input.collective.kind);
    Table table({"backend", "size", "count", "type", "op", "place", "result", "time", "algbw", "busbw"});
    const bool timed = result.timed_calls > 0;
    const double rate = gigabytes(size, result.seconds);
    table.row({backend_, to_string(Bytes{size}), fmt::format("{}", input.arguments.count), type_,
               reduces ? op_ : "-", in_place_ ? "in" : "out", result.wrong ? "wrong" : "right",
               timed ? to_string(Time::from_seconds(result.seconds)) : "-",
               timed ? fmt::format("{:.3f} GB/s", rate) : "-",
               timed ? fmt::format("{:.3f} GB/s", rate * bus_factor(input.collective)) : "-"});
    std::printf("%s", table.text().c_str());
    if (result.wrong) std::printf("wrong: %s\n", result.wrong->c_str());
    if (explain_) {
        Table words({"how", ""});
        for (const auto& [key, value] : explanation(input, result)) words.row({key, value});
        std::printf("\n%s", words.text().c_str());
    }
    std::printf("next: %s\n", next().c_str());
}

void RunCommand::print_json(const RunInput& input, const RunResult& result) const {
    const std::int64_t size = size_of_call(input.collective, input.arguments);
    const double rate = gigabytes(size, result.seconds);
    Json out = {{"name", input.name},
                {"collective", ir::describe(input.collective)},
                {"ranks", input.collective.ranks},
                {"backend", backend_},
                {"size", size},
                {"count", input.arguments.count},
                {"type", type_}};
    if (ir::reduces(input.collective.kind)) out["op"] = op_;
    out["in_place"] = in_place_;
    out["result"] = result.wrong ? "wrong" : "right";
    if (result.wrong) out["wrong"] = *result.wrong;
    if (result.timed_calls > 0) {
        out["calls"] = result.timed_calls;
        out["seconds"] = result.seconds;
        out["algbw"] = rate * 1e9;
        out["busbw"] = rate * 1e9 * bus_factor(input.collective);
    }
    for (const auto& [key, value] : explanation(input, result)) out["how"][key] = value;
    out["next"] = next();
    std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

int RunCommand::run() {
    if (backend_ != "interpreter" && backend_ != "cpu" && backend_ != "cuda") {
        throw input_error(fmt::format("unknown backend {}", backend_), "--backend",
                          "use interpreter, cpu or cuda");
    }
    if (iterations_ < 0 || iterations_ > 1'000'000)
        throw input_error("iterations must be within 0 and 1000000", "--iterations");
    if (tiles_ < 0 || tiles_ > 1 << 20) throw input_error("tiles must be within 0 and 1048576", "--tiles");
    // Before anything long: whether there is a GPU at all.
    if (backend_ == "cuda") runtime::cuda::device_count();
    const RunInput input = load_run_input(file_, input_options());
    const RunResult result = backend_ == "interpreter" ? interpret(input) : execute(input);
    if (json)
        print_json(input, result);
    else
        print(input, result);
    return result.wrong ? 1 : 0;
}

}  // namespace

std::unique_ptr<Command> run_command() { return std::make_unique<RunCommand>(); }

}  // namespace baton::cli
