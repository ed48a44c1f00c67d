// Names in files to values of enumerations.
#pragma once

#include <baton/base/json_reader.hpp>
#include <baton/ir/algorithm.hpp>
#include <baton/ir/program.hpp>

#include <fmt/format.h>
#include <array>
#include <string>

namespace baton::ir {

inline constexpr std::array kBuffers{Buffer::input, Buffer::output, Buffer::scratch};
inline constexpr std::array kModes{Mode::staged, Mode::put, Mode::get};
inline constexpr std::array kProtocols{Protocol::automatic, Protocol::simple, Protocol::ll, Protocol::ll128};

/// The one of `all` whose to_string is the text of `value`; an error that lists them (and `more`) otherwise.
template <class Enum, std::size_t Count>
Enum choice(const JsonReader& value, const std::array<Enum, Count>& all, const char* what,
            const char* more = "") {
    const std::string name = value.string();
    std::string known;
    for (const auto entry : all) {
        if (name == to_string(entry)) return entry;
        known += (known.empty() ? "" : ", ") + std::string(to_string(entry));
    }
    throw value.error(fmt::format("unknown {} \"{}\"", what, name.substr(0, 60)), "known: " + known + more);
}

}  // namespace baton::ir
