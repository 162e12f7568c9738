# Builds with sanitizers compile sources by eights (CMAKE_UNITY_BUILD), and all builds the
# tests: in a third of the time. Sources of a release are compiled one by one, which shows
# that each includes what it needs.

# compiled_alone(FILES..): these have private names that other files of their folder have too
function(compiled_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
