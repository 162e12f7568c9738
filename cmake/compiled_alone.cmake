# SPDX-License-Identifier: BSD-3-Clause
# Builds compile sources by eights (CMAKE_UNITY_BUILD), in two thirds of the time;
# tests/style/includes tries that each includes what it needs.

# compiled_alone(FILES..): those whose private names another file of their eight has too. A
# "redefinition" or "ambiguous" in unity_N_cxx.cxx means that one more belongs here.
function(compiled_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON COMPILE_OPTIONS -Wshadow)
endfunction()
