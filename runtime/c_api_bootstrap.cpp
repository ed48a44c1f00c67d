// How ranks that are threads of this process find one another: unique ids and meetings.
#include <baton/runtime/c_handles.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <random>
#include <vector>

namespace baton::runtime::c_api {

namespace {

/// The content of a baton_unique_id.
struct Id {
    char magic[8] = {'b', 'a', 't', 'o', 'n', 'i', 'd', '1'};
    std::uint64_t random[2] = {};  // of the process
    std::int64_t process = 0;
    std::uint64_t number = 0;
    std::uint64_t padding[3] = {};
};
static_assert(sizeof(Id) == sizeof(baton_unique_id));

std::atomic<std::uint64_t> issued{0};

Id own_id(std::uint64_t number) {
    // The process number tells a process from one that was forked off after the first id.
    static const std::pair<std::uint64_t, std::uint64_t> random = [] {
        std::random_device device;
        const auto word = [&] { return std::uint64_t{device()} << 32 | device(); };
        return std::pair{word(), word()};
    }();
    Id id;
    id.random[0] = random.first, id.random[1] = random.second;
    id.process = getpid();
    id.number = number;
    return id;
}

Id read_id(const baton_unique_id& given) {
    Id id;
    std::memcpy(&id, given.bytes, sizeof id);
    if (std::memcmp(id.magic, Id{}.magic, sizeof id.magic) != 0)
        throw input_error("this is no unique id", {}, "take one from baton_get_unique_id");
    const Id own = own_id(0);
    if (id.random[0] != own.random[0] || id.random[1] != own.random[1] || id.process != own.process) {
        throw input_error(
            fmt::format("the unique id was made in another process ({}, not {})", id.process, own.process),
            {}, "the ranks of a communicator are threads of one process in this version");
    }
    if (id.number == 0 || id.number > issued) throw input_error("this unique id was never made");
    return id;
}

/// Ranks that join one communicator.
struct Meeting {
    int ranks = 0;
    baton_options options = BATON_OPTIONS_INIT;
    std::vector<int> devices;
    std::vector<char> joined;
    int count = 0;
    std::condition_variable changed;
    std::shared_ptr<SharedCommunicator> made;
    bool failed = false;
    ErrorKind kind = ErrorKind::check_failed;
    std::string failure, remedy;

