# SPDX-License-Identifier: Apache-2.0
# For other scripts to read (`. script/ccache.sh`): compiles through ccache where there is one. Another clone of the
# same sources finds what this one has compiled: objects name no directory (-ffile-prefix-map, script/check equal).
if command -v ccache >/dev/null 2>&1; then
  export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}"
  export CCACHE_BASEDIR="${CCACHE_BASEDIR-$PWD}" CCACHE_NOHASHDIR="${CCACHE_NOHASHDIR-true}"
fi
