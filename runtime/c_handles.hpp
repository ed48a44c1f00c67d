// What stands behind the handles of the C interface (baton.h), and how failures become results.
#pragma once

#include <baton/runtime/baton.h>
#include <baton/base/error.hpp>
#include <baton/runtime/communicator.hpp>

#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <shared_mutex>
#include <string>
#include <system_error>
#include <utility>

namespace baton::runtime::c_api {

/// A communicator of the C interface; owned together by the handles of its ranks and by queued calls.
struct SharedCommunicator {
    SharedCommunicator(std::shared_ptr<Backend> backend, const CommunicatorOptions& options, ir::NanMode nan);
    ~SharedCommunicator();
    SharedCommunicator(const SharedCommunicator&) = delete;
    SharedCommunicator& operator=(const SharedCommunicator&) = delete;

    Communicator communicator;
    ir::NanMode nan;
    std::shared_mutex plans;  ///< choosing shares it, adding excludes
    std::mutex memory_mutex;
    std::set<std::pair<int, void*>> memory;  ///< (rank, address) handed out and not freed
};

/// Longer timeouts are taken as this one, about 31 years, so that no sum of times overflows.
constexpr std::int64_t kLongestTimeout = 1'000'000'000'000'000'000;

/// Behind a baton_comm.
struct CommunicatorRank {
    std::shared_ptr<SharedCommunicator> shared;
    int rank = 0;
};

/// Behind a baton_plan.
struct LoadedPlan {
    std::shared_ptr<const Module> module;
};

/// Never reused, so that a stale handle is found out. Each throws an input error for null or unknown handles.
baton_comm add_handle(CommunicatorRank rank);
CommunicatorRank find_handle(baton_comm comm);
CommunicatorRank take_handle(baton_comm comm);
baton_plan add_handle(LoadedPlan plan);
LoadedPlan find_handle(baton_plan plan);
LoadedPlan take_handle(baton_plan plan);

/// Makes a communicator from the caller's options (null: the defaults); throws input and missing-part errors.
std::shared_ptr<SharedCommunicator> make_communicator(int ranks, const baton_options* options);
/// Throws an input error unless a pointer was given; `what` names the parameter.
void require(const void* pointer, const char* what);
/// The numbers of a C caller as types; throw input errors that list what there is.
ir::DataType data_type(baton_type type);
ir::ReduceOp reduce_op(baton_op op);

/// Notes the words for `baton_last_error` and returns the result.
baton_result fail(baton_result result, const char* words) noexcept;
baton_result result_of(ErrorKind kind) noexcept;

/// Runs a function of the C interface: no exception leaves it.
template <typename Function>
baton_result guarded(Function&& function) noexcept {
    try {
        function();
        return BATON_SUCCESS;
    } catch (const Error& error) {
        return fail(result_of(error.kind()), error.what());
    } catch (const std::bad_alloc&) {
        return fail(BATON_MISSING_PART, "not enough memory");
    } catch (const std::system_error& error) {
        return fail(BATON_MISSING_PART, error.what());
    } catch (const std::exception& error) {
        return fail(BATON_INTERNAL, error.what());
    } catch (...) {
        return fail(BATON_INTERNAL, "an exception of unknown type");
    }
}

}  // namespace baton::runtime::c_api
