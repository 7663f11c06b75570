#!/usr/bin/env bash
# Installs the library, its headers, and what pkg-config and CMake need to find them: adapters/c/install.sh PREFIX [TARGET]
#   cc $(pkg-config --cflags mcp) server.c $(pkg-config --libs mcp)       with PKG_CONFIG_PATH=PREFIX/lib/pkgconfig
#   find_package(mcp REQUIRED)  target_link_libraries(server mcp::mcp)    with CMAKE_PREFIX_PATH=PREFIX
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -ge 1 ] || { sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
mkdir -p "$1"
prefix=$(cd "$1" && pwd)
library=$("$here/build.sh" ${2:+"$2"})
version=$(sed -n '/^\[workspace.package\]/,/^version/s/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml")
mkdir -p "$prefix/include" "$prefix/lib/pkgconfig" "$prefix/lib/cmake/mcp"
cp "$here/include/mcp.h" "$here/include/mcp.hpp" "$prefix/include/"
cp "$library" "$prefix/lib/"
cat >"$prefix/lib/pkgconfig/mcp.pc" <<END
prefix=\${pcfiledir}/../..
Name: mcp
Description: The Model Context Protocol for C and C++
Version: $version
Cflags: -I\${prefix}/include
Libs: -L\${prefix}/lib -lmcp
END
cat >"$prefix/lib/cmake/mcp/mcpConfig.cmake" <<'END'
get_filename_component(_mcp_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET mcp::mcp)
  add_library(mcp::mcp STATIC IMPORTED)
  set_target_properties(mcp::mcp PROPERTIES
    IMPORTED_LOCATION "${_mcp_prefix}/lib/libmcp.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_mcp_prefix}/include")
endif()
END
cat >"$prefix/lib/cmake/mcp/mcpConfigVersion.cmake" <<END
set(PACKAGE_VERSION "$version")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
END
echo "$prefix"
