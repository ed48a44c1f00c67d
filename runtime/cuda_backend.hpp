// Ranks on GPUs of this process. Several ranks may share a GPU: one cooperative launch then holds all of
// them.
#pragma once

#include <baton/runtime/backend.hpp>

#include <memory>
#include <vector>

namespace baton::runtime {

struct CudaOptions {
    std::vector<int> devices;  ///< of each rank; the same number several times: ranks that share a GPU
};

/// Opens the devices (their primary contexts; the caller's current context is kept in every call) and lets
/// them access one another. Throws a missing-part error without driver or GPU, without cooperative launches,
/// or where two GPUs cannot access each other; an input error for a device that is not there.
std::shared_ptr<Backend> cuda_backend(const CudaOptions& options);

}  // namespace baton::runtime
