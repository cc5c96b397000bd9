# SPDX-License-Identifier: Apache-2.0
# The library target `holdfast`, what a consumer sees of it, and how it is installed.
#
# A consumer sees include/ and C++20, nothing else: Boost, fmt, hiredis and OpenSSL are ours alone. (Who includes
# holdfast/asio.hpp brings Boost's headers along; the package does not look for them.) A shared library
# has them inside or names them in its own dynamic section; only a static one needs hiredis and OpenSSL to be linked.
include(CMakePackageConfigHelpers)

add_library(holdfast $<TARGET_OBJECTS:holdfast_objects>)
add_library(holdfast::holdfast ALIAS holdfast)
holdfast_set_up(holdfast)
file(GLOB_RECURSE public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/holdfast/*.hpp)
target_sources(holdfast PUBLIC
  FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${public_headers})
# The same objects as an archive, for script/check to compare beside a shared library.
if(PROJECT_IS_TOP_LEVEL AND BUILD_SHARED_LIBS)
  add_library(holdfast_archive STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:holdfast_objects>)
  set_target_properties(holdfast_archive PROPERTIES OUTPUT_NAME holdfast)
endif()
# While we are 0.x every minor version may change the ABI, so it is part of the soname.
set_target_properties(holdfast PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} INSTALL_RPATH "")

# hiredis has no CMake package in Debian 12. Inside the build it is the file that was found; a consumer of the static
# library gets it by name, because a path of the build machine means nothing there.
set(hiredis_library $<BUILD_INTERFACE:${HIREDIS_LIBRARY}>$<INSTALL_INTERFACE:-lhiredis>)
get_target_property(library_type holdfast TYPE)
if(library_type STREQUAL "STATIC_LIBRARY")
  target_link_libraries(holdfast PRIVATE ${hiredis_library} OpenSSL::SSL Threads::Threads)
  set(pc_requires_private "openssl")
  set(pc_libs_private "-lhiredis -lpthread")
else()
  # Wrapped, so that the exported target does not even name them: its consumers need not have them.
  target_link_libraries(holdfast PRIVATE
    $<BUILD_INTERFACE:${HIREDIS_LIBRARY}> $<BUILD_INTERFACE:OpenSSL::SSL> $<BUILD_INTERFACE:Threads::Threads>)
  # nodelete: the threads of a client that is gone end by themselves, be it behind the dlclose of the plug-in that had
  # it (docs/threads.md). Their code must be there still.
  target_link_options(holdfast PRIVATE
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/holdfast.map -Wl,-z,nodelete)
  set_property(TARGET holdfast APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/holdfast.map)
  set(pc_requires_private "")
  set(pc_libs_private "")
endif()

if(NOT HOLDFAST_INSTALL)
  return()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)
install(TARGETS holdfast EXPORT holdfast-targets
  RUNTIME COMPONENT runtime
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
  ARCHIVE COMPONENT development
  FILE_SET HEADERS COMPONENT development)
install(EXPORT holdfast-targets NAMESPACE holdfast:: DESTINATION ${package_dir} COMPONENT development)

set(HOLDFAST_IS_STATIC FALSE)
if(library_type STREQUAL "STATIC_LIBRARY")
  set(HOLDFAST_IS_STATIC TRUE)
endif()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/holdfast-config.cmake.in
  ${PROJECT_BINARY_DIR}/holdfast-config.cmake INSTALL_DESTINATION ${package_dir}
  NO_SET_AND_CHECK_MACRO)
# From 1.0 on this becomes SameMajorVersion.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/holdfast-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/holdfast-config.cmake ${PROJECT_BINARY_DIR}/holdfast-config-version.cmake
  DESTINATION ${package_dir} COMPONENT development)

# The .pc file finds the prefix from where it lies, so an installed tree may be moved; but not where the libraries are
# somewhere else than below the prefix. What is absolute stays what it is: that is how APPEND has it.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" pc_prefix "\${pcfiledir}/${pc_prefix}")
endif()
cmake_path(APPEND pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/holdfast.pc.in ${PROJECT_BINARY_DIR}/holdfast.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/holdfast.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

# With the texts that the licences of what is compiled in want beside a binary, and the pages that messages and headers
# name: as docs/acl.md, and with all that these lead to. Inside another project CMAKE_INSTALL_DOCDIR is that project's
# own, with its LICENSE.
set(docdir ${CMAKE_INSTALL_DOCDIR})
if(NOT PROJECT_IS_TOP_LEVEL)
  set(docdir ${CMAKE_INSTALL_DATAROOTDIR}/doc/holdfast)
endif()
install(FILES LICENSE DESTINATION ${docdir} COMPONENT runtime)
install(DIRECTORY LICENSES docs examples DESTINATION ${docdir} COMPONENT runtime
  PATTERN __pycache__ EXCLUDE
  PATTERN "*.py" PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
install(FILES bench/peers/README.md DESTINATION ${docdir}/bench/peers COMPONENT runtime)
