// Measured times of collectives: the tables that nccl-tests and rccl-tests print.
#pragma once

#include <baton/base/quantities.hpp>
#include <baton/ir/collective.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

/// One placement (out of place, in place) of a row, as printed.
struct MeasuredCall {
    double microseconds = 0, algbw = 0, busbw = 0;  ///< bandwidths in GB/s of 1e9 bytes
    std::optional<std::int64_t> wrong;              ///< elements; nothing where the test did not look (N/A)
};

/// One row of a table.
struct MeasuredRow {
    int line = 0;                      ///< in the file, from 1
    std::int64_t size = 0, count = 0;  ///< bytes, elements; both above 32 bits in real files
    std::string type, op;              ///< "float", "sum"; op is "none" for collectives that do not reduce
    int root = -1;                     ///< -1: none
    std::optional<MeasuredCall> out_of_place, in_place;
};

/// A log of one test.
struct Measurements {
    std::optional<ir::CollectiveKind> kind;  ///< nothing when the log leaves several open
    std::string why_kind;                    ///< what it follows from
    int ranks = 0;
    std::vector<std::string> hosts, gpus;  ///< distinct names, in the order of ranks
    std::vector<MeasuredRow> rows;         ///< in the order of the file
    std::vector<int> broken;  ///< lines of rows that other output broke; none of these is in `rows`
    int without_size = 0;     ///< rows, broken ones too, whose size is printed as 0
    std::optional<double> average_busbw;  ///< GB/s, as the test printed it
    std::vector<std::string> warnings;    ///< one line each, without a final stop
};

/// True when the text has the head of such a table. Never throws.
bool recognizes_measurements(std::string_view text);

/// Reads a log: tables with or without redop, root and in-place columns, behind tags of mpirun
/// ("[1,0]<stdout>:") or numbers of srun ("0: "), with colors, prompts and lines of NCCL's log between. Rows
/// that such lines broke are left out and counted. `name` stands for the file in messages. Throws an input
/// error when there is no whole row, or the log has tables of several tests.
Measurements read_measurements(std::string_view text, const std::string& name);

/// The rows as CSV with a header, sizes in bytes, times in microseconds, bandwidths in GB/s.
std::string measurements_csv(const Measurements& measurements);

}  // namespace baton::sim
