# SPDX-License-Identifier: BSD-3-Clause
# Debian's libxxhash-dev ships no CMake config.
find_path(XXHASH_INCLUDE_DIR xxhash.h)
find_library(XXHASH_LIBRARY xxhash)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(XXHASH DEFAULT_MSG XXHASH_LIBRARY XXHASH_INCLUDE_DIR)
if(XXHASH_FOUND AND NOT TARGET XXHASH::xxhash)
  add_library(XXHASH::xxhash UNKNOWN IMPORTED)
  set_target_properties(XXHASH::xxhash PROPERTIES IMPORTED_LOCATION "${XXHASH_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${XXHASH_INCLUDE_DIR}")
endif()
