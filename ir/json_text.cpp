#include <baton/ir/json_text.hpp>

#include <nlohmann/json.hpp>

namespace baton::ir {

std::string spaced_json(const nlohmann::ordered_json& value) {
    // Names come from callers and may not be UTF-8: replace rather than throw.
    const std::string compact = value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    std::string text;
    bool quoted = false;
    for (std::size_t i = 0; i < compact.size(); ++i) {
        const char c = compact[i];
        text += c;
        if (quoted && c == '\\')
            text += compact[++i];
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == ',' || c == ':'))
            text += ' ';
    }
    return text;
}

std::string cbor_bytes(const nlohmann::ordered_json& document) {
    std::string bytes = "\xd9\xd9\xf7";
    const auto body = nlohmann::ordered_json::to_cbor(document);
    bytes.append(body.begin(), body.end());
    return bytes;
}

}  // namespace baton::ir
