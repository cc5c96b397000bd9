# SPDX-License-Identifier: Apache-2.0
# How each of our targets is compiled, in one place.

# holdfast_set_up(<target>): standard, warnings, hidden symbols, sanitizers. Nothing of it reaches a consumer.
function(holdfast_set_up target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow)
  # With -O3 the optimiser of g++ 12 makes up overlapping copies inside std::string, and warns of them (its PR 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Wno-restrict>)
  endif()
  if(HOLDFAST_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  # What script/check alone builds is compiled eight files at a time, in half the time. Then one file's names are
  # there in the next one, which is no fault of either.
  if(CMAKE_UNITY_BUILD)
    target_compile_options(${target} PRIVATE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
  # Two builds of one commit are equal, wherever they are made.
  target_compile_options(${target} PRIVATE -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.
    -ffile-prefix-map=${PROJECT_BINARY_DIR}=build)
  if(HOLDFAST_SANITIZE STREQUAL "address")
    set(sanitizer -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  elseif(HOLDFAST_SANITIZE STREQUAL "thread")
    set(sanitizer -fsanitize=thread)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      list(APPEND sanitizer -Wno-tsan)  # Asio has fences, which g++'s run-time does not see; we use none of them.
    endif()
  endif()
  if(sanitizer)
    target_compile_options(${target} PRIVATE ${sanitizer})
    target_link_options(${target} PUBLIC ${sanitizer})
    target_compile_definitions(${target} PRIVATE HOLDFAST_SANITIZED=1)
  endif()
  # Asio without what we do not use, and without its deprecated names.
  target_compile_definitions(${target} PRIVATE BOOST_ASIO_NO_DEPRECATED)
endfunction()

# holdfast_set_up_test(<target>): the same for a program that tests. It is compiled in half the time, which is more than
# it runs: not optimised, and with what holdfast_precompile_test_headers() has read already. (Of an inline function that
# a test and the library have, the test's copy may be the one that is linked.) Nor are its own lines looked at for
# undefined behaviour, which is a third of its compilation: the library's are, and AddressSanitizer sees both.
function(holdfast_set_up_test target)
  holdfast_set_up(${target})
  if(HOLDFAST_SANITIZE STREQUAL "address")
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)  # Tests have their `ttl` and `t0` each.
  target_compile_options(${target} PRIVATE -O0 $<$<CONFIG:RelWithDebInfo>:-g1>)
  # Nobody has a debugger look at these, but at those of the preset dev: they are linked in a third of the time so.
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_link_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-Wl,--strip-debug>)
  endif()
  if(TARGET holdfast_test_headers AND NOT target STREQUAL "holdfast_test_headers")
    target_precompile_headers(${target} REUSE_FROM holdfast_test_headers)
  endif()
endfunction()

# holdfast_precompile_test_headers(): reads what nearly every test includes once for all of them. Not with a cache of
# compilations, which would have nothing to look a file up by.
function(holdfast_precompile_test_headers)
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    return()
  endif()
  set(no_source ${PROJECT_BINARY_DIR}/holdfast_test_headers.cpp)
  file(CONFIGURE OUTPUT ${no_source} CONTENT "")
  add_library(holdfast_test_headers OBJECT ${no_source})
  holdfast_set_up_test(holdfast_test_headers)
  target_link_libraries(holdfast_test_headers PRIVATE GTest::gmock)
  target_precompile_headers(holdfast_test_headers PRIVATE
    <algorithm> <array> <atomic> <chrono> <functional> <map> <memory> <mutex> <optional> <string> <string_view>
    <system_error> <thread> <utility> <vector> <gmock/gmock.h> <gtest/gtest.h>)
endfunction()

# holdfast_has_coroutines(<target>): clang 14 cannot compile a coroutine with UBSan's check of function types.
function(holdfast_has_coroutines target)
  if(HOLDFAST_SANITIZE STREQUAL "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${target} PRIVATE -fno-sanitize=function)
  endif()
endfunction()

# holdfast_unit_test(<room> <file>... [THREADED <file>...]): the tests that stand beside a room's code, as one program.
# THREADED are those in which something is shared between threads: ThreadSanitizer has nothing to see in the others.
function(holdfast_unit_test room)
  cmake_parse_arguments(arg "" "" "THREADED" ${ARGN})
  set(files ${arg_THREADED})
  if(NOT HOLDFAST_ONLY_THREADED)
    list(APPEND files ${arg_UNPARSED_ARGUMENTS})
  endif()
  if(NOT HOLDFAST_BUILD_TESTS OR NOT files)
    return()
  endif()
  add_executable(${room}_test ${files})
  holdfast_set_up_test(${room}_test)
  target_link_libraries(${room}_test PRIVATE holdfast_objects GTest::gmock GTest::gtest_main)
  add_test(NAME unit.${room} COMMAND ${room}_test)
  set_tests_properties(unit.${room} PROPERTIES LABELS unit TIMEOUT 300)
endfunction()

# holdfast_is_left_out(<variable>): is the next one of the tests of processes and servers not of HOLDFAST_HALF?
function(holdfast_is_left_out variable)
  get_property(place GLOBAL PROPERTY holdfast_tests_of_processes)
  if(NOT place)
    set(place 0)
  endif()
  math(EXPR half "${place} % 2")
  math(EXPR next "${place} + 1")
  set_property(GLOBAL PROPERTY holdfast_tests_of_processes ${next})
  set(is_left_out OFF)
  if(NOT HOLDFAST_HALF STREQUAL "" AND NOT half EQUAL HOLDFAST_HALF)
    set(is_left_out ON)
  endif()
  set(${variable} ${is_left_out} PARENT_SCOPE)
endfunction()
