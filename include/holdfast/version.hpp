// SPDX-License-Identifier: Apache-2.0
// The version of the library you compiled against. CMakeLists.txt reads it from here, so it is written once.
#pragma once

#if defined(__cplusplus) && __cplusplus <= 201703L
#error "holdfast needs C++20: compile with -std=c++20, as CMake does by itself for who links holdfast::holdfast"
#endif

#define HOLDFAST_VERSION_MAJOR 0
#define HOLDFAST_VERSION_MINOR 1
#define HOLDFAST_VERSION_PATCH 0

// Marks what the shared library shows to its users; everything else stays inside.
#define HOLDFAST_EXPORT __attribute__((visibility("default")))

namespace holdfast {
inline namespace v0 {

// The version of the library you linked, as "0.1.0". Static storage; safe from any thread.
HOLDFAST_EXPORT const char* version() noexcept;

#ifdef _GLIBCXX_DEBUG
namespace detail {
// That mode has containers of another layout, and what a function returns is not in its name: a program with it and a
// library without would crash. So they do not link.
HOLDFAST_EXPORT extern const char library_is_compiled_with_GLIBCXX_DEBUG;
[[gnu::used]] static const char* const program_is_compiled_with_it = &library_is_compiled_with_GLIBCXX_DEBUG;
}  // namespace detail
#endif

}  // namespace v0
}  // namespace holdfast
