# SPDX-License-Identifier: Apache-2.0
# holdfast_embed_lua(<target> <file.lua>[:<kind>]...)
#
# Gives <target> a generated header "holdfast_scripts.hpp" with two constants for each file:
#   release.lua -> holdfast::script::release_lua       its text, with its includes in their places
#                  holdfast::script::release_lua_sha1  that text's digest, as SCRIPT LOAD will answer it
# Each connection carries the texts to its server: comments, empty lines and indentation stay here, and what remains
# is less than half. A line that a server names in an error is one of that.
# A line `-- include: advance.lua`, or ballot.lua, is replaced by that file: routines that several scripts share.
# `kind.lua` stands for exclusive.lua, or for what a file is built for: wait.lua:counted includes counted.lua and
# becomes wait_counted_lua; likewise `kind_view.lua`: exclusive_view.lua, or counted_view.lua.
# The .lua files stay the only copy; editing one configures again, which writes the header again.
function(holdfast_embed_lua target)
  set(constants "")
  foreach(entry IN LISTS ARGN)
    set(kind exclusive)
    set(suffix "")
    set(file "${entry}")
    if(entry MATCHES "^(.+):([a-z]+)$")
      set(file "${CMAKE_MATCH_1}")
      set(kind "${CMAKE_MATCH_2}")
      set(suffix "_${kind}")
    endif()
    get_filename_component(path "${file}" ABSOLUTE)
    get_filename_component(name "${file}" NAME_WE)
    string(APPEND name "${suffix}")
    file(READ "${path}" text)
    string(REGEX REPLACE "-- include: kind([a-z_]*\\.lua\n)" "-- include: ${kind}\\1" text "${text}")
    string(REGEX MATCHALL "-- include: [a-z_]+\\.lua\n" includes "${text}")
    foreach(include IN LISTS includes)
      string(REGEX REPLACE "-- include: ([a-z_]+\\.lua)\n" "\\1" shared "${include}")
      get_filename_component(shared_path "${shared}" ABSOLUTE)
      file(READ "${shared_path}" shared_text)
      string(REPLACE "${include}" "${shared_text}" text "${text}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${shared_path}")
    endforeach()
    string(REGEX REPLACE "(^|\n)([ ]*(--[^\n]*)?\n)+" "\\1" text "${text}")
    string(REGEX REPLACE "\n +" "\n" text "${text}")
    string(REGEX REPLACE " +-- [^\n]*\n" "\n" text "${text}")
    # SCRIPT LOAD and source_test compare text and digest with each other, so that a byte that CMake changed on the way
    # cannot go unseen.
    string(SHA1 digest "${text}")
    string(FIND "${text}" ")lua\"" end_mark)
    if(NOT end_mark EQUAL -1)
      message(FATAL_ERROR "${file} contains )lua\" and cannot be embedded; write it differently.")
    endif()
    string(APPEND constants
      "inline constexpr std::string_view ${name}_lua = R\"lua(${text})lua\";\n"
      "inline constexpr std::string_view ${name}_lua_sha1 = \"${digest}\";\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  endforeach()

  set(directory "${CMAKE_CURRENT_BINARY_DIR}/generated")
  set(content "// Generated from the .lua files by HoldfastEmbedLua.cmake. Edit those.
#pragma once
#include <string_view>

namespace holdfast::script {
${constants}}  // namespace holdfast::script
")
  # CONFIGURE would replace @X@ inside a script; GENERATE and WRITE have their own traps. So: write when it differs.
  set(out "${directory}/holdfast_scripts.hpp")
  set(present "")
  if(EXISTS "${out}")
    file(READ "${out}" present)
  endif()
  if(NOT present STREQUAL content)
    file(WRITE "${out}" "${content}")
  endif()
  target_include_directories(${target} PRIVATE "${directory}")
endfunction()
