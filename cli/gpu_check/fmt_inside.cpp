// The functions of the fmt library, compiled in: the check must run where that library is not installed. The
// header-only form defines them inline; naming each one that the layers call puts its code into this object.
#define FMT_HEADER_ONLY 1
#include <fmt/format.h>

namespace {

template <class Function>
void keep(Function* function) {
    asm volatile("" : : "r"(function));
}

}  // namespace

template fmt::detail::thousands_sep_result<char> fmt::detail::thousands_sep_impl<char>(
    fmt::detail::locale_ref);

[[gnu::used]] void baton_keep_fmt();
void baton_keep_fmt() {
    keep<std::string(fmt::string_view, fmt::format_args)>(&fmt::vformat);
    keep(&fmt::detail::assert_fail);
    keep<bool(std::uint32_t)>(&fmt::detail::is_printable);
#if FMT_VERSION < 110000
    keep(&fmt::detail::throw_format_error);
#else
    keep(&fmt::report_error);
#endif
}
