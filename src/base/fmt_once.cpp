// SPDX-License-Identifier: Apache-2.0
// All of fmt that is no template, and what its headers leave to one place (cmake/HoldfastFmt.cmake).
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE

namespace detail {

template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl<char>(locale_ref) -> char;
template auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;

}  // namespace detail

FMT_END_NAMESPACE
