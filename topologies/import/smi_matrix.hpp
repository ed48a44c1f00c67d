// The matrices of `nvidia-smi topo -m` as people paste them. Internal to the layer.
#pragma once

#include <baton/topologies/import/closeness.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace baton::topologies {

/// One cell: how two devices are joined.
struct SmiCell {
    enum class Kind : std::uint8_t { missing, self, nvlink, pcie };
    Kind kind = Kind::missing;
    int nvlinks = 0;                           ///< of `nvlink`
    Closeness closeness = Closeness::unknown;  ///< of `pcie`
    bool operator==(const SmiCell&) const = default;
};

/// One row and column.
struct SmiDevice {
    std::string name;  ///< as the header has it: "GPU3", "NIC0", "mlx5_2"
    bool gpu = false;
    int number = -1;         ///< 3 of "GPU3", 2 of "mlx5_2"; -1 without one
    int line = 0;            ///< of its row; 0: it has none
    std::string cpus, numa;  ///< affinity cells; empty: none, or "N/A"
};

/// One matrix, its cells by row and column.
struct SmiMatrix {
    int line = 0;  ///< of the header
    std::vector<SmiDevice> devices;
    std::vector<std::vector<SmiCell>> cells;
    bool peer_access = false;  ///< its cells are those of topo -p2p
};

/// All that a text has.
struct SmiText {
    std::vector<SmiMatrix> matrices;
    std::map<std::string, std::string> nic_names;  ///< "NIC0" to "mlx5_0", from the legend
    std::vector<std::string> legend;               ///< words of the legend of cells: "PIX", "NV#", "GNS"
    std::vector<int> unread;                       ///< numbers of lines of no known use
};

/// Reads a text. Separators are blanks, tabs, bars and Unicode blanks; colours, prompts, quoting and line
/// numbers in front of a row are passed over; rows that a terminal broke are joined. Throws an input error
/// with file and line for a cell that is not known, and a row that does not fit its header.
SmiText read_smi_text(const ImportSource& source);

/// Words of a line, and its number from 1.
struct WordLine {
    int number = 0;
    std::vector<std::string> words;
};

/// All lines as words, without colours; bars of tables and Unicode blanks separate as blanks do.
std::vector<WordLine> word_lines(std::string_view text);

/// True when there is a header and a first row whose cell with itself is X.
bool has_smi_matrix(std::string_view text);

}  // namespace baton::topologies
