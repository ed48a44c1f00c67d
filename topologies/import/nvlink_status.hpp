// The text of `nvidia-smi nvlink -s`: how many NVLinks each GPU has, and their rates. Internal to the layer.
#pragma once

#include <baton/base/quantities.hpp>
#include <baton/topologies/import/importer.hpp>

#include <string>
#include <vector>

namespace baton::topologies {

/// The NVLinks of one GPU.
struct NvlinkStatus {
    int device = 0;    ///< number of the GPU
    std::string name;  ///< product ("NVIDIA H100 80GB HBM3"); may be empty
    int active = 0;
    int inactive = 0;
    Rate rate{};  ///< of one active link and direction, the slowest of them; 0 without active links
};

/// GPUs in file order. Lines before, between and after the lists are passed over, as are colour codes. Throws
/// an input error when there is no list in it, or a rate that cannot be read.
std::vector<NvlinkStatus> read_nvlink_status(const ImportSource& source);

}  // namespace baton::topologies
