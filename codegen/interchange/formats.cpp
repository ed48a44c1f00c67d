#include <baton/codegen/interchange/interchange.hpp>
#include <baton/codegen/interchange/msccl.hpp>
#include <baton/codegen/interchange/mscclpp.hpp>

namespace baton::codegen {
namespace {

constexpr ScheduleFormat kScheduleFormats[] = {
    {"msccl-xml", "algorithm XML of MSCCL and RCCL", recognizes_msccl_xml, read_msccl_xml},
    {"mscclpp-json", "execution plans of MSCCL++", recognizes_mscclpp_json, read_mscclpp_json},
};

}  // namespace

std::span<const ScheduleFormat> schedule_formats() { return kScheduleFormats; }

}  // namespace baton::codegen
