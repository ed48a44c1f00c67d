// Files compiled into the library (presets, the device prelude); see baton_embed in cmake/BatonLayer.cmake.
#pragma once

#include <span>
#include <string_view>

namespace baton {

/// A file and its content; both live as long as the program.
struct EmbeddedFile {
    std::string_view name, content;
};

}  // namespace baton
