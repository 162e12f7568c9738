# SPDX-License-Identifier: BSD-3-Clause
# What is installed: the programs, and one library with the headers that stay.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# All that docs/embedding.md explains, and what these headers include. Nothing else is
# installed; what stands here is meant to stay.
set(public_headers
  actors/checkpoints/checkpoint_options.hpp
  actors/embedding/training.hpp actors/embedding/training_job.hpp actors/embedding/training_node.hpp actors/embedding/troupe.hpp
  actors/mail/relay.hpp actors/run/progress.hpp
  kernels/buffer.hpp kernels/checksum.hpp kernels/precision.hpp
  messaging/links/tls_files.hpp messaging/mail/tensors.hpp
  models/beginning.hpp models/check_layer.hpp models/data/data_set.hpp models/data/open_data.hpp
  models/data_identity.hpp models/model_options.hpp models/optimizer_options.hpp models/user_layer.hpp
  models/uneven_microbatches.hpp
  plan/user_exchange.hpp
  schedules/action.hpp schedules/catalog/catalog.hpp schedules/check.hpp
  schedules/files/schedule_file.hpp schedules/placement.hpp schedules/program.hpp schedules/schedule.hpp
  schedules/shape.hpp schedules/weights.hpp)

# They include one another from the root of the source; installed, from <troupe/..>.
set(include_dir "${PROJECT_BINARY_DIR}/include")
foreach(header ${public_headers})
  string(REPLACE "actors/embedding/troupe.hpp" "troupe.hpp" place ${header})
  set(made "${include_dir}/troupe/${place}")
  get_filename_component(folder "${made}" DIRECTORY)
  add_custom_command(OUTPUT "${made}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
    COMMAND sed "s|#include \"\\(.*\\)\"|#include <troupe/\\1>|"
      "${PROJECT_SOURCE_DIR}/${header}" > "${made}"
    DEPENDS "${PROJECT_SOURCE_DIR}/${header}" VERBATIM)
  list(APPEND made_headers "${made}")
  get_filename_component(folder "troupe/${place}" DIRECTORY)
  install(FILES "${made}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/${folder}")
endforeach()
add_custom_target(troupe_headers ALL DEPENDS ${made_headers})

# One library of the objects of all folders', static or shared as BUILD_SHARED_LIBS says.
set(parts troupe_schedules troupe_kernels troupe_models troupe_mail_schema
  troupe_messaging troupe_plan troupe_actors)
if(TROUPE_CUDA)
  list(APPEND parts troupe_cuda_kernels)
endif()
list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
add_library(troupe ${objects})
set_target_properties(troupe PROPERTIES LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(troupe PUBLIC cxx_std_20)
target_include_directories(troupe INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
target_link_libraries(troupe PUBLIC tl::expected CAF::core
  PRIVATE CAF::io CapnProto::capnp ZLIB::ZLIB OpenSSL::SSL XXHASH::xxhash ${CMAKE_DL_LIBS})
if(TROUPE_CUDA)
  target_link_libraries(troupe PRIVATE CUDA::cudart_static)
endif()
if(TROUPE_SANITIZERS)
  target_link_options(troupe PUBLIC -fsanitize=${TROUPE_SANITIZERS})
endif()

set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/troupe")
install(TARGETS troupe EXPORT troupe DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT troupe NAMESPACE troupe:: DESTINATION "${config_dir}" FILE troupeTargets.cmake)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/troupeConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/troupeConfig.cmake" INSTALL_DESTINATION "${config_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/troupeConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion) # before 1.0 a minor version may change what stays
install(FILES cmake/FindCAF.cmake cmake/FindXXHASH.cmake
  "${PROJECT_BINARY_DIR}/troupeConfig.cmake" "${PROJECT_BINARY_DIR}/troupeConfigVersion.cmake"
  DESTINATION "${config_dir}")

# The programs as `troupe NAME`. They find each other by where they are themselves.
get_property(programs DIRECTORY experiments PROPERTY BUILDSYSTEM_TARGETS)
list(REMOVE_ITEM programs troupe_support)
set(program_dir "${CMAKE_INSTALL_LIBEXECDIR}/troupe")
install(TARGETS ${programs} DESTINATION "${program_dir}")
install(PROGRAMS experiments/benchmarks/gpt2_in_pytorch.py experiments/benchmarks/rounds_in_pytorch.py
  DESTINATION "${CMAKE_INSTALL_DATADIR}/troupe/pytorch")
# A line each: the name, and the text behind it in the first line of the source.
set(program_list "")
set(sorted_programs ${programs})
list(SORT sorted_programs)
foreach(program ${sorted_programs})
  set(source "${PROJECT_SOURCE_DIR}/experiments/${program}.cpp")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  file(STRINGS "${source}" first_line LIMIT_COUNT 1)
  string(REGEX REPLACE "^// [a-z]*: " "" first_line "${first_line}")
  string(REPLACE "\\;" ";" first_line "${first_line}") # as file() escapes it
  string(SUBSTRING "${program}            " 0 14 padded)
  string(APPEND program_list "  ${padded}${first_line}\n")
endforeach()
configure_file(cmake/troupe.in troupe.launcher @ONLY)
install(PROGRAMS "${PROJECT_BINARY_DIR}/troupe.launcher" DESTINATION "${CMAKE_INSTALL_BINDIR}" RENAME troupe)
if(BUILD_SHARED_LIBS) # what the programs link to, beside them
  set_target_properties(${programs} PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS troupe_schedules troupe_kernels troupe_models troupe_messaging
    troupe_plan troupe_planner troupe_actors troupe_support DESTINATION "${program_dir}")
  set_target_properties(troupe_schedules troupe_kernels troupe_models troupe_messaging
    troupe_plan troupe_planner troupe_actors troupe_support PROPERTIES INSTALL_RPATH "$ORIGIN")
endif()

# As in the source, so that pages find one another.
install(FILES README.md LICENSE CITATION.cff cmake/copyright DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY examples DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY experiments/data DESTINATION "${CMAKE_INSTALL_DOCDIR}/experiments")

# Man pages have all options, as --help-all.
find_program(HELP2MAN help2man)
if(HELP2MAN)
  foreach(program ${programs})
    set(page "${PROJECT_BINARY_DIR}/man/troupe-${program}.1")
    add_custom_command(OUTPUT "${page}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${PROJECT_BINARY_DIR}/man"
      COMMAND "${PROJECT_SOURCE_DIR}/cmake/man_page" "${HELP2MAN}" ${PROJECT_VERSION} "$<TARGET_FILE:${program}>"
        "${PROJECT_SOURCE_DIR}/experiments/${program}.cpp" "${page}"
      DEPENDS ${program} "${PROJECT_SOURCE_DIR}/cmake/man_page" VERBATIM)
    list(APPEND pages "${page}")
  endforeach()
  add_custom_target(man_pages ALL DEPENDS ${pages})
  install(FILES ${pages} DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
endif()

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_CONTACT "the troupe authors")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains neural networks as a company of actors")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Built with -march=${TROUPE_ARCH}.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# What programs of one's own compile with.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
  "g++ | clang, cmake, libcaf-dev, libexpected-dev, libcapnp-dev, libssl-dev, libxxhash-dev, pkg-config, zlib1g-dev")
# The Python module is a package of its own; a tar file has all.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME troupe)
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-troupe)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "troupe (= ${PROJECT_VERSION}), ${TROUPE_PYTHON_PACKAGES}, python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS python3-torch)
include(CPack)