    void fail(ErrorKind why, std::string words, std::string help = {}) {
        failed = true;
        kind = why, failure = std::move(words), remedy = std::move(help);
        changed.notify_all();
    }
};

struct Meetings {
    std::mutex mutex;
    std::map<std::uint64_t, std::shared_ptr<Meeting>> open;  // failed ones stay, for ranks that come late
};
Meetings& meetings() {
    static auto& all = *new Meetings;
    return all;
}

bool equal(const baton_options& a, const baton_options& b) {
    return a.backend == b.backend && a.nan == b.nan && a.cpu_threads == b.cpu_threads && a.slots == b.slots &&
           a.slot_bytes == b.slot_bytes && a.workspace == b.workspace && a.timeout_ns == b.timeout_ns;
}

void make(Meeting& meeting) {
    baton_options options = meeting.options;
    options.devices = meeting.devices.empty() ? nullptr : meeting.devices.data();
    try {
        meeting.made = make_communicator(meeting.ranks, &options);
        meeting.changed.notify_all();
    } catch (const Error& error) {
        meeting.fail(error.kind(), error.message(), error.remedy());
    } catch (const std::exception& error) {
        meeting.fail(ErrorKind::missing_part, error.what());
    }
}

std::shared_ptr<SharedCommunicator> join(int ranks, std::uint64_t number, int rank,
                                         const baton_options& options) {
    std::vector<int> devices;
    if (options.devices != nullptr && options.backend == BATON_BACKEND_CUDA)
        devices.assign(options.devices, options.devices + ranks);
    Meetings& all = meetings();
    std::unique_lock lock(all.mutex);
    auto& found = all.open[number];
    if (found == nullptr) {
        found = std::make_shared<Meeting>();
        found->ranks = ranks, found->options = options, found->devices = devices;
        found->joined.resize(static_cast<std::size_t>(ranks));
    }
    const std::shared_ptr<Meeting> meeting = found;
    if (!meeting->failed) {
        if (meeting->ranks != ranks) {
            meeting->fail(ErrorKind::check_failed,
                          fmt::format("rank {} joins a communicator of {} ranks, others one of {}", rank,
                                      ranks, meeting->ranks));
        } else if (!equal(meeting->options, options) || meeting->devices != devices) {
            meeting->fail(ErrorKind::check_failed,
                          fmt::format("rank {} has other options than the others", rank));
        } else if (meeting->joined[static_cast<std::size_t>(rank)]) {
            meeting->fail(ErrorKind::check_failed, fmt::format("two threads join as rank {}", rank));
        } else {
            meeting->joined[static_cast<std::size_t>(rank)] = 1;
            if (++meeting->count == ranks) {
                make(*meeting);
                if (!meeting->failed) all.open.erase(number);
            }
        }
    }
    const auto over = [&] { return meeting->failed || meeting->made != nullptr; };
    const std::chrono::nanoseconds timeout(std::min(options.timeout_ns, kLongestTimeout));
    if (timeout.count() == 0) {
        meeting->changed.wait(lock, over);
    } else if (!meeting->changed.wait_for(lock, timeout, over)) {
        int absent = 0;
        while (meeting->joined[static_cast<std::size_t>(absent)]) ++absent;
        meeting->fail(ErrorKind::check_failed,
                      fmt::format("rank {} did not join before the deadline", absent));
    }
    if (meeting->failed) throw Error(meeting->kind, meeting->failure, {}, meeting->remedy);
    return meeting->made;
}

void join_as(baton_comm* comm, int ranks, const baton_unique_id& id, int rank, const baton_options* given) {
    const std::uint64_t number = read_id(id).number;
    baton_options options = BATON_OPTIONS_INIT;
    if (given != nullptr) {
        if (given->size != sizeof options) throw input_error("options of another version of baton.h");
        options = *given;
    }
    if (options.timeout_ns < 0) throw input_error("a timeout must not be negative");
    *comm = add_handle(CommunicatorRank{join(ranks, number, rank, options), rank});
}

void check_place(int ranks, int rank) {
    if (ranks < 1 || ranks > 4096)
        throw input_error(fmt::format("a communicator has 1 to 4096 ranks; got {}", ranks));
    if (rank < 0 || rank >= ranks)
        throw input_error(fmt::format("rank {} in a communicator of {}", rank, ranks));
}

}  // namespace

}  // namespace baton::runtime::c_api

using namespace baton;
using namespace baton::runtime::c_api;

extern "C" {

baton_result baton_get_unique_id(baton_unique_id* id) {
    return guarded([&] {
        require(id, "id");
        const Id made = own_id(++issued);
        std::memcpy(id->bytes, &made, sizeof made);
    });
}

baton_result baton_comm_init_rank(baton_comm* comm, int ranks, baton_unique_id id, int rank,
                                  const baton_options* options) {
    return guarded([&] {
        require(comm, "comm");
        check_place(ranks, rank);
        join_as(comm, ranks, id, rank, options);
    });
}

baton_result baton_comm_init_gather(baton_comm* comm, int ranks, int rank, baton_all_gather_bytes gather,
                                    void* context, const baton_options* options) {
    return guarded([&] {
        require(comm, "comm");
        require(reinterpret_cast<const void*>(gather), "gather");
        check_place(ranks, rank);
        baton_unique_id mine;
        const Id made = own_id(++issued);
        std::memcpy(mine.bytes, &made, sizeof made);
        std::vector<baton_unique_id> all(static_cast<std::size_t>(ranks));
        const int result = gather(&mine, all.data(), sizeof mine, context);
        if (result != 0) throw input_error(fmt::format("the caller's all-gather failed with {}", result));
        for (const baton_unique_id& each : all) read_id(each);
        if (std::memcmp(&all[static_cast<std::size_t>(rank)], &mine, sizeof mine) != 0)
            throw input_error(
                fmt::format("the caller's all-gather did not put rank {}'s bytes in its place", rank));
        join_as(comm, ranks, all[0], rank, options);
    });
}

}  // extern "C"
