#include <baton/base/error.hpp>

namespace baton {
namespace {

// Error text may quote hostile input: control characters must not reach a terminal.
std::string printable(const std::string& text) {
    static const char* kHex = "0123456789abcdef";
    std::string out;
    out.reserve(text.size());
    for (const unsigned char c : text) {
        if (c == '\n') {
            out += "\\n";
        } else if (c < 0x20 || c == 0x7f) {
            out += "\\x";
            out += kHex[c >> 4];
            out += kHex[c & 15];
        } else {
            out += static_cast<char>(c);
        }
    }
    return out;
}

}  // namespace

int exit_code(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::input: return 2;
        case ErrorKind::check_failed: return 1;
        case ErrorKind::missing_part: return 3;
        case ErrorKind::internal: return 70;
    }
    return 70;
}

Error::Error(ErrorKind kind, std::string what, std::string where, std::string remedy)
    : kind_(kind), message_(std::move(what)), where_(std::move(where)), remedy_(std::move(remedy)) {
    if (!where_.empty()) line_ = printable(where_) + ": ";
    line_ += printable(message_);
    if (!remedy_.empty()) line_ += "; " + printable(remedy_);
}

Error input_error(std::string what, std::string where, std::string remedy) {
    return {ErrorKind::input, std::move(what), std::move(where), std::move(remedy)};
}
Error check_error(std::string what, std::string where, std::string remedy) {
    return {ErrorKind::check_failed, std::move(what), std::move(where), std::move(remedy)};
}
Error missing_error(std::string what, std::string where, std::string remedy) {
    return {ErrorKind::missing_part, std::move(what), std::move(where), std::move(remedy)};
}
Error internal_error(std::string what, std::string where) {
    return {ErrorKind::internal, std::move(what), std::move(where),
            "this is a fault of Baton, please report it"};
}

}  // namespace baton
