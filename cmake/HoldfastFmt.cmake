# SPDX-License-Identifier: Apache-2.0
# fmt, which is ours alone: nothing of it reaches a consumer. As the header-only library that it can be, it is compiled
# into each of some ninety files, a fifth of the build. So we compile it once, in src/base/fmt_once.cpp, which each
# library and program has once; and in a namespace of our own, so that a static library of ours and somebody's own fmt
# are no two definitions of one thing. Which of its templates have to be made there is known of fmt 9; a later one is
# used as a header-only library.
find_package(fmt 9 REQUIRED)

add_library(holdfast_fmt INTERFACE)
set(HOLDFAST_FMT_SOURCE "")
if(fmt_VERSION VERSION_LESS 10)
  get_target_property(fmt_directories fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(holdfast_fmt SYSTEM INTERFACE ${fmt_directories})
  target_compile_definitions(holdfast_fmt INTERFACE
    "FMT_BEGIN_NAMESPACE=namespace fmt { inline namespace holdfast_v9 {" "FMT_END_NAMESPACE=}}")
  set(HOLDFAST_FMT_SOURCE ${PROJECT_SOURCE_DIR}/src/base/fmt_once.cpp)
else()
  target_link_libraries(holdfast_fmt INTERFACE fmt::fmt-header-only)
endif()
